//! Settings of a measurement of operators.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use stowage_testbed::console::Output;
use stowage_testbed::control_plane::Programs;

use super::claims::Batch;
use super::environment::Plan;
use super::phase::Phase;
use crate::measure::stores::Program;

/// Settings of a run.
pub(crate) struct Settings {
    pub(super) subjects: Vec<Subject>,
    pub(super) rounds: usize,
    pub(super) claims: usize,
    pub(super) namespaces: Vec<String>,
    pub(super) phases: Vec<Phase>,
    pub(super) store: Program,
    pub(super) programs: Programs,
    pub(super) healthy: usize,
    pub(super) hung: usize,
    pub(super) purges: usize,
    pub(super) purge_objects: usize,
    pub(super) idle: Duration,
    pub(super) timeout: Duration,
    pub(super) output: Output,
}

/// An operator to measure.
pub(super) struct Subject {
    pub(super) command: Vec<String>,
    pub(super) definitions: Option<PathBuf>,
}

impl Settings {
    /// Returns a batch of `count` claims with this name, with buckets that are deleted with them.
    pub(super) fn batch(&self, name: &str, count: usize, backend: &str) -> Batch {
        Batch::new(name, count, &self.namespaces, backend, json!({"deletionPolicy": "Delete"}))
    }

    /// Returns the settings of this subject's environment.
    pub(super) fn plan<'a>(&'a self, subject: &'a Subject) -> Plan<'a> {
        Plan {
            programs: &self.programs,
            store: &self.store,
            definitions: subject.definitions.as_deref(),
            namespaces: &self.namespaces,
            patience: self.timeout,
        }
    }
}
