//! What the suite's plug-in reports: a line of JSON for each test.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// An answer that refused something.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Refused {
    /// The operation, as the client calls it, or a method.
    pub(super) request: String,
    pub(super) status: u16,
    /// How many requests the store answered meanwhile.
    pub(super) calls: u32,
}

impl Refused {
    /// Whether it is in the words by which the gateway refuses what it knows, and doesn't do.
    pub(super) fn is_denial(&self) -> bool {
        matches!(self.status, 403 | 405 | 501)
    }
}

/// One test.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) test: String,
    pub(super) outcome: Outcome,
    pub(super) why: String,
    pub(super) refused: Vec<Refused>,
}

/// Reads a report.
///
/// # Errors
/// When a line is none of a report.
pub(super) fn read(text: &str) -> Result<Vec<Told>> {
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("no line of a report: {line}")))
        .collect()
}
