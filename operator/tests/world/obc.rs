//! ObjectBucketClaims (spec §9): charts that request buckets by the API of Rook and NooBaa.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, Foreign, OPERATOR_NAMESPACE, Options, World};

use crate::support::{Stage, condition, data, events, keys, object, secrets, tenant_can_work};

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    run_among(Foreign::Rook, test)
}

fn run_among<T: Send>(foreign: Foreign, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(Options { foreign: Some(foreign), ..Options::default() }, test)
}

/// Returns a storage class of ours with this policy, and these parameters in addition to its
/// backend.
pub(super) fn class(name: &str, policy: &str, parameters: &str) -> String {
    format!(
        "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: {name}}}, \
         provisioner: broker.stowage.io/bucket, reclaimPolicy: {policy}, parameters: {{backend: main, {parameters}}}}}"
    )
}

pub(super) fn obc_with(namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, \
         metadata: {{name: {name}, namespace: {namespace}}}, spec: {{storageClassName: buckets, {spec}}}}}"
    )
}

pub(super) fn obc(world: &World) -> Value {
    object(world, "objectbucketclaims", "team-a", "photos")
}

pub(super) fn phase(world: &World) -> String {
    obc(world)["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

/// Returns the ObjectBucket that the claim names.
pub(super) fn bucket(world: &World) -> Value {
    object(world, "objectbuckets", "", obc(world)["spec"]["objectBucketName"].as_str().unwrap_or_default())
}

fn shadow(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "obc-photos")
}

pub(super) fn config_map(world: &World) -> Value {
    object(world, "configmaps", "team-a", "photos")
}

pub(super) fn told(world: &World, reason: &str) -> bool {
    events(world, "photos").iter().any(|(_, told)| told == reason)
}

const NAMED: &str = "bucketName: team-a-photos";

/// Applies the claim `team-a/photos` of a class with this policy and these parameters until it is
/// Bound.
async fn bound(stage: &Stage, policy: &str, parameters: &str, spec: &str) {
    stage.apply(&class("buckets", policy, parameters)).await;
    stage.apply(&obc_with("team-a", "photos", spec)).await;
    stage.until("it is Bound", |world| phase(world) == "Bound").await;
    stage.world.pass(Duration::from_secs(5)).await;
}

pub(super) async fn delete(stage: &Stage) {
    stage.delete("objectbucketclaims", "team-a", "photos").await;
}

pub(super) async fn until_gone(stage: &Stage) {
    stage.until("it is gone", |world| obc(world).is_null()).await;
}

/// Asserts that nothing remains but the bucket, if that is retained.
fn assert_nothing_left(world: &World) {
    let objects = world.cluster.objects();
    let left = objects
        .iter()
        .filter(|it| ["objectbuckets", "objectbucketclaims", "bucketclaims"].contains(&it.plural.as_str()));
    assert_eq!(left.map(|it| &it.name).collect::<Vec<_>>(), Vec::<&String>::new());
    for role in ["bucket-record", "virtual-credential"] {
        assert_eq!(secrets(world, OPERATOR_NAMESPACE, role), Vec::<String>::new());
    }
    assert!(object(world, "secrets", "team-a", "photos").is_null());
}

pub(super) fn writes(world: &World, before: u64) -> Vec<String> {
    let trace = world.effects.trace();
    let calls = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
    calls
        .filter(|call| call.starts_with("kube:"))
        .filter(|call| !call.starts_with("kube:get") && !call.starts_with("kube:list") && !call.contains("watch"))
        .collect()
}

// covers: 1.claim.servedBy.overruled
#[test]
fn a_note_on_what_does_its_work_is_told_and_keeps_nothing_from_going() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", NAMED).await;
        let noted = json!({"metadata": {"annotations": {"broker.stowage.io/served-by": "nobody/nothing"}}});
        stage.patch("bucketclaims", "team-a", "obc-photos", noted).await;
        stage.until("it is told", |world| told(world, "ServedByAnother")).await;
        delete(&stage).await;
        until_gone(&stage).await;
        assert_nothing_left(world);
    });
}

