//! Claims and accesses that exceed their write limit. Other users can cause that, so revocations
//! and withdrawn consent don't wait for it (spec §3.5).

use std::time::Duration;

use serde_json::{Value, json};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::accesses::{OWN, client, open};
use crate::support::{Stage, data, keys, published, secrets, tenant_can_work, works};

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, test)
}

fn region(world: &World, secret: &str) -> String {
    data(world, "team-a", secret)["AWS_REGION"].clone()
}

/// Changes a Secret until its owner exceeds its rate limit, and has to wait about half a minute.
async fn wear_out(stage: &Stage, secret: &str) {
    let before = region(&stage.world, secret);
    for _ in 0..200 {
        damage(stage, secret).await;
        if region(&stage.world, secret) == before {
            continue;
        }
        return stage.soon("it is repaired after all", 60, |world| region(world, secret) == before).await;
    }
    panic!("it is written about as often as one likes\n{}", stage.trace());
}

async fn damage(stage: &Stage, secret: &str) {
    stage.patch("secrets", "team-a", secret, json!({"stringData": {"AWS_REGION": "nowhere"}})).await;
    stage.world.pass(Duration::from_secs(2)).await;
}

async fn revoke(stage: &Stage, plural: &str, name: &str) {
    let request = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "leaked"}}});
    stage.patch(plural, "team-a", name, request).await;
}

// covers: 3.5.pace.revoked, 3.3.revoke.atOnce
#[test]
fn a_revocation_waits_for_no_pace() {
    run(async |stage| {
        open(&stage, "", "team-a", OWN).await;
        let world = &stage.world;
        wear_out(&stage, "photos-s3").await;
        let old = published(world);
        revoke(&stage, "bucketclaims", "photos").await;
        stage.soon("the key is gone", 3, |world| !keys(world).contains_key(&old)).await;
        stage.soon("the next one is there", 5, |world| published(world) != old).await;
        world.pass(Duration::from_secs(1)).await;
        tenant_can_work(world, "team-a", "photos-s3").await;
        damage(&stage, "photos-s3").await;
        assert_eq!(region(world, "photos-s3"), "nowhere", "all else waits\n{}", stage.trace());
    });
}

/// Returns the namespaces that the claim's record is open to.
fn let_in(world: &World) -> Option<String> {
    let name = secrets(world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
    data(world, OPERATOR_NAMESPACE, &name).get("accesses").cloned()
}

// covers: 3.5.pace.narrow, 8.map.narrow
#[test]
fn consent_is_withdrawn_at_once_from_a_claim_that_is_over_its_pace() {
    run(async |stage| {
        let sharing = json!([{"namespaces": {"names": ["team-b"]}, "maxMode": "ReadOnly"}]);
        let entry = "{claimRef: {name: photos, namespace: team-a}, mode: ReadOnly}";
        open(&stage, &format!("sharing: {sharing}"), "team-b", entry).await;
        let (world, reader) = (&stage.world, client(&stage.world, "team-b"));
        wear_out(&stage, "photos-s3").await;
        assert!(let_in(world).is_some() && works(&reader, "team-a-photos").await);
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"sharing": null}})).await;
        stage.soon("nobody is let in", 3, |world| let_in(world).is_none()).await;
        world.pass(Duration::from_secs(1)).await;
        assert!(!works(&reader, "team-a-photos").await);
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"sharing": sharing}})).await;
        world.pass(Duration::from_secs(3)).await;
        assert_eq!(let_in(world), None, "what opens it waits\n{}", stage.trace());
        stage.until("it is open again", |world| let_in(world).is_some()).await;
    });
}

/// Returns the mode of the only key of the access.
fn mode(world: &World) -> Value {
    let keys = crate::accesses::keys(world);
    let scopes: Value = serde_json::from_str(&keys[0]["scopes"]).expect("they are JSON");
    scopes[0]["mode"].clone()
}

// covers: 3.5.pace.revoked, 3.5.pace.narrow
#[test]
fn an_access_over_its_pace_is_narrowed_and_revoked() {
    run(async |stage| {
        open(&stage, "", "team-a", OWN).await;
        let world = &stage.world;
        wear_out(&stage, "reader-key").await;
        let wants = |mode: &str| json!({"spec": {"buckets": [{"claimRef": {"name": "photos"}, "mode": mode}]}});
        assert_eq!(mode(world), "ReadWrite");
        stage.patch("bucketaccesses", "team-a", "reader", wants("ReadOnly")).await;
        stage.soon("it is narrowed", 3, |world| mode(world) == "ReadOnly").await;
        stage.patch("bucketaccesses", "team-a", "reader", wants("ReadWrite")).await;
        world.pass(Duration::from_secs(3)).await;
        assert_eq!(mode(world), "ReadOnly", "what opens it waits\n{}", stage.trace());

        let (old, id) = (client(world, "team-a"), data(world, "team-a", "reader-key")["AWS_ACCESS_KEY_ID"].clone());
        revoke(&stage, "bucketaccesses", "reader").await;
        let another = |world: &World| data(world, "team-a", "reader-key")["AWS_ACCESS_KEY_ID"] != id;
        stage.soon("there is another key", 5, another).await;
        world.pass(Duration::from_secs(1)).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
    });
}
