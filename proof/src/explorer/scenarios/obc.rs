//! ObjectBucketClaims (spec §9): one is created, wrongly edited by people, and deleted under both
//! policies; and one has a class that names an existing bucket.

use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::effects::Fault;
use stowage_world::history::Facts;
use stowage_world::history::facts::condition;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep, Target, TargetKind};
use stowage_world::{ADMIN_ACCOUNT, Accesses, Foreign, Options};

use super::super::others::is_somebodys_doing;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{BASE, BUCKET, base_with, nothing_more, pass};

/// The BucketClaim that the operator creates for the ObjectBucketClaim.
const SHADOW: &str = "obc-photos";
/// The storage class.
const CLASS: Target = Target { kind: TargetKind::StorageClass, namespace: "", name: "buckets" };
/// The ObjectBucketClaim of all scenarios in this file.
const OBC: Target = Target { kind: TargetKind::Obc, namespace: NAMESPACE, name: CLAIM };

fn world() -> Options {
    Options { foreign: Some(Foreign::NooBaa), ..Options::default() }
}

/// Starts an operator with this class, then creates a claim of the class.
fn asked(policy: &str) -> Vec<ScenarioStep> {
    let manifests = format!("{BASE}\n---\n{}", class(policy, "emptyBucket: 'true'"));
    let claim = claim(&format!("bucketName: {BUCKET}"));
    vec![ScenarioStep::Apply(manifests), WorldStep::StartOperator.into(), pass(5), ScenarioStep::Apply(claim)]
}

/// Returns a class of ours with these parameters besides its backend.
fn class(policy: &str, parameters: &str) -> String {
    format!(
        "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: buckets}}, \
         provisioner: broker.stowage.io/bucket, reclaimPolicy: {policy}, \
         parameters: {{backend: main, {parameters}}}}}"
    )
}

/// Returns a claim of that class with these additional fields in its spec.
fn claim(spec: &str) -> String {
    format!(
        "{{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, \
         metadata: {{name: {CLAIM}, namespace: {NAMESPACE}}}, spec: {{storageClassName: buckets, {spec}}}}}"
    )
}

/// Like [`asked`], then waits until the claim is Bound and two idle minutes have passed.
fn bound(policy: &str) -> Vec<ScenarioStep> {
    let bound =
        vec![ScenarioStep::Until(BOUND), ScenarioStep::Tenant(NAMESPACE, SHADOW), pass(120), ScenarioStep::Begin];
    [asked(policy), bound].concat()
}

/// An ObjectBucketClaim is created.
pub(in super::super) static MADE: Scenario = Scenario {
    name: "obc",
    about: "an ObjectBucketClaim is made, and gets a bucket, a ConfigMap and a Secret",
    phase: ScenarioPhase::Create,
    world,
    script: || {
        let mut script = asked("Retain");
        script.insert(script.len() - 1, ScenarioStep::Begin);
        script
    },
    goal: BOUND,
    otherwise: by_others_hands,
    ends_alike: false,
    check: check_one,
};

