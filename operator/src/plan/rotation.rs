//! When a credential is replaced, and how the one before it goes (spec §3.3).
//!
//! One patch of the record raises the generation aimed at. From there on everything is level-based: the consumer
//! Secret holds the target; every lower generation is stamped with `expires-at`; what has expired is deleted. So
//! nothing has to be remembered of a rotation under way but what the Secrets say.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{AccessKeyId, BucketName, BucketRecord, Desired, Reason, wire};

use super::answer::Stored;
use super::bind::{Settled, require_fresh};
use super::bucket::rewrite;
use super::credentials::{QUOTA_KEYS, facts, repair};
use super::moves;
use super::records::names;
use super::repair::{Change, SecretPatch, Trigger};
use super::step::{Concern, Halt, Look, Stop};
use super::view::View;

/// After a key has expired, its Secret stays this long: so that a clock stepping forward doesn't cut a key short.
/// And no rotation starts sooner than this after the last.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// How far below the target the generation of a credential is searched whose label somebody changed: more live at
/// once only if somebody made them.
const SEARCHED: usize = 1000;

/// Sees lower generations out, and starts a rotation that is due. None is stamped before the consumer Secret holds the
/// target.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Settled, Halt> {
    overtake(view, record, stored)?;
    let lower = retire_lower(view, desired, record, now)?;
    let retiring = lower.wake.is_some() || lower.impaired.is_some();
    let start = start_due(view, desired, record, stored, now, retiring)?;
    Ok(Settled { wake: lower.wake.into_iter().chain(start).min(), ..lower })
}

/// Whether the rotate annotation carries a value not yet handled.
pub(super) fn is_requested(view: &View, record: &BucketRecord) -> bool {
    let request = view.claim.rotate_request.as_deref().map(wire::rotate_receipt);
    request.is_some() && request != record.handled_rotate_request
}

/// The step that aims at the next generation and takes the request at hand as handled. Planned on a claim read live:
/// an old list would ask twice. `unasked` says why it is aimed at if nobody asks.
pub(super) fn raise(view: &View, record: &BucketRecord, stored: &Stored, unasked: Trigger) -> Halt {
    if let Err(halt) = require_fresh(view).and_then(|()| moves::find_target(view, &record.name())) {
        return halt;
    }
    let trigger = if is_requested(view, record) { Trigger::Request } else { unasked };
    let request = view.claim.rotate_request.as_deref().map(wire::rotate_receipt);
    let raised = BucketRecord {
        generation: view.next_generation(),
        handled_rotate_request: request.or_else(|| record.handled_rotate_request.clone()),
        ..view.remembered(record)
    };
    rewrite(view, &raised, stored, Change::RaiseGeneration(trigger))
}

/// A mint that got no answer can land after its record was let go, or was aimed elsewhere: a later generation than that of
/// the record which the claim is bound by is passed, so that it is seen out like any other. Were it another record's, the
/// claim would be bound by that one.
fn overtake(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let later = |stray: u64| stray > record.generation;
    if !view.credentials().any(|secret| view.labelled_generation(secret).is_some_and(later)) {
        Ok(())
    } else if view.own_lists == 0 {
        Err(Look::Own.into())
    } else {
        Err(raise(view, record, stored, Trigger::Repair))
    }
}

/// Sees out all but the current one. What stands in the way of one of them doesn't in that of the others.
fn retire_lower(view: &View, desired: &Desired, record: &BucketRecord, now: Timestamp) -> Result<Settled, Halt> {
    let mut settled = Settled::default();
    for secret in view.credentials() {
        match retire(view, desired, record, secret, now) {
            Ok(due) => settled.wake = settled.wake.into_iter().chain(due).min(),
            Err(Halt::Stop(stop)) => settled.impaired = settled.impaired.or(Some(*stop)),
            Err(halt) => return Err(halt),
        }
    }
    Ok(settled)
}

/// Stamps a credential that is not stamped, deletes one that has expired. `Ok` = when it is due; never, if it is the current one.
fn retire(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    secret: &Stored,
    now: Timestamp,
) -> Result<Option<Timestamp>, Halt> {
    let generation = generation(view, secret, record.generation)?;
    if generation == record.generation {
        return Ok(None);
    }
    let mut wanted = facts(desired, &opens(view, secret, record));
    wanted.generation = generation;
    let mut content = wanted.content(&view.setting.operator_namespace, None);
    let due = match expires_at(secret)? {
        Some(at) if now >= later(at, GRACE) => return Err(Halt::delete(secret)),
        Some(at) => later(at, GRACE),
        // Whoever wrote the consumer Secret has not observed it: the next pass does, and counts from then.
        None if view.consumer_written || !published_everywhere(view, record) => {
            later(now, SignedDuration::from_secs(1))
        }
        None => {
            // The clock is read in whole seconds, and the switch may be later by part of one: late is allowed, early
            // is not.
            let overlap = SignedDuration::from_secs(i64::from(desired.rotation.overlap_seconds) + 1);
            let at = later(now, overlap);
            content.annotations.insert(wire::EXPIRES_AT.to_owned(), at.to_string());
            later(at, GRACE)
        }
    };
    repair(view, SecretPatch::between(&secret.0, &content, &QUOTA_KEYS, Change::Retire))?;
    Ok(Some(due))
}

