//! Deletion with `Retain` (spec §3.4): in every case the claim is deleted, none of our objects
//! remain, and the bucket stays.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, OPERATOR_NAMESPACE};

use crate::support::{Stage, claim, claim_with, condition, events, internal_of, object, ready, secrets, tenant};

const RESYNC: Duration = Duration::from_secs(700);

/// Asserts that none of our objects remain in the cluster.
fn assert_nothing_left(stage: &Stage) {
    for role in ["bucket-record", "virtual-credential", "anonymous-binding"] {
        let left = secrets(&stage.world, OPERATOR_NAMESPACE, role);
        assert!(left.is_empty(), "{role}: {left:?}\n{}", stage.trace());
    }
    assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
    assert!(secrets(&stage.world, "team-a", "consumer-secret").is_empty(), "{}", stage.trace());
}

async fn bind(stage: &Stage) {
    stage.apply(&claim_with("team-a", "photos", "anonymousAccess: {mode: ReadOnly}")).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}

async fn delete_and_check(stage: &Stage) {
    stage.delete("bucketclaims", "team-a", "photos").await;
    stage.until_gone("team-a", "photos").await;
    stage.until("the garbage is collected", |world| secrets(world, "team-a", "consumer-secret").is_empty()).await;
    assert_nothing_left(stage);
}

fn paused(on: bool) -> Value {
    let value = if on { json!("true") } else { Value::Null };
    json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}})
}

fn stripped() -> Value {
    let names = ["role", "claim-namespace", "claim-name", "claim-uid", "backend", "bucket", "access-key-id"];
    let labels: serde_json::Map<String, Value> =
        names.iter().map(|name| (format!("broker.stowage.io/{name}"), Value::Null)).collect();
    json!({"metadata": {"labels": labels}})
}

// covers: 3.4.retain, 4.event.BucketRetained
#[test]
fn a_bound_claim_goes_its_bucket_stays_and_an_event_says_so() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.world.store.put_object("team-a-photos", "data", "x");
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        delete_and_check(&stage).await;
        assert!(stage.world.store.objects("team-a-photos").contains_key("data"));
        let retained = ("Normal".to_owned(), "BucketRetained".to_owned());
        assert!(events(&stage.world, "photos").contains(&retained));
        client.get_object().bucket(&bucket).key("data").send().await.expect_err("access is revoked");
    });
}

// covers: 3.4.retain
#[test]
fn what_keeps_a_backend_from_working_does_not_keep_a_claim_from_going() {
    for unusable in ["deleted", "credentials", "secret"] {
        Stage::run("", async |stage| {
            bind(&stage).await;
            match unusable {
                "deleted" => stage.delete("s3backends", "", "main").await,
                "credentials" => assert!(stage.world.store.revoke_key(ADMIN_ACCESS_KEY)),
                _ => stage.delete("secrets", OPERATOR_NAMESPACE, "s3-admin").await,
            }
            stage.world.pass(Duration::from_secs(5)).await;
            let before = stage.world.effects.trace().effects();
            delete_and_check(&stage).await;
            assert_eq!(stage.world.effects.trace().counters_after(before).s3_calls, 0, "Retain needs no backend");
            assert!(stage.world.store.bucket("team-a-photos").is_some());
        });
    }
}

// covers: 3.4.neverBound
#[test]
fn a_claim_that_was_never_bound_goes() {
    Stage::run("", async |stage| {
        // A missing backend; a bucket of another owner; a name held by another claim.
        stage.apply(&claim("team-a", "photos").replace("name: main", "name: nowhere")).await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        delete_and_check(&stage).await;

        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        delete_and_check(&stage).await;
        assert!(stage.world.store.bucket("team-a-photos").is_some());

        stage.apply(&claim_with("team-b", "holder", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "holder", "Bound").await;
        stage.apply(&claim_with("team-a", "photos", "bucketName: shared")).await;
        stage.until_ready_is("team-a", "photos", "BucketNameConflict").await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        assert_eq!(ready(&stage.world, "team-b", "holder"), "Bound");
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1);
    });
}

// covers: 3.4.revocation.byName
#[rstest]
#[case("bucket-record")]
#[case("virtual-credential")]
#[case("anonymous-binding")]
fn a_secret_whose_labels_were_stripped_while_nobody_looked_goes_too(#[case] role: &str) {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(true)).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        let name = secrets(&stage.world, OPERATOR_NAMESPACE, role).remove(0);
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, stripped()).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.patch("bucketclaims", "team-a", "photos", paused(false)).await;
        stage.until_gone("team-a", "photos").await;
        assert!(object(&stage.world, "secrets", OPERATOR_NAMESPACE, &name).is_null(), "{name} is left");
        assert_nothing_left(&stage);
    });
}

// covers: 1.claim.finalizer, 3.4.noFinalizer
#[test]
fn a_strangers_secret_and_a_strangers_finalizer_are_left_alone() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let finalizers =
            json!({"metadata": {"finalizers": ["broker.stowage.io/bucketclaim-protection", "example.org/theirs"]}});
        stage.patch("bucketclaims", "team-a", "photos", finalizers).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(true)).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        stage.delete("secrets", "team-a", "photos-s3").await;
        stage
            .apply("{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a}, stringData: {a: b}}")
            .await;
        stage.patch("bucketclaims", "team-a", "photos", paused(false)).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage
            .until("our finalizer is off", |world| {
                object(world, "bucketclaims", "team-a", "photos")["metadata"]["finalizers"]
                    == json!(["example.org/theirs"])
            })
            .await;
        assert_nothing_left(&stage);
        assert_eq!(object(&stage.world, "secrets", "team-a", "photos-s3")["data"], json!({"a": "Yg=="}));
        // Without our finalizer nothing more is done.
        let before = stage.world.effects.trace().effects();
        stage.world.pass(RESYNC).await;
        assert_eq!(stage.world.effects.trace().counters_after(before).kubernetes_writes, 0, "{}", stage.trace());
    });
}

