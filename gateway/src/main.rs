//! The `stowage-gateway` binary: see `--help`.

use std::process::ExitCode;

use clap::Parser;
use stowage_gateway::Cli;

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            #[expect(clippy::print_stderr, reason = "the one sentence that the command line promises")]
            {
                eprintln!("stowage-gateway: {why}");
            }
            ExitCode::FAILURE
        }
    }
}
