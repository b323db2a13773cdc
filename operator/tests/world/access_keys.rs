//! Keys of an access whose Secrets were edited, and which end all the same (spec §8).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::accesses::{OWN, access, client, keys, open, reason};
use crate::support::{Stage, object, secrets, works};

// covers: 8.consumer.one
#[test]
fn a_secret_that_somebody_made_like_the_consumer_secret_keeps_no_old_key() {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        let held = object(world, "secrets", "team-a", "reader-key");
        let planted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "planted", "namespace": "team-a",
            "labels": held["metadata"]["labels"], "ownerReferences": held["metadata"]["ownerReferences"],
        }});
        assert!(world.cluster.create(planted));
        world.pass(Duration::from_secs(90)).await;
        let rotate = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketaccesses", "team-a", "reader", rotate).await;
        stage.until("there is another", |world| access(world, "team-a")["status"]["rotationGeneration"] == 2).await;
        stage.until("the old one is gone", |world| keys(world).len() == 1).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
        assert!(object(world, "secrets", "team-a", "planted").is_null());
    });
}

/// The gateway ignores finalizers: as long as the Secret exists, its expiry decides.
// covers: 8.key.kept, 8.key.lives
#[test]
fn a_revoked_key_that_somebodys_finalizer_keeps_is_over_and_the_next_one_is_made() {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        let [kept] = secrets(world, OPERATOR_NAMESPACE, "access-credential").try_into().expect("there is one");
        let finalizer = |all: Value| json!({"metadata": {"finalizers": all}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(json!(["example.com/backup"]))).await;
        let before = world.effects.trace().effects();
        revoke(&stage, "leaked").await;
        stage.soon("there is another", 5, |world| access(world, "team-a")["status"]["rotationGeneration"] == 2).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
        let stamp = object(world, "secrets", OPERATOR_NAMESPACE, &kept)["metadata"]["annotations"].clone();
        assert_eq!(stamp["broker.stowage.io/expires-at"], "1970-01-01T00:00:00Z");
        let told = access(world, "team-a")["status"]["conditions"].to_string();
        assert!(told.contains(&kept) && told.contains("example.com/backup"), "{told}");
        let calls = world.effects.trace().effects() - before;
        assert!(calls < 300, "{calls} calls");
        world.pass(Duration::from_secs(120)).await;
        let effects = world.effects.trace().effects();
        world.pass(Duration::from_secs(3600)).await;
        assert_eq!(world.effects.trace().counters_after(effects).kubernetes_writes, 0, "it is waited for in peace");
        revoke(&stage, "again").await;
        stage
            .soon("the next goes as well", 5, |world| access(world, "team-a")["status"]["rotationGeneration"] == 3)
            .await;
        stage.patch("secrets", OPERATOR_NAMESPACE, &kept, finalizer(Value::Null)).await;
        stage.until("it is open", |world| reason(world, "team-a") == "Open").await;
        assert_eq!(keys(world).len(), 1);
    });
}

/// The right to label Secrets, as backup tools have it, doesn't affect which key ends.
// covers: 8.key.named
#[rstest]
#[case::gone(Value::Null)]
#[case::of_another(json!("7"))]
#[case::no_number(json!("first"))]
fn a_key_whose_label_somebody_changed_is_revoked_and_its_label_repaired(#[case] label: Value) {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, async move |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        let [name] = secrets(world, OPERATOR_NAMESPACE, "access-credential").try_into().expect("there is one");
        let relabel = json!({"metadata": {"labels": {"broker.stowage.io/rotation-generation": label}}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, relabel.clone()).await;
        let is_repaired = |world: &World| {
            let secret = object(world, "secrets", OPERATOR_NAMESPACE, &name);
            secret["metadata"]["labels"]["broker.stowage.io/rotation-generation"] == "1"
        };
        stage.soon("the label is repaired", 5, is_repaired).await;
        // A paused access is not repaired.
        let pause = |value: Value| json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}});
        stage.patch("bucketaccesses", "team-a", "reader", pause(json!("true"))).await;
        world.pass(Duration::from_secs(5)).await;
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, relabel).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!is_repaired(world));
        revoke(&stage, "leaked").await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&old, "team-a-photos").await && keys(world).is_empty());
        stage.patch("bucketaccesses", "team-a", "reader", pause(Value::Null)).await;
        stage.soon("there is another", 10, |world| reason(world, "team-a") == "Open" && keys(world).len() == 1).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(works(&client(world, "team-a"), "team-a-photos").await);
    });
}

async fn revoke(stage: &Stage, value: &str) {
    let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": value}}});
    stage.patch("bucketaccesses", "team-a", "reader", revoke).await;
}
