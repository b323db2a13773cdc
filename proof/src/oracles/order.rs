//! The order of changes (I12): finalizer and record come before the first effect outside of
//! Kubernetes; the finalizer is removed after the bucket's outcome and the revocation are stored.

use std::collections::BTreeMap;

use stowage_world::effects::{Call, Fault, Line, S3Fault};
use stowage_world::history::Called;

use super::Promise;
use super::findings::Findings;
use super::ground::{destroys, is_look};
use super::state::{Hand, HistoryStep, Place, Seen, State};
use super::views::{Claim, Record, Secret};

/// The oracle's memory of reads of buckets.
#[derive(Debug, Default)]
pub(super) struct Order<'a> {
    /// Index of the event at which a bucket was last seen absent, by host and name.
    absent: BTreeMap<(&'a str, &'a str), usize>,
    /// Index of the event at which a record was created.
    held: BTreeMap<Place<'a>, usize>,
}

impl<'a> Order<'a> {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::Called(called) if called.operation.is_read() => {
                let past =
                    |number| state.line(number).is_some_and(|line| line.fault == Some(Fault::S3(S3Fault::StaleRead)));
                let hidden = matches!(step.hand, Hand::Operator(number) if past(number));
                if let Some(bucket) = called.bucket.as_deref().filter(|_| called.before.is_none() || hidden) {
                    self.absent.insert((called.host.as_str(), bucket), step.index);
                }
            }
            Seen::Secret(place, Some(Secret::Record(record))) => {
                let old = match state.secrets.get(place).map(|held| &held.secret) {
                    Some(Secret::Record(old)) => Some(old),
                    _ => {
                        self.held.insert(*place, step.index);
                        None
                    }
                };
                if step.by_operator() && record.absence && !old.is_some_and(|old| old.absence) {
                    self.judge_absence(step, *place, record, found);
                }
            }
            _ => {}
        }
        judge(state, step, found);
    }

    /// Judges that absence is noted only for a bucket that was seen absent while the record
    /// existed.
    fn judge_absence(&self, step: &HistoryStep<'a>, place: Place<'a>, record: &Record, found: &mut Findings) {
        let seen = self.absent.iter().find(|((host, bucket), _)| *host == record.host && *bucket == record.bucket);
        let held = self.held.get(&place).copied().unwrap_or_default();
        if seen.is_none_or(|(_, seen)| *seen < held) {
            let message = format!("record {} says that bucket {} is absent, unseen", place.1, record.bucket);
            found.broken(Promise::I12, step, message);
        }
    }
}

fn judge(state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
    if !step.by_operator() {
        return;
    }
    match &step.seen {
        Seen::Called(called) if !called.operation.is_read() => before_effect(state, step, called, found),
        Seen::Claim(stored, new) => {
            let Some(old) = stored.old.as_deref().and_then(Claim::read) else { return };
            if old.has_finalizer() && !new.is_some_and(|new| new.has_finalizer()) {
                before_finalizer_goes(state, step, &old, found);
            }
        }
        _ => {}
    }
}

fn before_effect(state: &State<'_>, step: &HistoryStep<'_>, called: &Called, found: &mut Findings) {
    let Some(bucket) = called.bucket.as_deref() else { return };
    let what = format!("{} {bucket}", called.operation);
    let Some(record) = record_of(state, called) else {
        // The record, or the whole claim, may have been deleted by hand while the call was in
        // flight.
        let meddled = state.lives.values().any(|life| life.meddling.record || life.meddling.finalizer);
        let message = format!("{what} is called without a bucket record");
        match () {
            () if meddled => {}
            () if !state.alone && is_late(state, step, called) => found.limit(Promise::I12, step, message),
            () => found.broken(Promise::I12, step, message),
        }
        return;
    };
    let Some(life) = state.lives.get(record.uid.as_str()) else { return };
    let held = life.gone.is_none() && life.claim.has_finalizer();
    if !held && !life.meddling.finalizer {
        let claim = life.claim.full_name();
        found.broken(Promise::I12, step, format!("{what} is called while claim {claim} has no finalizer"));
    }
    if called.operation.name() == "CreateBucket" && !record.absence && !life.meddling.record {
        found.broken(Promise::I12, step, format!("{what} is called before its absence is in the record"));
    }
}

/// Returns true if an operator may have been paused since it decided on the call, so that another
/// one could release the claim.
///
/// Destroying calls are judged by I1. Tags and settings follow the call that created the bucket.
fn is_late(state: &State<'_>, step: &HistoryStep<'_>, called: &Called) -> bool {
    let looks =
        |line: &Line| matches!(&line.call, Call::S3(call) if call.bucket == called.bucket && is_look(call.operation));
    match called.operation.name() {
        _ if destroys(called.operation) => true,
        "CreateBucket" => state.stood_still(step.hand),
        _ => state.stood_still_since(step.hand, looks),
    }
}

/// Returns the record of the bucket of a call. If there is none, returns a record of that name at
/// another store, because the backend may have moved.
pub(super) fn record_of<'s>(state: &'s State<'_>, called: &Called) -> Option<&'s Record> {
    let bucket = called.bucket.as_deref()?;
    let records = || {
        state.secrets.values().filter_map(|held| match &held.secret {
            Secret::Record(record) if record.bucket == bucket => Some(record),
            _ => None,
        })
    };
    records().find(|record| record.host == called.host).or_else(|| records().next())
}

fn before_finalizer_goes(state: &State<'_>, step: &HistoryStep<'_>, claim: &Claim<'_>, found: &mut Findings) {
    let name = claim.full_name();
    if !claim.is_deleting() {
        found.broken(Promise::I12, step, format!("claim {name} loses its finalizer while nobody deletes it"));
    }
    if !state.alone {
        // Secrets that the other operator created meanwhile are swept.
        return;
    }
    for ((_, secret), held) in state.of(claim.uid) {
        let what = match held.secret {
            Secret::Record(_) => "record",
            Secret::Key(_) => "key",
            Secret::Binding(_) => "binding",
            Secret::Consumer(_) | Secret::OfAccess | Secret::Other => continue,
        };
        let message = format!("claim {name} loses its finalizer before {what} {secret} is gone");
        if state.is_untold(claim.uid, held) {
            found.limit(Promise::I12, step, message);
        } else {
            found.broken(Promise::I12, step, message);
        }
    }
}
