//! `stowage-sim`: see `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use stowage_sim::cli::{Cli, Failure};

/// A fifth of an exploration's time is allocation, each schedule on a thread of its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (why, code) = match Cli::parse().execute() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Found(why)) => (why, ExitCode::FAILURE),
        Err(Failure::Usage(why)) => (why, ExitCode::from(2)),
        Err(Failure::Interrupted(why)) => (why, ExitCode::from(130)),
    };
    // Where nobody reads it, the exit code says it all.
    let _ = writeln!(io::stderr(), "stowage-sim: {why}");
    code
}
