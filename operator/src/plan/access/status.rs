//! Derivation of the status of an access, and of the Events about its changes (spec §8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{
    AccessCredential, AccessCredentialFacts, AccessEntryStatus, AccessReason, AccessScope, Binding, BucketAccessStatus,
    ConditionType, merge_conditions,
};

use super::super::credentials::{KeyHolder, made, plus, stamp};
use super::super::known::Knowledge;
use super::super::note::Note;
use super::super::secret::Stored;
use super::super::step::Announcement;
use super::entries;
use super::view::{AccessView, Stop};
use super::words::words;

/// Returns the status. `stop` is a reason that the access is not Ready apart from its entries.
pub(super) fn derive(view: &AccessView, stop: Option<&Stop>, now: Timestamp) -> BucketAccessStatus {
    if let (Note::Anothers(_), Some(stop)) = (view.note(), stop) {
        return of_anothers(view, stop, now);
    }
    let current = current(view).map(|(credential, _)| credential);
    let bound = current.as_ref().and_then(|credential| published(view, credential));
    let generation = current.as_ref().map(|credential| credential.generation);
    let key = current.map(|credential| (credential.generation, credential.id.to_string()));
    let key = key.or_else(|| earlier(view, now).map(|(generation, _, id)| (generation, id)));
    let told = told(view, now);
    let (reason, message) = verdict(stop, &told);
    let made = key.as_ref().and_then(|(generation, _)| made(view, *generation));
    let interval = view.access.rotation.as_ref().ok().and_then(|rotation| rotation.interval_days);
    let next = interval.zip(made).map(|(days, made)| plus(made, SignedDuration::from_hours(24 * i64::from(days))));
    let now = Time(now);
    let before = &view.access.status;
    let number = |generation: u64| i64::try_from(generation).ok();
    let earlier = key.as_ref().and_then(|(generation, _)| number(*generation));
    let secret = bound.or_else(|| meanwhile(view));
    BucketAccessStatus {
        observed_generation: Some(view.access.generation),
        binding: secret.clone().map(|name| Binding { name }),
        bound_secret_name: secret,
        access_key_id: key.map(|(_, id)| id),
        // Kept after the key is gone, because no later key may reuse the number.
        rotation_generation: generation.and_then(number).or(before.rotation_generation).or(earlier),
        rotated_at: made.map(Time),
        next_rotation_at: next.map(Time),
        buckets: told.into_iter().map(|(status, _)| status).collect::<Vec<_>>().into(),
        conditions: merge_conditions(&before.conditions, conditions(view, reason, message, &now), &now),
    }
}

/// Returns the status of an access that has another operator's annotation and no Secret here.
///
/// Everything except the conditions stays as the other operator wrote it. Several operators may
/// report this for one access, and their views of its entries differ.
fn of_anothers(view: &AccessView, stop: &Stop, now: Timestamp) -> BucketAccessStatus {
    let (before, now) = (&view.access.status, Time(now));
    let own = conditions(view, stop.reason, stop.message.clone(), &now);
    BucketAccessStatus {
        observed_generation: Some(view.access.generation),
        conditions: merge_conditions(&before.conditions, own, &now),
        ..before.clone()
    }
}

/// Returns the current key of the record and the scopes that it opens.
fn current(view: &AccessView) -> Option<(AccessCredential, Vec<AccessScope>)> {
    let (record, _) = view.record()?;
    let secret = view.key(record.generation)?;
    let credential = AccessCredential::read(&secret.0, &record.uid, record.generation).ok()?;
    Some((credential, AccessCredentialFacts::scopes_of(&secret.0)))
}

/// Returns the status of each entry, with the reason if it is closed. Empty for an access that is
/// being deleted.
pub(super) fn told(view: &AccessView, now: Timestamp) -> Vec<(AccessEntryStatus, Option<AccessReason>)> {
    if view.access.deleting {
        return Vec::new();
    }
    let opened = match current(view) {
        Some((credential, scopes)) if published(view, &credential).is_some() => Some(scopes),
        Some(_) | None => opened_meanwhile(view, now),
    };
    entries::told(view, opened.as_deref())
}