/// People edit and delete the objects that were created for a claim.
pub(in super::super) static EDITED: Scenario = Scenario {
    name: "obc-edited",
    about: "what was made for an ObjectBucketClaim is edited by hand, its quota is set, and its BucketClaim deleted",
    phase: ScenarioPhase::Edit,
    world,
    script: || {
        let shadow = Target { kind: TargetKind::Claim, namespace: NAMESPACE, name: SHADOW };
        let config_map = Target { kind: TargetKind::ConfigMap, namespace: NAMESPACE, name: CLAIM };
        let edits = vec![
            ScenarioStep::Patch(OBC, json!({"spec": {"additionalConfig": {"maxSize": "2G"}}})),
            // Writing the quota would undo the edits along with it.
            pass(30),
            ScenarioStep::Patch(config_map, json!({"data": {"BUCKET_HOST": "elsewhere.example"}})),
            ScenarioStep::Patch(shadow, json!({"spec": {"deletionPolicy": "Delete", "forceDelete": true}})),
            // A deletion would undo the edits as well.
            ScenarioStep::Until(UNDONE),
            pass(30),
            ScenarioStep::Delete(config_map),
            ScenarioStep::Delete(shadow),
        ];
        [bound("Retain"), edits].concat()
    },
    goal: Goal::new("it is Bound again, with its quota, and by another BucketClaim", |facts| {
        let shadow = facts.object("bucketclaims", NAMESPACE, SHADOW);
        let noted = &object_bucket(facts)["spec"]["additionalState"]["shadowUID"];
        let config_map = facts.object("configmaps", NAMESPACE, CLAIM);
        is_bound(facts)
            && *noted == shadow["metadata"]["uid"]
            && shadow["spec"]["quota"]["hard"] == "2G"
            && shadow["status"]["bucketOrigin"] == "Adopted"
            && config_map["data"]["BUCKET_HOST"] == "gateway.example"
    }),
    otherwise: |facts, faults| by_others_hands(facts, faults) || edit_stood(facts, faults),
    ends_alike: false,
    check: check_one,
};

/// BucketClaim and ConfigMap are as they were before the edits, or don't exist.
const UNDONE: Goal = Goal::new("the edits of BucketClaim and ConfigMap are undone", |facts| {
    let shadow = facts.object("bucketclaims", NAMESPACE, SHADOW);
    let config_map = facts.object("configmaps", NAMESPACE, CLAIM);
    let is_told = config_map.is_null() || config_map["data"]["BUCKET_HOST"] == "gateway.example";
    is_told
        && (shadow.is_null() || (shadow["spec"]["deletionPolicy"] == "Retain" && shadow["spec"]["forceDelete"] != true))
});

/// Returns true if the BucketClaim was deleted before the edit could be undone: the bucket was then
/// deleted as the edit demanded, and another bucket was created.
fn edit_stood(facts: &Facts, faults: &[Fault]) -> bool {
    let shadow = facts.object("bucketclaims", NAMESPACE, SHADOW);
    !faults.is_empty() && is_bound(facts) && shadow["status"]["bucketOrigin"] == "Created"
}

/// The class is deleted, then the claim, with its bucket.
pub(in super::super) static DELETED: Scenario = Scenario {
    name: "obc-deleted",
    about: "an ObjectBucketClaim is deleted after its class, and its bucket is emptied and deleted",
    phase: ScenarioPhase::Purge,
    world,
    script: || {
        let deleted = vec![
            ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
            ScenarioStep::Delete(CLASS),
            ScenarioStep::Delete(OBC),
        ];
        [bound("Delete"), deleted].concat()
    },
    goal: Goal::new("it is gone, and so is everything that was made for it", |facts| {
        is_gone(facts) && facts.bucket(BUCKET).is_none()
    }),
    otherwise: by_others_hands,
    ends_alike: false,
    check: nothing_more,
};

/// The claim is deleted, and its bucket stays.
pub(in super::super) static RETAINED: Scenario = Scenario {
    name: "obc-retained",
    about: "an ObjectBucketClaim of a class that retains is deleted",
    phase: ScenarioPhase::Delete,
    world,
    script: || [bound("Retain"), vec![ScenarioStep::Delete(OBC)]].concat(),
    goal: Goal::new("it is gone, and its bucket is there", |facts| is_gone(facts) && facts.bucket(BUCKET).is_some()),
    otherwise: by_others_hands,
    ends_alike: false,
    check: nothing_more,
};

/// The existing bucket.
const ARCHIVE: &str = "archive";

