//! Purpose of an effect, in the terms of a platform operator: bucket, key, Secret, and why now. The
//! log has the step itself ([`Act`]'s `Display`).

use crate::api::wire::{REVOKE, ROTATE, Role, SERVED_BY};
use crate::api::{BucketClaimStatus, BucketRecord, ConditionType};

use super::credentials::KeyHolder;
use super::halt::Halt;
use super::patch::{Change, SecretPatch, Trigger};
use super::secret::{SecretRef, Stored};
use super::step::Act;
use super::target::Target;
use super::view::View;

/// Describes what the next effect for a claim is for, and why it is due.
pub fn purpose(view: &View, act: &Act) -> String {
    match act {
        Act::AddFinalizer(_) if view.claim().has_finalizer() => {
            format!("note in annotation {SERVED_BY} that this operator serves the claim, which names another")
        }
        Act::AddFinalizer(_) => begin(view),
        Act::RemoveFinalizer(_) => "let the claim go: nothing is left to do for it".to_owned(),
        Act::CreateRecord(record) => format!("hold {} for the claim", place(&Target::of(record))),
        Act::CreateBucket(at) => format!("create {}", place(at)),
        Act::Purge(at, most) => {
            format!("delete up to {most} objects of {}: the claim is deleted with forceDelete", place(at))
        }
        Act::DeleteBucket(at) => format!("delete {}: the claim is deleted with deletionPolicy Delete", place(at)),
        Act::TagBucket(at, _) => format!("tag {} as this claim's", place(at)),
        Act::SetVersioning(at, versioning) => {
            format!("set versioning of {} to {versioning:?}, as the spec asks", place(at))
        }
        Act::Mint(facts) => format!("make a key to bucket {} (generation {})", facts.bucket, facts.generation),
        Act::CreateConsumer(content) => {
            format!("write the connection into Secret {}, which is not there", content.name)
        }
        Act::CreateBinding(binding) => {
            format!("open bucket {} for reading without a key: anonymousAccess.mode is ReadOnly", binding.bucket)
        }
        Act::Patch(patch) => patched(view, patch),
        Act::Delete(secret) => deleted(view, secret),
        Act::WriteStatus(_, status) => told(&view.claim().status, status),
    }
}

fn place(at: &Target) -> String {
    format!("bucket {} at S3Backend {}", at.bucket, at.backend)
}

fn begin(view: &View) -> String {
    match view.desired().and_then(|desired| view.wanted(desired)) {
        Ok(at) => format!("begin to serve the claim: {}", place(&at)),
        Err(Halt::Stop(stop)) => format!("begin to serve the claim, and wait: {}", stop.message()),
        Err(Halt::Step(_) | Halt::Wait(_) | Halt::Stale(_) | Halt::LeaveAlone) => "begin to serve the claim".to_owned(),
    }
}

fn patched(view: &View, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    let record = view.records().find(|(_, stored)| stored.name() == name).map(|(record, _)| record);
    let bucket = record.map_or_else(|| "the bucket".to_owned(), |record| place(&Target::of(record)));
    match patch.change {
        Change::NoteAbsence => format!("create {bucket}: there is none, which is noted first"),
        Change::ForgetAbsence => format!("note that {bucket} is another's"),
        Change::Adopt => format!("take over {bucket}, which is there already"),
        Change::Settle => format!("note that the claim was bound to {bucket}"),
        Change::RaiseGeneration(trigger) => raised(view, record, trigger),
        Change::NotePublic => format!("open {bucket} for reading without a key, which is noted first"),
        Change::NoteAnother => "hold a second bucket for the claim, which is noted first".to_owned(),
        Change::NoteLowest => "note which keys are gone".to_owned(),
        Change::NoteRevocation => format!("take what annotation {REVOKE} asks for as done: there is no key"),
        Change::Leave => format!("leave {bucket} as it is, and note so: the claim has moved"),
        Change::Follow => format!("follow {bucket} to where S3Backend and spec have it now"),
        Change::Consent => format!("let accesses at {bucket} as far as its owner consents"),
        Change::End => format!("end every access to {bucket}: the claim is deleted"),
        Change::Complete => format!("note in Secret {name} which store it is for"),
        Change::Retire => format!("let {} expire, once its overlap is over", key(view, name)),
        Change::Repair => repaired(view, patch),
    }
}