/// The record of the bucket that a credential is for: after a move the one that the claim left (spec §3.7). If that is
/// lost the credential itself says which; what it says is believed only of one on its way out.
fn opens(view: &View, secret: &Stored, current: &BucketRecord) -> BucketRecord {
    let known = view.records().map(|(record, _)| record).find(|record| names(secret, record));
    known.cloned().unwrap_or_else(|| {
        let bucket = secret.text("bucket_name").and_then(|name| BucketName::parse(name).ok());
        match (secret.text("backend"), bucket) {
            (Some(backend), Some(bucket)) => BucketRecord { backend: backend.to_owned(), bucket, ..current.clone() },
            _ => current.clone(),
        }
    })
}

/// The generation of a credential of this claim, proved by its name. One above the target means that this pass's
/// record is old; a name of no generation that somebody made it.
fn generation(view: &View, secret: &Stored, target: u64) -> Result<u64, Halt> {
    let named = |generation: &u64| AccessKeyId::of(&view.claim.uid, *generation).secret_name() == secret.name();
    match view.labelled_generation(secret).or_else(|| (1..=target).rev().take(SEARCHED).find(named)) {
        Some(generation) if generation <= target => Ok(generation),
        Some(_) => Err(Halt::Stale("there is a credential of a later generation")),
        None => {
            let message = format!(
                "Secret {} looks like a credential of this claim and is none; delete that Secret",
                secret.name()
            );
            Err(Stop::refused(Reason::CreationInconsistent, Concern::Ready, message).into())
        }
    }
}

/// A stamp that can't be read is never written again (spec §2): it might have come earlier.
fn expires_at(secret: &Stored) -> Result<Option<Timestamp>, Halt> {
    secret.annotation(wire::EXPIRES_AT).map(str::parse).transpose().map_err(|_| {
        let message = format!("annotation expires-at of Secret {} is damaged; delete that Secret", secret.name());
        Stop::refused(Reason::CreationInconsistent, Concern::Credentials, message).into()
    })
}

/// `at` and `time` after it; the end of time where that is beyond it: stamps are read from outside, and may be any.
fn later(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// Whether every consumer Secret of this claim was observed at the target.
fn published_everywhere(view: &View, record: &BucketRecord) -> bool {
    let id = AccessKeyId::of(&record.uid, record.generation);
    let mut ours = view.consumers.values().flatten().filter(|secret| secret.is_controlled_by(&record.uid));
    ours.all(|secret| secret.text("AWS_ACCESS_KEY_ID") == Some(id.as_str()))
}

/// When the credential that is aimed at was made.
fn made(view: &View, record: &BucketRecord) -> Option<Timestamp> {
    view.credential(record.generation)?.0.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// For how long no other credential follows the one that is aimed at, if it was made just now. Nothing waits for a clock that
/// is behind the API server's.
pub(super) fn too_soon(view: &View, record: &BucketRecord, now: Timestamp) -> Option<Duration> {
    let made = made(view, record)?;
    let left = later(made, GRACE).duration_since(now);
    Duration::try_from(left).ok().filter(|left| made <= now && !left.is_zero())
}

/// Starts a rotation that is due: none while a live list shows a lower generation, none within a minute of the last.
/// `Ok` = when one will be due.
fn start_due(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
    retiring: bool,
) -> Result<Option<Timestamp>, Halt> {
    let Some(made) = made(view, record) else { return Ok(None) };
    let interval = desired.rotation.interval_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let earliest = later(made, GRACE);
    let timed = interval.map(|interval| later(made, interval).max(earliest));
    let due = if is_requested(view, record) { Some(earliest) } else { timed };
    let Some(due) = due else { return Ok(None) };
    if retiring || due > now {
        return Ok((!retiring).then_some(due));
    }
    require_fresh(view)?;
    if view.own_lists == 0 {
        // Two keys at most: what the cache does not show may live all the same.
        return Err(Look::Own.into());
    }
    Err(raise(view, record, stored, Trigger::Interval))
}
