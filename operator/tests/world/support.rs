//! Helpers shared by the tests.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use s3_sim::{InProcess, Store};
use serde_json::{Value, json};
use stowage_operator::upstream::{Connect, ConnectError, Trust};
use stowage_world::determinism::run_seeded;
use stowage_world::effects::Plan;
pub use stowage_world::fixtures::{BASE, access_with, backend, claim, claim_on, claim_with};
use stowage_world::{OPERATOR_NAMESPACE, Operator, Options, STORE_ENDPOINT, World};

use crate::secrecy::Secrecy;

/// A connector that maps every host to this store.
pub struct OneStore(pub Store);

impl Connect for OneStore {
    fn connect(&self, _: &Trust) -> Result<SharedHttpClient, ConnectError> {
        Ok(SharedHttpClient::new(InProcess::new(self.0.http())))
    }
}

/// A world with [`BASE`] applied and a running operator, at rest.
///
/// Dropping it asserts that no secret key is anywhere but in Secrets (oracle I11), see
/// [`Secrecy`].
pub struct Stage {
    pub world: World,
    pub operator: Operator,
    pub secrecy: Secrecy,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.secrecy.assert_kept(&self.world, &self.operator);
        }
    }
}

impl Stage {
    pub async fn new(options: Options) -> Self {
        let mut world = World::new(options);
        world.apply(&world.kube(), BASE).await;
        let operator = world.start_operator();
        let stage = Self::of(world, operator);
        stage
            .world
            .until(|world| condition(&object(world, "s3backends", "", "main"), "Ready") == "EndpointReachable")
            .await
            .unwrap();
        stage.world.pass(Duration::from_secs(5)).await;
        stage
    }

    /// Creates a stage from a world whose operator was just started.
    pub fn of(world: World, operator: Operator) -> Self {
        Self { world, operator, secrecy: Secrecy::watch() }
    }

    /// Runs `test` on a new stage with this plan of faults.
    pub fn run<T: Send>(plan: &str, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
        let plan: Plan = plan.parse().expect("the plan is well-formed");
        Self::run_with(Options { plan, ..Options::default() }, test)
    }

    /// Runs `test` on a new stage with these options, except the seed.
    pub fn run_with<T: Send>(options: Options, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
        run_seeded(1, || async move { test(Stage::new(Options { seed: 1, ..options }).await).await })
    }

