//! The status that a claim should have.
//!
//! Derived from what the pass knows. The status that is there is compared with, and keeps what an
//! earlier pass pinned where this one ended before it knew better. What else goes by it, where
//! record or key are lost: which bucket the claim was bound to (spec §3.2), and which generation
//! was used. Only the operator writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{
    Binding, BucketClaimStatus, BucketOrigin, BucketRecord, ConditionType, Credential, Phase, PinnedBackend,
    PurgeProgress, Reason, merge_conditions,
};

use super::announcements;
use super::consent;
use super::delete;
use super::known::Knowledge;
use super::revocation;
use super::secret::Stored;
use super::step::{Act, Rest, Step};
use super::stop::{Concern, Stop};
use super::usage;
use super::view::View;
use super::walk::then;

/// Ends a pass: writes the status if it should be another one, then rests. `stop` is what keeps the
/// claim from being Ready; `wake`, when time alone will make something due. `recheck` is asked
/// first: a pass that stops early, as over a paused claim, asks for nothing, and would tell that
/// what is in doubt is gone.
pub(super) fn conclude(view: &View, stop: Option<&Stop>, wake: Option<Timestamp>, now: Timestamp) -> Step {
    if view.is_finalizer_removed() || (view.claim().deleting && !view.claim().has_finalizer()) {
        return Step::Rest(announcements::farewell(view));
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
        then: then(stop, wake.into_iter().chain(again).min(), now),
        events: announcements::transitions(view, &status),
        waits_for: stop.and_then(|stop| stop.waits_for.clone()),
    })
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
    // Whoever revokes reads here that the keys are gone, so it is not told before they are.
    let told = &view.claim().status.handled_revoke_request;
    let handled = if revocation::is_done(view) { &record.handled_revoke_request } else { told };
    status.handled_revoke_request.clone_from(handled);
    let earlier = || view.earlier_credential(record, own_consumer(view)?);
    let Some(credential) = view.target_credential(record).or_else(earlier) else { return };
    status.bucket_origin = Some(if record.adopted { BucketOrigin::Adopted } else { BucketOrigin::Created });
    status.proxy_endpoint = Some(view.setting().gateway.endpoint.to_string());
    status.access_key_id = Some(credential.id.to_string());
    if credential.generation == record.generation || status.rotation_generation.is_none() {
        status.rotation_generation = i64::try_from(credential.generation).ok();
    }
    let made = view.credential(credential.generation).and_then(|secret| secret.0.metadata.creation_timestamp.clone());
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
                (_, Some(name)) => Some(connection_fact(view, name)),
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

/// The tenant has a key that works, be it one that is to be deleted at once.
fn connection_fact(view: &View, secret: &str) -> Fact {
    let mut message = format!("the connection is in Secret {secret}");
    if !revocation::is_done(view) {
        message.push_str("; a revoked key is not deleted yet, and works until it is");
    }
    Fact::yes(Reason::SecretWritten, message)
}

/// Name of the consumer Secret, if it is there, ours and holds the credential aimed at, or the one
/// that is to be replaced by it (spec §1).
fn published(view: &View, record: &BucketRecord) -> Option<String> {
    let secret = own_consumer(view)?;
    let holds = |credential: Credential| secret.published_key() == Some(credential.id.as_str());
    let held = view.target_credential(record).is_some_and(holds);
    (held || view.earlier_credential(record, secret).is_some()).then(|| secret.name().to_owned())
}

/// The Secret that the claim is to be published in, if it is there and ours.
fn own_consumer(view: &View) -> Option<&Stored> {
    let Knowledge::Present(secret) = view.consumer(&view.claim().consumer_secret) else { return None };
    secret.is_controlled_by(&view.claim().uid).then_some(secret)
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
