//! A rotation or revocation that is due happens, and happens in time (L3).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use seeded::VirtualClock;
use stowage_operator::api::wire;
use stowage_world::effects::{Fault, Line, ProcessFault};

use super::case::Case;
use super::findings::Findings;
use super::state::{HistoryStep, Life, Seen, State};
use super::views::{Key, Secret};
use super::{Promise, revocation};

/// Minimum time between the starts of two rotations (spec §3.3).
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// Maximum delay of a rotation that is due: time to wake up, and two calls that get no answer.
const BOUND: SignedDuration = SignedDuration::from_secs(60);
/// Time after which a clock of the operator that was behind no longer counts as an excuse.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
/// Maximum time that a fault may delay the operator: longer than its backoff, than a silent watch,
/// and than the resync interval, jitter included.
const AFTERMATH: Duration = Duration::from_secs(900);
/// Maximum length of the turn of a second operator, during which the first one is paused.
const LONGEST_TURN: Duration = Duration::from_secs(130);

/// The oracle's memory of rotations that are due.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// Due rotations, by the claim's UID.
    owed: BTreeMap<String, Owed>,
    /// True if `owed` may be out of date.
    changed: bool,
    /// Time of the previous step.
    before: Timestamp,
}

/// Reasons for rotations of a claim that nothing prevents once their time has come.
#[derive(Debug)]
struct Owed {
    reasons: Vec<Reason>,
    /// Time since when these are the reasons.
    since: Timestamp,
    /// True if the delay was reported already.
    told: bool,
}

/// A reason to replace a key, and the time from which it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    due: Timestamp,
    words: String,
}

impl Rotation {
    /// Judges a step: no rotation that was due is late by now.
    pub(super) fn see(&mut self, state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
        if std::mem::replace(&mut self.changed, matches!(step.seen, Seen::Claim(..) | Seen::Secret(..))) {
            self.note(state);
        }
        self.before = step.at;
        for (uid, owed) in self.owed.iter_mut().filter(|(_, owed)| !owed.told) {
            let late = owed.reasons.iter().find(|reason| is_late(state, reason.due.max(owed.since), step.at));
            let (Some(reason), Some(life)) = (late, state.lives.get(uid.as_str())) else { continue };
            owed.told = true;
            let message = format!("the key of claim {} is not yet replaced, {}", life.claim.full_name(), reason.words);
            found.broken(Promise::L3, step, message);
        }
    }

    /// Records the rotations that are due since the previous step.
    fn note(&mut self, state: &State<'_>) {
        let mut owed = BTreeMap::new();
        for (uid, life) in state.lives.iter().filter(|(_, life)| life.gone.is_none()) {
            let reasons = due(state, life);
            let as_before = self.owed.remove(*uid).filter(|before| before.reasons == reasons);
            let anew = Owed { reasons, since: self.before, told: false };
            owed.insert((*uid).to_owned(), as_before.unwrap_or(anew));
        }
        self.owed = owed;
    }
}

/// Returns true if a rotation that was due at `due` is late now.
///
/// A stopped operator starts no rotation. An operator that had trouble starts it after its
/// recovery.
fn is_late(state: &State<'_>, due: Timestamp, now: Timestamp) -> bool {
    if now.duration_since(due) <= BOUND {
        return false;
    }
    let bound = BOUND + state.clocks.most_behind(now.checked_sub(RECENT).unwrap_or(now));
    let in_time = |since: Timestamp| now.duration_since(since) <= bound;
    let lines = state.trace.lines();
    let next = lines.partition_point(|line| began(line) < due);
    let Some(there) = lines.get(next).map(began).filter(|at| *at <= now) else { return false };
    // This runs after each step, and few calls met a fault.
    let faults = lines.iter().filter_map(|line| line.fault.map(|fault| (began(line), fault)));
    let trouble = faults.take_while(|(at, _)| *at <= now).map(|(at, fault)| at + (AFTERMATH + standstill(fault)));
    !in_time(trouble.fold(there, Timestamp::max))
}

/// Returns the true time at which a call began.
fn began(line: &Line) -> Timestamp {
    VirtualClock::epoch() + Duration::from_millis(line.began_ms)
}

/// Returns the time for which a fault pauses the operator.
fn standstill(fault: Fault) -> Duration {
    match fault {
        Fault::Process(ProcessFault::Pause { seconds }) => Duration::from_secs(seconds.into()),
        Fault::Process(ProcessFault::Twin) => LONGEST_TURN,
        _ => Duration::ZERO,
    }
}

/// Judges the end of a run that came to rest.
pub(super) fn judge(case: &Case<'_>, state: &State<'_>, found: &mut Findings) {
    let recent = case.end.at.checked_sub(RECENT).unwrap_or(case.end.at);
    let late = BOUND + state.clocks.most_behind(recent);
    for life in state.lives.values().filter(|life| life.gone.is_none()) {
        for Reason { due, words } in due(state, life) {
            if case.end.at.duration_since(due) > late {
                let claim = life.claim.full_name();
                found.broken_in_the_end(Promise::L3, format!("the key of claim {claim} is not replaced, {words}"));
            }
        }
    }
}

/// Returns the reasons to replace the current key of a claim. Nothing prevents a revocation.
fn due(state: &State<'_>, life: &Life<'_>) -> Vec<Reason> {
    let revoked = revocation::due(state, life).filter(|_| !life.claim.is_deleting());
    let revoked = revoked.map(|(due, words)| Reason { due, words });
    revoked.into_iter().chain(rotation_due(state, life).unwrap_or_default()).collect()
}

/// Returns the reasons for a rotation; `None` if something prevents it: the claim is not Ready, or
/// a former key still exists.
fn rotation_due(state: &State<'_>, life: &Life<'_>) -> Option<Vec<Reason>> {
    let claim = life.claim;
    if !claim.is_ready() || claim.is_deleting() {
        return None;
    }
    let name = claim.secret_name();
    let Secret::Consumer(consumer) = &state.secrets.get(&(claim.namespace, &*name))?.secret else { return None };
    let made = only_key(state, claim.uid).filter(|key| key.id == consumer.id)?.made?;
    let earliest = made.checked_add(GRACE).ok()?;
    let request = claim.rotate_request().filter(|request| {
        claim.object["status"]["handledRotateRequest"].as_str() != Some(wire::receipt(request).as_str())
    });
    let asked = request.map(|request| Reason { due: earliest, words: format!("as {request:?} asks for") });
    let days = claim.object["spec"]["rotationPolicy"]["intervalDays"].as_i64().filter(|_| claim.rotates_by_time());
    let aged = days.and_then(|days| {
        let due = made.checked_add(SignedDuration::from_hours(24 * days)).ok()?;
        Some(Reason { due: due.max(earliest), words: format!("and is older than {days} days") })
    });
    Some(asked.into_iter().chain(aged).collect())
}

/// Returns the key of a claim, if it has exactly one.
fn only_key<'s, 'a>(state: &'s State<'a>, uid: &str) -> Option<&'s Key<'a>> {
    let mut keys = state.of(uid).filter_map(|(_, held)| match &held.secret {
        Secret::Key(key) => Some(key),
        _ => None,
    });
    keys.next().filter(|_| keys.next().is_none())
}