// covers: 9.shadow, 9.bucket.first, 9.configMap, 9.secret, 9.phase, 9.names, 9.crds
#[rstest]
#[case(Foreign::Rook)]
#[case(Foreign::NooBaa)]
#[case(Foreign::Own)]
fn what_rooks_own_tests_expect_of_one_holds(#[case] foreign: Foreign) {
    run_among(foreign, async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", "generateBucketName: photos, additionalConfig: {maxSize: 2G}").await;
        let (obc, bucket) = (obc(world), bucket(world));
        assert_eq!(
            (&bucket["status"]["phase"], &bucket["spec"]["claimRef"]["name"]),
            (&json!("Bound"), &json!("photos"))
        );
        let name = obc["spec"]["bucketName"].as_str().expect("it is written there");
        assert_eq!(name, format!("photos-{}", obc["metadata"]["uid"].as_str().expect("a UID")));
        assert!(world.store.buckets().contains_key(name));
        tenant_can_work(world, "team-a", "photos").await;
        let told = config_map(world);
        let expected = json!({"BUCKET_HOST": "gateway.example", "BUCKET_NAME": name, "BUCKET_PORT": "80",
            "BUCKET_REGION": "us-east-1", "BUCKET_SUBREGION": ""});
        assert_eq!(told["data"], expected);
        assert_eq!(data(world, "team-a", "photos")["BUCKET_NAME"], name);
        assert_eq!(told["metadata"]["ownerReferences"][0]["uid"], obc["metadata"]["uid"]);
        assert_eq!(told["metadata"]["labels"]["bucket-provisioner"], "broker.stowage.io-bucket");
        assert_eq!(shadow(world)["spec"]["quota"]["hard"], "2G");
        let version = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned);
        assert_eq!(bucket["spec"]["additionalState"]["shadowUID"].as_str().map(str::to_owned), version(&shadow(world)));
        let trace = writes(world, 0);
        let at = |part: &str| trace.iter().position(|call| call.contains(part));
        assert!(
            at("create objectbuckets").is_some() && at("create objectbuckets") < at("create bucketclaims"),
            "{trace:?}"
        );
        world.store.remove_object(name, "probe");
        delete(&stage).await;
        until_gone(&stage).await;
        world.pass(Duration::from_secs(60)).await;
        world.run_cluster_controllers();
        assert_nothing_left(world);
        assert!(config_map(world).is_null() && !world.store.buckets().contains_key(name));
    });
}

// covers: 9.rest
#[test]
fn at_rest_nothing_is_written_and_a_restart_tells_nothing_anew() {
    run(async |mut stage| {
        bound(&stage, "Retain", "", NAMED).await;
        let before = stage.world.effects.trace().effects();
        stage.world.pass(Duration::from_secs(3 * 3600)).await;
        assert_eq!(writes(&stage.world, before), [] as [&str; 0]);
        assert_eq!(phase(&stage.world), "Bound");
        let told = events(&stage.world, "photos");
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(20)).await;
        stage.operator = stage.world.start_operator();
        let before = stage.world.effects.trace().effects();
        stage.world.pass(Duration::from_secs(3600)).await;
        let written = writes(&stage.world, before);
        let own = written
            .iter()
            .filter(|call| ["obc", "objectbucket", "configmaps", "events"].iter().any(|it| call.contains(it)));
        assert_eq!(own.collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(events(&stage.world, "photos"), told);
    });
}

// covers: 9.deletion, 9.deletion.policy
#[rstest]
#[case("Retain", "", true, true)]
#[case("Delete", "", false, false)]
#[case("Delete", "emptyBucket: 'true'", true, false)]
#[case("Retain", "emptyBucket: 'true'", true, true)]
fn what_becomes_of_the_bucket_is_for_the_class_to_say(
    #[case] policy: &str,
    #[case] parameters: &str,
    #[case] filled: bool,
    #[case] stays: bool,
) {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, policy, parameters, NAMED).await;
        if filled {
            world.store.put_object("team-a-photos", "a", "data");
        }
        delete(&stage).await;
        until_gone(&stage).await;
        world.pass(Duration::from_secs(5)).await;
        assert_nothing_left(world);
        assert_eq!(world.store.buckets().contains_key("team-a-photos"), stays);
    });
}

