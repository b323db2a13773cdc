//! What an effect of a pass over an access is for, in the words of who runs a platform, and why it
//! is due. The log has the step itself.

use crate::api::wire::{REVOKE, ROTATE, Role, SERVED_BY};
use crate::api::{AccessCredentialFacts, AccessScope, BucketAccessStatus, ConditionType};

use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::SecretRef;
use super::entries::wanted;
use super::keys::nothing_opens;
use super::step::GrantAct;
use super::view::Grant;

/// What an effect that is next for an access is for, and why it is due.
pub fn purpose(grant: &Grant, act: &GrantAct) -> String {
    match act {
        GrantAct::AddFinalizer(_) if grant.access.has_finalizer() => {
            format!("note in annotation {SERVED_BY} that this operator serves the access, which names another")
        }
        GrantAct::AddFinalizer(_) => match places(&wanted(grant, &[])) {
            Some(places) => format!("begin to serve the access: {places}"),
            None => format!("begin to serve the access, and wait: {}", nothing_opens(grant).message),
        },
        GrantAct::RemoveFinalizer(_) => "let the access go: nothing is left to do for it".to_owned(),
        GrantAct::CreateRecord(record) if record.generation > 1 => {
            "note the access, whose record is gone, before its next key".to_owned()
        }
        GrantAct::CreateRecord(_) => "note the access, before its first key".to_owned(),
        GrantAct::Mint(facts) => {
            let places = places(&facts.scopes).unwrap_or_else(|| "no bucket".to_owned());
            format!("make a key to {places} (generation {})", facts.generation)
        }
        GrantAct::CreateConsumer(content) => {
            format!("write the connection into Secret {}, which is not there", content.name)
        }
        GrantAct::Patch(patch) => patched(grant, patch),
        GrantAct::Delete(secret) => deleted(grant, secret),
        GrantAct::WriteStatus(_, status) => told(&grant.access.status, status),
    }
}

/// The buckets of scopes, if there are some.
fn places(scopes: &[AccessScope]) -> Option<String> {
    let names: Vec<String> =
        scopes.iter().map(|scope| format!("bucket {} at S3Backend {}", scope.bucket, scope.backend)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn patched(grant: &Grant, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    match patch.change {
        Change::RaiseGeneration(trigger) => raised(grant, trigger),
        Change::Retire if is_revoked(grant, name) => {
            format!("end {}, which somebody's finalizer keeps: annotation {REVOKE} asked for it", key(grant, name))
        }
        Change::Retire => format!("let {} expire, once its overlap is over", key(grant, name)),
        Change::Repair => repaired(grant, patch),
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

fn raised(grant: &Grant, trigger: Trigger) -> String {
    match trigger {
        Trigger::Interval => {
            let interval = grant.access.rotation.as_ref().ok().and_then(|rotation| rotation.interval_days);
            let days = interval.map_or_else(String::new, |days| format!(", {days}"));
            format!("rotate the key: it is older than rotationPolicy.intervalDays{days}")
        }
        Trigger::Request => format!("rotate the key: annotation {ROTATE} asks for it"),
        Trigger::Repair => "replace the key: the current one is gone, or can't be told from a later one".to_owned(),
        Trigger::Entry | Trigger::Move => {
            let current = grant.record().and_then(|(record, _)| {
                let key = grant.internal.present(&grant.key_name(record.generation))?;
                Some(AccessCredentialFacts::scopes_of(&key.0))
            });
            let current = current.unwrap_or_default();
            let mut new = wanted(grant, &current);
            new.retain(|scope| !current.iter().any(|has| has.is_same_place(scope)));
            let places = places(&new).unwrap_or_else(|| "another bucket".to_owned());
            format!("make a key that opens {places} as well: an entry leads there")
        }
        Trigger::Revocation => format!("revoke every key, and make another: annotation {REVOKE} asks for it"),
    }
}

fn repaired(grant: &Grant, patch: &SecretPatch) -> String {
    let name = &patch.target.name;
    if patch.target.namespace == grant.setting.operator_namespace {
        return match Role::of_internal(name) {
            Some(Role::AccessCredential) => format!("bring {} up to date with the entries", key(grant, name)),
            Some(_) | None => format!("bring Secret {name} up to date"),
        };
    }
    let current = grant.record().map(|(record, _)| record.generation);
    let held = grant.consumers.present(name).and_then(|secret| {
        let id = secret.published_key()?;
        grant.keys().into_iter().find(|(_, key)| key.text("access_key_id") == Some(id)).map(|(number, _)| number)
    });
    match (held, current) {
        (Some(held), Some(current)) if held != current => {
            format!("hand out the key of generation {current} in Secret {name}")
        }
        (Some(_) | None, Some(_) | None) => format!("mend Secret {name}: it is not as it should be"),
    }
}

fn deleted(grant: &Grant, secret: &SecretRef) -> String {
    let name = &secret.name;
    let why = if grant.access.deleting { ": the access is deleted" } else { "" };
    if secret.namespace != grant.setting.operator_namespace {
        let elsewhere = format!(": the connection is in Secret {}", grant.access.consumer_secret);
        return format!("delete Secret {name}{}", if why.is_empty() { &elsewhere } else { why });
    }
    let again = ": its namespace was made again, and is another one";
    match Role::of_internal(name) {
        Some(Role::AccessCredential) if grant.access.deleting => format!("revoke {}{why}", key(grant, name)),
        Some(Role::AccessCredential) if is_revoked(grant, name) => {
            format!("revoke {}: annotation {REVOKE} asked for it", key(grant, name))
        }
        Some(Role::AccessCredential) if is_of_another_namespace(grant) => {
            format!("revoke {}{again}", key(grant, name))
        }
        Some(Role::AccessCredential) => format!("delete {}, which has expired", key(grant, name)),
        Some(Role::AccessRecord) => {
            format!("delete the access's record{}", if why.is_empty() { again } else { why })
        }
        Some(_) | None => format!("delete Secret {name}{why}"),
    }
}

/// Whether the record is of an earlier namespace of this name.
fn is_of_another_namespace(grant: &Grant) -> bool {
    let namespace = grant.namespace().map(|namespace| &namespace.uid);
    grant.record().zip(namespace).is_some_and(|((record, _), uid)| record.namespace_uid != *uid)
}

fn generation(grant: &Grant, name: &str) -> Option<u64> {
    grant.keys().into_iter().find(|(_, key)| key.name() == name).map(|(number, _)| number)
}

fn is_revoked(grant: &Grant, name: &str) -> bool {
    generation(grant, name).is_some_and(|number| grant.is_revoked(number))
}

/// A key, by its generation.
fn key(grant: &Grant, name: &str) -> String {
    match generation(grant, name) {
        Some(generation) => format!("the key of generation {generation}"),
        None => format!("key {name}"),
    }
}

/// What a new status tells that the one before does not.
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
