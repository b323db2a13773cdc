//! Wakes of a claim (spec §3.5): a change that it depends on wakes it at once, nothing else does.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, OPERATOR_NAMESPACE, World};

use crate::support::{BASE, Stage, claim, claim_with, data, keys, object, ready, secrets};

/// The store refuses the canary's bucket once, which the operator takes as permanent. The next pass
/// over the claim gets the bucket, whatever wakes it.
const REFUSED_ONCE: &str = "s3:CreateBucket@1 access-denied";

async fn canary(stage: &Stage) {
    stage.apply(&claim("team-a", "canary")).await;
    stage.until_ready_is("team-a", "canary", "BackendError").await;
    stage.world.pass(Duration::from_secs(5)).await;
}

fn secret(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {namespace}}}, stringData: {{a: {value}}}}}"
    )
}

// covers: 3.5.wake.nobodyElse
#[test]
fn what_a_claim_does_not_depend_on_does_not_wake_it() {
    Stage::run(REFUSED_ONCE, async |stage| {
        canary(&stage).await;
        for namespace in ["team-a", OPERATOR_NAMESPACE] {
            stage.apply(&secret(namespace, "theirs", "one")).await;
            stage.apply(&secret(namespace, "theirs", "two")).await;
            stage.delete("secrets", namespace, "theirs").await;
        }
        stage.patch("namespaces", "", "team-b", json!({"metadata": {"labels": {"tier": "silver"}}})).await;
        let other = BASE.split("---").last().expect("the backend").replace("name: main", "name: other");
        stage.apply(&other).await;
        stage.patch("s3backends", "", "other", json!({"spec": {"adoptionPolicy": "Any"}})).await;
        stage.world.pass(Duration::from_secs(5)).await;
        stage.delete("s3backends", "", "other").await;
        // The whole life of a neighbour on the same backend and in the same namespace, which
        // changes the backend's count of buckets too.
        stage.apply(&claim("team-a", "neighbour")).await;
        stage.until_ready_is("team-a", "neighbour", "Bound").await;
        stage.patch("secrets", "team-a", "neighbour-s3", json!({"data": {"BUCKET_NAME": null}})).await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert_eq!(object(&stage.world, "s3backends", "", "main")["status"]["bucketCount"], 1, "{}", stage.trace());
        stage.delete("bucketclaims", "team-a", "neighbour").await;
        stage.until_gone("team-a", "neighbour").await;
        stage.world.pass(Duration::from_secs(60)).await;
        assert_eq!(ready(&stage.world, "team-a", "canary"), "BackendError", "{}", stage.trace());
    });
}

/// A list of many claims comes in pages, and the store has none of its objects before the last
/// page.
#[test]
fn what_went_on_while_a_watch_was_away_is_seen_to_though_the_list_comes_in_pages() {
    Stage::run("kube:list bucketclaims slow(50)", async |stage| {
        let name = |number: u32| format!("claim-{number:02}");
        for number in 0..60 {
            stage.apply(&claim("team-a", &name(number))).await;
        }
        let bound = |world: &World, name: &str| ready(world, "team-a", name) == "Bound";
        stage.until("all are bound", |world| (0..60).all(|number| bound(world, &name(number)))).await;
        stage.world.pass(Duration::from_secs(60)).await;
        stage.world.cluster.compact();
        stage.apply(&claim("team-a", "a-new")).await;
        stage.delete("bucketclaims", "team-a", &name(0)).await;
        stage.world.cluster.compact();
        let gone = |world: &World| object(world, "bucketclaims", "team-a", &name(0)).is_null();
        stage.soon("both are served", 60, |world| bound(world, "a-new") && gone(world)).await;
        let lists = stage.trace().matches("list bucketclaims").count();
        assert_eq!(lists, 1 + 3, "at the start, and three pages of it later\n{}", stage.trace());
    });
}

// covers: 3.5.wake.backend, 3.5.wake.labels, 3.5.wake.adminSecret, 3.5.permanent.recovers
// covers: 1.annotation.reconcile
#[rstest]
#[case::nudge("bucketclaims", "team-a", "canary", json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": "1"}}}))]
#[case::spec("bucketclaims", "team-a", "canary", json!({"spec": {"quota": {"hard": "1Ki"}}}))]
#[case::labels("namespaces", "", "team-a", json!({"metadata": {"labels": {"tier": "gold"}}}))]
#[case::backend("s3backends", "", "main", json!({"spec": {"adoptionPolicy": "Any"}}))]
fn what_a_claim_depends_on_wakes_it_at_once(
    #[case] plural: &str,
    #[case] namespace: &str,
    #[case] name: &str,
    #[case] change: Value,
) {
    Stage::run(REFUSED_ONCE, async |stage| {
        canary(&stage).await;
        stage.patch(plural, namespace, name, change).await;
        stage.soon("the claim is bound", 2, |world| ready(world, "team-a", "canary") == "Bound").await;
    });
}

// covers: 3.5.wake.adminSecret, 3.5.permanent.recovers
#[test]
fn other_admin_credentials_wake_the_claims_of_the_backend() {
    Stage::run(REFUSED_ONCE, async |stage| {
        canary(&stage).await;
        stage.world.store.add_account(ADMIN_ACCOUNT, ADMIN_ACCESS_KEY, "rotated");
        stage
            .patch(
                "secrets",
                OPERATOR_NAMESPACE,
                "s3-admin",
                json!({"stringData": {"AWS_SECRET_ACCESS_KEY": "rotated"}}),
            )
            .await;
        stage.soon("the claim is bound", 2, |world| ready(world, "team-a", "canary") == "Bound").await;
    });
}

