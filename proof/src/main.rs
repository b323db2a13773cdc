//! `stowage-proof`: see `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use stowage_proof::cli::Cli;

/// A fifth of an exploration's time is allocation, each schedule on a thread of its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Err(failure) = Cli::parse().execute() else { return ExitCode::SUCCESS };
    // Where nobody reads it, the exit code says it all.
    let _ = writeln!(io::stderr(), "stowage-proof: {}", failure.message());
    failure.exit_code()
}