// covers: 9.deletion.waits
#[test]
fn a_bucket_that_is_not_empty_is_waited_for_and_told_of() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", NAMED).await;
        world.store.put_object("team-a-photos", "a", "data");
        delete(&stage).await;
        stage.until("it is told", |world| told(world, "BucketNotEmpty")).await;
        assert_eq!(
            (phase(world), bucket(world)["status"]["phase"].clone()),
            ("Released".to_owned(), json!("Released"))
        );
        world.store.remove_object("team-a-photos", "a");
        until_gone(&stage).await;
        assert!(!world.store.buckets().contains_key("team-a-photos"));
    });
}

// covers: 9.pins
#[rstest]
#[case("Delete", "Retain", false)]
#[case("Retain", "Delete", true)]
fn a_class_that_is_gone_or_another_by_now_decides_nothing(
    #[case] first: &str,
    #[case] then: &str,
    #[case] stays: bool,
) {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, first, "", NAMED).await;
        stage.delete("storageclasses", "", "buckets").await;
        world.pass(Duration::from_secs(700)).await;
        assert_eq!(phase(world), "Bound");
        if stays {
            stage.apply(&class("buckets", then, "emptyBucket: 'true'")).await;
        }
        delete(&stage).await;
        until_gone(&stage).await;
        assert_eq!(world.store.buckets().contains_key("team-a-photos"), stays);
    });
}

// covers: 9.class
#[test]
fn one_of_another_provisioner_is_not_touched_and_one_without_a_class_waits_for_it() {
    run(async |stage| {
        let world = &stage.world;
        let theirs =
            class("buckets", "Delete", "").replace("broker.stowage.io/bucket", "rook-ceph.ceph.rook.io/bucket");
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        world.pass(Duration::from_secs(60)).await;
        let before = obc(world)["metadata"]["resourceVersion"].clone();
        stage.apply(&theirs).await;
        world.pass(Duration::from_secs(700)).await;
        assert_eq!(obc(world)["metadata"]["resourceVersion"], before, "nobody's, then somebody else's");
        stage.delete("storageclasses", "", "buckets").await;
        stage.apply(&class("buckets", "Delete", "")).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
    });
}

// covers: 9.refused
#[rstest]
#[case("maxObjects: '10'", "UnsupportedConfig")]
#[case("bucketPolicy: '{}'", "UnsupportedConfig")]
#[case("bucketLifecycle: '{}'", "UnsupportedConfig")]
#[case("bucketOwner: somebody", "UnsupportedConfig")]
#[case("maxSize: much", "InvalidConfig")]
fn what_can_not_be_given_is_refused_by_name(#[case] config: &str, #[case] reason: &str) {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&class("buckets", "Delete", "")).await;
        stage.apply(&obc_with("team-a", "photos", &format!("{NAMED}, additionalConfig: {{{config}}}"))).await;
        stage.until("it has failed", |world| phase(world) == "Failed").await;
        stage.until("it is told", |world| told(world, reason)).await;
        world.pass(Duration::from_secs(60)).await;
        assert!(shadow(world).is_null() && world.store.buckets().is_empty());
        stage.patch("objectbucketclaims", "team-a", "photos", json!({"spec": {"additionalConfig": null}})).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        let key = config.split(':').next().expect("a key");
        let asks = json!({"spec": {"additionalConfig": {(key): config.split(": ").nth(1).expect("a value").trim_matches('\'')}}});
        stage.patch("objectbucketclaims", "team-a", "photos", asks).await;
        stage.until("it has failed", |world| phase(world) == "Failed").await;
        tenant_can_work(world, "team-a", "photos").await;
    });
}

// covers: 9.refused.class
#[rstest]
#[case("objectStoreName: x")]
#[case("mode: ReadOnly")]
#[case("rotationIntervalDays: '1'")]
#[case("emptyBucket: perhaps")]
fn a_class_that_asks_for_what_is_not_served_is_refused(#[case] parameters: &str) {
    run(async |stage| {
        stage.apply(&class("buckets", "Delete", parameters)).await;
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        stage.until("it has failed", |world| phase(world) == "Failed" && told(world, "InvalidStorageClass")).await;
        assert!(shadow(&stage.world).is_null());
    });
}

