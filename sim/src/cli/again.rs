//! The commands that begin a simulator that runs again: `reset`, `snapshot`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use http::{Method, StatusCode};
use serde_json::Value;
use terminal::Failure;

use super::running::{Simulator, block_on, error_of, expect};
use crate::up::SNAPSHOT;

#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    #[command(flatten)]
    simulator: Simulator,
}

#[derive(Debug, Subcommand)]
pub(super) enum SnapshotCommand {
    /// Write everything that the simulator holds to a file: cluster, objects with their bytes,
    /// time, tokens. Whoever has the file has every key in it.
    Save {
        /// The file; one that is there is replaced.
        file: PathBuf,
        #[command(flatten)]
        simulator: Simulator,
    },
    /// Have the simulator go on from such a file, in place of all that it holds.
    Load {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        simulator: Simulator,
    },
}

/// `stowage-sim reset`.
pub(super) fn reset(args: &ResetArgs) -> Result<(), Failure> {
    block_on(async { expect(&args.simulator.client()?, Method::POST, "/reset", None).await }).map(drop)
}

/// `stowage-sim snapshot`.
pub(super) fn snapshot(command: &SnapshotCommand) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Save { file, simulator } => save(file, simulator),
        SnapshotCommand::Load { file, simulator } => load(file, simulator),
    }
}

/// Writes a file, whole or not at all, for its owner's eyes only.
fn save(file: &Path, simulator: &Simulator) -> Result<(), Failure> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let unwritable = |error: io::Error| format!("can't write {}: {error}", file.display());
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error).into()),
        _ => {}
    }
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    let mut out = io::BufWriter::new(new.map_err(unwritable)?);
    let saved = block_on(async { good(simulator.client()?.download("/snapshot", &mut out).await?) });
    let saved = saved.and_then(|()| {
        let written = out.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        Ok(written.and_then(|()| fs::rename(&unfinished, file)).map_err(unwritable)?)
    });
    if saved.is_err() {
        // It is of no use.
        let _ = fs::remove_file(&unfinished);
    }
    saved
}

fn load(file: &Path, simulator: &Simulator) -> Result<(), Failure> {
    let open = File::open(file).map_err(|error| format!("can't read {}: {error}", file.display()))?;
    block_on(async { good(simulator.client()?.upload("/snapshot", SNAPSHOT, open).await?) })
}

/// An answer that has to be good.
fn good((status, answer): (StatusCode, Value)) -> Result<(), Failure> {
    if status.is_success() { Ok(()) } else { Err(Failure::Found(error_of(&answer))) }
}
