//! What a pass has done, in one line of the log.

use std::time::Duration;

use crate::plan::Step;

/// What a pass has done, for the log.
#[derive(Default)]
pub(super) struct Done {
    /// The first acts, in words.
    acts: Vec<String>,
    /// How many there were besides.
    more: usize,
    looks: usize,
}

/// So many acts of a pass are told in its line.
const MOST_TOLD: usize = 16;

impl Done {
    /// Takes in a step that is taken.
    pub(super) fn take_in(&mut self, step: &Step) {
        match step {
            Step::Act(act) if self.acts.len() < MOST_TOLD => self.acts.push(act.to_string()),
            Step::Act(_) => self.more += 1,
            Step::Look(_) => self.looks += 1,
            Step::Rest(_) => {}
        }
    }

    /// One line of a pass that did something, and none at this level of one that only looked.
    pub(super) fn tell(&self, took: Duration) {
        let (acts, more, looks, seconds) = (self.acts.join(", "), self.more, self.looks, took.as_secs_f32());
        if self.acts.is_empty() {
            tracing::debug!(looks, seconds, "looked");
        } else {
            tracing::info!(acts, more, looks, seconds, "worked");
        }
    }
}