// covers: 9.quota
#[test]
fn an_edit_of_the_quota_takes_effect_in_place() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", &format!("{NAMED}, additionalConfig: {{maxSize: 1k}}")).await;
        let uid = shadow(world)["metadata"]["uid"].clone();
        let hard = |world: &World| data(world, "team-a", "photos").get("QUOTA_HARD_BYTES").cloned();
        stage.until("it counts", |world| hard(world).as_deref() == Some("1000")).await;
        stage
            .patch("objectbucketclaims", "team-a", "photos", json!({"spec": {"additionalConfig": {"maxSize": "5Gi"}}}))
            .await;
        stage.until("it is raised", |world| hard(world).as_deref() == Some("5368709120")).await;
        stage
            .patch("objectbucketclaims", "team-a", "photos", json!({"spec": {"additionalConfig": {"maxSize": null}}}))
            .await;
        stage.until("it is gone", |world| hard(world).is_none()).await;
        assert_eq!((shadow(world)["metadata"]["uid"].clone(), phase(world)), (uid, "Bound".to_owned()));
    });
}

// covers: 9.configMap.foreign, 9.secret.foreign
#[rstest]
#[case("ConfigMap", "NameTaken", "Pending")]
#[case("Secret", "SecretConflict", "Failed")]
fn what_somebody_else_has_made_under_its_name_is_left_alone(
    #[case] kind: &str,
    #[case] reason: &str,
    #[case] then: &str,
) {
    run(async |stage| {
        let world = &stage.world;
        let field = if kind == "Secret" { "stringData" } else { "data" };
        let theirs = format!(
            "{{apiVersion: v1, kind: {kind}, metadata: {{name: photos, namespace: team-a}}, {field}: {{theirs: x}}}}"
        );
        stage.apply(&theirs).await;
        let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
        let before = object(world, plural, "team-a", "photos");
        stage.apply(&class("buckets", "Delete", "")).await;
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        stage.until("it is told", |world| told(world, reason) && phase(world) == then).await;
        world.pass(Duration::from_secs(700)).await;
        assert_eq!(object(world, plural, "team-a", "photos"), before);
        stage.delete(plural, "team-a", "photos").await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
    });
}

// covers: 9.configMap.repaired
#[test]
fn a_config_map_that_was_edited_or_deleted_is_as_it_was_and_keeps_what_others_wrote() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", NAMED).await;
        let edit =
            json!({"data": {"BUCKET_HOST": "evil.example", "theirs": "x"}, "metadata": {"labels": {"theirs": "y"}}});
        stage.patch("configmaps", "team-a", "photos", edit).await;
        stage.until("it is repaired", |world| config_map(world)["data"]["BUCKET_HOST"] == "gateway.example").await;
        let told = config_map(world);
        assert_eq!((&told["data"]["theirs"], &told["metadata"]["labels"]["theirs"]), (&json!("x"), &json!("y")));
        stage.delete("configmaps", "team-a", "photos").await;
        stage.until("it is made again", |world| config_map(world)["data"]["BUCKET_NAME"] == "team-a-photos").await;
        stage.delete("secrets", "team-a", "photos").await;
        stage.until("so is the Secret", |world| !object(world, "secrets", "team-a", "photos").is_null()).await;
        tenant_can_work(world, "team-a", "photos").await;
    });
}

// covers: 9.pace
#[test]
fn whoever_touches_one_or_what_it_made_without_end_is_answered_at_a_pace() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Retain", "", NAMED).await;
        let before = world.effects.trace().effects();
        for number in 0..300 {
            assert!(world.cluster.change("objectbucketclaims", "team-a", "photos", |obc| {
                obc["metadata"]["annotations"]["theirs"] = number.to_string().into();
            }));
            world.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(asked(world, before), [] as [&str; 0], "nothing that it goes by has changed");
        let before = world.effects.trace().effects();
        for number in 0..600 {
            assert!(world.cluster.change("configmaps", "team-a", "photos", |map| {
                map["data"]["BUCKET_HOST"] = number.to_string().into();
            }));
            world.pass(Duration::from_secs(1)).await;
        }
        let (written, asked) = (writes(world, before).len(), asked(world, before).len());
        assert!((100..=130).contains(&written), "a burst of 100, then two a minute: {written}");
        assert!(asked <= 3 * written, "{asked} requests");
        let is_repaired = |world: &World| config_map(world)["data"]["BUCKET_HOST"] == "gateway.example";
        stage.until("it is as it should be in the end", is_repaired).await;
    });
}

