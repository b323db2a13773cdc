//! The status that a claim should have, and the events that a change of it makes.
//!
//! Derived from what the pass knows. The status that is there is compared with, and keeps what an
//! earlier pass pinned where this one ended before it knew better. What else goes by it, where
//! record or key are lost: which bucket the claim was bound to (spec §3.2), and which generation
//! was used. Only the operator writes it.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::wire::REVOKE;
use crate::api::{
    Binding, BucketClaimStatus, BucketOrigin, BucketRecord, ConditionType, Deletion, Phase, PinnedBackend,
    PurgeProgress, Reason, merge_conditions,
};

use super::consent;
use super::delete;
use super::secret::Stored;
use super::step::{Act, Announcement, Rest, Step, Then};
use super::stop::{Concern, Stop};
use super::usage;
use super::view::{Knowledge, LetGo, View};

/// Ends a pass: writes the status if it should be another one, then rests. `stop` is what keeps the
/// claim from being Ready; `wake`, when time alone will make something due. `recheck` is asked
/// first: a pass that stops early, as over a paused claim, asks for nothing, and would tell that
/// what is in doubt is gone.
pub(super) fn conclude(view: &View, stop: Option<&Stop>, wake: Option<Timestamp>, now: Timestamp) -> Step {
    if view.is_finalizer_removed() || (view.claim().deleting && !view.claim().has_finalizer()) {
        return Step::Rest(farewell(view));
    }
    if let Some(look) = view.first_recheck() {
        return Step::Look(look.clone());
    }
    let record = view.record().map(|(record, _)| record);
    let (usage, again) = usage::next(view, record, now);
    let status = BucketClaimStatus { usage, ..derive(view, record, stop, now) };
    if status != view.claim().status {
        return Step::Act(Act::WriteStatus(view.claim().id.clone(), Box::new(status)));
    }
    Step::Rest(Rest {
        then: match (stop.map_or(Then::AwaitChange, |stop| stop.then.clone()), wake.into_iter().chain(again).min()) {
            (Then::AwaitChange, Some(wake)) => Then::After(until(now, wake)),
            (then, _) => then,
        },
        events: transitions(view, &status),
        waits_for: stop.and_then(|stop| stop.waits_for.clone()),
    })
}

/// At least a second, so that nothing is looked at in a loop.
fn until(now: Timestamp, wake: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or_default().max(Duration::from_secs(1))
}

/// The claim is gone, or not ours to keep.
fn farewell(view: &View) -> Rest {
    let outcomes = if view.is_finalizer_removed() { outcomes(view) } else { Vec::new() };
    // That a claim is gone says that its credentials are.
    let events = if outcomes.is_empty() { revocation(view) } else { outcomes };
    Rest { then: Then::AwaitChange, events, waits_for: None }
}

/// What became of the buckets, for claims that had one.
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
            // Deleted by hand; or this process is not the one that removed it.
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
    // A pass that did not find the record says nothing of the bucket.
    created.map_or(before.bucket_origin.is_some(), |c| c.status == "True")
}

