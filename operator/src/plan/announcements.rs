//! Kubernetes Events of a pass: the outcome for a deleted claim, and transitions of its status.

use crate::api::wire::REVOKE;
use crate::api::{BucketClaimStatus, ConditionType, Deletion, Reason};

use super::delete;
use super::step::{Announcement, Rest, Then};
use super::usage;
use super::view::{LetGo, View};

/// Ends the pass over a claim that is gone, or that is being deleted without our finalizer.
pub(super) fn farewell(view: &View) -> Rest {
    let outcomes = if view.is_finalizer_removed() { outcomes(view) } else { Vec::new() };
    // The Event about the buckets implies that the credentials are revoked.
    let events = if outcomes.is_empty() { revocation(view) } else { outcomes };
    Rest { then: Then::AwaitChange, events, waits_for: None }
}

/// Returns the Events about the buckets of a claim that had one.
fn outcomes(view: &View) -> Vec<Announcement> {
    if !view.let_go().is_empty() {
        return view.let_go().iter().filter_map(|bucket| outcome(view, bucket)).map(retained_or_deleted).collect();
    }
    let Some(bucket) = view.status_before().bucket_name.as_ref().filter(|_| had_bucket(view)) else {
        return Vec::new();
    };
    let note = match view.claim().deletion {
        Deletion::Retain => format!("bucket {bucket} is kept"),
        Deletion::Delete | Deletion::Force => {
            // The record was deleted by hand, or another process removed it.
            format!("there is no record of bucket {bucket} any more: if it was not deleted before, it is kept")
        }
    };
    vec![retained_or_deleted((false, note))]
}

fn retained_or_deleted((deleted, note): (bool, String)) -> Announcement {
    let reason = if deleted { "BucketDeleted" } else { "BucketRetained" };
    Announcement { warning: false, reason: reason.to_owned(), note }
}

fn had_bucket(view: &View) -> bool {
    let before = view.status_before();
    let created = before.conditions.iter().find(|c| c.type_ == ConditionType::BucketCreated.as_str());
    // A pass that did not find the record does not report the bucket as created.
    created.map_or(before.bucket_origin.is_some(), |c| c.status == "True")
}

/// Returns true with a note if the bucket was deleted, false with a note if it is kept, and `None`
/// if there is nothing to report.
fn outcome(view: &View, LetGo { record, gone }: &LetGo) -> Option<(bool, String)> {
    let bucket = &record.bucket;
    let before = view.status_before();
    let current = before.bucket_name.as_deref() == Some(bucket.as_str())
        && before.backend.as_ref().is_some_and(|backend| backend.name == record.backend);
    let had = current && had_bucket(view);
    let kept = |why: &str| Some((false, format!("bucket {bucket} {why}")));
    match view.claim().deletion {
        // A deleted bucket is reported even if the policy was edited since.
        _ if *gone && (had || record.settled) => {
            let objects = before.purge.as_ref().map_or(0, |purge| purge.objects_deleted);
            let objects = u64::try_from(objects).unwrap_or_default() + view.purged();
            let contents = if objects > 0 { format!(" with its {objects} objects") } else { String::new() };
            Some((true, format!("bucket {bucket} is deleted{contents}")))
        }
        _ if *gone => None,
        Deletion::Retain if had || record.adopted => kept("is kept"),
        Deletion::Retain if record.absence => kept("is kept if it came to be"),
        Deletion::Retain => None,
        _ if record.adopted && current => kept("was taken over and is kept"),
        _ if record.adopted => kept("was left when the claim moved, and is kept"),
        _ => kept("is not proved to be this claim's and is kept"),
    }
}

const REVOKED: &str = "Revoked";

/// Returns the Event about revoked credentials, in the pass that deletes the last credential of a
/// deleted claim.
fn revocation(view: &View) -> Vec<Announcement> {
    let note = "its credentials are revoked".to_owned();
    let event = Announcement { warning: false, reason: REVOKED.to_owned(), note };
    if view.claim().deleting && view.revoked() > 0 && delete::are_revoked(view) { vec![event] } else { Vec::new() }
}

/// Returns true if the end of a pass reports that the credentials are revoked.
pub(crate) fn tells_of_revocation(rest: &Rest) -> bool {
    rest.events.iter().any(|event| event.reason == REVOKED)
}

/// Returns the warning that a bound claim is now bound to another bucket, which has none of its
/// data.
///
/// The bucket is the same one if only the backend's endpoint or the name of the backend changed.
fn departure(before: &BucketClaimStatus, after: &BucketClaimStatus) -> Option<Announcement> {
    before.bucket_origin?;
    let (old, new) = (before.bucket_name.as_ref()?, after.bucket_name.as_ref()?);
    let (from, to) = (before.backend.as_ref()?, after.backend.as_ref()?);
    let same_store = from.name == to.name || from.endpoint == to.endpoint;
    let note = format!(
        "the claim is bound to bucket {new} at S3Backend {} now; no data was moved, bucket {old} at S3Backend {} is left \
         as it is",
        to.name, from.name
    );
    (old != new || !same_store).then(|| Announcement { warning: true, reason: "DataNotMoved".to_owned(), note })
}

/// Returns the warning that all keys of a claim were revoked on request.
fn emergency(view: &View, after: &BucketClaimStatus) -> Option<Announcement> {
    let before = view.status_before();
    let (record, _) = view.record()?;
    let is_new =
        after.handled_revoke_request.is_some() && after.handled_revoke_request != before.handled_revoke_request;
    let through = Some(record.revoked_through).filter(|through| is_new && *through > 0)?;
    let note = format!("every key up to generation {through} is revoked, as annotation {REVOKE} asks");
    Some(Announcement { warning: true, reason: "KeysRevoked".to_owned(), note })
}

/// Returns one Event per transition of `Ready`, from a comparison of the status before the pass and
/// the one after it.
pub(super) fn transitions(view: &View, after: &BucketClaimStatus) -> Vec<Announcement> {
    let ready = |status: &BucketClaimStatus| {
        let condition = status.conditions.iter().find(|c| c.type_ == ConditionType::Ready.as_str());
        condition.map(|c| (c.status.clone(), c.reason.clone()))
    };
    let mut events = revocation(view);
    if view.is_record_remade() {
        let note = "the bucket record had been deleted and was made again".to_owned();
        events.push(Announcement { warning: true, reason: "RecordRemade".to_owned(), note });
    }
    events.extend(departure(view.status_before(), after));
    events.extend(emergency(view, after));
    events.extend(usage::crossing(view, after));
    if let (Some(then), Some(now)) = (view.status_before().rotation_generation, after.rotation_generation)
        && now > then
    {
        let note =
            format!("the credential is replaced, Secret {} holds generation {now}", view.claim().consumer_secret);
        events.push(Announcement { warning: false, reason: "Rotated".to_owned(), note });
    }
    let (before, now) = (ready(view.status_before()), ready(after));
    if before == now {
        return events;
    }
    let Some(condition) = after.conditions.iter().find(|c| c.type_ == ConditionType::Ready.as_str()) else {
        return events;
    };
    if condition.status == "True" {
        let note = match (&after.bucket_name, &after.bound_secret_name) {
            (Some(bucket), Some(secret)) => format!("bucket {bucket} is bound, the connection is in Secret {secret}"),
            _ => condition.message.clone(),
        };
        events.push(Announcement { warning: false, reason: "Bound".to_owned(), note });
    } else if condition.reason != Reason::Paused.to_string() {
        let (reason, note) = (condition.reason.clone(), condition.message.clone());
        events.push(Announcement { warning: condition.reason != Reason::Purging.to_string(), reason, note });
    }
    events
}
