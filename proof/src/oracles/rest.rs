//! Unnecessary work: any change at rest (E1), and repeated or futile creations and deletions (E3).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube_sim::Asked;
use seeded::VirtualClock;
use serde_json::Value;
use stowage_world::effects::{Call, Fault, KubeFault, KubeVerb, Line};
use stowage_world::history::{Called, Stored};

use super::case::Case;
use super::findings::{Findings, Violation};
use super::order::record_of;
use super::state::{Edit, Hand, HistoryStep, Place, Seen, State};
use super::views::{Claim, End, Key, Record, Secret};
use super::{Promise, public};

/// Minimum time between two checks at rest. A bucket is checked, and a backend is probed, once in
/// ten minutes, plus or minus a tenth (spec §1, §5).
///
/// An operation that keeps a claim from its goal is also retried when someone touches the claim;
/// but it changes nothing.
const BETWEEN_LOOKS: SignedDuration = SignedDuration::from_secs(9 * 60);

/// Minimum time between two watch requests: kube-runtime sets a timeout of 290 s.
const BETWEEN_WATCHES: SignedDuration = SignedDuration::from_secs(4 * 60);
/// Maximum number of backends with the same admin Secret, which each backend reads for its probe.
const PROBES_ALIKE: usize = 2;
/// Maximum number of watches of an operator that look alike: Secrets of its namespace, by label,
/// and one for each of two backends.
const WATCHES_ALIKE: usize = 3;

/// The oracle's memory of calls and objects.
#[derive(Debug, Default)]
pub(super) struct Quiescence<'a> {
    /// Time since when the operator is at rest.
    since: Option<Timestamp>,
    /// Time of the last call of each operation on each bucket, by life of the operator.
    calls: BTreeMap<(u32, &'a str, &'a str, &'a str), Timestamp>,
    /// Secrets that the operator created, and has no reason to create again.
    made: BTreeSet<Place<'a>>,
    /// Time of the last reported measurement of each claim's bucket.
    usage: BTreeMap<(&'a str, &'a str), Timestamp>,
    /// Lives of operators, with the time of measurements that they reported after another life had.
    late: BTreeSet<(u32, Timestamp)>,
    /// Number of keys that each claim was given, by UID.
    keys: BTreeMap<String, usize>,
}

impl<'a> Quiescence<'a> {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::AtRest => self.since = Some(step.at),
            // Leader election doesn't count as work.
            Seen::Asked(asked) if asked.plural == "leases" => {}
            Seen::Asked(asked) if self.since.is_some() && step.by_operator() && is_calm(state) => {
                if let Some(usage) = told_usage(state, asked) {
                    let seldom = if usage.is_told {
                        self.late.insert((state.life(step.hand).unwrap_or_default(), usage.measured_at))
                    } else {
                        self.tells_seldom(asked, &usage)
                    };
                    if seldom {
                        return;
                    }
                }
                let message = format!(
                    "at rest {} {} {}/{} is asked for",
                    asked.method, asked.plural, asked.namespace, asked.name
                );
                found.broken(Promise::E1, step, message);
            }
            Seen::Called(called) if step.by_operator() => {
                let bucket = called.bucket.as_deref().unwrap_or_default();
                let operation = called.operation.name();
                let life = state.life(step.hand).unwrap_or_default();
                let last = self.calls.insert((life, called.host.as_str(), bucket, operation), step.at);
                if let Some(since) = self.since.filter(|_| is_calm(state)) {
                    // The first check of a bucket is at a random time within the ten minutes, so
                    // that not all are checked at once.
                    let counts = |last: &Timestamp| *last >= since;
                    let soon = |last: Timestamp| step.at.duration_since(last) < BETWEEN_LOOKS;
                    if !called.operation.is_read() || last.filter(counts).is_some_and(soon) {
                        found.broken(Promise::E1, step, format!("at rest {operation} {bucket} is called"));
                    }
                }
                if operation == "CreateBucket" {
                    judge_creation(state, step, called, found);
                }
            }
            Seen::Secret(place, new) => self.see_secret(state, step, *place, new.as_ref(), found),
            _ => {}
        }
        let stored = match &step.seen {
            // The rate of usage reports is judged at their requests.
            Seen::Claim(stored, _) => !tells_of_usage(stored),
            Seen::Secret(..) => true,
            Seen::Object(stored) => stored.plural != "leases",
            _ => false,
        };
        if stored && self.since.is_some() && step.by_operator() && !is_calm(state) && !reads_the_past(state) {
            found.broken(Promise::E1, step, "at rest an object is written".to_owned());
        }
    }

    /// Returns true if a report is rare enough: it was measured at least the time between two
    /// checks after the previous one, or crosses a limit.
    fn tells_seldom(&mut self, asked: &'a Asked, usage: &Usage) -> bool {
        let last = self.usage.insert((&asked.namespace, &asked.name), usage.measured_at);
        usage.is_crossing || last.is_none_or(|last| usage.measured_at.duration_since(last) >= BETWEEN_LOOKS)
    }

    fn see_secret(
        &mut self,
        state: &State<'a>,
        step: &HistoryStep<'a>,
        place: Place<'a>,
        new: Option<&Secret<'a>>,
        found: &mut Findings,
    ) {
        let (namespace, name) = place;
        let old = state.secrets.get(&place).map(|held| &held.secret);
        match (step.hand, old, new) {
            (Hand::Other, _, None) => {
                self.made.remove(&place);
            }
            (Hand::Operator(_), None, Some(_)) => {
                if !self.made.insert(place) {
                    found.broken(Promise::E3, step, format!("Secret {namespace}/{name} is made a second time"));
                }
                if let Some(Secret::Key(key)) = new {
                    let number = self.keys.entry(key.uid.clone()).or_default();
                    *number += 1;
                    judge_reason(state, step, key, *number, found);
                }
            }
            // A Secret that was deleted for a reason may be created again for one.
            (Hand::Operator(_), Some(old), None) if may_go(state, step, place, old) => {
                self.made.remove(&place);
            }
            (Hand::Operator(_), Some(_), None) => {
                let message = format!("Secret {namespace}/{name} is deleted while its claim lives and needs it");
                found.broken(Promise::E3, step, message);
            }
            _ => {}
        }
    }
}

