//! Orphans (spec §3.4): Secrets of a deleted claim are revoked in bounded time, and its bucket is
//! retained. Secrets of an existing claim, or of an unknown owner, are not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::api::{DynamicObject, PostParams};
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::effects::{Call, KubeVerb};
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::support::{
    Stage, assert_bound_once, claim, claim_with, data, object, ready, secrets, tenant, tenant_can_work,
};

const RESYNC: Duration = Duration::from_secs(700);

/// Maximum time in seconds of debounce, sweep, and the deadline of a call that the record waits
/// for, with room for one more try.
const SWEPT: u64 = 60;

/// Returns every Secret of the operator's namespace except the admin credentials, whatever its
/// labels.
fn internal(world: &World) -> BTreeSet<String> {
    let objects = world.cluster.objects();
    let internal = objects.into_iter().filter(|o| o.plural == "secrets" && o.namespace == OPERATOR_NAMESPACE);
    internal.map(|o| o.name).filter(|name| name != "s3-admin").collect()
}

fn of_role(world: &World, role: &str) -> Vec<String> {
    secrets(world, OPERATOR_NAMESPACE, role)
}

async fn bind(stage: &Stage) {
    stage.apply(&claim_with("team-a", "photos", "anonymousAccess: {mode: ReadOnly}")).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.world.store.put_object("team-a-photos", "data", "x");
}

/// Requests a rotation and waits until both generations exist.
async fn rotate(stage: &Stage) {
    stage.world.pass(Duration::from_secs(90)).await;
    let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
    stage.patch("bucketclaims", "team-a", "photos", request).await;
    stage.until("two generations are alive", |world| of_role(world, "virtual-credential").len() == 2).await;
    stage.world.pass(Duration::from_secs(10)).await;
}

/// Removes the finalizer and deletes the claim. The claim is paused first, because otherwise the
/// operator would add the finalizer again before the deletion.
async fn strip_and_delete(stage: &Stage) {
    let paused = json!({"metadata": {"annotations": {"broker.stowage.io/paused": "true"}}});
    stage.patch("bucketclaims", "team-a", "photos", paused).await;
    stage.world.pass(Duration::from_secs(1)).await;
    stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
    stage.delete("bucketclaims", "team-a", "photos").await;
    assert!(object(&stage.world, "bucketclaims", "team-a", "photos").is_null(), "it went without a finalizer");
}

async fn swept(stage: &Stage) {
    stage.soon("nothing internal is left", SWEPT, |world| internal(world).is_empty()).await;
}

/// Returns the S3 calls after call number `after`, except the probes of backends.
fn s3_calls(stage: &Stage, after: u64) -> Vec<String> {
    let trace = stage.world.effects.trace();
    let concerns_buckets = |call: &Call| matches!(call, Call::S3(_)) && !call.to_string().starts_with("s3:ListBuckets");
    let lines = trace.lines().iter().filter(|line| line.number > after && concerns_buckets(&line.call));
    lines.map(ToString::to_string).collect()
}

/// Returns the Kubernetes calls with this verb and resource after call number `after`.
fn kube_calls(stage: &Stage, after: u64, verb: KubeVerb, resource: &str) -> Vec<String> {
    let trace = stage.world.effects.trace();
    let meant = |call: &Call| matches!(call, Call::Kube(call) if call.verb == verb && call.resource == resource);
    let lines = trace.lines().iter().filter(|line| line.number > after && meant(&line.call));
    lines.map(|line| line.call.to_string()).collect()
}

fn assert_bucket_is_kept(stage: &Stage) {
    assert!(stage.world.store.objects("team-a-photos").contains_key("data"), "{}", stage.trace());
}

/// Returns the internal Secrets as stored.
fn stored(world: &World) -> Vec<Value> {
    internal(world).iter().map(|name| object(world, "secrets", OPERATOR_NAMESPACE, name)).collect()
}

/// Creates Secrets again, as from a backup.
async fn restore(stage: &Stage, backup: &[Value]) {
    for secret in backup {
        let mut secret = secret.clone();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            secret["metadata"].as_object_mut().expect("metadata").remove(field);
        }
        let secret: DynamicObject = serde_json::from_value(secret).expect("a Secret");
        stage.api("secrets", OPERATOR_NAMESPACE).create(&PostParams::default(), &secret).await.expect("it is gone");
    }
}

