//! One bucket, several consumers: accesses are created and rotated, and lose their consent or their
//! claim (spec §8).

use serde_json::{Value, json};
use stowage_operator::api::wire::{REVOKE, Role};
use stowage_world::effects::Fault;
use stowage_world::fixtures::access_with;
use stowage_world::history::Facts;
use stowage_world::history::facts::{condition, field};
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, Target, TargetKind};
use stowage_world::{Accesses, Options};

use super::super::others::is_somebodys_doing;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{PHOTOS, bound, nothing_more, pass, patch};

/// The namespace of the consumer.
const READERS: &str = "team-b";
/// Name of the access.
const READER: &str = "reader";

/// The access in the claim's own namespace.
const OWN: Target = Target { kind: TargetKind::Access, namespace: NAMESPACE, name: READER };

fn world() -> Options {
    Options { accesses: Accesses::Served, ..Options::default() }
}

/// Creates an access to the claim's bucket for reading.
fn reader(namespace: &str) -> ScenarioStep {
    access_of(namespace, "ReadOnly")
}

/// Creates an access to the claim's bucket in this mode.
fn access_of(namespace: &str, mode: &str) -> ScenarioStep {
    let entry = format!("buckets: [{{claimRef: {{name: {CLAIM}, namespace: {NAMESPACE}}}, mode: {mode}}}]");
    let rotation = "rotationPolicy: {overlapSeconds: 60}";
    ScenarioStep::Apply(access_with(namespace, READER, &format!("{entry}, {rotation}")))
}

/// An access in the claim's own namespace is created, opens, and gets a new key.
pub(in super::super) static MADE: Scenario = Scenario {
    name: "access",
    about: "an access to a bound claim is made, and its key replaced on request, and again before the first has ended",
    phase: ScenarioPhase::Create,
    world,
    script: || {
        let rotate = |value: &str| json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}});
        let access = vec![
            reader(NAMESPACE),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, READER).into(),
            pass(90),
            ScenarioStep::Patch(OWN, rotate("now")),
            pass(70),
            ScenarioStep::Patch(OWN, rotate("again")),
        ];
        [bound(""), access].concat()
    },
    goal: Goal::new("both requests are handled, the access is open with one key, and the claim tells of it", |facts| {
        let mut records = facts.secrets(Role::AccessRecord);
        let handled = records.any(|(_, _, it)| field(it, "handled-rotate-request").as_deref() == Some("again"));
        let generation = access(facts, NAMESPACE)["status"]["rotationGeneration"].as_i64();
        let keys = facts.secrets(Role::AccessCredential).count();
        is_open(facts, NAMESPACE) && handled && generation >= Some(2) && keys == 1 && is_told(facts)
    }),
    otherwise: |facts, faults| by_others_hands(facts, faults, NAMESPACE),
    ends_alike: true,
    check: check_open,
};

/// An access is deleted, and the claim stays.
pub(in super::super) static REMOVED: Scenario = Scenario {
    name: "access-deleted",
    about: "an access is deleted while its key is in use",
    phase: ScenarioPhase::Delete,
    world,
    script: || {
        let opened = vec![
            reader(NAMESPACE),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, READER).into(),
            pass(30),
            ScenarioStep::Delete(OWN),
        ];
        [bound(""), opened].concat()
    },
    goal: Goal::new("the access is gone with all that was its own, and no record lets it in", |facts| {
        let left =
            [Role::AccessCredential, Role::AccessRecord].into_iter().any(|role| facts.secrets(role).next().is_some());
        access(facts, NAMESPACE).is_null() && !left && is_shut(facts) && facts.is_bound(NAMESPACE, CLAIM)
    }),
    otherwise: |facts, faults| {
        let stays = is_going(access(facts, NAMESPACE)) || never_opened(facts, NAMESPACE);
        let is_explained = is_shut(facts) || stays || !facts.is_bound(NAMESPACE, CLAIM);
        by_others_hands(facts, faults, NAMESPACE) && is_explained
    },
    ends_alike: true,
    check: nothing_more,
};

