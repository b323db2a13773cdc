//! Entry point of `stowage-proof`; see `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use stowage_proof::cli::Cli;

/// Allocator of the process. Each schedule has its own thread, and a fifth of an exploration's time
/// is allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Err(failure) = Cli::parse().execute() else { return ExitCode::SUCCESS };
    // If stderr is closed, the exit code is the only report.
    let _ = writeln!(io::stderr(), "stowage-proof: {}", failure.message());
    failure.exit_code()
}