// covers: 3.4.orphans.gone, 3.4.orphans.bucket
#[test]
fn a_claim_whose_finalizer_was_stripped_loses_all_access_and_keeps_its_bucket() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let (old, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        rotate(&stage).await;
        let (new, _) = tenant(&stage.world, "team-a", "photos-s3");
        for client in [&old, &new] {
            client.get_object().bucket(&bucket).key("data").send().await.expect("both keys work in the overlap");
        }
        assert_eq!(internal(&stage.world).len(), 4, "a binding, two credentials, a record");
        let before = stage.world.effects.trace().effects();
        strip_and_delete(&stage).await;
        stage.soon("access is revoked", 10, |world| internal(world).len() == 1).await;
        for client in [&old, &new] {
            client.get_object().bucket(&bucket).key("data").send().await.expect_err("no key works");
        }
        swept(&stage).await;
        stage.world.pass(Duration::from_secs(7200)).await;
        assert_bucket_is_kept(&stage);
        assert_eq!(s3_calls(&stage, before), Vec::<String>::new());
        let deletes = kube_calls(&stage, before, KubeVerb::Delete, "secrets");
        let order: Vec<&str> = deletes.iter().map(|call| &call.rsplit('/').next().unwrap()[..3]).collect();
        assert_eq!(order, ["ab-", "vc-", "vc-", "br-"], "public access first, the record last: {deletes:?}");
        assert!(secrets(&stage.world, "team-a", "consumer-secret").is_empty(), "collected as garbage");
    });
}

// covers: 3.4.orphans.start, 3.4.orphans.bucket
#[test]
fn what_happened_while_the_operator_was_down_is_swept_at_its_start() {
    Stage::run("", async |mut stage| {
        bind(&stage).await;
        rotate(&stage).await;
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        let before = stage.world.effects.trace().effects();
        strip_and_delete(&stage).await;
        stage.world.pass(Duration::from_secs(600)).await;
        assert_eq!(internal(&stage.world).len(), 4);
        stage.operator = stage.world.start_operator();
        swept(&stage).await;
        assert_bucket_is_kept(&stage);
        assert_eq!(s3_calls(&stage, before), Vec::<String>::new());
    });
}

#[test]
fn a_claim_that_is_deleted_as_it_should_be_costs_no_sweep() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.world.pass(Duration::from_secs(60)).await;
        let before = stage.world.effects.trace().effects();
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        let deletion = kube_calls(&stage, before, KubeVerb::Get, "bucketclaims").len();
        let after = stage.world.effects.trace().effects();
        stage.world.pass(RESYNC).await;
        assert_eq!(kube_calls(&stage, after, KubeVerb::Get, "bucketclaims"), Vec::<String>::new(), "{deletion}");
        assert_eq!(kube_calls(&stage, after, KubeVerb::List, "secrets"), Vec::<String>::new());
    });
}

#[test]
fn a_finalizer_stripped_in_the_midst_of_a_deletion_leaves_nothing() {
    for millis in [0, 10, 500, 2000, 4000] {
        // Every delete of the deletion takes a second.
        Stage::run("kube:delete secrets slow(1000)", async |stage| {
            bind(&stage).await;
            rotate(&stage).await;
            stage.delete("bucketclaims", "team-a", "photos").await;
            stage.world.pass(Duration::from_millis(millis)).await;
            stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
            assert!(object(&stage.world, "bucketclaims", "team-a", "photos").is_null());
            swept(&stage).await;
            assert_bucket_is_kept(&stage);
        });
    }
}

// covers: 3.4.orphans.error
#[rstest]
#[case("hang")]
#[case("lost-request")]
#[case("lost-answer")]
fn an_error_is_not_absence(#[case] fault: &str) {
    Stage::run(&format!("kube:get bucketclaims {fault}"), async |stage| {
        bind(&stage).await;
        let before = (internal(&stage.world), stage.world.effects.trace().effects());
        strip_and_delete(&stage).await;
        stage.world.pass(Duration::from_secs(3600)).await;
        assert_eq!(internal(&stage.world), before.0, "{}", stage.trace());
        let asked = kube_calls(&stage, before.1, KubeVerb::Get, "bucketclaims").len();
        println!("{fault}: asked {asked} times in an hour");
        assert!((5..40).contains(&asked), "asked {asked} times in an hour");
    });
}

