//! Internal Secrets that another finalizer keeps (spec §3.4): steps that depend on their deletion
//! wait, the claim reports what it waits for, and no request is repeated in a loop.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::removal::{DELETE, access_is_revoked, bind, bucket_exists, delete, goes};
use crate::support::{
    Stage, claim_with, events, internal_of, keys, message, object, published, ready, secrets, tenant_can_work, twin,
};

/// Longer than the interval of drift checks and resyncs, including jitter.
const RESYNC: Duration = Duration::from_secs(700);

/// Returns a patch that sets another finalizer, like that of a backup tool, or removes it.
fn finalizer(on: bool) -> Value {
    json!({"metadata": {"finalizers": if on { json!(["example.com/backup"]) } else { Value::Null }}})
}

fn rotate(request: &str) -> Value {
    json!({"metadata": {"annotations": {"broker.stowage.io/rotate": request}}})
}

fn of_role(world: &World, role: &str) -> String {
    secrets(world, OPERATOR_NAMESPACE, role).remove(0)
}

/// Returns the reasons of the claim's events.
fn told(world: &World) -> Vec<String> {
    events(world, "photos").into_iter().map(|(_, reason)| reason).collect()
}

/// Returns the number of writes while nothing changes but the time.
async fn writes_at_rest(stage: &Stage) -> u64 {
    let before = stage.world.effects.trace().effects();
    stage.world.pass(RESYNC).await;
    stage.world.effects.trace().counters_after(before).kubernetes_writes
}

// covers: 3.4.order, 4.event.Revoked
#[rstest]
fn a_deletion_waits_for_an_internal_secret_that_is_kept(
    #[values("anonymous-binding", "virtual-credential", "bucket-record")] role: &str,
) {
    Stage::run("", async |stage| {
        bind(&stage, "deletionPolicy: Delete, anonymousAccess: {mode: ReadOnly}").await;
        let kept = of_role(&stage.world, role);
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        delete(&stage).await;
        stage
            .soon("the claim says what it waits for", 30, |world| {
                let told = message(world, "team-a", "photos");
                told.contains(&kept) && told.contains("example.com/backup")
            })
            .await;
        assert_eq!(bucket_exists(&stage), role != "bucket-record", "what opens a bucket goes before it");
        stage.apply(&claim_with("team-b", "films", "bucketName: team-a-photos")).await;
        let writes = writes_at_rest(&stage).await;
        assert!(writes < 20, "{writes} writes\n{}", stage.trace());
        assert_eq!(ready(&stage.world, "team-b", "films"), "BucketNameConflict", "the name is not free");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        goes(&stage).await;
        assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
        stage.until_ready_is("team-b", "films", "Bound").await;
        let told = told(&stage.world);
        assert!(told.iter().any(|reason| reason == "BucketDeleted"), "{told:?}");
        // The revocation has its own event if it was done before the claim could be deleted.
        let revoked = told.iter().any(|reason| reason == "Revoked");
        assert_eq!(revoked, role != "virtual-credential", "{told:?}");
        assert!(told.iter().all(|reason| reason != "BucketRetained"), "{told:?}");
    });
}

/// The last policy takes effect, and the events report what was done.
#[test]
fn a_policy_that_is_edited_while_the_record_is_kept_is_carried_out_and_told() {
    Stage::run("", async |stage| {
        bind(&stage, "deletionPolicy: Retain").await;
        let kept = of_role(&stage.world, "bucket-record");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        delete(&stage).await;
        let tells = |world: &World| message(world, "team-a", "photos").contains(&kept);
        stage.soon("the claim says what it waits for", 30, tells).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"deletionPolicy": "Delete"}})).await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert!(!bucket_exists(&stage));
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        goes(&stage).await;
        let told = told(&stage.world);
        assert!(told.iter().any(|reason| reason == "BucketDeleted"), "{told:?}");
        assert!(told.iter().all(|reason| reason != "BucketRetained"), "{told:?}");
    });
}

