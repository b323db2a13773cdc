//! The gauges that a scrape computes from the caches (spec §4): objects by kind and state, Ready
//! backends, age of the oldest credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use k8s_openapi::jiff::Timestamp;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::api::{AccessReason, BucketClaim, Phase, ServedBy, wire};
use crate::cache::ObcCaches;
use crate::metrics::BackendLabels;
use crate::plan::Stored;

use super::objects::{Access, Claim};
use super::shared::Shared;

/// The phases of an ObjectBucketClaim.
const OBC_PHASES: [&str; 4] = ["Pending", "Bound", "Released", "Failed"];
/// Reason reported for an access without a status.
const NOT_SEEN: &str = "Pending";

/// Computes the gauges from the caches of one operator.
pub(super) struct Gauges {
    /// Weak, because the shared state contains the metrics, which contain this. A scrape after the
    /// end has no gauges.
    pub(super) shared: Weak<Shared>,
    pub(super) claims: Store<Claim>,
    /// `None` if accesses are not served.
    pub(super) accesses: Option<Store<Access>>,
    /// The caches and the provisioner's name; `None` if ObjectBucketClaims are not served.
    pub(super) obcs: Option<(Arc<ObcCaches>, String)>,
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gauges")
    }
}

#[derive(EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
}

#[derive(EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Labels of objects whose annotation names another operator.
#[derive(EncodeLabelSet)]
struct LeftAloneLabels {
    kind: &'static str,
    deleting: &'static str,
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let phases = self.phases().into_iter().map(|(phase, count)| (PhaseLabels { phase }, count));
        gauge(&mut encoder, "stowage_claims", "Claims by phase", phases)?;
        if let Some(accesses) = &self.accesses {
            let reasons = reasons(accesses).into_iter().map(|(reason, count)| (ReasonLabels { reason }, count));
            gauge(&mut encoder, "stowage_accesses", "Accesses by the reason of their condition Ready", reasons)?;
        }
        if let Some((caches, provisioner)) = &self.obcs {
            let phases = obc_phases(caches.phases(provisioner)).into_iter();
            let phases = phases.map(|(phase, count)| (PhaseLabels { phase }, count));
            gauge(&mut encoder, "stowage_objectbucketclaims", "ObjectBucketClaims by phase", phases)?;
        }
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let (name, help) = (
            "stowage_left_alone",
            "Objects whose annotation served-by names another operator, so that this one leaves them",
        );
        gauge(&mut encoder, name, help, self.left_alone(&shared).into_iter())?;
        let ready = by_backend(backends_ready(&shared));
        gauge(&mut encoder, "stowage_backend_ready", "Whether a backend is Ready: 1 or 0", ready)?;
        let (name, help) = (
            "stowage_secrets_without_endpoint",
            "Credentials and anonymous bindings that don't note yet where their bucket is",
        );
        gauge(&mut encoder, name, help, by_backend(without_endpoint(&shared)))?;
        let (name, help) =
            ("stowage_credential_age_seconds_max", "Age of the oldest credential that is not on its way out");
        gauge(&mut encoder, name, help, by_backend(oldest_credentials(&shared)))?;
        if self.accesses.is_none() {
            return Ok(());
        }
        let (name, help) = (
            "stowage_access_credential_age_seconds_max",
            "Age of the oldest credential of an access that is not on its way out, or 0",
        );
        let age = ConstGauge::new(oldest_of_accesses(&shared));
        age.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}

impl Gauges {
    /// Counts the objects served by another operator, by kind.
    fn left_alone(&self, shared: &Shared) -> Vec<(LeftAloneLabels, i64)> {
        let backends = shared.observer.backends.all().into_values().filter_map(Result::ok);
        let backends = backends.filter(|it| shared.observer.setting.is_anothers(it.served_by.as_ref())).count();
        let backends = ("s3backend", [i64::try_from(backends).unwrap_or(i64::MAX), 0]);
        let claims = ("bucketclaim", of_others(shared, &self.claims));
        let accesses = self.accesses.iter().map(|accesses| ("bucketaccess", of_others(shared, accesses)));
        let labelled = |(kind, [stay, go]): (&'static str, [i64; 2])| {
            [("false", stay), ("true", go)].map(|(deleting, count)| (LeftAloneLabels { kind, deleting }, count))
        };
        [backends, claims].into_iter().chain(accesses).flat_map(labelled).collect()
    }

    /// Counts claims by phase, including phases that no claim is in.
    ///
    /// The status of a claim that another operator serves may be old, so a deletion is read from
    /// the claim's metadata.
    fn phases(&self) -> BTreeMap<&'static str, i64> {
        let mut counts: BTreeMap<_, _> = Phase::ALL.iter().map(|phase| (phase.as_str(), 0)).collect();
        for claim in self.claims.state() {
            let told = |claim: &BucketClaim| claim.status.as_ref()?.phase;
            let phase = match &claim.0 {
                Ok(claim) if claim.metadata.deletion_timestamp.is_some() => Phase::Deleting,
                Ok(claim) => told(claim).unwrap_or(Phase::Pending),
                Err(_) => Phase::Pending,
            };
            *counts.entry(phase.as_str()).or_default() += 1;
        }
        counts
    }
}

