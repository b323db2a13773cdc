//! `stowage-operator`: see `--help`.

use std::process::ExitCode;

use stowage_operator::Cli;

fn main() -> ExitCode {
    match Cli::of_process().execute() {
        Ok(code) => code,
        Err(why) => {
            #[expect(clippy::print_stderr, reason = "the one sentence that the contract promises")]
            {
                eprintln!("stowage-operator: {why}");
            }
            ExitCode::FAILURE
        }
    }
}
