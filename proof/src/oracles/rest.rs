//! What the operator does not do: anything at rest (E1), and things twice or in vain (E3).

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

/// At rest a bucket is looked at, and a backend probed, once in ten minutes, give or take a tenth
/// (spec §1, §5). What keeps a claim from what its user wants is tried again also when somebody
/// touches the claim; but nothing comes of it.
const BETWEEN_LOOKS: SignedDuration = SignedDuration::from_secs(9 * 60);

/// A watch is made anew after 290 s, which is what kube-runtime asks for.
const BETWEEN_WATCHES: SignedDuration = SignedDuration::from_secs(4 * 60);
/// So many backends have one admin Secret, which each reads for its probe.
const PROBES_ALIKE: usize = 2;
/// Of what an operator watches so many look alike at most: Secrets of its namespace, by label, and
/// one for each of two backends.
const WATCHES_ALIKE: usize = 3;

/// What is remembered of calls and objects.
#[derive(Debug, Default)]
pub(super) struct Quiescence<'a> {
    /// Since when the operator is at rest.
    since: Option<Timestamp>,
    /// When each life of the operator last called each operation on each bucket.
    calls: BTreeMap<(u32, &'a str, &'a str, &'a str), Timestamp>,
    /// Secrets that the operator made, and has not been given a reason to make again.
    made: BTreeSet<Place<'a>>,
    /// When what was told last of what its bucket holds was measured, of each claim.
    usage: BTreeMap<(&'a str, &'a str), Timestamp>,
    /// Which life of an operator asked to have which measurement told that another had told before.
    late: BTreeSet<(u32, Timestamp)>,
    /// How many keys each claim was given, by UID.
    keys: BTreeMap<String, usize>,
}

impl<'a> Quiescence<'a> {
    /// Looks at a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::AtRest => self.since = Some(step.at),
            // To lead is no work.
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
                    // The first look at a bucket is put somewhere into the ten minutes, so as not
                    // to look at all at once.
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
            // How often that may be told is judged where it is asked for.
            Seen::Claim(stored, _) => !tells_of_usage(stored),
            Seen::Secret(..) => true,
            Seen::Object(stored) => stored.plural != "leases",
            _ => false,
        };
        if stored && self.since.is_some() && step.by_operator() && !is_calm(state) && !reads_the_past(state) {
            found.broken(Promise::E1, step, "at rest an object is written".to_owned());
        }
    }

    /// Whether it was measured longer after what was told before of a claim than the time between
    /// two looks, or a limit was crossed.
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
            // What had a reason to go may have one to come back.
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

/// What is read of the API server at rest: each watch when its time is over, each object when there
/// is a look that needs it, and no list. The history has no event for a read, so the trace is
/// looked at once all is known.
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
            // Judged where it is asked for.
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

/// What is told of what a bucket holds.
struct Usage {
    measured_at: Timestamp,
    /// The hard quota is reached by it, or no longer.
    is_crossing: bool,
    /// Another operator has told it: both hear of a measurement at once, and the API server refuses
    /// the second write, which would change nothing.
    is_told: bool,
}

/// Where a status is written that tells of another usage and of nothing else: tenants work on when
/// the operator is at rest (spec §6).
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

/// A status without what it tells of usage.
fn but_usage(status: &Value) -> serde_json::Map<String, Value> {
    let mut fields = status.as_object().cloned().unwrap_or_default();
    fields.remove("usage");
    fields
}

/// Whether a claim's status came to tell of another usage, and of nothing else.
fn tells_of_usage(stored: &Stored) -> bool {
    let (Some(old), Some(new)) = (stored.old.as_deref(), stored.new.as_deref()) else { return false };
    let is_same = old["spec"] == new["spec"] && but_usage(&old["status"]) == but_usage(&new["status"]);
    is_same && old["status"]["usage"] != new["status"]["usage"]
}

/// When a call began, since the start of the run.
fn began(line: &Line) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(line.began_ms).unwrap_or(i64::MAX))
}

/// Whether every claim is as its user wants it.
fn is_calm(state: &State<'_>) -> bool {
    state.lives.values().filter(|life| life.gone.is_none()).all(|life| life.claim.is_ready())
}

/// Whether a Secret has had its time: because its claim goes, or because the claim has moved on
/// from it.
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
        // In a move the bucket that is left is closed to the public, unless it was led on to the
        // next one. So is one that is held at two endpoints, where somebody deleted the key that
        // told that it is one.
        Secret::Binding(binding) => {
            let is_untold = life.meddling.keys && records_of(state, life.claim.uid) > 1;
            let next = |record: &Record| binding.access.as_ref().is_none_or(|access| !public::opens(access, record));
            let moves = |secret: &Secret<'_>| matches!(secret, Secret::Record(record) if next(record));
            let is_left = is_untold || state.of(life.claim.uid).any(|(_, held)| moves(&held.secret));
            !life.claim.wants_public_access() || is_left
        }
        // Named again by an edit that the pass which removes it has not read.
        Secret::Consumer(_) => {
            let read = state.last_read(step.hand, &life.claim);
            let unread = |renamed: Edit| read.is_some_and(|read| !renamed.precedes(read));
            life.claim.secret_name() != name || life.renamed.is_some_and(unread)
        }
        // After a move the record of the bucket that was left goes.
        Secret::Record(_) => records_of(state, life.claim.uid) > 1,
        Secret::OfAccess | Secret::Other => true,
    }
}

/// How many records a claim has.
fn records_of(state: &State<'_>, uid: &str) -> usize {
    state.of(uid).filter(|(_, held)| matches!(held.secret, Secret::Record(_))).count()
}

/// A key beside one that works is made when somebody asked for it. A read that the server answered
/// from its past may hide the one that is there.
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

/// Whether the server has answered a read from its past. A watch may lag behind for as long as it
/// stands.
pub(super) fn reads_the_past(state: &State<'_>) -> bool {
    state.trace.lines().iter().any(is_of_the_past)
}

/// Whether a call was answered from the past.
pub(super) fn is_of_the_past(line: &Line) -> bool {
    matches!(line.fault, Some(Fault::Kube(KubeFault::Stale { .. } | KubeFault::Rewind)))
}

/// A bucket is made once: one that was there for its claim, and is gone, is not replaced by an
/// empty one. Of two operators each may ask for the one that is there.
fn judge_creation(state: &State<'_>, step: &HistoryStep<'_>, called: &Called, found: &mut Findings) {
    let Some(record) = record_of(state, called) else { return };
    let opens = |secret: &Secret<'_>| matches!(secret, Secret::Key(key) if key.bucket == record.bucket && key.backend == record.backend);
    let bound = record.settled || record.adopted || state.of(&record.uid).any(|(_, held)| opens(&held.secret));
    // One of two may have seen what proved it bound, before somebody took that away.
    let meddled = state.lives.get(record.uid.as_str()).is_some_and(|life| life.meddling.any());
    let excused = !state.alone && (called.before.is_some() || meddled);
    if !bound || excused || record.host != called.host {
        return;
    }
    let message = format!("bucket {} is made for a claim that had it already", record.bucket);
    found.broken(Promise::E3, step, message);
}
