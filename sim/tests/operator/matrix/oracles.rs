//! What holds in the end of every run, whatever it came to.

use serde_json::Value;
use stowage_sim::effects::{Fault, S3Fault, StowageFault};
use stowage_sim::world::{ADMIN_SECRET_KEY, OPERATOR_NAMESPACE, World};

use super::ends::most_keys;
use crate::support::{Stage, data, object, ready, secrets, tenant_can_work};

const BUCKET: &str = "team-a-photos";

/// Names of the credentials that are not on their way out.
pub(super) fn current_keys(world: &World) -> Vec<String> {
    let names = secrets(world, OPERATOR_NAMESPACE, "virtual-credential");
    let stamped = |name: &String| {
        let secret = object(world, "secrets", OPERATOR_NAMESPACE, name);
        secret["metadata"]["annotations"]["broker.stowage.io/expires-at"].is_string()
    };
    names.into_iter().filter(|name| !stamped(name)).collect()
}

/// The consumer Secret of the claim, by its status.
pub(super) fn bound_secret(world: &World) -> String {
    let claim = object(world, "bucketclaims", "team-a", "photos");
    claim["status"]["boundSecretName"].as_str().unwrap_or_default().to_owned()
}

/// What the claim came to, in a line.
pub(super) fn summary(world: &World) -> String {
    let claim = object(world, "bucketclaims", "team-a", "photos");
    format!(
        "Ready is {}, {}; keys {:?}, consumer Secrets {:?}",
        ready(world, "team-a", "photos"),
        if claim.is_null() { "no claim".to_owned() } else { claim["status"]["conditions"][0]["message"].to_string() },
        secrets(world, OPERATOR_NAMESPACE, "virtual-credential"),
        secrets(world, "team-a", "consumer-secret"),
    )
}

/// Asserts that nothing of others was touched, that no key is left over or to be seen, and that the status is true.
pub(super) async fn assert_sound(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    assert_strangers_untouched(stage, fault);
    assert_no_key_shows(world);
    let keys = current_keys(world);
    assert!(keys.len() <= most_keys(fault), "several keys without an end: {}", summary(world));
    if ready(world, "team-a", "photos") == "Bound" {
        assert_eq!(keys.len(), 1, "a bound claim has one key: {}", summary(world));
        let consumer = bound_secret(world);
        let (internal, published) = (data(world, OPERATOR_NAMESPACE, &keys[0]), data(world, "team-a", &consumer));
        assert_eq!(internal["access_key_id"], published["AWS_ACCESS_KEY_ID"]);
        assert_eq!(internal["secret_access_key"], published["AWS_SECRET_ACCESS_KEY"]);
        tenant_can_work(world, "team-a", &consumer).await;
    }
}

fn assert_strangers_untouched(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    for (name, bucket) in world.store.buckets() {
        assert_eq!(name, BUCKET, "a bucket that nobody asked for");
        if fault == Some(Fault::S3(S3Fault::BucketExists)) && bucket.owner == "stranger" {
            assert_eq!(bucket.tags, None);
        }
    }
    if fault == Some(Fault::Project(StowageFault::Usurp { empty: false })) {
        assert!(world.store.objects(BUCKET).contains_key("theirs"), "another's object is gone\n{}", stage.trace());
    }
    for stored in world.cluster.objects().iter().filter(|stored| stored.plural == "secrets") {
        let data = stored.object["data"].as_object().cloned().unwrap_or_default();
        if data.contains_key("stranger") {
            assert_eq!(data.len(), 1, "a stranger's Secret was written to: {}", stored.name);
            assert_eq!(stored.object["metadata"]["labels"], Value::Null);
        }
    }
}

/// No secret key stands anywhere but in the Secrets that are for it.
fn assert_no_key_shows(world: &World) {
    let mut keys = vec![ADMIN_SECRET_KEY.to_owned()];
    for name in secrets(world, OPERATOR_NAMESPACE, "virtual-credential") {
        keys.extend(data(world, OPERATOR_NAMESPACE, &name).remove("secret_access_key"));
    }
    for stored in world.cluster.objects().iter().filter(|stored| stored.plural != "secrets") {
        let text = stored.object.to_string();
        assert!(!keys.iter().any(|key| text.contains(key)), "a key shows in {} {}", stored.plural, stored.name);
    }
}
