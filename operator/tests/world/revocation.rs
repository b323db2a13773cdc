//! Revocation after a leak: every key of the claim ends at once, whatever else fails (spec §3.3).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::effects::Plan;
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::rotation::{bound, request, status};
use crate::support::{
    Stage, claim_with, condition, data, keys, object, published, ready, secrets, tenant, tenant_can_work, works,
};

/// Longer than the overlap, the minute of grace and every resync.
const LONG: Duration = Duration::from_secs(7200);

/// The maximum of one year: an overlap that no test waits for.
const OVERLAP: &str = "overlapSeconds: 31536000";

async fn revoke(stage: &Stage, value: &str) {
    let patch = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": value}}});
    stage.patch("bucketclaims", "team-a", "photos", patch).await;
}

fn record(world: &World) -> std::collections::BTreeMap<String, String> {
    let name = secrets(world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
    data(world, OPERATOR_NAMESPACE, &name)
}

/// Returns the number of Events with this reason about the claim. Repeated ones are one object with
/// a count.
fn times(world: &World, reason: &str) -> u64 {
    let objects = world.cluster.objects();
    let of_reason = objects.iter().filter(|o| o.plural == "events" && o.object["reason"] == reason);
    of_reason.map(|event| event.object["series"]["count"].as_u64().unwrap_or(1)).sum()
}

/// Asserts that one key is left, that it is new, and that it works.
async fn assert_only_a_new_key(stage: &Stage, before: &[String]) {
    let world = &stage.world;
    let left: Vec<String> = keys(world).into_keys().collect();
    assert_eq!(left, [published(world)]);
    assert!(!before.contains(&left[0]), "{left:?}");
    tenant_can_work(world, "team-a", "photos-s3").await;
}

// covers: 1.annotation.revoke, 1.status.handledRevokeRequest, 2.record.revoked, 3.3.revoke
// covers: 3.3.revoke.deleted, 3.3.revoke.atOnce, 4.event.KeysRevoked, 3.3.neverEarly
#[test]
fn every_key_ends_at_once_in_the_middle_of_a_rotation_too() {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        let (first, bucket) = tenant(world, "team-a", "photos-s3");
        request(&stage, "now").await;
        stage.soon("the first key is stamped", 10, |world| keys(world).values().any(Option::is_some)).await;
        let (second, _) = tenant(world, "team-a", "photos-s3");
        assert!(works(&first, &bucket).await && works(&second, &bucket).await);
        let before: Vec<String> = keys(world).into_keys().collect();
        assert_eq!(before.len(), 2);

        revoke(&stage, "leaked").await;
        stage.soon("both keys are gone", 2, |world| !keys(world).keys().any(|key| before.contains(key))).await;
        stage.soon("the next one is told", 5, |world| status(world)["handledRevokeRequest"] == "leaked").await;
        world.pass(Duration::from_secs(2)).await;
        assert!(!works(&first, &bucket).await && !works(&second, &bucket).await);
        assert_only_a_new_key(&stage, &before).await;
        let record = record(world);
        assert_eq!(status(world)["rotationGeneration"], 3);
        assert_eq!((record["generation"].as_str(), record["revoked-through"].as_str()), ("3", "2"));
        assert_eq!(record["handled-revoke-request"], "leaked");

        world.pass(LONG).await;
        assert_eq!((times(world, "KeysRevoked"), status(world)["rotationGeneration"].as_u64()), (1, Some(3)));
        assert_only_a_new_key(&stage, &before).await;
    });
}

/// Obstacles to serving a claim don't delay the revocation of its keys.
// covers: 3.3.revoke.atOnce, 1.annotation.paused.revoked
#[rstest]
#[case::paused("bucketclaims", json!({"metadata": {"annotations": {"broker.stowage.io/paused": "true"}}}), "Paused")]
#[case::renamed_to_a_taken_name("bucketclaims", json!({"spec": {"writeConnectionSecretToRef": {"name": "taken"}}}), "SecretConflict")]
#[case::not_allowed("s3backends", json!({"spec": {"allowedNamespaces": {"names": ["team-b"]}}}), "BackendNotAllowed")]
#[case::unreachable("s3backends", json!({"spec": {"endpoint": "http://nowhere.example"}}), "BackendNotReady")]
fn a_revocation_waits_for_nothing(#[case] plural: &str, #[case] trouble: Value, #[case] reason: &str) {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        let old = published(world);
        let taken = "{apiVersion: v1, kind: Secret, metadata: {name: taken, namespace: team-a}}";
        stage.apply(taken).await;
        let (namespace, name) = if plural == "bucketclaims" { ("team-a", "photos") } else { ("", "main") };
        stage.patch(plural, namespace, name, trouble.clone()).await;
        stage.until_ready_is("team-a", "photos", reason).await;
        // The gateway uses the backend's current endpoint.
        assert_eq!(works(&client, &bucket).await, reason != "BackendNotReady");

        revoke(&stage, "leaked").await;
        stage.soon("the key is gone", 2, |world| !keys(world).contains_key(&old)).await;
        stage.soon("that is told", 5, |world| status(world)["handledRevokeRequest"] == "leaked").await;
        world.pass(Duration::from_secs(2)).await;
        assert!(!works(&client, &bucket).await);
        assert_eq!(ready(world, "team-a", "photos"), reason);
        assert_eq!(keys(world).is_empty(), reason == "Paused", "of a paused claim nothing is made");
    });
}