/// Returns the operator's requests about the objects of an ObjectBucketClaim, in short form.
fn asked(world: &World, before: u64) -> Vec<String> {
    let trace = world.effects.trace();
    let calls = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
    let is_about = |call: &String| {
        ["objectbucket", "configmaps", "storageclasses", "obc-photos"].iter().any(|part| call.contains(part))
    };
    calls.filter(|call| !call.contains("watch")).filter(is_about).collect()
}

/// The backup contains the claim, but neither its UID nor the objects created for it.
#[test]
fn one_that_is_restored_from_a_backup_gets_its_bucket_back() {
    run(async |mut stage| {
        stage.set_adoption("Owned").await;
        bound(&stage, "Retain", "", NAMED).await;
        stage.world.store.put_object("team-a-photos", "a", "data");
        let before = obc(&stage.world)["metadata"]["uid"].clone();
        stage.operator.stop();
        for (plural, name) in [
            ("objectbucketclaims", "photos"),
            ("bucketclaims", "obc-photos"),
            ("configmaps", "photos"),
            ("secrets", "photos"),
        ] {
            stage.world.cluster.remove(plural, "team-a", name).expect("it was there");
        }
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        stage.operator = stage.world.start_operator();
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        let world = &stage.world;
        assert_ne!(obc(world)["metadata"]["uid"], before);
        assert_eq!(config_map(world)["data"]["BUCKET_NAME"], "team-a-photos");
        tenant_can_work(world, "team-a", "photos").await;
        world.pass(Duration::from_secs(3600)).await;
        assert_eq!(keys(world).len(), 1, "the key of before is over");
        assert!(world.store.bucket("team-a-photos").is_some() && phase(world) == "Bound");
    });
}

// covers: 9.shadow.repaired
#[test]
fn an_edit_of_its_bucket_claim_is_undone() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Retain", "", NAMED).await;
        let before = shadow(world)["spec"].clone();
        let edit = json!({"spec": {"deletionPolicy": "Delete", "forceDelete": true, "quota": {"hard": "1"},
            "writeConnectionSecretToRef": {"name": "other"}, "anonymousAccess": {"mode": "ReadOnly"}}});
        stage.patch("bucketclaims", "team-a", "obc-photos", edit).await;
        stage.until("it is undone", |world| shadow(world)["spec"] == before).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        world.pass(Duration::from_secs(5)).await;
        tenant_can_work(world, "team-a", "photos").await;
        assert!(object(world, "secrets", "team-a", "other").is_null());
    });
}

/// The key belongs to the BucketClaim, so the revocation is requested there.
// covers: 3.3.revoke.atOnce
#[test]
fn its_key_ends_at_once_where_its_bucket_claim_is_asked() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Retain", "", NAMED).await;
        let leaked = data(world, "team-a", "photos")["AWS_ACCESS_KEY_ID"].clone();
        let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "leaked"}}});
        stage.patch("bucketclaims", "team-a", "obc-photos", revoke).await;
        stage.soon("the key is gone", 2, |world| !keys(world).contains_key(&leaked)).await;
        stage.soon("another takes its place", 5, |world| keys(world).len() == 1).await;
        world.pass(Duration::from_secs(5)).await;
        assert_ne!(data(world, "team-a", "photos")["AWS_ACCESS_KEY_ID"], leaked);
        tenant_can_work(world, "team-a", "photos").await;
        assert_eq!(phase(world), "Bound");
    });
}

