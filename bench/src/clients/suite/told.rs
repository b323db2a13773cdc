//! The report of the suite's plug-in: a line of JSON for each test.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// A response that refused a request.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Refused {
    /// The operation by the client's name, or a method.
    pub(super) request: String,
    pub(super) status: u16,
    /// Number of requests that the store answered in the meantime.
    pub(super) calls: u32,
}

impl Refused {
    /// True for a status with which the gateway refuses requests that it knows and doesn't support.
    pub(super) fn is_denial(&self) -> bool {
        matches!(self.status, 403 | 405 | 501)
    }
}

/// A line of the report.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) test: String,
    pub(super) outcome: Outcome,
    pub(super) why: String,
    pub(super) refused: Vec<Refused>,
}

/// Parses a report.
///
/// # Errors
/// Fails if a line is malformed.
pub(super) fn read(text: &str) -> Result<Vec<Told>> {
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("no line of a report: {line}")))
        .collect()
}