/// Returns reason and message of `Ready`.
pub(super) fn verdict(
    stop: Option<&Stop>,
    told: &[(AccessEntryStatus, Option<AccessReason>)],
) -> (AccessReason, String) {
    let closed = told.iter().enumerate().find_map(|(at, (_, why))| Some((at, (*why)?)));
    match (stop, closed) {
        (Some(stop), _) => (stop.reason, stop.message.clone()),
        (None, Some((at, why))) => (why, format!("entry {at} of spec.buckets is closed: {}", words(why))),
        (None, None) => (AccessReason::Open, "the key is published, and every entry opens".to_owned()),
    }
}

/// Returns the name of the consumer Secret if it has this key.
fn published(view: &AccessView, credential: &AccessCredential) -> Option<String> {
    let Knowledge::Present(secret) = view.consumers.get(&view.access.consumer_secret) else { return None };
    let ours = secret.is_controlled_by_uid(view.access.uid.as_str());
    (ours && secret.published_key() == Some(credential.id.as_str())).then(|| secret.name().to_owned())
}

/// Returns the scopes of the key that tenants have while the current one is not published.
fn opened_meanwhile(view: &AccessView, now: Timestamp) -> Option<Vec<AccessScope>> {
    earlier(view, now).map(|(_, key, _)| AccessCredentialFacts::scopes_of(&key.0))
}

/// Returns the key that tenants have while the current one is not published: an earlier one that
/// has not expired. The result is its generation, its Secret and its access key id.
fn earlier(view: &AccessView, now: Timestamp) -> Option<(u64, &Stored, String)> {
    let names = [Some(&view.access.consumer_secret), view.access.status.bound_secret_name.as_ref()];
    let read = names.into_iter().flatten().find_map(|name| match view.consumers.get(name) {
        Knowledge::Present(secret) if secret.is_controlled_by_uid(view.access.uid.as_str()) => {
            Some(secret.published_key()?.to_owned())
        }
        Knowledge::Present(_) | Knowledge::Absent | Knowledge::Unknown | Knowledge::Taken => None,
    })?;
    let (number, key) =
        view.numbered_keys().into_iter().find(|(_, key)| key.text("access_key_id") == Some(read.as_str()))?;
    let works = stamp(key) == Ok(None) || stamp(key).ok().flatten().is_some_and(|end| end > now);
    works.then_some((number, key, read))
}

/// Returns the name of the consumer Secret that tenants have while the current key is not
/// published. After an edit of the name, this is the only way to find it again.
fn meanwhile(view: &AccessView) -> Option<String> {
    let shown = view.access.status.bound_secret_name.as_ref()?;
    match view.consumers.get(shown) {
        Knowledge::Absent => None,
        Knowledge::Present(_) | Knowledge::Unknown | Knowledge::Taken => Some(shown.clone()),
    }
}

fn conditions(view: &AccessView, reason: AccessReason, message: String, now: &Time) -> Vec<Condition> {
    let condition = |type_: ConditionType, status: bool, message: &str| Condition {
        type_: type_.as_str().to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_string(),
        message: message.to_owned(),
        observed_generation: Some(view.access.generation),
        last_transition_time: now.clone(),
    };
    let ready = condition(ConditionType::Ready, reason == AccessReason::Open, &message);
    let beside = if reason.stalls() { ConditionType::Stalled } else { ConditionType::Reconciling };
    let tells = !matches!(reason, AccessReason::Open | AccessReason::Paused);
    [Some(ready), tells.then(|| condition(beside, true, &message))].into_iter().flatten().collect()
}

/// Returns one Event for each change of `Ready`, and one for a new key.
pub(super) fn transitions(view: &AccessView, after: &BucketAccessStatus) -> Vec<Announcement> {
    let ready = |status: &BucketAccessStatus| {
        status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str()).cloned()
    };
    let mut events = Vec::new();
    if let (Some(then), Some(now)) = (view.before.rotation_generation, after.rotation_generation)
        && now > then
    {
        let note = format!("the credential is replaced, generation {now} is current");
        events.push(Announcement { warning: false, reason: "Rotated".to_owned(), note });
    }
    let (before, Some(now)) = (ready(&view.before), ready(after)) else { return events };
    let is_same = before.is_some_and(|it| (&it.status, &it.reason) == (&now.status, &now.reason));
    if !is_same && now.reason != AccessReason::Paused.to_string() {
        let warning = now.status != "True";
        events.push(Announcement { warning, reason: now.reason, note: now.message });
    }
    events
}
