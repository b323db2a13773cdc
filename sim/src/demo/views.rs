//! What kubectl would print of the cluster: tables of claims, backends, events and conditions.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use stowage_operator::api::{BucketClaim, ClaimRef, Phase, S3Backend};

use crate::determinism::VirtualClock;
use crate::world::World;

use super::step::{Line, Span, Tone};
use super::table::{Table, age};

/// All objects of a kind, by namespace and name.
pub(super) fn objects<T: DeserializeOwned>(world: &World, group: &str, plural: &str) -> Vec<T> {
    let objects = world.cluster.objects().into_iter();
    let found = objects.filter(|object| object.group == group && object.plural == plural);
    found.filter_map(|found| T::deserialize(found.object.as_ref()).ok()).collect()
}

/// All claims, by namespace and name.
pub(super) fn claims(world: &World) -> Vec<BucketClaim> {
    objects(world, stowage_operator::api::GROUP, "bucketclaims")
}

/// One claim.
pub(super) fn claim(world: &World, at: &ClaimRef) -> Option<BucketClaim> {
    claims(world).into_iter().find(|claim| place(claim) == *at)
}

/// All backends, by name.
pub(super) fn backends(world: &World) -> Vec<S3Backend> {
    objects(world, stowage_operator::api::GROUP, "s3backends")
}

/// One Secret.
pub(super) fn secret(world: &World, namespace: &str, name: &str) -> Option<Secret> {
    let secrets: Vec<Secret> = objects(world, "", "secrets");
    secrets.into_iter().find(|s| s.name_any() == name && s.namespace().as_deref() == Some(namespace))
}

/// Namespace and name of a claim.
pub(super) fn place(claim: &BucketClaim) -> ClaimRef {
    ClaimRef { namespace: claim.namespace().unwrap_or_default(), name: claim.name_any() }
}

/// The phase of a claim, if anybody has looked at it.
pub(super) fn phase(claim: &BucketClaim) -> Option<Phase> {
    claim.status.as_ref()?.phase
}

/// Whether bucket and credentials of a claim are there.
pub(super) fn is_bound(claim: &BucketClaim) -> bool {
    phase(claim) == Some(Phase::Bound)
}

/// The `Ready` condition of a claim.
pub(super) fn ready(claim: &BucketClaim) -> Option<&Condition> {
    ready_of(&claim.status.as_ref()?.conditions)
}

/// The `Ready` condition among others.
pub(super) fn ready_of(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// `kubectl get bucketclaims -A`, rows to be added.
pub(super) fn claim_table() -> Table {
    Table::new(&["NAMESPACE", "NAME", "BUCKET", "PHASE", "READY", "BACKEND", "AGE"])
}

/// A claim's row, at the time that the clock shows.
pub(super) fn claim_row(clock: &VirtualClock, claim: &BucketClaim) -> Line {
    let status = claim.status.as_ref();
    let phase = phase(claim);
    let tone = phase.map_or(Tone::Plain, |phase| match phase {
        Phase::Bound => Tone::Good,
        Phase::Failed => Tone::Bad,
        Phase::Creating | Phase::Deleting | Phase::Pending => Tone::Busy,
    });
    vec![
        claim.namespace().unwrap_or_default().into(),
        claim.name_any().into(),
        status.and_then(|status| status.bucket_name.clone()).unwrap_or_default().into(),
        Span::new(tone, phase.map(|phase| format!("{phase:?}")).unwrap_or_default()),
        truth(ready(claim)),
        claim.spec.backend_ref.name.clone().into(),
        age_of(clock, claim.metadata.creation_timestamp.as_ref()).into(),
    ]
}

/// `kubectl get s3backends`.
pub(super) fn backend_table(world: &World, backends: &[S3Backend]) -> Table {
    let mut table = Table::new(&["NAME", "ENDPOINT", "READY", "BUCKETS", "AGE"]);
    for backend in backends {
        let status = backend.status.as_ref();
        let buckets = status.and_then(|status| status.bucket_count).map(|count| count.to_string());
        table.row([
            backend.name_any().into(),
            backend.spec.endpoint.clone().into(),
            truth(status.and_then(|status| ready_of(&status.conditions))),
            buckets.unwrap_or_default().into(),
            age_of(&world.clock, backend.metadata.creation_timestamp.as_ref()).into(),
        ]);
    }
    table
}

/// Conditions as in `kubectl describe`; a message said before isn't said again.
pub(super) fn condition_table(conditions: &[Condition]) -> Table {
    let mut table = Table::new(&["TYPE", "STATUS", "REASON", "MESSAGE"]);
    for (index, condition) in conditions.iter().enumerate() {
        let said = conditions[..index].iter().any(|before| before.message == condition.message);
        let message = if said { Span::new(Tone::Faint, "(the same)") } else { condition.message.clone().into() };
        table.row([
            condition.type_.clone().into(),
            condition.status.clone().into(),
            condition.reason.clone().into(),
            message,
        ]);
    }
    table
}

/// `kubectl get events -A`, in the order in which they were written.
pub(super) fn event_table(world: &World) -> (Table, usize) {
    let mut events: Vec<Event> = objects(world, "events.k8s.io", "events");
    // Their names and times are the client's and come from the wall clock.
    let version = |event: &Event| event.resource_version().and_then(|version| version.parse::<u64>().ok());
    events.sort_by_key(version);
    let mut table = Table::new(&["NAMESPACE", "TYPE", "REASON", "OBJECT", "NOTE"]);
    for event in &events {
        let object = event.regarding.clone().unwrap_or_default();
        let kind = object.kind.unwrap_or_default().to_lowercase();
        let type_ = event.type_.clone().unwrap_or_default();
        let tone = if type_ == "Warning" { Tone::Busy } else { Tone::Plain };
        table.row([
            event.namespace().unwrap_or_default().into(),
            Span::new(tone, type_),
            event.reason.clone().unwrap_or_default().into(),
            format!("{kind}/{}", object.name.unwrap_or_default()).into(),
            event.note.clone().unwrap_or_default().into(),
        ]);
    }
    (table, events.len())
}

fn truth(condition: Option<&Condition>) -> Span {
    let status = condition.map(|condition| condition.status.clone()).unwrap_or_default();
    let tone = match status.as_str() {
        "True" => Tone::Good,
        "False" => Tone::Bad,
        _ => Tone::Plain,
    };
    Span::new(tone, status)
}

fn age_of(clock: &VirtualClock, created: Option<&Time>) -> String {
    created.map(|created| age(clock.now().as_second() - created.0.as_second())).unwrap_or_default()
}