    /// Runs `test` on a stage with a drift check per day, for tests that take weeks of simulated
    /// time and aren't about drift checks.
    pub fn run_for_weeks<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
        Self::run_with(Options { resync_interval: Duration::from_secs(86_400), ..Options::default() }, test)
    }

    /// Returns the API of a resource, as a user works with it.
    pub fn api(&self, plural: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version, kind) = match plural {
            "bucketclaims" => ("broker.stowage.io", "v1alpha1", "BucketClaim"),
            "s3backends" => ("broker.stowage.io", "v1alpha1", "S3Backend"),
            "secrets" => ("", "v1", "Secret"),
            "bucketaccesses" => ("broker.stowage.io", "v1alpha1", "BucketAccess"),
            "namespaces" => ("", "v1", "Namespace"),
            "configmaps" => ("", "v1", "ConfigMap"),
            "storageclasses" => ("storage.k8s.io", "v1", "StorageClass"),
            "objectbucketclaims" => ("objectbucket.io", "v1alpha1", "ObjectBucketClaim"),
            "objectbuckets" => ("objectbucket.io", "v1alpha1", "ObjectBucket"),
            other => panic!("the tests know no {other}"),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        if namespace.is_empty() {
            Api::all_with(self.world.kube(), &resource)
        } else {
            Api::namespaced_with(self.world.kube(), namespace, &resource)
        }
    }

    /// Deletes an object, as a user does.
    pub async fn delete(&self, plural: &str, namespace: &str, name: &str) {
        self.api(plural, namespace).delete(name, &DeleteParams::default()).await.expect("the object is there");
    }

    /// Merges `patch` into an object, as a user does.
    pub async fn patch(&self, plural: &str, namespace: &str, name: &str, patch: Value) {
        let api = self.api(plural, namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the patch is good");
    }

    /// Sets the adoption policy of the backend `main`, and waits until it is Ready again.
    pub async fn set_adoption(&self, policy: &str) {
        self.patch("s3backends", "", "main", json!({"spec": {"adoptionPolicy": policy}})).await;
        self.world.pass(Duration::from_secs(5)).await;
    }

    /// Waits until `fact` is true; panics with `what` if it never is.
    pub async fn until(&self, what: &str, fact: impl Fn(&World) -> bool) {
        assert!(self.world.until(fact).await.is_ok(), "it never came to be that {what}\n{}", self.trace());
    }

    /// Asserts that `fact` becomes true within this many seconds.
    pub async fn soon(&self, what: &str, seconds: u64, fact: impl Fn(&World) -> bool) {
        let start = tokio::time::Instant::now();
        self.until(what, fact).await;
        let took = start.elapsed();
        assert!(took <= Duration::from_secs(seconds), "it took {took:?} until {what}\n{}", self.trace());
    }

    /// Waits until the claim is deleted.
    pub async fn until_gone(&self, namespace: &str, name: &str) {
        let gone = self.world.until(|world| object(world, "bucketclaims", namespace, name).is_null()).await;
        if gone.is_err() {
            let claim = object(&self.world, "bucketclaims", namespace, name);
            panic!("the claim never went; it is {claim:#}\n{}", self.trace());
        }
    }

    pub async fn apply(&self, yaml: &str) {
        self.world.apply(&self.world.kube(), yaml).await;
    }

    /// Waits until the claim's `Ready` has this reason.
    pub async fn until_ready_is(&self, namespace: &str, name: &str, reason: &str) {
        let waited =
            self.world.until(|world| condition(&object(world, "bucketclaims", namespace, name), "Ready") == reason);
        if waited.await.is_err() {
            let claim = object(&self.world, "bucketclaims", namespace, name);
            panic!("Ready never became {reason}; the status is {:#}\n{}", claim["status"], self.trace());
        }
    }

    /// Returns every call so far, a line each.
    pub fn trace(&self) -> String {
        self.world.effects.trace().lines().iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Another backend at the endpoint of `main`, with another bucket name template.
pub fn twin() -> String {
    backend("twin", STORE_ENDPOINT, "bucketNameTemplate: 'twin-{{ .Name }}'")
}

/// Returns a stored object; null if it doesn't exist.
pub fn object(world: &World, plural: &str, namespace: &str, name: &str) -> Value {
    world.cluster.object(plural, namespace, name).map_or(Value::Null, |found| found.as_ref().clone())
}

/// Returns the reason of a condition; empty if there is none.
pub fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition["reason"].as_str()).unwrap_or_default().to_owned()
}

/// Returns the names of the Secrets with a role in a namespace.
pub fn secrets(world: &World, namespace: &str, role: &str) -> Vec<String> {
    let of_role = |object: &Value| object["metadata"]["labels"]["broker.stowage.io/role"] == role;
    let objects = world.cluster.objects();
    let found = objects.into_iter().filter(|o| o.plural == "secrets" && o.namespace == namespace && of_role(&o.object));
    found.map(|found| found.name).collect()
}

/// Returns the decoded data of a Secret.
pub fn data(world: &World, namespace: &str, name: &str) -> BTreeMap<String, String> {
    decoded(&object(world, "secrets", namespace, name))
}

/// Decodes the data of a stored Secret.
pub fn decoded(secret: &Value) -> BTreeMap<String, String> {
    let fields = secret["data"].as_object().cloned().unwrap_or_default();
    let decode = |value: &Value| {
        let bytes = BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).expect("Secret data is base64");
        String::from_utf8(bytes).expect("the tests store text")
    };
    fields.iter().map(|(key, value)| (key.clone(), decode(value))).collect()
}

/// Returns a tenant that has only the consumer Secret: its client, and the bucket's name.
pub fn tenant(world: &World, namespace: &str, secret: &str) -> (aws_sdk_s3::Client, String) {
    let data = data(world, namespace, secret);
    let client = world.tenant(&data["AWS_ACCESS_KEY_ID"], &data["AWS_SECRET_ACCESS_KEY"], &data["AWS_REGION"]);
    (client, data["BUCKET_NAME"].clone())
}

/// Puts an object and reads it back, through the gateway.
pub async fn tenant_can_work(world: &World, namespace: &str, secret: &str) {
    let (client, bucket) = tenant(world, namespace, secret);
    let body = aws_sdk_s3::primitives::ByteStream::from_static(b"hello");
    client.put_object().bucket(&bucket).key("probe").body(body).send().await.expect("PutObject through the gateway");
    let answer = client.get_object().bucket(&bucket).key("probe").send().await.expect("GetObject through the gateway");
    assert_eq!(answer.body.collect().await.expect("the body").into_bytes().as_ref(), b"hello");
}