/// Counts accesses by reason, including reasons that no access has.
fn reasons(accesses: &Store<Access>) -> BTreeMap<&'static str, i64> {
    let known = AccessReason::ALL.map(AccessReason::as_str);
    let mut counts: BTreeMap<_, _> = known.into_iter().chain([NOT_SEEN]).map(|reason| (reason, 0)).collect();
    for access in accesses.state() {
        let status = access.0.as_ref().ok().and_then(|access| access.status.as_ref());
        let ready = status.and_then(|status| status.conditions.iter().find(|it| it.type_ == "Ready"));
        let reason = ready.and_then(|ready| known.into_iter().find(|it| *it == ready.reason));
        *counts.entry(reason.unwrap_or(NOT_SEEN)).or_default() += 1;
    }
    counts
}

/// Counts ObjectBucketClaims by phase, including phases that none is in.
fn obc_phases(seen: Vec<Option<String>>) -> BTreeMap<&'static str, i64> {
    let mut counts: BTreeMap<_, _> = OBC_PHASES.map(|phase| (phase, 0)).into();
    for phase in seen {
        let known = OBC_PHASES.into_iter().find(|it| phase.as_deref() == Some(it));
        *counts.entry(known.unwrap_or(OBC_PHASES[0])).or_default() += 1;
    }
    counts
}

/// Counts objects whose annotation names another operator: those that stay, and those being
/// deleted.
fn of_others<K>(shared: &Shared, objects: &Store<DeserializeGuard<K>>) -> [i64; 2]
where
    K: Resource<DynamicType = ()> + Clone,
{
    let mut counts = [0; 2];
    for object in objects.state() {
        if shared.observer.setting.is_anothers(ServedBy::noted(object.annotations()).as_ref()) {
            counts[usize::from(object.meta().deletion_timestamp.is_some())] += 1;
        }
    }
    counts
}

fn backends_ready(shared: &Shared) -> BTreeMap<String, i64> {
    let backends = shared.observer.backends.all().into_iter();
    backends.map(|(name, backend)| (name, i64::from(backend.is_ok_and(|backend| backend.ready)))).collect()
}

fn oldest_credentials(shared: &Shared) -> BTreeMap<String, i64> {
    let now = shared.clock.now();
    let mut oldest: BTreeMap<String, i64> = BTreeMap::new();
    let role = wire::Role::VirtualCredential.as_str();
    let internal = shared.observer.internal.all();
    let served = internal.iter().filter(|secret| is_served(shared, secret));
    for secret in served.filter(|secret| secret.label(wire::ROLE) == Some(role)) {
        let (Some(backend), Some(age)) = (secret.text("backend"), age(secret, now)) else { continue };
        let entry = oldest.entry(backend.to_owned()).or_default();
        *entry = age.max(*entry);
    }
    oldest
}

/// Returns the age in seconds of the oldest credential of accesses.
///
/// It has no backend label: a key of an access may open buckets of many backends.
fn oldest_of_accesses(shared: &Shared) -> i64 {
    let now = shared.clock.now();
    let role = wire::Role::AccessCredential.as_str();
    let is_served = |secret: &Stored| secret.access().is_none_or(|access| shared.config.reach.has(&access.namespace));
    let internal = shared.observer.internal.all();
    let keys = internal.iter().filter(|secret| secret.label(wire::ROLE) == Some(role) && is_served(secret));
    keys.filter_map(|secret| age(secret, now)).max().unwrap_or(0)
}

/// Counts credentials and bindings without an endpoint, for every backend, including zeros.
fn without_endpoint(shared: &Shared) -> BTreeMap<String, i64> {
    let mut counts: BTreeMap<String, i64> = shared.observer.backends.all().into_keys().map(|name| (name, 0)).collect();
    let opens = |secret: &Stored| {
        matches!(
            wire::Role::of_internal(secret.name()),
            Some(wire::Role::VirtualCredential | wire::Role::AnonymousBinding)
        )
    };
    let lacks = |secret: &&Stored| opens(secret) && secret.endpoint().is_none() && is_served(shared, secret);
    for secret in shared.observer.internal.all().iter().filter(lacks) {
        if let Some(count) = secret.text("backend").and_then(|backend| counts.get_mut(backend)) {
            *count += 1;
        }
    }
    counts
}

/// Returns true if, by its labels, a Secret belongs to a claim that this operator serves.
fn is_served(shared: &Shared, secret: &Stored) -> bool {
    secret.claim().is_none_or(|claim| shared.config.reach.has(&claim.namespace))
}

/// Returns the age in seconds; `None` for a credential that is to expire.
fn age(secret: &Stored, now: Timestamp) -> Option<i64> {
    let metadata = &secret.0.metadata;
    let expires = metadata.annotations.as_ref().is_some_and(|all| all.contains_key(wire::EXPIRES_AT));
    let made = metadata.creation_timestamp.as_ref().filter(|_| !expires)?;
    Some(now.duration_since(made.0).as_secs().max(0))
}

fn by_backend(values: BTreeMap<String, i64>) -> impl Iterator<Item = (BackendLabels, i64)> {
    values.into_iter().map(|(backend, value)| (BackendLabels { backend }, value))
}

fn gauge<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, i64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
