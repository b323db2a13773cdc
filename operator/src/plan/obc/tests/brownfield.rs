//! A class that names an existing bucket: a BucketAccess serves the claim, and the bucket is never
//! deleted.

use rstest::rstest;
use serde_json::{Value, json};

use super::cluster::{Cluster, class};
use crate::plan::Then;

/// Returns the objects around a claim whose class names a bucket.
fn of(policy: &str, parameters: Value, spec: Value) -> Cluster {
    let mut cluster = Cluster::new(spec);
    cluster.class = class(policy, parameters);
    cluster
}

fn asked(policy: &str) -> Cluster {
    of(policy, json!({"backend": "main", "bucketName": "archive"}), json!({"storageClassName": "buckets"}))
}

fn bound(policy: &str) -> Cluster {
    let mut cluster = asked(policy);
    cluster.pass(99);
    cluster.access_tells("True", "Open", false);
    cluster.pass(99);
    assert_eq!(cluster.obc["status"]["phase"], "Bound", "{:?}", cluster.acts);
    cluster.acts.clear();
    cluster
}

/// Runs passes of one effect each until a pass has no effect.
fn in_steps(cluster: &mut Cluster) {
    while cluster.pass(1).is_none() {}
}

// covers: 9.there, 9.there.pins, 9.there.names
#[test]
fn an_access_is_made_in_the_place_of_a_claim_and_the_rest_is_the_same() {
    let mut cluster = asked("Delete");
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.then, rest.events.len()), (Then::AwaitChange, 0));
    let first = [
        "put the finalizer on",
        "make ObjectBucket obc-team-a-photos",
        "make BucketAccess obc-photos",
        "patch ObjectBucket obc-team-a-photos: note its BucketAccess",
        "write phase Pending",
    ];
    assert_eq!(cluster.acts, first);
    let there = json!({"buckets": [{"bucketRef": {"backend": "main", "name": "archive"}, "mode": "ReadWrite"}],
        "writeConnectionSecretToRef": {"name": "photos"}});
    let spec = &cluster.access["spec"];
    assert_eq!(
        (&spec["buckets"], &spec["writeConnectionSecretToRef"]),
        (&there["buckets"], &there["writeConnectionSecretToRef"])
    );
    let owner = &cluster.access["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("ObjectBucketClaim"), &json!("u-1")));
    assert_eq!((&owner["controller"], &cluster.shadow), (&json!(true), &Value::Null));
    let pinned = json!({"provisioner": "broker.stowage.io/bucket", "backend": "main", "mode": "ReadWrite",
        "access": "obc-photos", "accessUID": cluster.access["metadata"]["uid"]});
    assert_eq!(cluster.buckets[0]["spec"]["additionalState"], pinned);
    assert_eq!(cluster.buckets[0]["spec"]["reclaimPolicy"], "Retain");
    cluster.access_tells("True", "Open", false);
    cluster.acts.clear();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["Bound"]);
    assert_eq!(cluster.config_map["data"]["BUCKET_NAME"], "archive");
    assert_eq!(cluster.obc["spec"]["bucketName"], "archive");
    let before = cluster.clone();
    assert_eq!(cluster.pass(99).expect("it ends").events, []);
    assert_eq!(cluster, before);
}

// covers: 9.there.deletion
#[rstest]
fn whatever_the_class_says_by_then_the_access_goes_and_no_claim_is_ever_made(
    #[values("Delete", "Retain")] first: &str,
    #[values(
        Value::Null,
        json!({"provisioner": "another/bucket"}),
        class("Delete", json!({"backend": "main", "emptyBucket": "true"})),
        class("Delete", json!({"backend": "main", "bucketName": "other"}))
    )]
    then: Value,
) {
    let mut cluster = bound(first);
    cluster.class = then;
    cluster.pass(99);
    assert_eq!((&cluster.shadow, cluster.acts.len()), (&Value::Null, 0));
    cluster.delete();
    in_steps(&mut cluster);
    let expected = [
        "write phase Released of ObjectBucket obc-team-a-photos",
        "delete BucketAccess obc-photos",
        "patch ObjectBucket obc-team-a-photos: take the finalizer off",
        "delete ObjectBucket obc-team-a-photos",
        "take the finalizer off",
    ];
    assert_eq!(cluster.acts, expected);
    assert_eq!((cluster.buckets.len(), &cluster.access), (0, &Value::Null));
}

/// The ObjectBucket determines the kind, even if the class was edited to name a bucket.
// covers: 9.there.pins
#[test]
fn a_claim_that_has_a_bucket_keeps_it_whatever_the_class_says_later() {
    let mut cluster = Cluster::bound();
    cluster.class = class("Delete", json!({"backend": "main", "bucketName": "archive"}));
    cluster.pass(99);
    assert_eq!((&cluster.access, cluster.acts.len()), (&Value::Null, 0));
    cluster.delete();
    in_steps(&mut cluster);
    assert!(cluster.acts.contains(&"delete BucketClaim obc-photos".to_owned()), "{:?}", cluster.acts);
}

