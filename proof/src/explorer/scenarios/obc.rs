//! ObjectBucketClaims: one is made, edited by people who should not, deleted by both policies; and
//! one of a class that names a bucket which is there (spec §9).

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

/// The BucketClaim that does the work.
const SHADOW: &str = "obc-photos";
/// The class.
const CLASS: Target = Target { kind: TargetKind::StorageClass, namespace: "", name: "buckets" };
/// The claim that everything is about.
const OBC: Target = Target { kind: TargetKind::Obc, namespace: NAMESPACE, name: CLAIM };

fn world() -> Options {
    Options { foreign: Some(Foreign::NooBaa), ..Options::default() }
}

/// An operator at work where there is this class; then, with faults, a claim of it.
fn asked(policy: &str) -> Vec<ScenarioStep> {
    let manifests = format!("{BASE}\n---\n{}", class(policy, "emptyBucket: 'true'"));
    let claim = claim(&format!("bucketName: {BUCKET}"));
    vec![ScenarioStep::Apply(manifests), WorldStep::StartOperator.into(), pass(5), ScenarioStep::Apply(claim)]
}

/// A class of ours with these parameters besides its backend.
fn class(policy: &str, parameters: &str) -> String {
    format!(
        "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: buckets}}, \
         provisioner: broker.stowage.io/bucket, reclaimPolicy: {policy}, \
         parameters: {{backend: main, {parameters}}}}}"
    )
}

/// A claim of that class with this in its spec besides.
fn claim(spec: &str) -> String {
    format!(
        "{{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, \
         metadata: {{name: {CLAIM}, namespace: {NAMESPACE}}}, spec: {{storageClassName: buckets, {spec}}}}}"
    )
}

/// The same, Bound, and with nobody at work for two minutes.
fn bound(policy: &str) -> Vec<ScenarioStep> {
    let bound =
        vec![ScenarioStep::Until(BOUND), ScenarioStep::Tenant(NAMESPACE, SHADOW), pass(120), ScenarioStep::Begin];
    [asked(policy), bound].concat()
}

/// One is made.
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

/// People edit and delete what was made for it.
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
            // That a quota is written would undo the edits along with it.
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

/// BucketClaim and ConfigMap are as they were before somebody edited them, or there is none.
const UNDONE: Goal = Goal::new("the edits of BucketClaim and ConfigMap are undone", |facts| {
    let shadow = facts.object("bucketclaims", NAMESPACE, SHADOW);
    let config_map = facts.object("configmaps", NAMESPACE, CLAIM);
    let is_told = config_map.is_null() || config_map["data"]["BUCKET_HOST"] == "gateway.example";
    is_told
        && (shadow.is_null() || (shadow["spec"]["deletionPolicy"] == "Retain" && shadow["spec"]["forceDelete"] != true))
});

/// The edit could not be undone before the BucketClaim was deleted: so the bucket went by the word
/// of who edited it, and another one was made.
fn edit_stood(facts: &Facts, faults: &[Fault]) -> bool {
    let shadow = facts.object("bucketclaims", NAMESPACE, SHADOW);
    !faults.is_empty() && is_bound(facts) && shadow["status"]["bucketOrigin"] == "Created"
}

/// The class goes first, and then it, with its bucket.
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

/// It goes, and its bucket stays.
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

/// The bucket that is there.
const ARCHIVE: &str = "archive";

/// A class that names a bucket: used, and deleted after the class is gone.
pub(in super::super) static BROWNFIELD: Scenario = Scenario {
    name: "obc-brownfield",
    about: "an ObjectBucketClaim of a class that names a shared bucket is made and used, and deleted after its class; \
            bucket and objects stay",
    phase: ScenarioPhase::Delete,
    world: || Options { accesses: Accesses::Served, ..world() },
    script: || {
        let shared = format!("sharedBuckets: [{{name: {ARCHIVE}, namespaces: [{NAMESPACE}], maxMode: ReadWrite}}]");
        // What is deleted of other classes is not to be of this one.
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

/// The access is open, and the claim Bound.
const OPEN: Goal = Goal::new("the ObjectBucketClaim is Bound by an access that is open", |facts| {
    let access = facts.object("bucketaccesses", NAMESPACE, SHADOW);
    obc(facts)["status"]["phase"] == "Bound" && condition(access, "Ready") == "Open"
});

/// It is Bound.
const BOUND: Goal = Goal::new("the ObjectBucketClaim is Bound", is_bound);

/// Who puts something where one of its objects is to be, or changes one, leaves it otherwise.
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

/// There is one of everything, and they tell the same.
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