#[rstest]
#[case(false)]
#[case(true)]
fn a_claim_made_again_under_its_name_gets_its_bucket_back_and_the_old_keys_are_gone(#[case] down: bool) {
    Stage::run("", async |mut stage| {
        bind(&stage).await;
        let (old, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        if down {
            stage.operator.stop();
            stage.world.pass(Duration::from_secs(60)).await;
        }
        strip_and_delete(&stage).await;
        stage.apply(&claim("team-a", "photos")).await;
        if down {
            stage.operator = stage.world.start_operator();
        }
        stage.soon("it is bound", 120, |world| ready(world, "team-a", "photos") == "Bound").await;
        let status = object(&stage.world, "bucketclaims", "team-a", "photos")["status"].clone();
        assert_eq!(status["bucketOrigin"], "Adopted");
        assert_eq!(internal(&stage.world).len(), 2, "a record and a credential");
        assert_bucket_is_kept(&stage);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        old.get_object().bucket(&bucket).key("data").send().await.expect_err("the old key is revoked");
    });
}

// covers: 3.4.orphans.gone
#[rstest]
#[case(false)]
#[case(true)]
fn restored_secrets_of_a_claim_that_is_gone_are_revoked(#[case] made_again: bool) {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let (old, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        let backup = stored(&stage.world);
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        restore(&stage, &backup).await;
        if made_again {
            stage.apply(&claim("team-a", "photos")).await;
            stage.soon("it is bound", 120, |world| ready(world, "team-a", "photos") == "Bound").await;
            assert_eq!(internal(&stage.world).len(), 2, "a record and a credential");
        } else {
            swept(&stage).await;
        }
        old.get_object().bucket(&bucket).key("data").send().await.expect_err("the restored key is revoked");
        assert_bucket_is_kept(&stage);
    });
}

/// A restored credential without a record blocks the bucket for other claims. They get it when the
/// credential is deleted.
#[test]
fn a_restored_credential_without_a_record_is_revoked_and_lets_go_of_its_bucket() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let backup: Vec<Value> = stored(&stage.world);
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        let credential = |secret: &&Value| secret["metadata"]["name"].as_str().unwrap().starts_with("vc-");
        let alone: Vec<Value> = backup.iter().filter(credential).cloned().collect();
        restore(&stage, &alone).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.soon("it is bound", SWEPT, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert!(!internal(&stage.world).contains(alone[0]["metadata"]["name"].as_str().unwrap()));
    });
}

/// Damage that a user may do to the labels of our Secrets.
fn damage(what: &str) -> Value {
    let label =
        |name: &str, value: Value| json!({"metadata": {"labels": {format!("broker.stowage.io/{name}"): value}}});
    match what {
        "other claim" => label("claim-name", json!("living")),
        "other namespace" => label("claim-namespace", json!("nowhere")),
        "no name" => label("claim-name", Value::Null),
        "no uid" => label("claim-uid", Value::Null),
        "other uid" => label("claim-uid", json!("u-1")),
        "wrong generation" => label("rotation-generation", json!("77")),
        _ => json!({"metadata": {"labels": null}}),
    }
}

#[rstest]
fn damaged_labels_do_not_keep_orphans(
    #[values("other claim", "other namespace", "no name", "no uid", "other uid", "wrong generation", "all")] what: &str,
    #[values("bucket-record", "virtual-credential", "anonymous-binding")] role: &str,
) {
    Stage::run("", async |mut stage| {
        stage.apply(&claim("team-a", "living")).await;
        stage.until_ready_is("team-a", "living", "Bound").await;
        let living = internal(&stage.world);
        bind(&stage).await;
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        for name in of_role(&stage.world, role).iter().filter(|name| !living.contains(*name)) {
            stage.patch("secrets", OPERATOR_NAMESPACE, name, damage(what)).await;
        }
        strip_and_delete(&stage).await;
        stage.operator = stage.world.start_operator();
        if (role, what) == ("bucket-record", "all") {
            // A Secret without labels is in no list. It is found when it blocks a claim.
            stage.soon("access is revoked", SWEPT, |world| internal(world).len() == living.len() + 1).await;
            stage.apply(&claim("team-a", "photos")).await;
            stage.soon("it is bound", 120, |world| ready(world, "team-a", "photos") == "Bound").await;
        } else {
            stage.soon("nothing but the living claim's is left", SWEPT, |world| internal(world) == living).await;
        }
        assert_bucket_is_kept(&stage);
        tenant_can_work(&stage.world, "team-a", "living-s3").await;
    });
}

