//! Settings of a measurement of gateways.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use super::case::{Case, Shape};
use super::subjects::Subject;
use crate::measure::cpus::Cpus;
use crate::measure::stores::Program;

/// Format of the results.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    /// A table.
    Text,
    /// One JSON document with the values of each round.
    Json,
    /// The tables of docs/proof/performance.md in full, with the machine and the bars that are met.
    Markdown,
}

/// Settings of a run.
pub(crate) struct Settings {
    pub(super) subjects: Vec<Subject>,
    /// Programs for comparison that this machine doesn't have.
    pub(super) missing: Vec<&'static str>,
    pub(super) rounds: usize,
    pub(super) cases: Vec<Case>,
    pub(super) time: Duration,
    pub(super) connections: usize,
    pub(super) large_connections: usize,
    pub(super) large: u64,
    pub(super) keys: usize,
    pub(super) streams: usize,
    pub(super) revocations: usize,
    /// The store on the gateway's core.
    pub(super) real: Option<Program>,
    pub(super) patience: Duration,
    pub(super) cpus: Cpus,
    pub(super) output: Form,
}

/// Description of a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct About {
    keys: usize,
    connections: usize,
    large_connections: usize,
    large_mebibytes: u64,
    seconds: u64,
    cpus: String,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, connections, large_connections, large_mebibytes, seconds, cpus } = self;
        write!(
            f,
            "{keys} keys, {connections} clients, {large_connections} of objects of {large_mebibytes} MiB, {seconds} s \
             each; {cpus}"
        )
    }
}

impl Settings {
    /// Keeps this thread, and threads that it starts from now on, off the measured program's core.
    pub(crate) fn stay_off_its_core(&self) -> Result<()> {
        self.cpus.stay_off_the_subjects()
    }

    /// True if a case of this shape is measured.
    pub(super) fn plays(&self, shape: Shape) -> bool {
        self.cases.iter().any(|case| case.shape() == shape)
    }

    /// Returns the description of the run, which is printed with the values.
    pub(super) fn about(&self) -> About {
        About {
            keys: self.keys,
            connections: self.connections,
            large_connections: self.large_connections,
            large_mebibytes: self.large >> 20,
            seconds: self.time.as_secs(),
            cpus: self.cpus.to_string(),
        }
    }
}
