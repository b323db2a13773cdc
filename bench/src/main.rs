//! `stowage-bench`: see `--help`.

use std::process::ExitCode;

use clap::Parser;
use stowage_bench::Cli;
use stowage_testbed::failure::Failure;

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => error.exit(),
        Err(why @ Failure::Run(_)) => {
            #[expect(clippy::print_stderr, reason = "the one sentence that the contract promises")]
            {
                eprintln!("stowage-bench: {why}");
            }
            ExitCode::FAILURE
        }
    }
}