// covers: 2.labels.noProof
#[test]
fn a_secret_that_only_looks_like_ours_is_not_touched() {
    Stage::run("", async |mut stage| {
        bind(&stage).await;
        let binding = of_role(&stage.world, "anonymous-binding").remove(0);
        let uid = data(&stage.world, OPERATOR_NAMESPACE, &binding)["claim_uid"].clone();
        let theirs = [
            ("my-own-key", "virtual-credential", uid.as_str()),
            ("ab-testing", "anonymous-binding", uid.as_str()),
            ("ab-testing-too", "anonymous-binding", ""),
            ("br-of-mine", "bucket-record", uid.as_str()),
            ("vc-akiaaaaaaaaaaaaaaaaa", "virtual-credential", ""),
            ("vc-akia", "virtual-credential", uid.as_str()),
        ];
        for (name, role, data) in theirs {
            let labels = format!(
                "broker.stowage.io/role: {role}, broker.stowage.io/claim-uid: {uid}, \
                 broker.stowage.io/claim-namespace: team-a, broker.stowage.io/claim-name: photos, \
                 broker.stowage.io/rotation-generation: '1'"
            );
            let secret = format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {OPERATOR_NAMESPACE}, \
                 labels: {{{labels}}}}}, stringData: {{claim_uid: '{data}'}}}}"
            );
            stage.apply(&secret).await;
        }
        strip_and_delete(&stage).await;
        let names: BTreeSet<String> = theirs.iter().map(|(name, ..)| (*name).to_owned()).collect();
        stage.soon("only theirs are left", SWEPT, |world| internal(world) == names).await;
        stage.operator.stop();
        stage.world.pass(RESYNC).await;
        stage.operator = stage.world.start_operator();
        stage.world.pass(RESYNC).await;
        assert_eq!(internal(&stage.world), names);
    });
}

/// The record stays while a CreateBucket of the claim is in progress, because that call could
/// affect the name's next holder.
#[test]
fn a_claim_that_goes_while_its_bucket_is_made_leaves_nothing_and_its_successor_is_bound() {
    Stage::run("s3:CreateBucket@1 slow(20000)", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage
            .until("absence is noted", |world| {
                let record = of_role(world, "bucket-record");
                record.first().is_some_and(|name| data(world, OPERATOR_NAMESPACE, name).contains_key("absence"))
            })
            .await;
        stage.world.pass(Duration::from_secs(5)).await;
        let first = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until("the bucket is made", |world| world.store.bucket("team-a-photos").is_some()).await;
        let record = of_role(&stage.world, "bucket-record");
        let holder = data(&stage.world, OPERATOR_NAMESPACE, &record[0])["claim_uid"].clone();
        assert_eq!(Some(holder.as_str()), first.as_str(), "nobody else may make it meanwhile");
        stage.soon("the successor is bound", 120, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert_eq!(internal(&stage.world).len(), 2, "{:?}", internal(&stage.world));
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

/// Secrets of an existing claim stay, whenever an operator starts and however old the state is that
/// it sees first.
#[test]
fn nothing_of_a_living_claim_is_swept_and_at_rest_nobody_is_asked() {
    Stage::run("", async |mut stage| {
        for round in 0..6 {
            for number in 0..5 {
                stage.apply(&claim("team-a", &format!("claim-{round}-{number}"))).await;
            }
            // The next operator starts while the claims of the last round are being bound.
            stage.world.pass(Duration::from_millis(40 * round)).await;
            stage.operator.stop();
            stage.operator = stage.world.start_operator();
        }
        let bound = |world: &World, round: u64, number: u64| {
            ready(world, "team-a", &format!("claim-{round}-{number}")) == "Bound"
        };
        stage.until("all are bound", |world| (0..30).all(|i| bound(world, i / 5, i % 5))).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(kube_calls(&stage, 0, KubeVerb::Delete, "secrets"), Vec::<String>::new());
        let kept: BTreeMap<String, Value> = stored(&stage.world)
            .into_iter()
            .map(|secret| (secret["metadata"]["name"].to_string(), secret["metadata"]["uid"].clone()))
            .collect();
        assert_eq!(kept.len(), 60);
        let before = stage.world.effects.trace().effects();
        stage.world.pass(Duration::from_secs(3600)).await;
        assert_eq!(kube_calls(&stage, before, KubeVerb::Get, "bucketclaims"), Vec::<String>::new());
        assert_eq!(kube_calls(&stage, before, KubeVerb::List, "bucketclaims"), Vec::<String>::new());
        assert_eq!(kube_calls(&stage, before, KubeVerb::List, "secrets"), Vec::<String>::new());
    });
}

#[test]
fn a_watch_that_lost_its_place_shows_what_went_meanwhile() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        assert_bound_once_with_binding(&stage).await;
        stage.world.cluster.compact();
        strip_and_delete(&stage).await;
        stage.world.cluster.compact();
        swept(&stage).await;
        assert_bucket_is_kept(&stage);
    });
}

async fn assert_bound_once_with_binding(stage: &Stage) {
    assert_bound_once(stage).await;
    assert_eq!(of_role(&stage.world, "anonymous-binding").len(), 1);
}