/// Judges reads of the API server at rest: each watch when its timeout is over, each object when a
/// check needs it, and no list.
///
/// The history has no events for reads, so the trace is examined at the end.
pub(super) fn judge_reads(case: &Case<'_>, state: &State<'_>, found: &mut Findings) {
    let Some(since) = case.history.at_rest().filter(|_| is_calm(state)) else { return };
    let since = since.duration_since(VirtualClock::epoch());
    let mut reads: BTreeMap<(u32, String), Vec<SignedDuration>> = BTreeMap::new();
    for line in case.history.trace.lines() {
        let (at, Call::Kube(call)) = (began(line), &line.call) else { continue };
        let (most, within) = match call.verb {
            KubeVerb::List => (0, SignedDuration::MAX),
            KubeVerb::Get => (PROBES_ALIKE, BETWEEN_LOOKS),
            KubeVerb::Watch => (WATCHES_ALIKE, BETWEEN_WATCHES),
            // Writes are judged at their requests.
            _ => continue,
        };
        if at <= since {
            continue;
        }
        let alike = reads.entry((line.instance, line.call.to_string())).or_default();
        alike.push(at);
        if alike.iter().filter(|other| at - **other < within).count() > most {
            let call = &line.call;
            let message = format!("at rest {call} is asked for more than {most} times in {} s", within.as_secs());
            return found.add(Violation { promise: Promise::E1, message, event: None });
        }
    }
}

/// A usage report in a claim's status.
struct Usage {
    measured_at: Timestamp,
    /// True if the usage reaches the hard quota, or falls below it again.
    is_crossing: bool,
    /// True if another operator has reported it already: both learn of a measurement at once, and
    /// the API server refuses the second write, which would change nothing.
    is_told: bool,
}

/// Returns the usage if a status write changes nothing else: tenants go on working when the
/// operator is at rest (spec §6).
fn told_usage(state: &State<'_>, asked: &Asked) -> Option<Usage> {
    let operations: Vec<Value> = serde_json::from_slice(&asked.body).ok()?;
    let status = &operations.iter().find(|operation| operation["path"] == "/status")?["value"];
    let is_it = |claim: &&Claim<'_>| claim.namespace == asked.namespace && claim.name == asked.name;
    let mut lives = state.lives.values().filter(|life| life.gone.is_none()).map(|life| &life.claim);
    let claim = lives.find(is_it)?;
    let before = &claim.object["status"];
    let is_told = before["usage"] == status["usage"];
    let is_usage = asked.plural == "bucketclaims" && but_usage(before) == but_usage(status);
    let is_full =
        |status: &Value| claim.hard_quota().is_some_and(|hard| status["usage"]["bytes"].as_u64() >= Some(hard));
    let measured_at = status["usage"]["measuredAt"].as_str()?.parse().ok()?;
    let usage = Usage { measured_at, is_crossing: is_full(before) != is_full(status), is_told };
    (is_usage && !(is_told && state.alone)).then_some(usage)
}

/// Returns a status without its usage.
fn but_usage(status: &Value) -> serde_json::Map<String, Value> {
    let mut fields = status.as_object().cloned().unwrap_or_default();
    fields.remove("usage");
    fields
}

/// Returns true if only the usage in a claim's status changed.
fn tells_of_usage(stored: &Stored) -> bool {
    let (Some(old), Some(new)) = (stored.old.as_deref(), stored.new.as_deref()) else { return false };
    let is_same = old["spec"] == new["spec"] && but_usage(&old["status"]) == but_usage(&new["status"]);
    is_same && old["status"]["usage"] != new["status"]["usage"]
}

