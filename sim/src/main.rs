//! The `stowage-sim` binary. See `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use stowage_sim::cli::Cli;

/// Used because a simulated API server allocates a JSON document for each request.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Err(failure) = Cli::parse().execute() else { return ExitCode::SUCCESS };
    // If stderr is closed, only the exit code reports the failure.
    let _ = writeln!(io::stderr(), "stowage-sim: {}", failure.message());
    failure.exit_code()
}
