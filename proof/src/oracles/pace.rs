//! No object is written over and over (E2), under any fault and any writes by other actors.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use stowage_world::history::{Stored, What};

use super::Promise;
use super::case::Case;
use super::findings::Findings;
use super::state::HistoryStep;

/// Maximum number of changes of one object by operators within an hour.
///
/// The busiest scenario needs a fraction of this. Two operators that overwrite each other's changes
/// exceed it within minutes.
const MOST: usize = 240;
/// Maximum number of changes of a Lease, which is renewed every five seconds.
const MOST_RENEWALS: usize = 1000;
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Maximum number of times within [`MOMENT`] that a backend's `bucketCount` returns to its previous
/// value.
///
/// Two operators that see different claims count them every other second. Unless each adopts the
/// count of the other, they write as fast as they can.
const MOST_RETURNS: usize = 8;
const MOMENT: SignedDuration = SignedDuration::from_secs(10);

/// An object: its plural, namespace and name. A recreated claim is another object because of its
/// UID, as it is for the operator's own pace.
type Object<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// Times of changes by operators within the last hour, by object.
#[derive(Debug, Default)]
pub(super) struct Pace<'a> {
    changes: BTreeMap<Object<'a>, VecDeque<Timestamp>>,
    /// The last two counts of each backend, and the times at which one returned.
    counts: BTreeMap<&'a str, (VecDeque<i64>, VecDeque<Timestamp>)>,
}

impl<'a> Pace<'a> {
    /// Judges a step.
    pub(super) fn see(&mut self, case: &Case<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        let Some(What::Stored(stored)) = case.history.events.get(step.index).map(|event| &event.what) else { return };
        if !step.by_operator() {
            return;
        }
        if stored.plural == "s3backends" {
            self.count(stored, step, found);
        }
        let changes = self.changes.entry(object(stored)).or_default();
        changes.push_back(step.at);
        while changes.front().is_some_and(|first| step.at.duration_since(*first) > HOUR) {
            changes.pop_front();
        }
        // Reported once, not for every further change.
        let most = if stored.plural == "leases" { MOST_RENEWALS } else { MOST };
        if changes.len() == most + 1 {
            let (plural, namespace, name, _) = object(stored);
            let message = format!("{plural} {namespace}/{name} was changed more than {most} times within an hour");
            found.broken(Promise::E2, step, message);
        }
    }

    fn count(&mut self, stored: &'a Stored, step: &HistoryStep<'a>, found: &mut Findings) {
        let Some(count) = stored.new.as_ref().and_then(|backend| backend["status"]["bucketCount"].as_i64()) else {
            return;
        };
        let (last, returns) = self.counts.entry(&stored.name).or_default();
        if last.back() == Some(&count) {
            return;
        }
        let returned = last.len() == 2 && last.front() == Some(&count);
        last.push_back(count);
        if last.len() > 2 {
            last.pop_front();
        }
        if !returned {
            return;
        }
        returns.push_back(step.at);
        while returns.front().is_some_and(|first| step.at.duration_since(*first) > MOMENT) {
            returns.pop_front();
        }
        // Reported once, not for every further return.
        if returns.len() == MOST_RETURNS + 1 {
            let message = format!("bucketCount of backend {} goes to and fro, now to {count}", stored.name);
            found.broken(Promise::E2, step, message);
        }
    }
}

fn object(stored: &Stored) -> Object<'_> {
    let is_claim = stored.plural == "bucketclaims";
    let state = stored.new.as_ref().or(stored.old.as_ref()).filter(|_| is_claim);
    let uid = state.and_then(|claim| claim["metadata"]["uid"].as_str());
    (&stored.plural, &stored.namespace, &stored.name, uid)
}
