//! Stores: a claim moves from one to another, one of them hangs, its admin key is replaced.

use std::time::Duration;

use serde_json::json;
use stowage_operator::api::Endpoint;
use stowage_operator::api::wire::Role;
use stowage_world::effects::{CallFault, Fault, Feature, Outage, S3Fault, StowageFault};
use stowage_world::history::Facts;
use stowage_world::history::facts::field;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep, Target, TargetKind};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, BackendStore, OPERATOR_NAMESPACE, Options, STORE_ENDPOINT};

use super::super::others::{any_may_rest, is_somebodys_doing};
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, BUCKET, at_work, backend, bound_in, check_bound, check_keys, claim_on, give_claim, no_other, pass,
    patch, usual,
};

/// Endpoint of the second store, and its host and port.
const SECOND_ENDPOINT: &str = "http://second.example:9000";
const SECOND_HOST: &str = "second.example:9000";

/// Endpoint of a store that must never receive a Secret's content.
const THIEF_ENDPOINT: &str = "http://thief.example:9000";

const MAIN: Target = Target { kind: TargetKind::Backend, namespace: "", name: "main" };
/// The record of the claim's bucket at its first store.
const RECORD: Target = Target {
    kind: TargetKind::Secret,
    namespace: OPERATOR_NAMESPACE,
    name: "br-d6b7c668c2726ab4e5dc7e511647c1d7fad4c707",
};
const ADMIN_SECRET: Target = Target { kind: TargetKind::Secret, namespace: OPERATOR_NAMESPACE, name: "s3-admin" };

const MOVED: Goal = Goal::new("the claim is bound at its new backend by one key", |facts| {
    let claim = facts.claim(NAMESPACE, CLAIM);
    facts.is_bound(NAMESPACE, CLAIM)
        && claim["status"]["backend"]["name"] == "second"
        && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
        && facts.internal(Role::BucketRecord, NAMESPACE, CLAIM).len() == 1
});

/// A claim gets another backend.
pub(in super::super) static MOVE: Scenario = Scenario {
    name: "move",
    about: "a user gives a bound claim another backend, under a tenant at work",
    phase: ScenarioPhase::Edit,
    world: two_stores,
    script: || {
        let moved = patch(json!({"spec": {"backendRef": {"name": "second"}}}));
        [bound_in(&with_second(), "rotationPolicy: {overlapSeconds: 60}"), vec![moved]].concat()
    },
    goal: MOVED,
    otherwise: no_other,
    ends_alike: true,
    check: |facts, _| check_keys(facts),
};

/// A claim with public access gets another backend: the bucket that it leaves must not stay public.
pub(in super::super) static MOVE_PUBLIC: Scenario = Scenario {
    name: "move-public",
    about: "a user gives a claim with public access another backend, and then another rate",
    phase: ScenarioPhase::Edit,
    world: two_stores,
    script: || {
        let spec = "rotationPolicy: {overlapSeconds: 60}, anonymousAccess: {mode: ReadOnly, perSourceIPRPS: 5}";
        let moved = patch(json!({"spec": {"backendRef": {"name": "second"}}}));
        let slower = patch(json!({"spec": {"anonymousAccess": {"perSourceIPRPS": 2}}}));
        [bound_in(&with_second(), spec), vec![moved, pass(30), slower]].concat()
    },
    goal: MOVED,
    otherwise: no_other,
    ends_alike: true,
    check: |facts, _| check_keys(facts),
};

