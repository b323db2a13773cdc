//! The commands that replace the state of a running simulator: `reset`, `snapshot`.

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
    /// Write the whole state of the simulator to a file: cluster, objects with their bytes, time,
    /// tokens. The file contains every key, so keep it secret.
    Save {
        /// The file to write; an existing one is replaced.
        file: PathBuf,
        #[command(flatten)]
        simulator: Simulator,
    },
    /// Replace the whole state of the simulator with that of a file.
    Load {
        /// The file to read.
        file: PathBuf,
        #[command(flatten)]
        simulator: Simulator,
    },
}

/// Runs `stowage-sim reset`.
pub(super) fn reset(args: &ResetArgs) -> Result<(), Failure> {
    block_on(async { expect(&args.simulator.client()?, Method::POST, "/reset", None).await }).map(drop)
}

/// Runs `stowage-sim snapshot`.
pub(super) fn snapshot(command: &SnapshotCommand) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Save { file, simulator } => save(file, simulator),
        SnapshotCommand::Load { file, simulator } => load(file, simulator),
    }
}

/// Writes the snapshot to a file atomically, with access for its owner only.
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
        // An incomplete file is of no use.
        let _ = fs::remove_file(&unfinished);
    }
    saved
}

fn load(file: &Path, simulator: &Simulator) -> Result<(), Failure> {
    let open = File::open(file).map_err(|error| format!("can't read {}: {error}", file.display()))?;
    block_on(async { good(simulator.client()?.upload("/snapshot", SNAPSHOT, open).await?) })
}

/// Returns the error of an answer without success.
fn good((status, answer): (StatusCode, Value)) -> Result<(), Failure> {
    if status.is_success() { Ok(()) } else { Err(Failure::Found(error_of(&answer))) }
}