// covers: 9.there.deletion
#[test]
fn where_the_object_bucket_is_lost_the_access_goes_all_the_same() {
    let mut cluster = bound("Delete");
    cluster.buckets.clear();
    cluster.class = Value::Null;
    cluster.delete();
    in_steps(&mut cluster);
    assert_eq!((&cluster.access, &cluster.shadow), (&Value::Null, &Value::Null));
    assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
}

// covers: 9.there.lost
#[test]
fn an_object_bucket_that_was_lost_is_made_again_by_what_the_access_says() {
    for by_now in [Value::Null, class("Delete", json!({"backend": "main"}))] {
        let mut cluster = bound("Delete");
        let before = cluster.buckets[0]["spec"].clone();
        cluster.buckets.clear();
        cluster.class = by_now;
        let rest = cluster.pass(99).expect("it ends");
        assert_eq!(rest.events[0].reason, "ObjectBucketRemade");
        assert_eq!((&cluster.buckets[0]["spec"], &cluster.shadow), (&before, &Value::Null));
    }
}

#[test]
fn an_access_that_names_no_bucket_says_nothing_of_one_that_was_lost() {
    let mut cluster = bound("Delete");
    cluster.buckets.clear();
    cluster.access["spec"]["buckets"] = json!([{"claimRef": {"name": "other"}, "mode": "ReadWrite"}]);
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.events[0].reason.as_str(), cluster.buckets.len()), ("ObjectBucketDamaged", 0));
    cluster.access = Value::Null;
    cluster.pass(99);
    assert_eq!(cluster.buckets[0]["spec"]["endpoint"]["bucketName"], "archive");
}

// covers: 9.there.pins
#[rstest]
#[case(json!({"access": Value::Null}))]
#[case(json!({"shadow": "obc-photos"}))]
#[case(json!({"mode": "Everything"}))]
#[case(json!({"mode": Value::Null}))]
fn what_can_not_be_read_of_the_object_bucket_decides_nothing(#[case] damage: Value) {
    let mut cluster = bound("Delete");
    for (key, value) in damage.as_object().expect("an object") {
        let state = cluster.buckets[0]["spec"]["additionalState"].as_object_mut().expect("an object");
        state.remove(key);
        if !value.is_null() {
            state.insert(key.clone(), value.clone());
        }
    }
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(
        (rest.events[0].reason.as_str(), cluster.obc["status"]["phase"].as_str()),
        ("ObjectBucketDamaged", Some("Failed"))
    );
    assert_eq!((&cluster.shadow, cluster.access.is_null()), (&Value::Null, false));
}

// covers: 9.there.mode, 9.refused.class
#[rstest]
#[case(json!({"bucketName": "archive", "mode": "ReadOnly"}), Ok("ReadOnly"))]
#[case(json!({"bucketName": "archive", "mode": "WriteOnly"}), Ok("WriteOnly"))]
#[case(json!({"bucketName": "archive", "mode": ""}), Ok("ReadWrite"))]
#[case(json!({"bucketName": "archive", "emptyBucket": "false"}), Ok("ReadWrite"))]
#[case(json!({"bucketName": "archive", "mode": "readonly"}), Err("parameter mode has to be"))]
#[case(json!({"bucketName": "archive", "emptyBucket": "true"}), Err("parameter emptyBucket can't be true"))]
#[case(json!({"bucketName": "No Bucket"}), Err("parameter bucketName:"))]
#[case(json!({"mode": "ReadOnly"}), Err("parameter mode means nothing without bucketName"))]
fn how_far_the_bucket_is_opened_is_for_the_class_to_say(
    #[case] mut parameters: Value,
    #[case] expected: Result<&str, &str>,
) {
    parameters["backend"] = "main".into();
    let mut cluster = of("Delete", parameters, json!({"storageClassName": "buckets", "bucketName": "archive"}));
    let rest = cluster.pass(99).expect("it ends");
    match expected {
        Ok(mode) => assert_eq!(cluster.access["spec"]["buckets"][0]["mode"], mode),
        Err(why) => {
            let event = &rest.events[0];
            assert!(event.reason == "InvalidStorageClass" && event.note.contains(why), "{event:?}");
            assert_eq!((&cluster.access, cluster.obc["status"]["phase"].as_str()), (&Value::Null, Some("Failed")));
        }
    }
}

// covers: 9.there.names
#[rstest]
#[case(json!({"generateBucketName": "photos"}), None)]
#[case(json!({"bucketName": "archive"}), None)]
#[case(json!({"bucketName": "other"}), Some("InvalidConfig"))]
fn another_name_than_that_of_the_class_is_refused(#[case] mut spec: Value, #[case] refused: Option<&str>) {
    spec["storageClassName"] = "buckets".into();
    let mut cluster = of("Delete", json!({"backend": "main", "bucketName": "archive"}), spec);
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events.first().map(|event| event.reason.as_str()), refused);
    assert_eq!((cluster.access.is_null(), cluster.buckets.len()), (refused.is_some(), usize::from(refused.is_none())));
    if let Some(event) = rest.events.first() {
        assert!(event.note.contains("other") && event.note.contains("archive"), "{event:?}");
        assert_eq!(cluster.obc["status"]["phase"], "Failed");
    }
}