/// A backend's store moves with its buckets: the claim's bucket is at the new endpoint, with its
/// tags.
pub(in super::super) static ENDPOINT: Scenario = Scenario {
    name: "endpoint",
    about: "a store with the bucket of a claim with public access is moved, and its backend points to the new endpoint",
    phase: ScenarioPhase::Edit,
    world: two_stores,
    script: || {
        let spec = "rotationPolicy: {overlapSeconds: 60}, anonymousAccess: {mode: ReadOnly}";
        let moved = [
            ScenarioStep::Store(StoreStep::CopyBucket { bucket: BUCKET, endpoint: SECOND_ENDPOINT }),
            ScenarioStep::Patch(MAIN, json!({"spec": {"endpoint": SECOND_ENDPOINT}})),
        ];
        [bound_in(BASE, spec), moved.to_vec()].concat()
    },
    goal: Goal::new("the claim is bound at the new endpoint by one key, and is open to the public", |facts| {
        facts.is_bound(NAMESPACE, CLAIM)
            && facts.claim(NAMESPACE, CLAIM)["status"]["backend"]["endpoint"] == SECOND_ENDPOINT
            && facts.internal(Role::BucketRecord, NAMESPACE, CLAIM).len() == 1
            && are_at(SECOND_ENDPOINT, Role::AnonymousBinding, facts)
            && are_at(SECOND_ENDPOINT, Role::VirtualCredential, facts)
    }),
    // Without tags nothing proves that it is the same bucket; and it is not the bucket of a
    // recreated claim, which has another UID.
    otherwise: |facts, faults| {
        let unproved = |fault: &Fault| {
            matches!(
                fault,
                Fault::S3(S3Fault::NotImplemented(Feature::Tagging)) | Fault::Project(StowageFault::Recreate)
            )
        };
        faults.iter().any(unproved) && facts.ready(NAMESPACE, CLAIM) == "BucketMissing"
    },
    ends_alike: true,
    check: |facts, faults| {
        let generation = &facts.claim(NAMESPACE, CLAIM)["status"]["rotationGeneration"];
        let by_nobody = faults.len() < 2 && !faults.iter().any(|fault| is_somebodys_doing(*fault));
        if by_nobody && *generation != 1 {
            return Err(format!("the bucket is the same, and the claim has its key {generation}"));
        }
        check_keys(facts)
    },
};

/// Returns true if the claim has exactly one Secret of this role, for this endpoint.
fn are_at(endpoint: &str, role: Role, facts: &Facts) -> bool {
    let all = facts.internal(role, NAMESPACE, CLAIM);
    matches!(all.as_slice(), [(_, only)] if field(only, "endpoint").as_deref() == Some(endpoint))
}

/// A backend points for a while to another store that has a bucket of the same name: the claim's
/// keys must not open that one, even if the claim's record is deleted meanwhile.
pub(in super::super) static ANOTHER_STORE: Scenario = Scenario {
    name: "another-store",
    about: "a backend points to another store with a bucket of that name, the claim's record is deleted, and the edit is \
            taken back",
    phase: ScenarioPhase::Recover,
    world: two_stores,
    script: || {
        let point_to = |endpoint: &str| ScenarioStep::Patch(MAIN, json!({"spec": {"endpoint": endpoint}}));
        let other = StoreStep::PutBucketAt { account: ADMIN_ACCOUNT, bucket: BUCKET, endpoint: SECOND_ENDPOINT };
        let edits = [
            ScenarioStep::Store(other),
            point_to(SECOND_ENDPOINT),
            pass(60),
            ScenarioStep::Delete(RECORD),
            pass(60),
            point_to(STORE_ENDPOINT),
            pass(60),
        ];
        [bound_in(BASE, "rotationPolicy: {overlapSeconds: 60}"), edits.to_vec()].concat()
    },
    goal: Goal::new("the claim is bound where it was, by a key for that store", |facts| {
        facts.is_bound(NAMESPACE, CLAIM)
            && facts.claim(NAMESPACE, CLAIM)["status"]["backend"]["endpoint"] == STORE_ENDPOINT
            && are_at(STORE_ENDPOINT, Role::VirtualCredential, facts)
    }),
    otherwise: no_other,
    // If a read of the bucket is refused while the record is created again, the bucket is left
    // alone.
    ends_alike: false,
    check: |facts, _| check_keys(facts),
};

/// A user who may edit the backend points it to their own store for a while, and to another Secret:
/// neither the admin key nor the content of that Secret is sent there.
pub(in super::super) static STOLEN_ENDPOINT: Scenario = Scenario {
    name: "stolen-endpoint",
    about: "who may edit a backend points it to a store of theirs, then has it name another Secret too, and takes it back",
    phase: ScenarioPhase::Recover,
    world: || {
        let endpoint = Endpoint::parse(THIEF_ENDPOINT).expect("it is a URL");
        let thief = BackendStore { name: "thief".to_owned(), endpoint, ..BackendStore::main() };
        Options { backends: vec![BackendStore::main(), thief], ..Options::default() }
    },
    script: || {
        let other = format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: database, namespace: {OPERATOR_NAMESPACE}}}, \
             stringData: {{AWS_ACCESS_KEY_ID: root, AWS_SECRET_ACCESS_KEY: hunter2}}}}"
        );
        let spec = |endpoint: &str, secret: &str| {
            ScenarioStep::Patch(
                MAIN,
                json!({"spec": {"endpoint": endpoint, "adminCredentialsSecretRef": {"name": secret}}}),
            )
        };
        let edits = [
            spec(THIEF_ENDPOINT, "s3-admin"),
            pass(30),
            spec(THIEF_ENDPOINT, "database"),
            pass(30),
            spec(STORE_ENDPOINT, "s3-admin"),
        ];
        [bound_in(&format!("{BASE}\n---\n{other}"), ""), edits.to_vec()].concat()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: |facts, _| check_keys(facts),
};