/// Returns the time at which a call began, since the start of the run.
fn began(line: &Line) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(line.began_ms).unwrap_or(i64::MAX))
}

/// Returns true if every claim is Ready.
fn is_calm(state: &State<'_>) -> bool {
    state.lives.values().filter(|life| life.gone.is_none()).all(|life| life.claim.is_ready())
}

/// Returns true if a Secret is no longer needed, because its claim is being deleted or has moved
/// on.
fn may_go(state: &State<'_>, step: &HistoryStep<'_>, (_, name): Place<'_>, secret: &Secret<'_>) -> bool {
    let Some(life) = secret.uid().and_then(|uid| state.lives.get(uid)) else { return true };
    if life.gone.is_some() || life.claim.is_deleting() || life.meddling.finalizer {
        return true;
    }
    match secret {
        Secret::Key(key) => {
            let now = state.clocks.latest_of_operator(step.at);
            matches!(key.end, End::At(end) if end <= now) || !key.counts || state.is_revoked(key)
        }
        // In a move the public access to the former bucket is withdrawn, unless the binding was
        // changed to the next one. So is that of a bucket which is held at two endpoints, if the
        // key that proved them to be the same bucket was deleted by hand.
        Secret::Binding(binding) => {
            let is_untold = life.meddling.keys && records_of(state, life.claim.uid) > 1;
            let next = |record: &Record| binding.access.as_ref().is_none_or(|access| !public::opens(access, record));
            let moves = |secret: &Secret<'_>| matches!(secret, Secret::Record(record) if next(record));
            let is_left = is_untold || state.of(life.claim.uid).any(|(_, held)| moves(&held.secret));
            !life.claim.wants_public_access() || is_left
        }
        // An edit may have restored the name since the deleting pass read the claim.
        Secret::Consumer(_) => {
            let read = state.last_read(step.hand, &life.claim);
            let unread = |renamed: Edit| read.is_some_and(|read| !renamed.precedes(read));
            life.claim.secret_name() != name || life.renamed.is_some_and(unread)
        }
        // After a move the record of the former bucket is deleted.
        Secret::Record(_) => records_of(state, life.claim.uid) > 1,
        Secret::OfAccess | Secret::Other => true,
    }
}

/// Returns the number of a claim's records.
fn records_of(state: &State<'_>, uid: &str) -> usize {
    state.of(uid).filter(|(_, held)| matches!(held.secret, Secret::Record(_))).count()
}

/// Judges that a key is created beside a working one only on request. A read that the server
/// answered from the past may hide the working one.
fn judge_reason(state: &State<'_>, step: &HistoryStep<'_>, key: &Key<'_>, number: usize, found: &mut Findings) {
    let Some(life) = state.lives.get(key.uid.as_str()) else { return };
    let reasons = 1 + life.requests.asked;
    let excused = life.requests.timed || life.meddling.any() || !state.alone || life.gone.is_some();
    let is_good = |secret: &Secret<'_>| matches!(secret, Secret::Key(other) if other.counts && other.end == End::Open);
    if number <= reasons || excused || !state.of(&key.uid).any(|(_, held)| is_good(&held.secret)) {
        return;
    }
    if !reads_the_past(state) {
        let claim = life.claim.full_name();
        let message = format!("claim {claim} is given key {}, its {number}., and asked for {reasons}", key.id);
        found.broken(Promise::E3, step, message);
    }
}

/// Returns true if the server has answered a read from the past. A watch may then lag behind as
/// long as it is open.
pub(super) fn reads_the_past(state: &State<'_>) -> bool {
    state.trace.lines().iter().any(is_of_the_past)
}

/// Returns true if a call was answered from the past.
pub(super) fn is_of_the_past(line: &Line) -> bool {
    matches!(line.fault, Some(Fault::Kube(KubeFault::Stale { .. } | KubeFault::Rewind)))
}

/// Judges that a bucket is created once: a claim's bucket that is gone is not replaced by an empty
/// one. Each of two operators may send CreateBucket for an existing one.
fn judge_creation(state: &State<'_>, step: &HistoryStep<'_>, called: &Called, found: &mut Findings) {
    let Some(record) = record_of(state, called) else { return };
    let opens = |secret: &Secret<'_>| matches!(secret, Secret::Key(key) if key.bucket == record.bucket && key.backend == record.backend);
    let bound = record.settled || record.adopted || state.of(&record.uid).any(|(_, held)| opens(&held.secret));
    // One of two operators may have seen the proof that the claim was bound, before it was removed
    // by hand.
    let meddled = state.lives.get(record.uid.as_str()).is_some_and(|life| life.meddling.any());
    let excused = !state.alone && (called.before.is_some() || meddled);
    if !bound || excused || record.host != called.host {
        return;
    }
    let message = format!("bucket {} is made for a claim that had it already", record.bucket);
    found.broken(Promise::E3, step, message);
}