// covers: 9.shadow.remade, 9.shadow.meanwhile
#[rstest]
#[case("Retain", "")]
#[case("Delete", "")]
#[case("Delete", "emptyBucket: 'true'")]
fn a_bucket_claim_that_was_deleted_by_hand_is_made_again_and_its_bucket_stays(
    #[case] policy: &str,
    #[case] parameters: &str,
) {
    run(async |stage| {
        let world = &stage.world;
        stage.set_adoption("Owned").await;
        bound(&stage, policy, parameters, NAMED).await;
        world.store.put_object("team-a-photos", "a", "data");
        let uid = shadow(world)["metadata"]["uid"].clone();
        stage.delete("bucketclaims", "team-a", "obc-photos").await;
        let is_new = |world: &World| !shadow(world).is_null() && shadow(world)["metadata"]["uid"] != uid;
        stage.until("it is made again", is_new).await;
        stage.until("it is told", |world| told(world, "BucketClaimRemade")).await;
        stage
            .until("it is Bound", |world| condition(&shadow(world), "Ready") == "Bound" && phase(world) == "Bound")
            .await;
        world.pass(Duration::from_secs(5)).await;
        tenant_can_work(world, "team-a", "photos").await;
        assert_eq!(shadow(world)["status"]["bucketOrigin"], "Adopted");
        delete(&stage).await;
        until_gone(&stage).await;
        assert!(world.store.objects("team-a-photos").contains_key("a"), "an adopted bucket stays");
    });
}

// covers: 9.bucket.lost
#[test]
fn an_object_bucket_that_was_lost_is_made_again_and_deletes_nothing() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "emptyBucket: 'true'", NAMED).await;
        world.store.put_object("team-a-photos", "a", "data");
        let name = bucket(world)["metadata"]["name"].as_str().expect("a name").to_owned();
        stage.patch("objectbuckets", "", &name, json!({"metadata": {"finalizers": null}})).await;
        stage.delete("objectbuckets", "", &name).await;
        stage.until("it is told", |world| told(world, "ObjectBucketRemade")).await;
        stage.until("it is Bound", |world| bucket(world)["status"]["phase"] == "Bound").await;
        assert_eq!(bucket(world)["spec"]["reclaimPolicy"], "Retain");
        delete(&stage).await;
        until_gone(&stage).await;
        assert!(world.store.objects("team-a-photos").contains_key("a"));
    });
}

// covers: 9.bucket.names
#[test]
fn two_claims_whose_object_buckets_would_have_one_name_have_one_each() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team}}").await;
        stage.apply(&class("buckets", "Delete", "")).await;
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        stage.apply(&obc_with("team", "a-photos", "generateBucketName: other")).await;
        let other = |world: &World| object(world, "objectbucketclaims", "team", "a-photos");
        stage
            .until("both are Bound", |world| phase(world) == "Bound" && other(world)["status"]["phase"] == "Bound")
            .await;
        let names = [obc(world), other(world)].map(|it| it["spec"]["objectBucketName"].clone());
        assert_ne!(names[0], names[1]);
        assert!(names.contains(&json!("obc-team-a-photos")), "{names:?}");
        delete(&stage).await;
        until_gone(&stage).await;
        world.pass(Duration::from_secs(700)).await;
        assert_eq!(other(world)["spec"]["objectBucketName"], names[1]);
        let buckets = world.cluster.objects().into_iter().filter(|it| it.plural == "objectbuckets").count();
        assert_eq!(buckets, 1, "it has no second one under the name that is free now");
    });
}

// covers: 9.changed
#[rstest]
#[case(json!({"bucketName": "another"}))]
#[case(json!({"storageClassName": "another"}))]
fn an_edit_that_can_not_be_made_is_told_and_stops_nothing(#[case] edit: Value) {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete", "", NAMED).await;
        stage.patch("objectbucketclaims", "team-a", "photos", json!({"spec": edit})).await;
        stage.until("it is told", |world| told(world, "SpecChanged")).await;
        assert_eq!((phase(world), world.store.buckets().len()), ("Bound".to_owned(), 1));
        tenant_can_work(world, "team-a", "photos").await;
        world.store.remove_object("team-a-photos", "probe");
        delete(&stage).await;
        until_gone(&stage).await;
        assert!(world.store.buckets().is_empty());
    });
}

// covers: 9.stranger
#[test]
fn a_strangers_bucket_is_not_taken_and_the_claim_has_failed() {
    run(async |stage| {
        let world = &stage.world;
        world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        world.store.put_object("team-a-photos", "theirs", "data");
        stage.apply(&class("buckets", "Delete", "emptyBucket: 'true'")).await;
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        stage.until("it has failed", |world| phase(world) == "Failed" && told(world, "BucketExists")).await;
        delete(&stage).await;
        until_gone(&stage).await;
        assert!(world.store.objects("team-a-photos").contains_key("theirs"));
    });
}

