//! Views of the cluster as kubectl prints them: tables of claims, backends and events.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use seeded::VirtualClock;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stowage_operator::api::{AccessRef, BucketAccess, BucketClaim, ClaimRef, Phase, S3Backend};
use stowage_world::World;
use terminal::{Line, Span, Tone};
use terminal::{Table, age};

use super::step::Finding;

/// Returns all objects of a kind, sorted by namespace and name.
pub(super) fn objects<T: DeserializeOwned>(world: &World, group: &str, plural: &str) -> Vec<T> {
    let objects = world.cluster.objects().into_iter();
    let found = objects.filter(|object| object.group == group && object.plural == plural);
    found.filter_map(|found| T::deserialize(found.object.as_ref()).ok()).collect()
}

/// Returns all claims, sorted by namespace and name.
pub(super) fn claims(world: &World) -> Vec<BucketClaim> {
    objects(world, stowage_operator::api::GROUP, "bucketclaims")
}

/// Returns a claim.
pub(super) fn claim(world: &World, at: &ClaimRef) -> Option<BucketClaim> {
    claims(world).into_iter().find(|claim| place(claim) == *at)
}

/// Returns an access.
pub(super) fn access(world: &World, at: &AccessRef) -> Option<BucketAccess> {
    let mut all = objects::<BucketAccess>(world, stowage_operator::api::GROUP, "bucketaccesses").into_iter();
    all.find(|access| access.namespace().as_ref() == Some(&at.namespace) && access.name_any() == at.name)
}

/// Returns all backends, sorted by name.
pub(super) fn backends(world: &World) -> Vec<S3Backend> {
    objects(world, stowage_operator::api::GROUP, "s3backends")
}

/// Returns a Secret.
pub(super) fn secret(world: &World, namespace: &str, name: &str) -> Option<Secret> {
    let objects = world.cluster.objects().into_iter();
    let mut found = objects.filter(|o| o.plural == "secrets" && o.namespace == namespace && o.name == name);
    Secret::deserialize(found.next()?.object.as_ref()).ok()
}

/// Returns the namespace and name of a claim.
pub(super) fn place(claim: &BucketClaim) -> ClaimRef {
    ClaimRef { namespace: claim.namespace().unwrap_or_default(), name: claim.name_any() }
}

/// Returns the phase of a claim; `None` before its first reconciliation.
pub(super) fn phase(claim: &BucketClaim) -> Option<Phase> {
    claim.status.as_ref()?.phase
}

/// Returns true if the claim's phase is `Bound`: its bucket and its credentials exist.
pub(super) fn is_bound(claim: &BucketClaim) -> bool {
    phase(claim) == Some(Phase::Bound)
}

/// Returns the `Ready` condition of a claim.
pub(super) fn ready(claim: &BucketClaim) -> Option<&Condition> {
    ready_of(&claim.status.as_ref()?.conditions)
}

/// Returns the `Ready` condition.
pub(super) fn ready_of(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// Returns the output of `kubectl get bucketclaims -A`.
pub(super) fn claim_table(world: &World) -> Table {
    let mut table = Table::new(&["NAMESPACE", "NAME", "BUCKET", "PHASE", "READY", "BACKEND", "AGE"]);
    for claim in claims(world) {
        table.row(claim_row(&world.clock, &claim));
    }
    table
}

fn claim_row(clock: &VirtualClock, claim: &BucketClaim) -> Line {
    let status = claim.status.as_ref();
    vec![
        claim.namespace().unwrap_or_default().into(),
        claim.name_any().into(),
        status.and_then(|status| status.bucket_name.clone()).unwrap_or_default().into(),
        phase_cell(claim),
        truth(ready(claim)),
        claim.spec.backend_ref.name.clone().into(),
        age_of(clock, claim.metadata.creation_timestamp.as_ref()).into(),
    ]
}

/// Returns a table of the `Ready` conditions of some claims.
pub(super) fn readiness_table(claims: &[&BucketClaim]) -> Table {
    let mut table = Table::new(&["CLAIM", "READY", "REASON", "MESSAGE"]);
    for claim in claims {
        let (reason, message) =
            ready(claim).map(|ready| (ready.reason.clone(), ready.message.clone())).unwrap_or_default();
        table.row([place(claim).to_string().into(), truth(ready(claim)), reason.into(), message.into()]);
    }
    table
}

fn phase_cell(claim: &BucketClaim) -> Span {
    let Some(phase) = phase(claim) else { return Span::default() };
    let tone = match phase {
        Phase::Bound => Tone::Good,
        Phase::Failed => Tone::Bad,
        Phase::Creating | Phase::Deleting | Phase::Pending => Tone::Busy,
    };
    Span::new(tone, format!("{phase:?}"))
}

/// Returns all events in the order of their writes. Their names and times come from the client's
/// wall clock, so they can't be sorted by those.
pub(super) fn events(world: &World) -> Vec<Event> {
    let mut events: Vec<Event> = objects(world, "events.k8s.io", "events");
    events.sort_by_key(|event| event.resource_version().and_then(|version| version.parse::<u64>().ok()));
    events
}

/// Reports the number of events of each reason.
pub(super) fn all_told(world: &World) -> Finding {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for reason in events(world).into_iter().filter_map(|event| event.reason) {
        *counts.entry(reason).or_default() += 1;
    }
    let told: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if told.is_empty() {
        Err("there are none".to_owned())
    } else {
        Ok(format!("one for each transition: {}", told.join(", ")))
    }
}

/// Returns the events of a claim, as `kubectl events --for` does.
pub(super) fn events_on(world: &World, claim: &ClaimRef) -> Vec<Event> {
    let mut events = events(world);
    events.retain(|event| {
        let object = event.regarding.as_ref();
        object
            .is_some_and(|on| on.namespace.as_ref() == Some(&claim.namespace) && on.name.as_ref() == Some(&claim.name))
    });
    events
}

/// Returns a table of events with type, reason and note.
pub(super) fn event_table(events: &[Event]) -> Table {
    let mut table = Table::new(&["TYPE", "REASON", "NOTE"]);
    for event in events {
        let type_ = event.type_.clone().unwrap_or_default();
        let tone = if type_ == "Warning" { Tone::Busy } else { Tone::Plain };
        let (reason, note) = (event.reason.clone().unwrap_or_default(), event.note.clone().unwrap_or_default());
        table.row([Span::new(tone, type_), reason.into(), note.into()]);
    }
    table
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
