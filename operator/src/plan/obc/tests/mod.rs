//! Reconciliation of an ObjectBucketClaim among objects in memory.

mod brownfield;
mod calls;
mod cluster;

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::Obc;
use crate::plan::{Failure, Then};

use cluster::{Cluster, class, setting};

// covers: 9.bucket.first, 9.phase
#[test]
fn one_thing_is_made_after_the_other_and_then_there_is_nothing_to_do() {
    let mut cluster = Cluster::asked();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.then, rest.events.len()), (Then::AwaitChange, 0));
    let first = [
        "put the finalizer on",
        "make ObjectBucket obc-team-a-photos",
        "make BucketClaim obc-photos",
        "patch ObjectBucket obc-team-a-photos: note its BucketClaim",
        "write phase Pending",
    ];
    assert_eq!(cluster.acts, first);
    cluster.works();
    cluster.acts.clear();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["Bound"]);
    let then = [
        "write the names of bucket and ObjectBucket",
        "make the ConfigMap",
        "write phase Bound of ObjectBucket obc-team-a-photos",
        "write phase Bound",
    ];
    assert_eq!(cluster.acts, then);
    let before = cluster.clone();
    assert_eq!(cluster.pass(99).expect("it ends").events, []);
    assert_eq!(cluster, before);
}

// covers: 9.crash
#[test]
fn a_pass_that_is_cut_short_anywhere_is_begun_again_and_comes_to_the_same() {
    let whole = Cluster::bound();
    for most in 0..9 {
        let mut cluster = Cluster::asked();
        while cluster.pass(most.max(1)).is_none() {}
        cluster.works();
        while cluster.pass(1).is_none() {}
        for uid in
            [&mut cluster.shadow["metadata"]["uid"], &mut cluster.buckets[0]["spec"]["additionalState"]["shadowUID"]]
        {
            *uid = whole.shadow["metadata"]["uid"].clone();
        }
        let spec = |cluster: &Cluster| {
            (cluster.buckets[0]["spec"].clone(), cluster.shadow["spec"].clone(), cluster.config_map["data"].clone())
        };
        assert_eq!(spec(&cluster), spec(&whole));
        cluster.delete();
        while cluster.pass(1).is_none() {}
        assert_eq!((cluster.buckets.len(), cluster.shadow), (0, Value::Null));
        assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
    }
}

// covers: 9.pins, 9.deletion.policy, 9.shadow.meanwhile
#[rstest]
#[case(class("Delete", json!({"backend": "main"})), json!(["Delete", false]), json!(["Delete", false]))]
#[case(class("Delete", json!({"backend": "main", "emptyBucket": "true"})), json!(["Delete", false]), json!(["Delete", true]))]
#[case(class("Retain", json!({"backend": "main", "emptyBucket": "true"})), json!(["Retain", false]), json!(["Retain", false]))]
#[case(class("Recycle", json!({"backend": "main"})), json!(["Retain", false]), json!(["Retain", false]))]
fn the_policy_is_the_one_of_the_class_as_it_was(
    #[case] first: Value,
    #[case] meanwhile: Value,
    #[case] in_the_end: Value,
    #[values(json!(["Retain", false]), json!(["Delete", true]))] edited: Value,
) {
    let mut cluster = Cluster::asked();
    cluster.class = first;
    cluster.pass(99);
    let policy = |cluster: &Cluster| {
        json!([cluster.shadow["spec"]["deletionPolicy"], cluster.shadow["spec"]["forceDelete"].as_bool() == Some(true)])
    };
    assert_eq!(policy(&cluster), meanwhile);
    cluster.class = class("Retain", json!({"backend": "other"}));
    cluster.delete();
    cluster.shadow["spec"]["deletionPolicy"] = edited[0].clone();
    cluster.shadow["spec"]["forceDelete"] = edited[1].clone();
    // One effect at a time, to observe the policy right before the deletion.
    let mut last = policy(&cluster);
    while cluster.pass(1).is_none() && !cluster.shadow.is_null() {
        last = policy(&cluster);
    }
    assert_eq!((last, cluster.shadow), (in_the_end, Value::Null));
}