// covers: 3.4.order
#[rstest]
fn what_is_kept_does_not_keep_the_rest_from_being_revoked(#[values(false, true)] paused: bool) {
    Stage::run("", async |stage| {
        bind(
            &stage,
            "deletionPolicy: Delete, anonymousAccess: {mode: ReadOnly}, rotationPolicy: {overlapSeconds: 3600}",
        )
        .await;
        stage.world.pass(Duration::from_secs(90)).await;
        stage.patch("bucketclaims", "team-a", "photos", rotate("one")).await;
        stage.soon("it has two keys", 10, |world| keys(world).len() == 2).await;
        let binding = of_role(&stage.world, "anonymous-binding");
        let key = of_role(&stage.world, "virtual-credential");
        for kept in [&binding, &key] {
            stage.patch("secrets", OPERATOR_NAMESPACE, kept, finalizer(true)).await;
        }
        if paused {
            let annotation = json!({"metadata": {"annotations": {"broker.stowage.io/paused": "true"}}});
            stage.patch("bucketclaims", "team-a", "photos", annotation).await;
        }
        delete(&stage).await;
        stage.soon("the other key is gone", 10, |world| keys(world).len() == 1).await;
        assert_eq!(of_role(&stage.world, "virtual-credential"), key);
        stage
            .soon("it tells what it waits for", 10, |world| message(world, "team-a", "photos").contains(&binding))
            .await;
        assert!(bucket_exists(&stage));
        stage.patch("secrets", OPERATOR_NAMESPACE, &binding, finalizer(false)).await;
        stage.soon("it tells what it waits for", 10, |world| message(world, "team-a", "photos").contains(&key)).await;
        assert!(bucket_exists(&stage));
        stage.patch("secrets", OPERATOR_NAMESPACE, &key, finalizer(false)).await;
        if paused {
            stage.soon("only the pause is left", 10, |world| ready(world, "team-a", "photos") == "Paused").await;
            let annotation = json!({"metadata": {"annotations": {"broker.stowage.io/paused": null}}});
            stage.patch("bucketclaims", "team-a", "photos", annotation).await;
        }
        goes(&stage).await;
    });
}

#[test]
fn what_is_kept_of_a_claim_that_is_gone_does_not_keep_the_rest_from_being_swept() {
    Stage::run("", async |stage| {
        bind(&stage, "deletionPolicy: Delete, anonymousAccess: {mode: ReadOnly}").await;
        let kept = of_role(&stage.world, "anonymous-binding");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
        delete(&stage).await;
        stage.soon("the key is gone", 700, |world| keys(world).is_empty()).await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1, "the name is not free");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        stage
            .soon("nothing is left", 700, |world| secrets(world, OPERATOR_NAMESPACE, "bucket-record").is_empty())
            .await;
    });
}

/// A kept binding keeps its bucket open, which is reported. Keys and rotation work meanwhile.
#[test]
fn a_live_claim_goes_on_beside_what_is_kept() {
    Stage::run("", async |stage| {
        bind(&stage, "anonymousAccess: {mode: ReadOnly}, rotationPolicy: {overlapSeconds: 60}").await;
        let kept = of_role(&stage.world, "anonymous-binding");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"anonymousAccess": {"mode": "None"}}})).await;
        let tells = |world: &World| message(world, "team-a", "photos").contains(&kept);
        stage.soon("the claim says what it waits for", 10, tells).await;
        let key = of_role(&stage.world, "virtual-credential");
        stage.delete("secrets", OPERATOR_NAMESPACE, &key).await;
        stage.soon("it has another key", 10, |world| keys(world).len() == 1).await;
        stage.soon("the tenant can work", 10, |world| keys(world).contains_key(&published(world))).await;
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        stage.world.pass(Duration::from_secs(90)).await;
        stage.patch("bucketclaims", "team-a", "photos", rotate("one")).await;
        stage.soon("it rotates", 10, |world| keys(world).len() == 2).await;
        stage.soon("the old key goes", 180, |world| keys(world).len() == 1).await;
        assert!(tells(&stage.world));
        let writes = writes_at_rest(&stage).await;
        assert!(writes < 5, "{writes} writes\n{}", stage.trace());
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        stage.soon("it is bound", 10, |world| ready(world, "team-a", "photos") == "Bound").await;
    });
}