// covers: 1.bound.impaired.revoked, 3.3.revoke.told
/// A refused revocation is the worst moment to report success.
#[test]
fn a_revocation_that_the_api_server_refuses_says_that_the_key_works() {
    Stage::run("kube:delete secrets forbidden", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        let old = published(world);
        revoke(&stage, "leaked").await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(works(&client, &bucket).await);
        assert_eq!(
            (status(world)["phase"].as_str(), status(world)["accessKeyId"].as_str()),
            (Some("Bound"), Some(&*old))
        );
        let claim = object(world, "bucketclaims", "team-a", "photos");
        assert_eq!(condition(&claim, "CredentialsProvisioned"), "SecretWritten");
        assert!(claim.to_string().contains("a revoked key is not deleted yet"), "{:#}", claim["status"]);
        assert_eq!((status(world)["handledRevokeRequest"].as_str(), times(world, "KeysRevoked")), (None, 0));

        world.effects.set_plan(Plan::default());
        let nudge = json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": "now"}}});
        stage.patch("bucketclaims", "team-a", "photos", nudge).await;
        stage.soon("that is told", 10, |world| status(world)["handledRevokeRequest"] == "leaked").await;
        world.pass(Duration::from_secs(2)).await;
        assert!(!works(&client, &bucket).await);
        assert_only_a_new_key(&stage, &[old]).await;
        assert_eq!(times(world, "KeysRevoked"), 1);
    });
}

// covers: 1.annotation.paused.revoked, 3.2.create.neverAgain
/// The claim still counts as once bound, although none of its keys remain.
#[test]
fn a_paused_claim_gets_its_next_key_when_the_pause_ends_and_keeps_its_bucket() {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        let old = published(world);
        let paused = |value: Value| json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}});
        stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        revoke(&stage, "leaked").await;
        stage.soon("the key is gone", 5, |world| keys(world).is_empty()).await;
        revoke(&stage, "again").await;
        stage.soon("that is only noted", 5, |world| status(world)["handledRevokeRequest"] == "again").await;
        assert_eq!(record(world)["generation"], "2");
        world.pass(LONG).await;
        assert!(keys(world).is_empty());
        assert_eq!(published(world), old, "nothing of a paused claim is written");

        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_only_a_new_key(&stage, &[old]).await;
        assert_eq!(record(world)["settled"], "true");
    });
}

// covers: 3.3.revoke.coalesced, 3.3.revoke.live
#[test]
fn requests_within_a_minute_count_as_one() {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        revoke(&stage, "1").await;
        stage.soon("the first is handled", 5, |world| status(world)["handledRevokeRequest"] == "1").await;
        let second = published(world);
        for value in ["2", "3", "4"] {
            revoke(&stage, value).await;
            world.pass(Duration::from_secs(10)).await;
            assert_eq!((published(world), keys(world).len()), (second.clone(), 1), "{value}");
        }
        stage.soon("the last is handled", 40, |world| status(world)["handledRevokeRequest"] == "4").await;
        assert_only_a_new_key(&stage, &[second]).await;
        world.pass(LONG).await;
        assert_eq!(status(world)["rotationGeneration"], 3);
        assert_eq!(times(world, "KeysRevoked"), 2);
    });
}

/// A key that a rotation has just created may have leaked as well.
// covers: 3.3.revoke.atOnce
#[test]
fn a_revocation_does_not_wait_for_the_minute_after_a_rotation() {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        request(&stage, "now").await;
        stage.soon("it is rotated", 5, |world| status(world)["rotationGeneration"] == 2).await;
        let before: Vec<String> = keys(&stage.world).into_keys().collect();
        revoke(&stage, "leaked").await;
        stage.soon("it is revoked", 2, |world| !keys(world).keys().any(|key| before.contains(key))).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_only_a_new_key(&stage, &before).await;
    });
}