// covers: 9.deletion.policy
#[test]
fn what_is_lost_destroys_nothing() {
    let mut cluster = Cluster::bound();
    cluster.buckets.clear();
    cluster.class = Value::Null;
    cluster.delete();
    while cluster.pass(1).is_none() && cluster.shadow["spec"]["deletionPolicy"] != "Retain" {}
    assert_eq!(cluster.shadow["spec"]["deletionPolicy"], "Retain");
    cluster.pass(99);
    assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
}

// covers: 9.class
#[rstest]
#[case(json!({"provisioner": "another/bucket"}), json!({}))]
#[case(json!({"provisioner": "another/bucket"}), json!({"bucket-provisioner": "broker.stowage.io-bucket"}))]
#[case(Value::Null, json!({}))]
fn one_that_is_anothers_is_not_touched(
    #[case] class: Value,
    #[case] labels: Value,
    #[values(false, true)] deleting: bool,
) {
    let mut cluster = Cluster::asked();
    cluster.class = class;
    cluster.obc["metadata"]["labels"] = labels;
    cluster.obc["metadata"]["finalizers"] = json!(["objectbucket.io/finalizer"]);
    if deleting {
        cluster.delete();
    }
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.events, rest.then), (Vec::new(), Then::AwaitChange));
    let is_marked = !cluster.obc["metadata"]["labels"]["bucket-provisioner"].is_null();
    let acts: &[&str] = if deleting && is_marked { &["take the finalizer off"] } else { &[] };
    assert_eq!(cluster.acts, acts);
}

// covers: 9.deletion
#[test]
fn a_class_that_is_another_provisioners_by_now_keeps_nothing_from_going() {
    for most in [1, 99] {
        let mut cluster = Cluster::bound();
        cluster.class = json!({"provisioner": "another/bucket"});
        cluster.delete();
        while cluster.pass(most).is_none() {}
        assert_eq!((cluster.buckets.len(), cluster.shadow), (0, Value::Null));
        assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
    }
}

// covers: 9.shadow
#[rstest]
#[case(json!({"generateBucketName": "photos"}), Some("photos-u-1"))]
#[case(json!({"generateBucketName": "abcdefghijklmnopqrstuvwxyz0123"}), Some("abcdefghijklmnopqrstuvwxyz-u-1"))]
#[case(json!({"generateBucketName": "x", "bucketName": "given"}), Some("given"))]
#[case(json!({"bucketName": "No Bucket"}), None)]
#[case(json!({}), None)]
fn the_name_of_the_bucket_follows_from_the_claim(#[case] mut spec: Value, #[case] expected: Option<&str>) {
    spec["storageClassName"] = "buckets".into();
    let mut cluster = Cluster::new(spec);
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(cluster.shadow["spec"]["bucketName"].as_str(), expected);
    if expected.is_none() {
        assert_eq!(
            (cluster.obc["status"]["phase"].as_str(), rest.events[0].reason.as_str()),
            (Some("Failed"), "InvalidConfig")
        );
    }
}

// covers: 9.shadow
#[rstest]
#[case(json!({"bucketName": "No Bucket"}), "spec.bucketName: ")]
#[case(json!({"generateBucketName": "No Bucket"}), "spec.generateBucketName: ")]
fn an_invalid_name_is_reported_of_the_field_that_has_it(#[case] mut spec: Value, #[case] begins: &str) {
    spec["storageClassName"] = "buckets".into();
    let rest = Cluster::new(spec).pass(99).expect("it ends");
    let note = &rest.events[0].note;
    assert!(note.starts_with(begins), "{note}");
}

// covers: 9.bucket.names
#[test]
fn names_of_any_length_come_to_names() {
    let mut cluster = Cluster::asked();
    let [usual, other] = bucket_names(&cluster.obc());
    assert_eq!((usual.as_str(), other.as_str()), ("obc-team-a-photos", "obc-team-a-photos-1"));
    cluster.obc["metadata"]["name"] = "n".repeat(253).into();
    cluster.obc["metadata"]["namespace"] = "n".repeat(63).into();
    assert!(bucket_names(&cluster.obc()).iter().all(|name| name == "obc-u-1"));
    assert!(shadow_name(&cluster.obc()).len() < 253);
}

