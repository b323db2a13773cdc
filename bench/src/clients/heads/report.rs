//! Report on all requests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::generate::{Kind, Request};
use super::judge::{Judged, Outcome, Understood};
use super::wire::{CUT, Written};

/// Maximum number of failures in the report, and of bytes of each.
const TOLD: usize = 20;
const TOLD_BYTES: usize = 2048;

/// Results of a run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    /// Number of requests sent.
    pub(super) sent: u64,
    /// Number of requests that reached the store.
    pub(super) forwarded: u64,
    /// Counts by the part that is unusual.
    pub(super) kinds: BTreeMap<Kind, Count>,
    /// Number of operations that the store understood, by the store's names.
    operations: BTreeMap<String, u64>,
    /// Number of the gateway's responses by status; 0 if it closed the connection without one.
    statuses: BTreeMap<u16, u64>,
    /// Number of failures, and the first of them.
    pub(super) wrong: u64,
    first: Vec<String>,
    /// Number of watched objects and files that no tenant may touch.
    watched: usize,
    /// Those that changed.
    pub(super) changes: Vec<String>,
}

/// Results of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) sent: u64,
    /// Reached the store.
    pub(super) forwarded: u64,
    /// Refused by the gateway.
    pub(super) refused: u64,
    /// Answered by the gateway from its own state.
    pub(super) answered: u64,
}

impl Report {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, kinds: Kind::ALL.map(|kind| (kind, Count::default())).into(), ..Self::default() }
    }

    /// Counts a request, and the errors in its result.
    pub(super) fn add(&mut self, request: &Request, sent: &Written, outcome: &Outcome<'_>, judged: &Judged) {
        let Judged { wrong, is_forwarded } = judged;
        let count = self.kinds.entry(request.kind).or_default();
        self.sent += 1;
        count.sent += 1;
        if *is_forwarded {
            self.forwarded += 1;
            count.forwarded += 1;
        } else if outcome.answer.status >= 400 || outcome.answer.status == CUT {
            count.refused += 1;
        } else {
            count.answered += 1;
        }
        *self.statuses.entry(outcome.answer.status).or_default() += 1;
        for Understood { operation, .. } in outcome.understood {
            *self.operations.entry(operation.clone()).or_default() += 1;
        }
        if wrong.is_empty() {
            return;
        }
        self.wrong += 1;
        if self.first.len() < TOLD {
            let status = outcome.answer.status;
            self.first.push(format!("{request}, answered {status}: {}\n{}", wrong.join("; "), sent.text(TOLD_BYTES)));
        }
    }

    /// Records the final state of the watched objects.
    pub(super) fn looked_at(&mut self, watched: usize, changes: Vec<String>) {
        (self.watched, self.changes) = (watched, changes);
    }

    /// Returns a line of progress.
    pub(super) fn progress(&self) -> String {
        format!("{} requests, {} came to the store, {} went wrong", self.sent, self.forwarded, self.wrong)
    }

    pub(super) fn text(&self) -> String {
        let Self { seed, sent, forwarded, wrong, watched, .. } = self;
        let mut text = format!("seed {seed}: {sent} requests, {forwarded} came to the store\n");
        text.push_str(&format!("{:<12}{:>9}{:>11}{:>9}{:>10}\n", "odd", "sent", "forwarded", "refused", "answered"));
        for (kind, Count { sent, forwarded, refused, answered }) in &self.kinds {
            text.push_str(&format!("{:<12}{sent:>9}{forwarded:>11}{refused:>9}{answered:>10}\n", kind.name()));
        }
        text.push_str("understood by the store:\n");
        for (operation, count) in &self.operations {
            text.push_str(&format!("  {operation:<32} {count:>7}\n"));
        }
        text.push_str("answers:");
        self.statuses.iter().for_each(|(status, count)| text.push_str(&format!(" {status}: {count}")));
        text.push_str(&format!("\n{wrong} went wrong\n"));
        self.first.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text.push_str(&format!("{} of {watched} objects and files of others changed\n", self.changes.len()));
        self.changes.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }
}