// covers: 3.3.revoke.noKey
#[test]
fn where_there_is_no_key_a_request_is_only_noted() {
    Stage::run("s3:CreateBucket access-denied", async |stage| {
        let claim = claim_with("team-a", "photos", "");
        stage.apply(&claim.replace("metadata: {", "metadata: {annotations: {broker.stowage.io/revoke: first}, ")).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        let world = &stage.world;
        assert_eq!(status(world)["handledRevokeRequest"], "first", "it was there before any key");
        revoke(&stage, "second").await;
        stage.soon("it is noted", 5, |world| status(world)["handledRevokeRequest"] == "second").await;
        let record = record(world);
        assert_eq!((record["generation"].as_str(), record.get("revoked-through")), ("1", None));
        assert_eq!(times(world, "KeysRevoked"), 0);
    });
}

/// The gateway ignores finalizers: as long as the Secret exists, its expiry decides.
// covers: 3.3.revoke.kept
#[test]
fn a_key_that_somebodys_finalizer_keeps_is_over_all_the_same() {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        let (old, kept) = (published(world), secrets(world, OPERATOR_NAMESPACE, "virtual-credential").remove(0));
        let finalizer = |all: Value| json!({"metadata": {"finalizers": all}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(json!(["example.com/backup"]))).await;
        revoke(&stage, "leaked").await;
        stage.soon("the key is replaced", 5, |world| published(world) != old).await;
        world.pass(Duration::from_secs(2)).await;
        assert!(!works(&client, &bucket).await);
        assert!(!object(world, "secrets", OPERATOR_NAMESPACE, &kept).is_null());
        tenant_can_work(world, "team-a", "photos-s3").await;
        let effects = world.effects.trace().effects();
        world.pass(LONG).await;
        assert_eq!(world.effects.trace().counters_after(effects).kubernetes_writes, 0, "it is waited for in peace");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(Value::Null)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_only_a_new_key(&stage, &[old]).await;
    });
}

/// If a request came right before the record was deleted, it is unknown if it was handled.
// covers: 3.2.remade.revoke
#[rstest]
#[case::handled(true)]
#[case::not_handled(false)]
fn a_record_that_is_made_again_revokes_what_the_status_does_not_tell_as_handled(#[case] handled: bool) {
    Stage::run("", async |stage| {
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        if handled {
            revoke(&stage, "leaked").await;
            stage.soon("it is handled", 5, |world| status(world)["handledRevokeRequest"] == "leaked").await;
            world.pass(Duration::from_secs(120)).await;
        }
        let before = published(world);
        let name = secrets(world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        world.cluster.remove("secrets", OPERATOR_NAMESPACE, &name);
        if !handled {
            revoke(&stage, "leaked").await;
        }
        stage.soon("the key is replaced", 10, |world| published(world) != before).await;
        stage.soon("it is told", 10, |world| status(world)["handledRevokeRequest"] == "leaked").await;
        assert_eq!(keys(world).contains_key(&before), handled, "a rotation has its overlap");
        tenant_can_work(world, "team-a", "photos-s3").await;
    });
}

/// Keys to the former bucket are the claim's too, and the record of the next bucket knows them.
// covers: 3.3.revoke.moved
#[test]
fn after_a_move_the_keys_to_both_buckets_are_revoked() {
    Stage::run("", async |stage| {
        stage.apply(&crate::support::twin()).await;
        bound(&stage, OVERLAP).await;
        let world = &stage.world;
        revoke(&stage, "1").await;
        stage.soon("the first is handled", 5, |world| status(world)["handledRevokeRequest"] == "1").await;
        world.pass(Duration::from_secs(120)).await;
        let (old, bucket) = tenant(world, "team-a", "photos-s3");
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"backendRef": {"name": "twin"}}})).await;
        stage.soon("it has moved", 10, |world| status(world)["backend"]["name"] == "twin").await;
        world.pass(Duration::from_secs(120)).await;
        assert!(works(&old, &bucket).await, "the overlap is a year");
        let before: Vec<String> = keys(world).into_keys().collect();
        assert_eq!((before.len(), times(world, "KeysRevoked")), (2, 1), "what was handled stays so");

        revoke(&stage, "2").await;
        stage.soon("the second is handled", 5, |world| status(world)["handledRevokeRequest"] == "2").await;
        world.pass(Duration::from_secs(2)).await;
        assert!(!works(&old, &bucket).await);
        assert_only_a_new_key(&stage, &before).await;
        stage
            .soon("the record that was left goes", 30, |world| {
                secrets(world, OPERATOR_NAMESPACE, "bucket-record").len() == 1
            })
            .await;
        assert!(world.store.bucket(&bucket).is_some(), "the bucket stays as it is");
    });
}