/// The operator's own key is replaced.
pub(in super::super) static ADMIN_KEY: Scenario = Scenario {
    name: "admin-key",
    about: "the admin key of a store is replaced and the old one withdrawn, then a claim is made",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let (id, key) = ("STOWAGEADMIN2", "another-admin-secret-key-for-demonstration");
        let secret = json!({"stringData": {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": key}});
        [
            at_work(BASE),
            vec![
                ScenarioStep::Store(StoreStep::AddKey { account: ADMIN_ACCOUNT, id, key }),
                ScenarioStep::Begin,
                ScenarioStep::Patch(ADMIN_SECRET, secret),
                pass(60),
                ScenarioStep::Store(StoreStep::RevokeKey { id: ADMIN_ACCESS_KEY }),
                give_claim(""),
            ],
        ]
        .concat()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A store that never answers delays no other claim, and works again once it answers.
pub(in super::super) static HANGING_STORE: Scenario = Scenario {
    name: "hanging-store",
    about: "a store answers nothing for a while, with more claims on it than passes may run at once",
    phase: ScenarioPhase::Create,
    world: || Options { max_concurrent_reconciles: 2, ..two_stores() },
    script: || {
        let hangs = Outage { host: SECOND_HOST.to_owned(), operation: None, fault: Fault::Call(CallFault::Hang) };
        let soon = |goal| WorldStep::Soon(goal, Duration::from_secs(30)).into();
        [
            at_work(&with_second()),
            vec![WorldStep::Outage(hangs).into()],
            WAITING.iter().map(|name| on_second(name)).collect(),
            vec![
                pass(10),
                give_claim(""),
                soon(BOUND),
                pass(120),
                WorldStep::Recovery(SECOND_HOST).into(),
                ScenarioStep::Until(Goal::new("every claim is bound", |facts| {
                    WAITING.iter().all(|name| facts.is_bound("team-b", name))
                })),
                pass(30),
                on_second("late"),
                soon(Goal::new("a late claim is bound", |facts| facts.is_bound("team-b", "late"))),
                ScenarioStep::Begin,
                on_second("last"),
            ],
        ]
        .concat()
    },
    goal: Goal::new("the last claim is bound", |facts| facts.is_bound("team-b", "last")),
    otherwise: any_may_rest,
    ends_alike: true,
    // A manual change may leave it paused, or without its Secret.
    check: |facts, _| if facts.is_bound(NAMESPACE, CLAIM) { check_keys(facts) } else { Ok(()) },
};

/// Claims that wait for the store.
const WAITING: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

fn on_second(name: &str) -> ScenarioStep {
    ScenarioStep::Apply(claim_on("second", "team-b", name, ""))
}

/// Returns the base manifests and a second backend, with its own store and other bucket names, so
/// that a key of one bucket doesn't open the other.
fn with_second() -> String {
    let second = backend("second", SECOND_ENDPOINT, "bucketNameTemplate: 'second-{{ .Namespace }}-{{ .Name }}'");
    format!("{BASE}\n---\n{second}")
}

/// Returns the usual world with a store for the second backend.
fn two_stores() -> Options {
    let endpoint = Endpoint::parse(SECOND_ENDPOINT).expect("it is a URL");
    let second = BackendStore { name: "second".to_owned(), endpoint, ..BackendStore::main() };
    Options { backends: vec![BackendStore::main(), second], ..Options::default() }
}

#[test]
fn the_record_is_that_of_the_claims_bucket() {
    use stowage_operator::api::{BucketName, RecordName};
    let (store, bucket) = (Endpoint::parse(STORE_ENDPOINT).expect("a URL"), BucketName::parse(BUCKET).expect("a name"));
    assert_eq!(RecordName::of(&store, &bucket).as_str(), RECORD.name);
}