/// Asserts that the only claim `team-a/photos` is bound, and that there is exactly one of
/// everything.
pub async fn assert_bound_once(stage: &Stage) {
    let world = &stage.world;
    let claim = object(world, "bucketclaims", "team-a", "photos");
    assert_eq!(claim["status"]["phase"], "Bound", "{:#}\n{}", claim["status"], stage.trace());
    assert_eq!(condition(&claim, "Ready"), "Bound");
    let buckets = world.store.buckets();
    assert_eq!(buckets.keys().collect::<Vec<_>>(), ["team-a-photos"]);
    let tags = buckets["team-a-photos"].tags.clone().expect("the bucket is tagged");
    assert_eq!(Some(tags["broker.stowage.io/claim-uid"].as_str()), claim["metadata"]["uid"].as_str());
    let record = secrets(world, OPERATOR_NAMESPACE, "bucket-record");
    let credential = secrets(world, OPERATOR_NAMESPACE, "virtual-credential");
    assert_eq!((record.len(), credential.len()), (1, 1), "{record:?} {credential:?}\n{}", stage.trace());
    assert_eq!(secrets(world, "team-a", "consumer-secret"), ["photos-s3"]);
    let internal = data(world, OPERATOR_NAMESPACE, &credential[0]);
    let consumer = data(world, "team-a", "photos-s3");
    assert_eq!(internal["access_key_id"], consumer["AWS_ACCESS_KEY_ID"]);
    assert_eq!(internal["secret_access_key"], consumer["AWS_SECRET_ACCESS_KEY"]);
    tenant_can_work(world, "team-a", "photos-s3").await;
}

/// Returns the reason of a claim's `Ready`.
pub fn ready(world: &World, namespace: &str, name: &str) -> String {
    condition(&object(world, "bucketclaims", namespace, name), "Ready")
}

/// Returns the message of a claim's `Ready`.
pub fn message(world: &World, namespace: &str, name: &str) -> String {
    let claim = object(world, "bucketclaims", namespace, name);
    let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    ready.and_then(|ready| ready["message"].as_str()).unwrap_or_default().to_owned()
}

/// Returns type and reason of every event about objects of this name, in the order of creation.
pub fn events(world: &World, name: &str) -> Vec<(String, String)> {
    let of_name = |object: &Value| object["regarding"]["name"] == name;
    let objects = world.cluster.objects();
    let mut found: Vec<_> = objects.iter().filter(|o| o.plural == "events" && of_name(&o.object)).collect();
    found.sort_by_key(|o| o.object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok()));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.iter().map(|o| (text(&o.object["type"]), text(&o.object["reason"]))).collect()
}

/// Returns the internal Secrets labelled with the claim's name, of all roles.
pub fn internal_of(world: &World, claim: &str) -> Vec<String> {
    let objects = world.cluster.objects();
    let internal = objects.iter().filter(|o| o.plural == "secrets" && o.namespace == OPERATOR_NAMESPACE);
    let of_claim = |object: &Value| object["metadata"]["labels"]["broker.stowage.io/claim-name"] == claim;
    internal.filter(|o| of_claim(&o.object)).map(|o| o.name.clone()).collect()
}

/// Returns the access key id in the consumer Secret of `team-a/photos`; empty if there is none.
pub fn published(world: &World) -> String {
    data(world, "team-a", "photos-s3").get("AWS_ACCESS_KEY_ID").cloned().unwrap_or_default()
}

/// Returns the access key ids of the internal Secrets, with their expiry.
pub fn keys(world: &World) -> BTreeMap<String, Option<Timestamp>> {
    let stamp = |name: &String| {
        let secret = object(world, "secrets", OPERATOR_NAMESPACE, name);
        secret["metadata"]["annotations"]["broker.stowage.io/expires-at"].as_str().map(|text| text.parse().unwrap())
    };
    let names = secrets(world, OPERATOR_NAMESPACE, "virtual-credential");
    names.iter().map(|name| (data(world, OPERATOR_NAMESPACE, name)["access_key_id"].clone(), stamp(name))).collect()
}

/// Returns true if a credential opens a bucket at the gateway.
pub async fn works(client: &aws_sdk_s3::Client, bucket: &str) -> bool {
    client.list_objects_v2().bucket(bucket).send().await.is_ok()
}