// covers: 3.5.wake.secret, 2.binding.exactlyWhile
#[rstest]
#[case("consumer-secret", "team-a")]
#[case("anonymous-binding", OPERATOR_NAMESPACE)]
#[case("bucket-record", OPERATOR_NAMESPACE)]
fn a_secret_of_ours_that_somebody_deletes_is_back_within_a_watch_event(#[case] role: &str, #[case] namespace: &str) {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "anonymousAccess: {mode: ReadOnly}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(5)).await;
        let name = secrets(&stage.world, namespace, role).remove(0);
        let before = object(&stage.world, "secrets", namespace, &name)["metadata"]["uid"].clone();
        stage.delete("secrets", namespace, &name).await;
        stage
            .soon("it is back", 1, |world| {
                let uid = object(world, "secrets", namespace, &name)["metadata"]["uid"].clone();
                uid.is_string() && uid != before
            })
            .await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert_eq!(data(&stage.world, "team-a", "photos-s3")["BUCKET_NAME"], "team-a-photos");
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
    });
}

/// Returns the number of passes over claims so far.
fn passes(stage: &Stage) -> u64 {
    let page = stage.operator.metrics();
    let of_claims =
        page.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{controller=\"bucketclaim\""));
    of_claims.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).map(|count| count as u64).sum()
}

/// A tenant may give a Secret any name and our label. A claim that waits for a record waits for one
/// in the operator's namespace.
// covers: 3.5.wake.nobodyElse
#[test]
fn a_tenants_secret_with_the_name_of_a_record_wakes_nobody_who_waits_for_that() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-b", "holder", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "holder", "Bound").await;
        stage.apply(&claim_with("team-a", "canary", "bucketName: shared")).await;
        stage.until_ready_is("team-a", "canary", "BucketNameConflict").await;
        stage.world.pass(Duration::from_secs(5)).await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        let before = passes(&stage);
        let labels = "labels: {broker.stowage.io/role: consumer-secret}";
        for value in ["one", "two", "three"] {
            let theirs = secret("team-b", &record, value).replace("metadata: {", &format!("metadata: {{{labels}, "));
            stage.apply(&theirs).await;
            stage.world.pass(Duration::from_secs(5)).await;
        }
        stage.delete("secrets", "team-b", &record).await;
        assert_eq!(passes(&stage) - before, 0, "{}", stage.trace());
    });
}

/// Returns the number of calls to the store so far.
fn calls(stage: &Stage) -> usize {
    stage.trace().matches("s3:").count()
}

async fn touch(stage: &Stage, name: &str, value: u32) {
    let patch = json!({"metadata": {"annotations": {"example.com/touched": value.to_string()}}});
    stage.patch("bucketclaims", "team-a", name, patch).await;
}

// covers: 3.5.asked
#[rstest]
#[case::unbound("Retain")]
#[case::deleted("Delete")]
fn a_claim_that_is_touched_without_end_has_its_store_asked_at_a_pace(#[case] policy: &str) {
    Stage::run("", async |stage| {
        let spec = format!("deletionPolicy: {policy}");
        if policy == "Delete" {
            stage.apply(&claim_with("team-a", "photos", &spec)).await;
            stage.until_ready_is("team-a", "photos", "Bound").await;
            stage.world.store.put_object("team-a-photos", "a", "x");
            stage.delete("bucketclaims", "team-a", "photos").await;
            stage.until_ready_is("team-a", "photos", "BucketNotEmpty").await;
        } else {
            stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
            stage.apply(&claim_with("team-a", "photos", &spec)).await;
            stage.until_ready_is("team-a", "photos", "BucketExists").await;
        }
        let before = calls(&stage);
        for value in 0..600 {
            touch(&stage, "photos", value).await;
            stage.world.pass(Duration::from_millis(500)).await;
        }
        // Five minutes: the burst, and one pass in ten seconds. A pass makes at most four calls.
        let asked = calls(&stage) - before;
        assert!(asked <= 4 * (20 + 31), "{asked} calls\n{}", stage.trace());
        if policy == "Delete" {
            stage.world.store.remove_object("team-a-photos", "a");
            stage.until_gone("team-a", "photos").await;
        } else {
            stage.world.store.remove_bucket("team-a-photos");
            touch(&stage, "photos", 600).await;
            stage.soon("it is looked at", 15, |world| ready(world, "team-a", "photos") == "Bound").await;
        }
    });
}

/// The rate limit is for calls to a store. A revocation doesn't wait for it.
// covers: 3.5.asked, 3.3.revoke.atOnce
#[test]
fn a_claim_that_is_touched_without_end_has_its_keys_revoked_at_once() {
    Stage::run("", async |stage| {
        let other = BASE.split("---").last().expect("the backend").replace("name: main", "name: other");
        stage.apply(&other.replace("spec:", "spec:\n  bucketNameTemplate: 'other-{{ .Name }}'")).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "other-photos");
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"backendRef": {"name": "other"}}})).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        let before = calls(&stage);
        for value in 0..200 {
            touch(&stage, "photos", value).await;
            stage.world.pass(Duration::from_millis(100)).await;
        }
        let asked = calls(&stage) - before;
        assert!(asked <= 4 * (20 + 3), "{asked} calls\n{}", stage.trace());
        let key = data(&stage.world, "team-a", "photos-s3")["AWS_ACCESS_KEY_ID"].clone();
        let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "leaked"}}});
        stage.patch("bucketclaims", "team-a", "photos", revoke).await;
        let is_gone = |world: &World| !keys(world).contains_key(&key);
        stage.soon("the key is gone", 2, is_gone).await;
    });
}
