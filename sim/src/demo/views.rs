//! What kubectl would print of the cluster: tables of claims, backends and events.

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

/// One access.
pub(super) fn access(world: &World, at: &AccessRef) -> Option<BucketAccess> {
    let mut all = objects::<BucketAccess>(world, stowage_operator::api::GROUP, "bucketaccesses").into_iter();
    all.find(|access| access.namespace().as_ref() == Some(&at.namespace) && access.name_any() == at.name)
}

/// All backends, by name.
pub(super) fn backends(world: &World) -> Vec<S3Backend> {
    objects(world, stowage_operator::api::GROUP, "s3backends")
}

/// One Secret.
pub(super) fn secret(world: &World, namespace: &str, name: &str) -> Option<Secret> {
    let objects = world.cluster.objects().into_iter();
    let mut found = objects.filter(|o| o.plural == "secrets" && o.namespace == namespace && o.name == name);
    Secret::deserialize(found.next()?.object.as_ref()).ok()
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

/// `kubectl get bucketclaims -A`.
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

/// The `Ready` conditions of some claims.
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

/// All events, in the order in which they were written. Their names and times are the client's and
/// come from the wall clock.
pub(super) fn events(world: &World) -> Vec<Event> {
    let mut events: Vec<Event> = objects(world, "events.k8s.io", "events");
    events.sort_by_key(|event| event.resource_version().and_then(|version| version.parse::<u64>().ok()));
    events
}

/// How many events of each reason there are.
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

/// The events on a claim, as `kubectl events --for` has them.
pub(super) fn events_on(world: &World, claim: &ClaimRef) -> Vec<Event> {
    let mut events = events(world);
    events.retain(|event| {
        let object = event.regarding.as_ref();
        object
            .is_some_and(|on| on.namespace.as_ref() == Some(&claim.namespace) && on.name.as_ref() == Some(&claim.name))
    });
    events
}

/// Events by type, reason and note.
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