// covers: 1.annotation.paused, 1.annotation.paused.deleted, 1.annotation.paused.name
// covers: 1.phase.Deleting
// covers: 1.ready.Paused
#[test]
fn a_paused_claim_is_not_touched_and_deleted_loses_its_access_at_once() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(true)).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        assert_eq!(object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["phase"], "Bound");
        stage.delete("secrets", "team-a", "photos-s3").await;
        stage.world.pass(RESYNC).await;
        assert!(object(&stage.world, "secrets", "team-a", "photos-s3").is_null(), "a paused claim is repaired");
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage
            .soon("access is revoked", 30, |world| {
                secrets(world, OPERATOR_NAMESPACE, "virtual-credential").is_empty()
                    && secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").is_empty()
            })
            .await;
        stage.world.pass(RESYNC).await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        assert_eq!((condition(&claim, "Ready").as_str(), &claim["status"]["phase"]), ("Paused", &json!("Deleting")));
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1, "it keeps its name");
        stage.patch("bucketclaims", "team-a", "photos", paused(false)).await;
        stage.until_gone("team-a", "photos").await;
        assert_nothing_left(&stage);
    });
}

// covers: 1.annotation.paused
#[test]
fn a_paused_claim_that_is_new_is_not_even_given_a_finalizer() {
    Stage::run("", async |stage| {
        let paused_claim = claim("team-a", "photos")
            .replace("name: photos,", "name: photos, annotations: {broker.stowage.io/paused: \"true\"},");
        stage.apply(&paused_claim).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        stage.world.pass(RESYNC).await;
        assert!(object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["finalizers"].is_null());
        assert_nothing_left(&stage);
        assert!(stage.world.store.buckets().is_empty());
    });
}

// covers: 3.4.namespace
#[test]
fn a_namespace_with_claims_in_it_ends() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.apply(&claim("team-a", "second").replace("name: main", "name: nowhere")).await;
        stage.until_ready_is("team-a", "second", "BackendNotReady").await;
        stage.delete("namespaces", "", "team-a").await;
        stage.until("the namespace is gone", |world| object(world, "namespaces", "", "team-a").is_null()).await;
        assert_nothing_left(&stage);
        assert!(stage.world.store.bucket("team-a-photos").is_some());
    });
}

#[test]
fn a_claim_made_again_under_its_name_while_the_old_one_goes_gets_credentials_of_its_own() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let first = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential");
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let second = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential");
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_ne!(first, second);
    });
}

// covers: 3.4.revocation.byName
#[test]
fn a_claim_of_many_generations_goes() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        let generation = json!({"stringData": {"generation": "400"}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &record, generation).await;
        stage
            .until("generation 400 or later is minted", |world| {
                object(world, "bucketclaims", "team-a", "photos")["status"]["rotationGeneration"].as_i64() >= Some(400)
            })
            .await;
        delete_and_check(&stage).await;
    });
}

#[rstest]
#[case(json!({"generation": null}))]
#[case(json!({"generation": null, "claim_uid": null}))]
fn a_damaged_record_does_not_keep_a_claim_from_going(#[case] damage: Value) {
    Stage::run("", async |stage| {
        bind(&stage).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(true)).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        stage.patch("secrets", OPERATOR_NAMESPACE, &record, json!({"data": damage})).await;
        stage.patch("secrets", OPERATOR_NAMESPACE, &record, stripped()).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.patch("bucketclaims", "team-a", "photos", paused(false)).await;
        stage.until_gone("team-a", "photos").await;
        assert_nothing_left(&stage);
    });
}

// covers: 3.4.order, 2.record.last
#[test]
fn public_access_goes_first_then_keys_then_the_rest_and_the_finalizer_last() {
    Stage::run("", async |stage| {
        bind(&stage).await;
        let before = stage.world.effects.trace().effects();
        delete_and_check(&stage).await;
        let trace = stage.world.effects.trace();
        let lines = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
        let changes: Vec<String> = lines
            .filter(|call| ["kube:delete", "kube:patch bucketclaims team-a"].iter().any(|c| call.starts_with(c)))
            .collect();
        let kinds: Vec<&str> =
            changes.iter().map(|call| call.rsplit('/').next().unwrap().split('-').next().unwrap()).collect();
        // Binding, credential, consumer Secret, record; the claim's finalizer.
        assert_eq!(kinds, ["ab", "vc", "photos", "br", "photos"], "{changes:#?}");
    });
}

// covers: 3.2.lateCall
#[test]
fn after_a_create_without_an_answer_the_record_stays_a_deadline_longer() {
    Stage::run("s3:CreateBucket@1 lost-answer", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until("the create is sent", |world| world.store.bucket("team-a-photos").is_some()).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.world.pass(Duration::from_secs(20)).await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1, "the call may still land");
        stage.until_gone("team-a", "photos").await;
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").is_empty());
        assert!(stage.world.store.bucket("team-a-photos").is_some(), "retained");
    });
}
