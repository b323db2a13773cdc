//! `stowage-sim`: see `--help`.

use std::process::ExitCode;

use clap::Parser;
use stowage_sim::cli::Cli;

/// A fifth of an exploration's time is allocation, each schedule on a thread of its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            #[expect(clippy::print_stderr, reason = "the one sentence that the contract promises")]
            {
                eprintln!("stowage-sim: {why}");
            }
            ExitCode::FAILURE
        }
    }
}