// covers: 9.there.config
#[rstest]
#[case("maxSize", "1Gi")]
#[case("bucketPolicy", "{}")]
fn nothing_else_can_be_asked_for_of_a_bucket_that_is_there(#[case] key: &str, #[case] value: &str) {
    let mut cluster = asked("Delete");
    cluster.obc["spec"]["additionalConfig"] = json!({(key): value});
    let rest = cluster.pass(99).expect("it ends");
    assert!(rest.events[0].reason == "UnsupportedConfig" && rest.events[0].note.contains(key), "{rest:?}");
    assert_eq!((&cluster.access, cluster.buckets.len()), (&Value::Null, 0));
    let mut cluster = bound("Delete");
    cluster.obc["spec"]["additionalConfig"] = json!({(key): value});
    cluster.pass(99);
    assert_eq!(
        (cluster.obc["status"]["phase"].as_str(), cluster.acts.len()),
        (Some("Failed"), 1),
        "{:?}",
        cluster.acts
    );
}

// covers: 9.there.consent
#[rstest]
#[case("NotShared", true, "Pending", "Pending")]
#[case("BeyondConsent", true, "Pending", "Pending")]
#[case("HeldByClaim", true, "Pending", "Pending")]
#[case("SecretConflict", true, "Failed", "Failed")]
#[case("BackendNotReady", false, "Pending", "Bound")]
fn without_consent_it_is_pending_and_tells_what_the_administrator_has_to_say(
    #[case] reason: &str,
    #[case] stalled: bool,
    #[case] at_first: &str,
    #[case] later: &str,
) {
    let mut never = asked("Delete");
    never.pass(99);
    let mut once = bound("Delete");
    for (cluster, phase) in [(&mut never, at_first), (&mut once, later)] {
        cluster.access_tells("False", reason, stalled);
        let rest = cluster.pass(99).expect("it ends");
        assert_eq!((cluster.obc["status"]["phase"].as_str(), rest.events[0].reason.as_str()), (Some(phase), reason));
        if at_first == "Pending" && stalled {
            assert!(rest.events[0].note.contains("archive") && rest.events[0].note.contains("main"), "{rest:?}");
        }
    }
    // A claim that lost its consent is not Bound again before the bucket is opened.
    once.access_tells("False", "KeyPending", false);
    once.pass(99);
    assert_ne!(once.obc["status"]["phase"] == "Bound", later != "Bound");
    once.access_tells("True", "Open", false);
    once.pass(99);
    assert_eq!(once.obc["status"]["phase"], "Bound");
}

// covers: 9.there.repaired
#[test]
fn an_access_that_was_edited_or_deleted_is_as_it_was() {
    let mut cluster = bound("Delete");
    let before = cluster.access["spec"].clone();
    cluster.access["spec"]["buckets"] =
        json!([{"bucketRef": {"backend": "other", "name": "theirs"}, "mode": "ReadOnly"}]);
    cluster.pass(99);
    assert_eq!(cluster.access["spec"], before);
    cluster.access["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(
        (rest.events[0].reason.as_str(), cluster.obc["status"]["phase"].as_str()),
        ("BucketAccessLeaving", Some("Pending"))
    );
    cluster.access = Value::Null;
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events[0].reason, "BucketAccessRemade");
    assert_eq!(cluster.buckets[0]["spec"]["additionalState"]["accessUID"], cluster.access["metadata"]["uid"]);
}

// covers: 9.there.taken
#[rstest]
#[case("photos", "BucketAccessLeaving")]
#[case("other", "NameTaken")]
fn an_access_of_another_is_not_touched(#[case] owner: &str, #[case] reason: &str) {
    let mut cluster = asked("Delete");
    cluster.pass(99);
    let reference = &mut cluster.access["metadata"]["ownerReferences"][0];
    (reference["uid"], reference["name"]) = ("u-0".into(), owner.into());
    let before = cluster.access.clone();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((&cluster.access, rest.events[0].reason.as_str()), (&before, reason));
    cluster.delete();
    cluster.pass(99);
    assert_eq!((&cluster.access, cluster.buckets.len()), (&before, 0));
}

// covers: 9.crash
#[test]
fn a_pass_that_is_cut_short_anywhere_comes_to_the_same() {
    let whole = bound("Delete");
    let mut cluster = asked("Delete");
    in_steps(&mut cluster);
    cluster.access_tells("True", "Open", false);
    in_steps(&mut cluster);
    assert_eq!(
        (&cluster.access["spec"], &cluster.config_map["data"]),
        (&whole.access["spec"], &whole.config_map["data"])
    );
    assert_eq!((cluster.buckets.len(), &cluster.obc["status"]), (1, &whole.obc["status"]));
}