/// Whether a bucket was deleted, and what to say of it.
fn outcome(view: &View, LetGo { record, gone }: &LetGo) -> Option<(bool, String)> {
    let bucket = &record.bucket;
    let before = view.status_before();
    let current = before.bucket_name.as_deref() == Some(bucket.as_str())
        && before.backend.as_ref().is_some_and(|backend| backend.name == record.backend);
    let had = current && had_bucket(view);
    let kept = |why: &str| Some((false, format!("bucket {bucket} {why}")));
    match view.claim().deletion {
        // Whatever the policy is by now.
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

/// The pass that deletes the last credential of a claim that goes is the one that says so.
fn revocation(view: &View) -> Vec<Announcement> {
    let note = "its credentials are revoked".to_owned();
    let event = Announcement { warning: false, reason: REVOKED.to_owned(), note };
    if view.claim().deleting && view.revoked() > 0 && delete::are_revoked(view) { vec![event] } else { Vec::new() }
}

/// Whether the end of a pass says that the credentials are revoked.
pub(crate) fn tells_of_revocation(rest: &Rest) -> bool {
    rest.events.iter().any(|event| event.reason == REVOKED)
}

fn derive(view: &View, record: Option<&BucketRecord>, stop: Option<&Stop>, now: Timestamp) -> BucketClaimStatus {
    let mut facts = Facts::of(view, record, stop);
    let now = Time(now);
    let conditions = merge_conditions(&view.claim().status.conditions, facts.conditions(view, stop, &now), &now);
    let mut status = BucketClaimStatus {
        observed_generation: Some(view.claim().generation),
        phase: Some(facts.phase(view, stop, record.is_some())),
        binding: facts.secret_name.clone().map(|name| Binding { name }),
        bound_secret_name: facts.secret_name.take(),
        // A pass that never came to know the record says nothing new about the bucket.
        ..previous_pins(view)
    };
    if let Some(record) = record {
        pin(&mut status, view, record);
        status.accesses = consent::shown(view, record);
    }
    status.purge = purge_progress(view, now);
    status.conditions = conditions;
    status
}

/// Counts on from where the status stood when the pass began.
fn purge_progress(view: &View, now: Time) -> Option<PurgeProgress> {
    let before = view.status_before().purge.as_ref();
    if view.purge_end().is_none() {
        return before.cloned();
    }
    let deleted = i64::try_from(view.purged()).unwrap_or(i64::MAX);
    Some(PurgeProgress {
        objects_deleted: before.map_or(0, |purge| purge.objects_deleted).saturating_add(deleted),
        // An earlier status of this very pass may have begun it.
        started_at: view.claim().status.purge.as_ref().or(before).map_or(now, |purge| purge.started_at.clone()),
    })
}

/// What the status said already, for a pass that ended before it read the record, or found no key
/// of it.
fn previous_pins(view: &View) -> BucketClaimStatus {
    let before = &view.claim().status;
    BucketClaimStatus {
        bucket_name: before.bucket_name.clone(),
        backend: before.backend.clone(),
        bucket_origin: before.bucket_origin,
        // Stays where the key is gone: no later one may have its number, and where the record is
        // lost as well, it alone leads to a key that no list shows.
        rotation_generation: before.rotation_generation,
        ..BucketClaimStatus::default()
    }
}

fn pin(status: &mut BucketClaimStatus, view: &View, record: &BucketRecord) {
    status.bucket_name = Some(record.bucket.to_string());
    status.backend = Some(PinnedBackend { name: record.backend.clone(), endpoint: record.endpoint.to_string() });
    status.handled_rotate_request.clone_from(&record.handled_rotate_request);
    status.handled_revoke_request.clone_from(&record.handled_revoke_request);
    let Some(credential) = view.target_credential(record) else { return };
    status.bucket_origin = Some(if record.adopted { BucketOrigin::Adopted } else { BucketOrigin::Created });
    status.proxy_endpoint = Some(view.setting().gateway.endpoint.to_string());
    status.access_key_id = Some(credential.id.to_string());
    status.rotation_generation = i64::try_from(credential.generation).ok();
    let made = view.credential(record.generation).and_then(|secret| secret.0.metadata.creation_timestamp.clone());
    let interval = view.claim().desired.as_ref().ok().and_then(|desired| desired.rotation.interval_days);
    status.next_rotation_at = interval
        .zip(made.as_ref())
        .and_then(|(days, made)| made.0.checked_add(SignedDuration::from_hours(24 * i64::from(days))).ok().map(Time));
    status.rotated_at = made;
}

/// What the conditions besides `Ready` say.
struct Facts {
    bucket: Option<Fact>,
    credentials: Option<Fact>,
    secret_name: Option<String>,
}

struct Fact {
    holds: bool,
    reason: Reason,
    message: String,
}

impl Fact {
    fn yes(reason: Reason, message: String) -> Self {
        Self { holds: true, reason, message }
    }

    fn no(reason: Reason, message: String) -> Self {
        Self { holds: false, reason, message }
    }
}

impl Facts {
    fn of(view: &View, record: Option<&BucketRecord>, stop: Option<&Stop>) -> Self {
        let concerns = |concern| stop.filter(|stop| stop.concern == concern);
        let stopped = |stop: &Stop| Fact::no(stop.reason(), stop.message());
        let secret = record.and_then(|record| published(view, record));
        Self {
            bucket: concerns(Concern::Bucket).map(stopped).or_else(|| record.map(|record| bucket_fact(view, record))),
            credentials: match (concerns(Concern::Credentials), &secret) {
                _ if view.claim().deleting && delete::are_revoked(view) => {
                    Some(Fact::no(Reason::Revoked, "revoked, the claim is being deleted".to_owned()))
                }
                _ if view.claim().deleting => None,
                (Some(stop), _) if stop.reason() != Reason::BackendError => Some(stopped(stop)),
                (_, Some(name)) => {
                    Some(Fact::yes(Reason::SecretWritten, format!("the connection is in Secret {name}")))
                }
                (_, None) => None,
            },
            secret_name: left_behind(view).or(secret).or_else(|| bound_meanwhile(view)),
        }
    }

    fn conditions(&self, view: &View, stop: Option<&Stop>, now: &Time) -> Vec<Condition> {
        let condition = |type_: ConditionType, fact: &Fact| Condition {
            type_: type_.as_str().to_owned(),
            status: if fact.holds { "True" } else { "False" }.to_owned(),
            observed_generation: Some(view.claim().generation),
            reason: fact.reason.to_string(),
            message: fact.message.clone(),
            last_transition_time: now.clone(),
        };
        let ready = match stop {
            Some(stop) => Fact::no(stop.reason(), stop.message()),
            None => Fact::yes(Reason::Bound, "bucket and credentials are there".to_owned()),
        };
        let mut conditions = vec![condition(ConditionType::Ready, &ready)];
        conditions.extend(self.bucket.iter().map(|fact| condition(ConditionType::BucketCreated, fact)));
        conditions.extend(self.credentials.iter().map(|fact| condition(ConditionType::CredentialsProvisioned, fact)));
        if let Some(stop) = stop.filter(|stop| stop.reason() != Reason::Paused) {
            let type_ = if stop.reason().stalls() { ConditionType::Stalled } else { ConditionType::Reconciling };
            conditions.push(condition(type_, &Fact::yes(stop.reason(), stop.message())));
        }
        conditions
    }

    /// The first that fits (spec §1).
    fn phase(&self, view: &View, stop: Option<&Stop>, record_held: bool) -> Phase {
        let holds = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.holds);
        if view.claim().deleting {
            Phase::Deleting
        } else if holds(&self.bucket) && holds(&self.credentials) {
            Phase::Bound
        } else if stop.is_some_and(|stop| stop.reason().stalls()) {
            Phase::Failed
        } else if record_held {
            Phase::Creating
        } else {
            Phase::Pending
        }
    }
}

fn bucket_fact(view: &View, record: &BucketRecord) -> Fact {
    let bucket = &record.bucket;
    if view.is_missing(record) {
        Fact::no(Reason::BucketMissing, format!("bucket {bucket} is gone"))
    } else if !view.is_bound_by(record) && !view.claim().deleting {
        Fact::no(Reason::Creating, format!("bucket {bucket} is being created"))
    } else if record.adopted {
        Fact::yes(Reason::Adopted, format!("bucket {bucket} was taken over"))
    } else {
        Fact::yes(Reason::CreatedOnBackend, format!("bucket {bucket} was created"))
    }
}

/// Name of the consumer Secret, if it is there, ours and holds the credential aimed at.
fn published(view: &View, record: &BucketRecord) -> Option<String> {
    let credential = view.target_credential(record)?;
    let Knowledge::Present(secret) = view.consumer(&view.claim().consumer_secret) else { return None };
    let ours = secret.is_controlled_by(&view.claim().uid);
    (ours && secret.published_key() == Some(credential.id.as_str())).then(|| secret.name().to_owned())
}

/// Name of the consumer Secret that an edit of the name left, as long as it is there: somebody may
/// have taken its labels off, and then only the status leads to it, to remove it (spec §3.7).
fn left_behind(view: &View) -> Option<String> {
    let shown =
        view.claim().status.bound_secret_name.as_ref().filter(|shown| **shown != view.claim().consumer_secret)?;
    let Knowledge::Present(secret) = view.consumer(shown) else { return None };
    secret.is_controlled_by(&view.claim().uid).then(|| shown.clone())
}

/// Name of the consumer Secret that the tenant has as long as the one of the spec is not to be had:
/// that which the status names (spec §3.7). Where an edit of the name overtook the one before, or
/// the first pass, that may be none, and another holds a key of the claim.
fn bound_meanwhile(view: &View) -> Option<String> {
    let shown = view.claim().status.bound_secret_name.as_deref();
    let has_key = |secret: &&Stored| {
        view.published_generation(secret).is_some_and(|generation| view.credential(generation).is_some())
    };
    let there =
        view.own_consumers().find(|secret| Some(secret.name()) == shown).or_else(|| view.own_consumers().find(has_key));
    there.map(Stored::name).or(shown).map(str::to_owned)
}

/// A claim that was bound is bound to another bucket now, and has to be told that it finds none of
/// its data there. A bucket that its backend only leads to by another endpoint, or a store that has
/// another name, is the same one.
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

/// All keys of a claim that had one were revoked, as somebody asked.
fn emergency(view: &View, after: &BucketClaimStatus) -> Option<Announcement> {
    let before = view.status_before();
    let (record, _) = view.record()?;
    let is_new =
        after.handled_revoke_request.is_some() && after.handled_revoke_request != before.handled_revoke_request;
    let through = Some(record.revoked_through).filter(|through| is_new && *through > 0)?;
    let note = format!("every key up to generation {through} is revoked, as annotation {REVOKE} asks");
    Some(Announcement { warning: true, reason: "KeysRevoked".to_owned(), note })
}

/// One event per transition of `Ready`, by comparison of the status that the pass began with and
/// the one that it leaves.
fn transitions(view: &View, after: &BucketClaimStatus) -> Vec<Announcement> {
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
