//! The log line that sums up a pass.

use std::time::Duration;

use crate::plan::Step;

/// Steps of a pass, for the log.
#[derive(Default)]
pub(super) struct Done {
    /// The first acts, as text.
    acts: Vec<String>,
    /// Number of further acts.
    more: usize,
    looks: usize,
}

/// Maximum number of acts listed in the log line.
const MOST_TOLD: usize = 16;

impl Done {
    /// Counts a step.
    pub(super) fn take_in(&mut self, step: &Step) {
        match step {
            Step::Act(act) if self.acts.len() < MOST_TOLD => self.acts.push(act.to_string()),
            Step::Act(_) => self.more += 1,
            Step::Look(_) => self.looks += 1,
            Step::Rest(_) => {}
        }
    }

    /// Logs the pass: at info level if it changed something, otherwise at debug level.
    pub(super) fn tell(&self, took: Duration) {
        let (acts, more, looks, seconds) = (self.acts.join(", "), self.more, self.looks, took.as_secs_f32());
        if self.acts.is_empty() {
            tracing::debug!(looks, seconds, "looked");
        } else {
            tracing::info!(acts, more, looks, seconds, "worked");
        }
    }
}