fn raised(view: &View, record: Option<&BucketRecord>, trigger: Trigger) -> String {
    match trigger {
        Trigger::Interval => {
            let interval = view.claim().desired.as_ref().ok().and_then(|desired| desired.rotation.interval_days);
            let days = interval.map_or_else(String::new, |days| format!(", {days}"));
            format!("rotate the key: it is older than rotationPolicy.intervalDays{days}")
        }
        Trigger::Request => format!("rotate the key: annotation {ROTATE} asks for it"),
        Trigger::Repair => "replace the key: the current one is gone, or can't be told from a later one".to_owned(),
        Trigger::Move => {
            let to = view.desired().and_then(|desired| view.wanted(desired)).ok().or_else(|| record.map(Target::of));
            let to = to.map_or_else(|| "another bucket".to_owned(), |to| place(&to));
            format!("move the claim to {to}, with a key of its own: backendRef was edited")
        }
        Trigger::Entry => "make a key that opens another bucket as well".to_owned(),
        Trigger::Revocation => format!("revoke every key, and make another: annotation {REVOKE} asks for it"),
    }
}

fn repaired(view: &View, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    if patch.target.namespace == view.setting().operator_namespace {
        return match Role::of_internal(name) {
            Some(Role::VirtualCredential) => format!("bring {} up to date with the spec", key(view, name)),
            Some(Role::AnonymousBinding) => "bring access without a key up to date with the spec".to_owned(),
            Some(_) | None => format!("bring Secret {name} up to date"),
        };
    }
    let current = view.record().map(|(record, _)| record.generation);
    let held = view.consumers().find(|secret| secret.name() == name).and_then(|it| view.published_generation(it));
    match (held, current) {
        (Some(held), Some(current)) if held != current => {
            format!("hand out the key of generation {current} in Secret {name}")
        }
        (Some(_) | None, Some(_) | None) => format!("mend Secret {name}: it is not as it should be"),
    }
}

fn deleted(view: &View, secret: &SecretRef) -> String {
    let why = if view.claim().deleting { ": the claim is deleted" } else { "" };
    let name = &secret.name;
    if secret.namespace != view.setting().operator_namespace {
        let elsewhere = format!(": the connection is in Secret {}", view.claim().consumer_secret);
        return format!("delete Secret {name}{}", if why.is_empty() { &elsewhere } else { why });
    }
    let bucket = |stored: Option<&Stored>| {
        stored
            .and_then(|stored| stored.text("bucket_name"))
            .map_or_else(|| "the bucket".to_owned(), |it| format!("bucket {it}"))
    };
    match Role::of_internal(name) {
        Some(Role::VirtualCredential) if view.claim().deleting => format!("revoke {}{why}", key(view, name)),
        Some(Role::VirtualCredential) if view.own(name).is_some_and(|stored| view.is_revoked(stored)) => {
            format!("revoke {}: annotation {REVOKE} asked for it", key(view, name))
        }
        Some(Role::VirtualCredential) => format!("delete {}, which has expired", key(view, name)),
        Some(Role::AnonymousBinding) => format!("close {} to readers without a key{why}", bucket(view.own(name))),
        Some(Role::BucketRecord) => format!("let go of {}{why}", bucket(view.own(name))),
        Some(_) | None => format!("delete Secret {name}{why}"),
    }
}

/// Describes a key by its generation.
fn key(view: &View, name: &str) -> String {
    match view.own(name).and_then(|stored| view.labelled_generation(stored)) {
        Some(generation) => format!("the key of generation {generation}"),
        None => format!("key {name}"),
    }
}

/// Describes the change between two statuses.
fn told(before: &BucketClaimStatus, now: &BucketClaimStatus) -> String {
    let ready = |status: &BucketClaimStatus| {
        let condition = status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str());
        condition.map(|it| format!("Ready={} {}: {}", it.status, it.reason, it.message))
    };
    match ready(now).filter(|told| ready(before).as_ref() != Some(told)) {
        Some(told) => format!("tell in the status: {told}"),
        None => "bring the status up to date".to_owned(),
    }
}