/// Of two obstacles the claim reports the one that a user has to change, and it is woken by either.
#[test]
fn what_is_kept_hides_nothing_else_that_the_claim_waits_for() {
    Stage::run("", async |stage| {
        stage.apply(&twin()).await;
        stage.apply(&claim_with("team-b", "films", "deletionPolicy: Delete, bucketName: twin-photos")).await;
        stage.until_ready_is("team-b", "films", "Bound").await;
        bind(&stage, "anonymousAccess: {mode: ReadOnly}").await;
        stage.world.pass(Duration::from_secs(90)).await;
        let kept = of_role(&stage.world, "anonymous-binding");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        let spec = json!({"spec": {"anonymousAccess": {"mode": "None"}, "backendRef": {"name": "twin"}}});
        stage.patch("bucketclaims", "team-a", "photos", spec).await;
        stage.soon("it tells of the name", 10, |world| ready(world, "team-a", "photos") == "BucketNameConflict").await;
        stage.delete("bucketclaims", "team-b", "films").await;
        let moved =
            |world: &World| object(world, "bucketclaims", "team-a", "photos")["status"]["bucketName"] == "twin-photos";
        stage.soon("it moves as soon as the name is free", 30, moved).await;
        stage.soon("it tells of what is kept", 10, |world| message(world, "team-a", "photos").contains(&kept)).await;
    });
}

// covers: 1.bucketCreated.BucketMissing
#[test]
fn a_bucket_that_is_gone_is_told_before_a_key_that_is_kept() {
    Stage::run("", async |stage| {
        bind(&stage, "rotationPolicy: {overlapSeconds: 60}").await;
        let kept = of_role(&stage.world, "virtual-credential");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        stage.world.pass(Duration::from_secs(90)).await;
        stage.patch("bucketclaims", "team-a", "photos", rotate("one")).await;
        stage.soon("it waits for the key", 300, |world| message(world, "team-a", "photos").contains(&kept)).await;
        stage.world.store.remove_bucket("team-a-photos");
        stage.soon("it is missed", 700, |world| ready(world, "team-a", "photos") == "BucketMissing").await;
        assert_eq!(object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["phase"], "Failed");
    });
}

// covers: 3.3.twoKeys
#[test]
fn no_third_key_is_made_while_one_that_is_over_is_kept() {
    Stage::run("", async |stage| {
        bind(&stage, "rotationPolicy: {overlapSeconds: 60}").await;
        let kept = of_role(&stage.world, "virtual-credential");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        for request in ["one", "two"] {
            stage.world.pass(Duration::from_secs(90)).await;
            stage.patch("bucketclaims", "team-a", "photos", rotate(request)).await;
        }
        let writes = writes_at_rest(&stage).await;
        assert!(writes < 20, "{writes} writes\n{}", stage.trace());
        assert_eq!(keys(&stage.world).len(), 2);
        assert!(message(&stage.world, "team-a", "photos").contains("example.com/backup"));
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let handled = |world: &World| {
            let asked = &object(world, "bucketclaims", "team-a", "photos")["status"]["handledRotateRequest"];
            asked == "two" && keys(world).len() == 1
        };
        stage.soon("the other rotation comes", 200, handled).await;
    });
}

// covers: 3.4.orphans.gone
#[test]
fn what_is_kept_of_a_claim_that_is_gone_is_swept_once_it_is_free() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        let kept = of_role(&stage.world, "virtual-credential");
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(true)).await;
        delete(&stage).await;
        stage.world.pass(Duration::from_secs(30)).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
        let writes = writes_at_rest(&stage).await;
        assert!(writes < 20, "{writes} writes\n{}", stage.trace());
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(false)).await;
        stage
            .soon("nothing internal is left", 700, |world| {
                ["virtual-credential", "bucket-record"]
                    .iter()
                    .all(|role| secrets(world, OPERATOR_NAMESPACE, role).is_empty())
            })
            .await;
        assert!(bucket_exists(&stage));
    });
}

/// The key is revoked by then, and a tenant must not be able to block the deletion of its claim.
#[test]
fn a_consumer_secret_that_is_kept_keeps_nothing_else() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        stage.patch("secrets", "team-a", "photos-s3", finalizer(true)).await;
        delete(&stage).await;
        stage.soon("the claim is gone", 10, |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        assert!(access_is_revoked(&stage.world));
        assert!(!bucket_exists(&stage));
    });
}