// covers: 9.deletion.bucketGone
#[test]
fn a_bucket_that_is_gone_before_blocks_no_deletion() {
    run(async |stage| {
        bound(&stage, "Delete", "", NAMED).await;
        stage.world.store.remove_bucket("team-a-photos");
        delete(&stage).await;
        until_gone(&stage).await;
        assert_nothing_left(&stage.world);
    });
}

// covers: 9.shadow.earlier
#[test]
fn the_bucket_claim_of_an_earlier_one_is_waited_for() {
    run(async |stage| {
        let world = &stage.world;
        stage.set_adoption("Owned").await;
        bound(&stage, "Delete", "", NAMED).await;
        world.store.put_object("team-a-photos", "a", "data");
        let uid = obc(world)["metadata"]["uid"].clone();
        stage.operator.stop();
        stage.patch("objectbucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
        delete(&stage).await;
        world.pass(Duration::from_secs(20)).await;
        assert!(obc(world).is_null());
        stage.apply(&obc_with("team-a", "photos", NAMED)).await;
        let mut stage = stage;
        stage.operator = stage.world.start_operator();
        stage.until("it is told", |world| told(world, "BucketClaimLeaving")).await;
        assert_eq!(phase(&stage.world), "Pending");
        stage.world.store.remove_object("team-a-photos", "a");
        stage.until("it is Bound", |world| phase(world) == "Bound" && obc(world)["metadata"]["uid"] != uid).await;
    });
}

// covers: 9.namespace
#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    run(async |stage| {
        bound(&stage, "Delete", "", NAMED).await;
        stage.delete("namespaces", "", "team-a").await;
        stage.until("it is gone", |world| object(world, "namespaces", "", "team-a").is_null()).await;
        assert!(stage.world.store.buckets().is_empty());
        assert_nothing_left(&stage.world);
    });
}

// covers: 9.labels
#[test]
fn labels_and_finalizers_of_others_stay() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&class("buckets", "Delete", "")).await;
        let marked = obc_with("team-a", "photos", NAMED)
            .replace("name: photos,", "name: photos, labels: {theirs: x}, finalizers: [example.com/theirs],");
        stage.apply(&marked).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        let metadata = obc(world)["metadata"].clone();
        assert_eq!(metadata["labels"], json!({"theirs": "x", "bucket-provisioner": "broker.stowage.io-bucket"}));
        assert_eq!(metadata["finalizers"], json!(["example.com/theirs", "objectbucket.io/finalizer"]));
        delete(&stage).await;
        stage.until("ours is off", |world| obc(world)["metadata"]["finalizers"] == json!(["example.com/theirs"])).await;
        assert!(world.store.buckets().is_empty());
    });
}

// covers: 9.flag
#[test]
fn without_the_flag_nothing_is_watched() {
    Stage::run("", async |stage| {
        stage.world.pass(Duration::from_secs(60)).await;
        assert!(!stage.trace().contains("objectbucket") && !stage.trace().contains("storageclasses"));
    });
}

// covers: 9.crash
#[test]
fn a_crash_after_each_call_leaves_one_of_everything() {
    for call in 1..60 {
        let plan = format!("#{call} crash(after-effect)");
        let Ok(plan) = plan.parse() else { panic!("{plan} is no plan") };
        Stage::run_with(Options { foreign: Some(Foreign::Rook), plan, ..Options::default() }, async |stage| {
            let world = &stage.world;
            stage.apply(&class("buckets", "Delete", "")).await;
            stage.apply(&obc_with("team-a", "photos", "generateBucketName: photos")).await;
            stage.until("it is Bound", |world| phase(world) == "Bound").await;
            tenant_can_work(world, "team-a", "photos").await;
            let of = |plural: &str| world.cluster.objects().iter().filter(|it| it.plural == plural).count();
            assert_eq!((of("objectbuckets"), of("bucketclaims"), world.store.buckets().len()), (1, 1, 1));
        });
    }
}
