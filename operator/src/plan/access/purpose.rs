//! Purpose of an effect of a pass over an access, in the terms of a platform operator, and why it
//! is due. The log has the step itself.

use crate::api::wire::{REVOKE, ROTATE, Role, SERVED_BY};
use crate::api::{AccessCredentialFacts, AccessScope, BucketAccessStatus, ConditionType};

use super::super::credentials::KeyHolder;
use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::SecretRef;
use super::entries::wanted;
use super::keys::nothing_opens;
use super::step::AccessAct;
use super::view::AccessView;

/// Describes what the next effect for an access is for, and why it is due.
pub fn purpose(view: &AccessView, act: &AccessAct) -> String {
    match act {
        AccessAct::AddFinalizer(_) if view.access.has_finalizer() => {
            format!("note in annotation {SERVED_BY} that this operator serves the access, which names another")
        }
        AccessAct::AddFinalizer(_) => match places(&wanted(view, &[])) {
            Some(places) => format!("begin to serve the access: {places}"),
            None => format!("begin to serve the access, and wait: {}", nothing_opens(view).message),
        },
        AccessAct::RemoveFinalizer(_) => "let the access go: nothing is left to do for it".to_owned(),
        AccessAct::CreateRecord(record) if record.generation > 1 => {
            "note the access, whose record is gone, before its next key".to_owned()
        }
        AccessAct::CreateRecord(_) => "note the access, before its first key".to_owned(),
        AccessAct::Mint(facts) => {
            let places = places(&facts.scopes).unwrap_or_else(|| "no bucket".to_owned());
            format!("make a key to {places} (generation {})", facts.generation)
        }
        AccessAct::CreateConsumer(content) => {
            format!("write the connection into Secret {}, which is not there", content.name)
        }
        AccessAct::Patch(patch) => patched(view, patch),
        AccessAct::Delete(secret) => deleted(view, secret),
        AccessAct::WriteStatus(_, status) => told(&view.access.status, status),
    }
}

/// Describes the buckets of scopes, if there are any.
fn places(scopes: &[AccessScope]) -> Option<String> {
    let names: Vec<String> =
        scopes.iter().map(|scope| format!("bucket {} at S3Backend {}", scope.bucket, scope.backend)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn patched(view: &AccessView, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    match patch.change {
        Change::RaiseGeneration(trigger) => raised(view, trigger),
        Change::Retire if view.is_revoked_key(name) => {
            format!("end {}, which somebody's finalizer keeps: annotation {REVOKE} asked for it", key(view, name))
        }
        Change::Retire => format!("let {} expire, once its overlap is over", key(view, name)),
        Change::Repair => repaired(view, patch),
        Change::NoteAbsence
        | Change::ForgetAbsence
        | Change::Adopt
        | Change::Settle
        | Change::NotePublic
        | Change::NoteAnother
        | Change::NoteLowest
        | Change::NoteRevocation
        | Change::Leave
        | Change::Follow
        | Change::Consent
        | Change::End
        | Change::Complete => format!("patch Secret {name}: {}", patch.change),
    }
}

fn raised(view: &AccessView, trigger: Trigger) -> String {
    match trigger {
        Trigger::Interval => {
            let interval = view.access.rotation.as_ref().ok().and_then(|rotation| rotation.interval_days);
            let days = interval.map_or_else(String::new, |days| format!(", {days}"));
            format!("rotate the key: it is older than rotationPolicy.intervalDays{days}")
        }
        Trigger::Request => format!("rotate the key: annotation {ROTATE} asks for it"),
        Trigger::Repair => "replace the key: the current one is gone, or can't be told from a later one".to_owned(),
        Trigger::Entry | Trigger::Move => {
            let current = view.record().and_then(|(record, _)| {
                let key = view.key(record.generation)?;
                Some(AccessCredentialFacts::scopes_of(&key.0))
            });
            let current = current.unwrap_or_default();
            let mut new = wanted(view, &current);
            new.retain(|scope| !current.iter().any(|has| has.is_same_place(scope)));
            let places = places(&new).unwrap_or_else(|| "another bucket".to_owned());
            format!("make a key that opens {places} as well: an entry leads there")
        }
        Trigger::Revocation => format!("revoke every key, and make another: annotation {REVOKE} asks for it"),
    }
}

fn repaired(view: &AccessView, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    if patch.target.namespace == view.setting.operator_namespace {
        return match Role::of_internal(name) {
            Some(Role::AccessCredential) => format!("bring {} up to date with the entries", key(view, name)),
            Some(_) | None => format!("bring Secret {name} up to date"),
        };
    }
    let current = view.record().map(|(record, _)| record.generation);
    let held = view.consumers.present(name).and_then(|secret| {
        let id = secret.published_key()?;
        view.numbered_keys()
            .into_iter()
            .find(|(_, key)| key.text("access_key_id") == Some(id))
            .map(|(number, _)| number)
    });
    match (held, current) {
        (Some(held), Some(current)) if held != current => {
            format!("hand out the key of generation {current} in Secret {name}")
        }
        (Some(_) | None, Some(_) | None) => format!("mend Secret {name}: it is not as it should be"),
    }
}

fn deleted(view: &AccessView, secret: &SecretRef) -> String {
    let name = &secret.name;
    let why = if view.access.deleting { ": the access is deleted" } else { "" };
    if secret.namespace != view.setting.operator_namespace {
        let elsewhere = format!(": the connection is in Secret {}", view.access.consumer_secret);
        return format!("delete Secret {name}{}", if why.is_empty() { &elsewhere } else { why });
    }
    let again = ": its namespace was made again, and is another one";
    match Role::of_internal(name) {
        Some(Role::AccessCredential) if view.access.deleting => format!("revoke {}{why}", key(view, name)),
        Some(Role::AccessCredential) if view.is_revoked_key(name) => {
            format!("revoke {}: annotation {REVOKE} asked for it", key(view, name))
        }
        Some(Role::AccessCredential) if is_of_another_namespace(view) => {
            format!("revoke {}{again}", key(view, name))
        }
        Some(Role::AccessCredential) => format!("delete {}, which has expired", key(view, name)),
        Some(Role::AccessRecord) => {
            format!("delete the access's record{}", if why.is_empty() { again } else { why })
        }
        Some(_) | None => format!("delete Secret {name}{why}"),
    }
}

/// Returns true if the record is for an earlier namespace of this name.
fn is_of_another_namespace(view: &AccessView) -> bool {
    let namespace = view.namespace().map(|namespace| &namespace.uid);
    view.record().zip(namespace).is_some_and(|((record, _), uid)| record.namespace_uid != *uid)
}

fn generation(view: &AccessView, name: &str) -> Option<u64> {
    view.numbered_keys().into_iter().find(|(_, key)| key.name() == name).map(|(number, _)| number)
}

/// Describes a key by its generation.
fn key(view: &AccessView, name: &str) -> String {
    match generation(view, name) {
        Some(generation) => format!("the key of generation {generation}"),
        None => format!("key {name}"),
    }
}

/// Describes the change between two statuses.
fn told(before: &BucketAccessStatus, now: &BucketAccessStatus) -> String {
    let ready = |status: &BucketAccessStatus| {
        let condition = status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str());
        condition.map(|it| format!("Ready={} {}: {}", it.status, it.reason, it.message))
    };
    match ready(now).filter(|told| ready(before).as_ref() != Some(told)) {
        Some(told) => format!("tell in the status: {told}"),
        None => "bring the status up to date".to_owned(),
    }
}