/// The owner withdraws consent from another namespace.
pub(in super::super) static WITHDRAWN: Scenario = Scenario {
    name: "access-withdrawn",
    about: "the owner of a bucket lets another namespace read it, and then doesn't any more",
    phase: ScenarioPhase::Edit,
    world,
    script: || {
        let shared = format!("sharing: [{{namespaces: {{names: [{READERS}]}}, maxMode: ReadOnly}}]");
        let opened = vec![
            reader(READERS),
            ScenarioStep::Until(OPEN_TO_READERS),
            WorldStep::AccessTenant(READERS, READER).into(),
            pass(30),
        ];
        let withdrawn = vec![patch(json!({"spec": {"sharing": Value::Null}}))];
        [bound(&shared), opened, withdrawn].concat()
    },
    goal: Goal::new(
        "the access is told that the bucket is not shared, no record lets it in, and the claim tells",
        |facts| {
            let is_told_of_none = facts.claim(NAMESPACE, CLAIM)["status"]["accesses"].is_null();
            let is_told = is_told_of_none && facts.is_bound(NAMESPACE, CLAIM);
            entry(facts, READERS)["reason"] == "NotShared" && is_shut(facts) && is_told
        },
    ),
    otherwise: |facts, faults| {
        by_others_hands(facts, faults, READERS) && (is_shut(facts) || never_opened(facts, READERS))
    },
    ends_alike: true,
    check: nothing_more,
};

/// An access is edited to request less than it has.
pub(in super::super) static NARROWED: Scenario = Scenario {
    name: "access-narrowed",
    about: "an access that may read and write is edited to read below a prefix, while its key is in use",
    phase: ScenarioPhase::Edit,
    world,
    script: || {
        let less =
            json!([{"claimRef": {"name": CLAIM, "namespace": NAMESPACE}, "mode": "ReadOnly", "prefix": "shared/"}]);
        let narrowed = vec![
            access_of(NAMESPACE, "ReadWrite"),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, READER).into(),
            pass(30),
            ScenarioStep::Patch(OWN, json!({"spec": {"buckets": less}})),
        ];
        [bound(""), narrowed].concat()
    },
    goal: Goal::new("the access is open for reading", |facts| {
        is_open(facts, NAMESPACE) && entry(facts, NAMESPACE)["mode"] == "ReadOnly"
    }),
    otherwise: |facts, faults| by_others_hands(facts, faults, NAMESPACE),
    ends_alike: true,
    check: |facts, faults| {
        // A key whose creation got no answer may have been given up.
        let is_first = access(facts, NAMESPACE)["status"]["rotationGeneration"] == 1;
        if faults.is_empty() && !is_first {
            return Err("the access has another key, though it asks for less of the same bucket".to_owned());
        }
        check_open(facts, faults)
    },
};

/// The key of an access has leaked, and all its keys are revoked.
pub(in super::super) static REVOKED: Scenario = Scenario {
    name: "access-revoked",
    about: "the key of an access has leaked, and its owner has every key end at once, while it is in use",
    phase: ScenarioPhase::Rotate,
    world,
    script: || {
        let revoked = vec![
            reader(NAMESPACE),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, READER).into(),
            pass(30),
            ScenarioStep::Patch(OWN, json!({"metadata": {"annotations": {REVOKE: "leaked"}}})),
        ];
        [bound(""), revoked].concat()
    },
    goal: Goal::new(
        "the request is handled, the keys until then are revoked, and the access is open with another",
        |facts| {
            let mut records = facts.secrets(Role::AccessRecord);
            let handled = records.any(|(_, _, it)| {
                field(it, "handled-revoke-request").as_deref() == Some("leaked")
                    && field(it, "revoked-through").is_some()
            });
            let generation = access(facts, NAMESPACE)["status"]["rotationGeneration"].as_i64();
            let keys = facts.secrets(Role::AccessCredential).count();
            is_open(facts, NAMESPACE) && handled && generation >= Some(2) && keys == 1
        },
    ),
    otherwise: |facts, faults| by_others_hands(facts, faults, NAMESPACE),
    ends_alike: true,
    check: check_open,
};

