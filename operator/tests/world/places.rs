//! The store that keys and public access are for: recorded by the operator, and used by the gateway
//! (spec §2, §6).

use std::time::Duration;

use aws_sdk_s3::error::ProvideErrorMetadata;
use serde_json::{Value, json};
use stowage_operator::api::Endpoint;
use stowage_world::{ADMIN_ACCOUNT, BackendStore, OPERATOR_NAMESPACE, Options, World};

use crate::support::{Stage, claim_with, data, message, object, ready, secrets, tenant, tenant_can_work};

const MINUTE: u64 = 60;
const OLD: &str = "http://s3.example:9000";
const NEW: &str = "http://new.example:9000";
const BUCKET: &str = "team-a-photos";

/// Runs `test` with `team-a/photos` bound on `main` with public access, and a second store.
fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let elsewhere =
        BackendStore { name: "new".to_owned(), endpoint: Endpoint::parse(NEW).unwrap(), ..BackendStore::main() };
    let options = Options { backends: vec![BackendStore::main(), elsewhere], ..Options::default() };
    Stage::run_with(options, async |stage| {
        stage.apply(&claim_with("team-a", "photos", "anonymousAccess: {mode: ReadOnly}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(120)).await;
        test(stage).await
    })
}

const ROLES: [&str; 2] = ["virtual-credential", "anonymous-binding"];

/// Returns the endpoints recorded in keys and bindings.
fn noted(world: &World) -> Vec<Option<String>> {
    let names = ROLES.iter().flat_map(|role| secrets(world, OPERATOR_NAMESPACE, role));
    names.map(|name| data(world, OPERATOR_NAMESPACE, &name).get("endpoint").cloned()).collect()
}

/// Removes the recorded endpoints, as if an older operator had written the Secrets.
fn forget(world: &World) {
    for name in ROLES.iter().flat_map(|role| secrets(world, OPERATOR_NAMESPACE, role)) {
        world.cluster.change("secrets", OPERATOR_NAMESPACE, &name, |secret| {
            secret["data"].as_object_mut().unwrap().remove("endpoint");
        });
    }
}

/// Returns the error code of a tenant's upload.
async fn refusal(world: &World) -> Option<String> {
    let (client, bucket) = tenant(world, "team-a", "photos-s3");
    let put = client.put_object().bucket(&bucket).key("probe").send().await;
    put.err()?.as_service_error()?.code().map(str::to_owned)
}

async fn edit(stage: &Stage, spec: Value) {
    stage.patch("s3backends", "", "main", json!({"spec": spec})).await;
}

// covers: 2.place.record, 6.endpoint
#[test]
fn an_edited_endpoint_opens_no_bucket_of_that_name_in_another_store() {
    run(async |stage| {
        let world = &stage.world;
        assert_eq!(noted(world), [Some(OLD.to_owned()), Some(OLD.to_owned())]);
        let other = world.store_at(&Endpoint::parse(NEW).unwrap()).unwrap();
        other.put_bucket(ADMIN_ACCOUNT, BUCKET);
        tenant_can_work(world, "team-a", "photos-s3").await;
        edit(&stage, json!({"endpoint": NEW})).await;
        world.pass(Duration::from_secs(MINUTE)).await;
        assert_eq!(refusal(world).await.as_deref(), Some("ServiceUnavailable"), "its key is for the store before");
        assert_eq!(other.objects(BUCKET).len(), 0);
        edit(&stage, json!({"formerEndpoints": [OLD]})).await;
        world.pass(Duration::from_secs(MINUTE)).await;
        tenant_can_work(world, "team-a", "photos-s3").await;
        assert!(other.objects(BUCKET).contains_key("probe"), "the same store, somebody says, under another address");
    });
}

/// Runs the older operator, the current one, and the older one again. Secrets without an endpoint
/// use the backend's name, and the older operator leaves recorded endpoints as they are.
// covers: 2.place.turns, 2.place.older
#[test]
fn secrets_of_an_older_operator_work_and_are_completed_also_after_a_rollback() {
    run(async |stage| {
        let world = &stage.world;
        forget(world);
        tenant_can_work(world, "team-a", "photos-s3").await;
        stage.soon("they are completed", MINUTE, |world| noted(world).iter().all(Option::is_some)).await;
        tenant_can_work(world, "team-a", "photos-s3").await;
        let before = world.effects.trace().effects();
        world.pass(Duration::from_secs(3 * MINUTE)).await;
        assert_eq!(world.effects.trace().counters_after(before).kubernetes_writes, 0, "and that is all");
        // The older operator runs again, and patches the fields that it knows.
        let name = secrets(world, OPERATOR_NAMESPACE, ROLES[0]).remove(0);
        world.cluster.change("secrets", OPERATOR_NAMESPACE, &name, |secret| {
            secret["metadata"]["labels"]["broker.stowage.io/bucket"] = "spoilt".into();
        });
        stage
            .soon("it is repaired", MINUTE, |world| {
                object(world, "secrets", OPERATOR_NAMESPACE, &name)["metadata"]["labels"]["broker.stowage.io/bucket"]
                    == BUCKET
            })
            .await;
        assert!(noted(world).iter().all(Option::is_some), "what is patched keeps its note");
    });
}

// covers: 6.anonymous.oldest
#[test]
fn of_two_claims_that_open_one_name_the_one_that_held_it_first_counts_and_the_other_is_told() {
    run(async |stage| {
        let world = &stage.world;
        let second = format!(
            "{{apiVersion: broker.stowage.io/v1alpha1, kind: S3Backend, metadata: {{name: second}}, spec: {{endpoint: \
             '{NEW}', adminCredentialsSecretRef: {{name: s3-admin, namespace: {OPERATOR_NAMESPACE}}}}}}}"
        );
        stage.apply(&second).await;
        let spec = "backendRef: {name: second}, bucketName: team-a-photos, anonymousAccess: {mode: ReadOnly}";
        let rival = format!(
            "{{apiVersion: broker.stowage.io/v1alpha1, kind: BucketClaim, metadata: {{name: rival, namespace: team-b}}, \
             spec: {{{spec}}}}}"
        );
        stage.apply(&rival).await;
        stage
            .soon("the later one is told", MINUTE, |world| ready(world, "team-b", "rival") == "BucketNameConflict")
            .await;
        assert_eq!(object(world, "bucketclaims", "team-b", "rival")["status"]["phase"], "Bound");
        assert!(message(world, "team-b", "rival").contains("a claim in another namespace"));
        assert_eq!(ready(world, "team-a", "photos"), "Bound", "nobody takes it from the first");
        tenant_can_work(world, "team-b", "rival-s3").await;
        let none = json!({"spec": {"anonymousAccess": {"mode": "None"}}});
        stage.patch("bucketclaims", "team-a", "photos", none).await;
        stage.soon("it counts once the other is closed", 10, |world| ready(world, "team-b", "rival") == "Bound").await;
        let again = json!({"spec": {"anonymousAccess": {"mode": "ReadOnly"}}});
        stage.patch("bucketclaims", "team-a", "photos", again).await;
        stage
            .soon("and no more once it is open again", 10, |world| {
                ready(world, "team-b", "rival") == "BucketNameConflict"
            })
            .await;
    });
}

// covers: 4.metric.stowage_secrets_without_endpoint
#[test]
fn what_notes_no_store_is_counted() {
    run(async |stage| {
        let count = |stage: &Stage| {
            let page = stage.operator.metrics();
            let line =
                page.lines().find(|line| line.starts_with("stowage_secrets_without_endpoint{")).map(str::to_owned);
            line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok())
        };
        assert_eq!(count(&stage), Some(0));
        let nobodys = format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: vc-older, namespace: {OPERATOR_NAMESPACE}, labels: \
             {{broker.stowage.io/role: virtual-credential}}}}, stringData: {{backend: main}}}}"
        );
        stage.apply(&nobodys).await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert_eq!(count(&stage), Some(1), "no record tells where its bucket is");
    });
}