/// A class names an existing bucket: a claim of it is used, and deleted after the class is gone.
pub(in super::super) static BROWNFIELD: Scenario = Scenario {
    name: "obc-brownfield",
    about: "an ObjectBucketClaim of a class that names a shared bucket is made and used, and deleted after its class; \
            bucket and objects stay",
    phase: ScenarioPhase::Delete,
    world: || Options { accesses: Accesses::Served, ..world() },
    script: || {
        let shared = format!("sharedBuckets: [{{name: {ARCHIVE}, namespaces: [{NAMESPACE}], maxMode: ReadWrite}}]");
        // Other classes may delete buckets; this one must not delete its bucket.
        let class = class("Delete", &format!("bucketName: {ARCHIVE}"));
        vec![
            ScenarioStep::Store(StoreStep::PutBucket { account: ADMIN_ACCOUNT, bucket: ARCHIVE }),
            ScenarioStep::Store(StoreStep::PutObject { bucket: ARCHIVE, key: "data" }),
            ScenarioStep::Apply(format!("{}\n---\n{class}", base_with(&shared))),
            WorldStep::StartOperator.into(),
            pass(5),
            ScenarioStep::Begin,
            ScenarioStep::Apply(claim("")),
            ScenarioStep::Until(OPEN),
            WorldStep::AccessTenant(NAMESPACE, SHADOW).into(),
            pass(60),
            ScenarioStep::Delete(CLASS),
            pass(30),
            ScenarioStep::Delete(OBC),
        ]
    },
    goal: Goal::new("it is gone with its access and all keys, and the bucket has what it had", |facts| {
        let has_keys =
            [Role::AccessCredential, Role::AccessRecord].iter().any(|role| facts.secrets(*role).next().is_some());
        let is_there = facts.bucket(ARCHIVE).is_some_and(|bucket| bucket.objects == 1 && bucket.tags.is_none());
        is_gone(facts) && facts.all("bucketaccesses").next().is_none() && !has_keys && is_there
    }),
    otherwise: by_others_hands,
    ends_alike: false,
    check: nothing_more,
};

/// The access is open, and the claim is Bound.
const OPEN: Goal = Goal::new("the ObjectBucketClaim is Bound by an access that is open", |facts| {
    let access = facts.object("bucketaccesses", NAMESPACE, SHADOW);
    obc(facts)["status"]["phase"] == "Bound" && condition(access, "Ready") == "Open"
});

/// The claim is Bound.
const BOUND: Goal = Goal::new("the ObjectBucketClaim is Bound", is_bound);

/// Returns true if an actor created a conflicting object or changed one: the end may then differ.
fn by_others_hands(_: &Facts, faults: &[Fault]) -> bool {
    faults.iter().any(|fault| is_somebodys_doing(*fault))
}

fn obc(facts: &Facts) -> &Value {
    facts.object("objectbucketclaims", NAMESPACE, CLAIM)
}

fn object_bucket(facts: &Facts) -> &Value {
    facts.object("objectbuckets", "", obc(facts)["spec"]["objectBucketName"].as_str().unwrap_or_default())
}

fn is_bound(facts: &Facts) -> bool {
    obc(facts)["status"]["phase"] == "Bound" && facts.is_bound(NAMESPACE, SHADOW)
}

fn is_gone(facts: &Facts) -> bool {
    let is_none = |plural| facts.all(plural).next().is_none();
    is_none("objectbucketclaims")
        && is_none("objectbuckets")
        && is_none("bucketclaims")
        && facts.secrets(Role::BucketRecord).next().is_none()
}

/// Checks that there is exactly one object of each kind, and that the objects agree.
fn check_one(facts: &Facts, _: &[Fault]) -> Result<(), String> {
    let buckets = facts.all("objectbuckets").count();
    let told = &facts.object("configmaps", NAMESPACE, CLAIM)["data"]["BUCKET_NAME"];
    let named = &obc(facts)["spec"]["bucketName"];
    if buckets == 1 && told == named && object_bucket(facts)["status"]["phase"] == "Bound" {
        Ok(())
    } else {
        Err(format!("there are {buckets} ObjectBuckets, the ConfigMap says {told} and the claim {named}"))
    }
}