/// The claim is deleted while it has an access.
pub(in super::super) static DELETED_UNDER: Scenario = Scenario {
    name: "access-claim-deleted",
    about: "a claim is deleted while an access to its bucket is open",
    phase: ScenarioPhase::Delete,
    world,
    script: || {
        let opened = vec![
            reader(NAMESPACE),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, READER).into(),
            pass(30),
            ScenarioStep::Delete(PHOTOS),
        ];
        [bound(""), opened].concat()
    },
    goal: Goal::new("the claim is gone and the entry of the access closed", |facts| {
        facts.claim(NAMESPACE, CLAIM).is_null()
            && facts.secrets(Role::BucketRecord).next().is_none()
            && entry(facts, NAMESPACE)["reason"] == "ClaimNotBound"
    }),
    otherwise: |facts, faults| {
        let is_closed = || entry(facts, NAMESPACE)["state"] != "Open" || !facts.claim(NAMESPACE, CLAIM).is_null();
        by_others_hands(facts, faults, NAMESPACE) && is_closed()
    },
    ends_alike: true,
    check: nothing_more,
};

/// The access in the claim's own namespace is Ready.
const OPEN: Goal = Goal::new("the access is open", |facts| is_open(facts, NAMESPACE));
/// The access in the other namespace is Ready.
const OPEN_TO_READERS: Goal = Goal::new("the access of the other namespace is open", |facts| is_open(facts, READERS));

/// Returns true if another actor's change explains the state of the access: it is open, reports an
/// obstacle, or has lost its finalizer.
fn by_others_hands(facts: &Facts, faults: &[Fault], namespace: &str) -> bool {
    let told = [
        "",
        "Open",
        "SecretConflict",
        "CreationInconsistent",
        "ClaimNotBound",
        "DeletionBlocked",
        "NotShared",
        "Paused",
    ];
    let reason = condition(access(facts, namespace), "Ready");
    faults.iter().any(|fault| is_somebodys_doing(*fault)) && told.contains(&reason)
}

/// Returns true if the access reports a foreign object in the place of one of its own. The script
/// then waits for it to open, and goes no further.
fn never_opened(facts: &Facts, namespace: &str) -> bool {
    matches!(condition(access(facts, namespace), "Ready"), "SecretConflict" | "CreationInconsistent")
}

fn access<'a>(facts: &'a Facts, namespace: &str) -> &'a Value {
    facts.object("bucketaccesses", namespace, READER)
}

fn entry<'a>(facts: &'a Facts, namespace: &str) -> &'a Value {
    &access(facts, namespace)["status"]["buckets"][0]
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn is_open(facts: &Facts, namespace: &str) -> bool {
    let access = access(facts, namespace);
    condition(access, "Ready") == "Open" && access["status"]["observedGeneration"] == access["metadata"]["generation"]
}

/// Returns true if no record of the claim admits an access.
fn is_shut(facts: &Facts) -> bool {
    facts.internal(Role::BucketRecord, NAMESPACE, CLAIM).iter().all(|(_, record)| record["data"]["accesses"].is_null())
}

/// Returns true if the claim's status lists its access.
fn is_told(facts: &Facts) -> bool {
    let accesses = &facts.claim(NAMESPACE, CLAIM)["status"]["accesses"];
    accesses["count"] == 1 && accesses["first"][0] == format!("{NAMESPACE}/{READER}")
}

/// Checks that the access has exactly one record.
fn check_open(facts: &Facts, _: &[Fault]) -> Result<(), String> {
    let records = facts.secrets(Role::AccessRecord).count();
    if records == 1 { Ok(()) } else { Err(format!("there are {records} records of accesses")) }
}