// covers: 9.shadow.earlier
#[rstest]
#[case("photos", "BucketClaimLeaving")]
#[case("other", "NameTaken")]
fn a_bucket_claim_of_another_is_not_touched(#[case] owner: &str, #[case] reason: &str) {
    let mut cluster = Cluster::asked();
    cluster.pass(99);
    let reference = &mut cluster.shadow["metadata"]["ownerReferences"][0];
    (reference["uid"], reference["name"]) = ("u-0".into(), owner.into());
    cluster.shadow["spec"]["deletionPolicy"] = "Retain".into();
    let before = cluster.shadow.clone();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((cluster.shadow.clone(), rest.events[0].reason.as_str()), (before.clone(), reason));
    cluster.delete();
    cluster.pass(99);
    assert_eq!(cluster.shadow, before);
}

// covers: 9.shadow.remade
#[test]
fn a_bucket_claim_that_somebody_deletes_is_told_to_keep_its_bucket() {
    let mut cluster = Cluster::bound();
    cluster.shadow["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(cluster.shadow["spec"]["deletionPolicy"], "Retain");
    assert_eq!(rest.events[0].reason, "BucketClaimLeaving");
    cluster.shadow = Value::Null;
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events[0].reason, "BucketClaimRemade");
    assert_eq!(cluster.buckets[0]["spec"]["additionalState"]["shadowUID"], cluster.shadow["metadata"]["uid"]);
}

#[test]
fn an_answer_that_comes_late_has_what_was_read_before_it_read_again() {
    let mut cluster = Cluster::asked();
    cluster.obc["metadata"]["finalizers"] = json!(["objectbucket.io/finalizer"]);
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    for (expected, arrival) in [
        (ObcLook::Buckets, Arrival::Prompt),
        (ObcLook::Shadow(ShadowKind::Claim, "obc-photos".to_owned()), Arrival::Late),
        (ObcLook::Buckets, Arrival::Prompt),
    ] {
        let ControlFlow::Continue(ObcStep::Look(look)) = view.next(Timestamp::UNIX_EPOCH) else { panic!("it looks") };
        assert_eq!(look, expected);
        view.learn(cluster.look(&look), arrival);
    }
}

fn old_claim(look: &ObcLook, before: &Obc) -> Option<ObcAnswer> {
    (*look == ObcLook::Obc).then(|| ObcAnswer::Obc(Some(Box::new(before.clone()))))
}

fn no_bucket(look: &ObcLook, _: &Obc) -> Option<ObcAnswer> {
    (*look == ObcLook::Buckets).then(|| ObcAnswer::Buckets(Vec::new()))
}

fn no_shadow(look: &ObcLook, _: &Obc) -> Option<ObcAnswer> {
    matches!(look, ObcLook::Shadow(..)).then_some(ObcAnswer::Shadow(ShadowKind::Claim, None))
}

/// A read may be stale. An object that it misses must not be taken for deleted, and what it shows
/// may be outdated.
// covers: 9.deletion.past
#[rstest]
#[case(old_claim)]
#[case(no_bucket)]
#[case(no_shadow)]
fn what_one_read_tells_of_the_past_takes_nothing_away(#[case] past: fn(&ObcLook, &Obc) -> Option<ObcAnswer>) {
    let mut cluster = Cluster::bound();
    let before = cluster.obc();
    cluster.delete();
    cluster.obc["metadata"]["resourceVersion"] = "900".into();
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    let rest = loop {
        match view.next(Timestamp::UNIX_EPOCH) {
            ControlFlow::Break(rest) => break rest,
            ControlFlow::Continue(ObcStep::Look(look)) => {
                let answer = past(&look, &before).unwrap_or_else(|| cluster.look(&look));
                view.learn(answer, Arrival::Prompt);
            }
            ControlFlow::Continue(ObcStep::Act(act)) => {
                assert!(matches!(act, ObcAct::WriteBucketPhase(..)), "{act:?}");
                let answer = cluster.act(&act);
                view.learn(answer, Arrival::Prompt);
            }
        }
    };
    assert!(matches!(rest.then, Then::Retry(_)), "{rest:?}");
}

#[test]
fn what_the_server_refuses_for_good_is_told() {
    let cluster = Cluster::asked();
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    let step = ObcStep::Look(ObcLook::Buckets);
    view.learn(ObcAnswer::Failed(step, Failure::Refused("no".to_owned())), Arrival::Prompt);
    view.learn(ObcAnswer::Obc(Some(Box::new(cluster.obc()))), Arrival::Prompt);
    let ControlFlow::Continue(step) = view.next(Timestamp::UNIX_EPOCH) else { panic!("there is a phase to write") };
    assert_eq!(step.to_string(), "write phase Failed");
}
