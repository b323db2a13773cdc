//! Derivation of a claim's status.
//!
//! The status is derived from what the pass knows. The stored status is compared with it, and
//! supplies the values that an earlier pass pinned if this pass ended before it knew better.
//!
//! If record or key are lost, the planner also relies on the stored status for the bucket that the
//! claim was bound to (spec §3.2) and the generations that were used. Only the operator writes it.

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

/// Ends a pass: writes the status if it changed, then rests.
///
/// `stop` is the reason that the claim is not Ready, `wake` the time at which something becomes
/// due. Pending rechecks are answered first: a pass that stops early, for example over a paused
/// claim, reads nothing and would otherwise report objects as gone that are only in doubt.
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
        // A pass that did not read the record reports nothing new about the bucket.
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

/// Returns the progress of emptying, counted on from the status before the pass.
fn purge_progress(view: &View, now: Time) -> Option<PurgeProgress> {
    let before = view.status_before().purge.as_ref();
    if view.purge_end().is_none() {
        return before.cloned();
    }
    let deleted = i64::try_from(view.purged()).unwrap_or(i64::MAX);
    Some(PurgeProgress {
        objects_deleted: before.map_or(0, |purge| purge.objects_deleted).saturating_add(deleted),
        // An earlier status write of this pass may have started it.
        started_at: view.claim().status.purge.as_ref().or(before).map_or(now, |purge| purge.started_at.clone()),
    })
}

/// Returns the values of the stored status, for a pass that ended before it read the record or that
/// found no key.
fn previous_pins(view: &View) -> BucketClaimStatus {
    let before = &view.claim().status;
    BucketClaimStatus {
        bucket_name: before.bucket_name.clone(),
        backend: before.backend.clone(),
        bucket_origin: before.bucket_origin,
        // Kept after the key is gone: no later key may reuse the number, and if the record is lost
        // as well, it is the only way to find a key that no list shows.
        rotation_generation: before.rotation_generation,
        ..BucketClaimStatus::default()
    }
}

fn pin(status: &mut BucketClaimStatus, view: &View, record: &BucketRecord) {
    status.bucket_name = Some(record.bucket.to_string());
    status.backend = Some(PinnedBackend { name: record.backend.clone(), endpoint: record.endpoint.to_string() });
    status.handled_rotate_request.clone_from(&record.handled_rotate_request);
    // Users read here that their keys are revoked, so it is set only after the keys are gone.
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

/// Contents of the conditions other than `Ready`.
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

    /// Returns the first phase that applies (spec §1).
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

/// Returns the fact that the tenant has a working key, even if that key is about to be deleted.
fn connection_fact(view: &View, secret: &str) -> Fact {
    let mut message = format!("the connection is in Secret {secret}");
    if !revocation::is_done(view) {
        message.push_str("; a revoked key is not deleted yet, and works until it is");
    }
    Fact::yes(Reason::SecretWritten, message)
}

/// Returns the name of the consumer Secret if it exists, is ours and has the current credential, or
/// the one that the current credential is about to replace (spec §1).
fn published(view: &View, record: &BucketRecord) -> Option<String> {
    let secret = own_consumer(view)?;
    let holds = |credential: Credential| secret.published_key() == Some(credential.id.as_str());
    let held = view.target_credential(record).is_some_and(holds);
    (held || view.earlier_credential(record, secret).is_some()).then(|| secret.name().to_owned())
}

/// Returns the consumer Secret under the name from the spec, if it exists and is ours.
fn own_consumer(view: &View) -> Option<&Stored> {
    let Knowledge::Present(secret) = view.consumer(&view.claim().consumer_secret) else { return None };
    secret.is_controlled_by(&view.claim().uid).then_some(secret)
}

/// Returns the name of the consumer Secret that existed before the name was edited, while it
/// exists. If its labels were removed, only the status leads to it (spec §3.7).
fn left_behind(view: &View) -> Option<String> {
    let shown =
        view.claim().status.bound_secret_name.as_ref().filter(|shown| **shown != view.claim().consumer_secret)?;
    let Knowledge::Present(secret) = view.consumer(shown) else { return None };
    secret.is_controlled_by(&view.claim().uid).then(|| shown.clone())
}

/// Returns the name of the consumer Secret that the tenant uses while the one from the spec can't
/// be written: the one that the status names (spec §3.7).
///
/// If the name was edited again before the previous edit took effect, or before the first pass, the
/// named Secret may not exist. Then another Secret with a key of the claim is used.
fn bound_meanwhile(view: &View) -> Option<String> {
    let shown = view.claim().status.bound_secret_name.as_deref();
    let has_key = |secret: &&Stored| {
        view.published_generation(secret).is_some_and(|generation| view.credential(generation).is_some())
    };
    let there =
        view.own_consumers().find(|secret| Some(secret.name()) == shown).or_else(|| view.own_consumers().find(has_key));
    there.map(Stored::name).or(shown).map(str::to_owned)
}
