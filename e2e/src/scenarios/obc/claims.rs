//! ObjectBucketClaims, the objects created for them, and applications that use them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::wait::conditions::is_deleted;
use stowage_operator::api::{OBC_PROVISIONER, ObjectBucket, ObjectBucketClaim};
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::text;
use stowage_testbed::request::{Answer, Ask, Asker, Signed};
use stowage_testbed::store::Key;
use tokio::time::sleep;

/// Value of the label that names a claim's provisioner.
const LABEL: &str = "broker.stowage.io-bucket";
/// Keys of a ConfigMap.
const CONFIG_KEYS: [&str; 5] = ["BUCKET_HOST", "BUCKET_NAME", "BUCKET_PORT", "BUCKET_REGION", "BUCKET_SUBREGION"];
/// Polling interval.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Returns the API of the tenant's ObjectBucketClaims, with the tenant's rights.
pub(super) fn claims(setup: &Setup<'_>) -> Api<ObjectBucketClaim> {
    Api::namespaced(setup.environment.tenant.clone(), &setup.tenant)
}

/// Returns the API of all ObjectBuckets.
pub(super) fn object_buckets(setup: &Setup<'_>) -> Api<ObjectBucket> {
    Api::all(setup.environment.client.clone())
}

/// Returns the API of the tenant's ConfigMaps, with the tenant's rights.
pub(super) fn config_maps(setup: &Setup<'_>) -> Api<ConfigMap> {
    Api::namespaced(setup.environment.tenant.clone(), &setup.tenant)
}

/// Waits until a claim is in a phase.
pub(super) async fn shows(setup: &Setup<'_>, name: &str, phase: &'static str) -> Result<ObjectBucketClaim> {
    let is_in = |claim: Option<&ObjectBucketClaim>| {
        claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some(phase)
    };
    let found = setup.environment.wait(&claims(setup), name, phase, is_in).await?;
    found.with_context(|| format!("ObjectBucketClaim {name} is gone"))
}

/// A bound claim with its objects.
pub(super) struct Bound {
    pub(super) claim: ObjectBucketClaim,
    pub(super) object_bucket: ObjectBucket,
    pub(super) config_map: ConfigMap,
    pub(super) secret: Secret,
    pub(super) app: App,
}

/// Waits until a claim is Bound, and checks everything that consumers of such claims expect.
pub(super) async fn bound(setup: &Setup<'_>, name: &str) -> Result<Bound> {
    let claim = shows(setup, name, "Bound").await?;
    let named = claim.spec.object_bucket_name.clone().context("spec.objectBucketName names nothing")?;
    let object_bucket = object_buckets(setup).get(&named).await.with_context(|| format!("no ObjectBucket {named}"))?;
    let phase = object_bucket.status.as_ref().and_then(|status| status.phase.as_deref());
    ensure!(phase == Some("Bound"), "ObjectBucket {named} is {phase:?}");
    let of = &object_bucket.spec.claim_ref;
    let is_its = (of.namespace.as_str(), of.name.as_str()) == (setup.tenant.as_str(), name);
    ensure!(is_its && claim.uid().as_ref() == Some(&of.uid), "ObjectBucket {named} is for {of:?}");

    let config_map = config_maps(setup).get(name).await.with_context(|| format!("no ConfigMap {name}"))?;
    let secret = setup.secrets(&setup.tenant).get(name).await.with_context(|| format!("no Secret {name}"))?;
    for labels in [claim.labels(), object_bucket.labels(), config_map.labels()] {
        ensure!(labels.get(OBC_PROVISIONER).map(String::as_str) == Some(LABEL), "an object of {name} has {labels:?}");
    }
    let mut env = config_map.data.clone().unwrap_or_default();
    ensure!(env.keys().map(String::as_str).eq(CONFIG_KEYS), "the ConfigMap of {name} has {:?}", env.keys());
    for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        env.insert(key.to_owned(), text(&secret, key));
    }
    let app = App::of(&env)?;
    ensure!(claim.spec.bucket_name.as_ref() == Some(&app.bucket), "spec.bucketName is {:?}", claim.spec.bucket_name);
    let endpoint = &object_bucket.spec.endpoint;
    ensure!(endpoint.bucket_name == app.bucket, "ObjectBucket {named} is for bucket {}", endpoint.bucket_name);
    Ok(Bound { claim, object_bucket, config_map, secret, app })
}

/// An application that has a claim's ConfigMap and Secret, and nothing else.
pub(super) struct App {
    pub(super) bucket: String,
    asker: Asker,
}

impl App {
    /// Creates the application with this environment.
    pub(super) fn of(env: &BTreeMap<String, String>) -> Result<Self> {
        let given = |name: &str| {
            let value = env.get(name).filter(|value| !value.is_empty());
            value.cloned().with_context(|| format!("nothing says {name}"))
        };
        let endpoint = format!("http://{}:{}", given("BUCKET_HOST")?, given("BUCKET_PORT")?);
        let key = Key { id: given("AWS_ACCESS_KEY_ID")?, secret: given("AWS_SECRET_ACCESS_KEY")? };
        let asker = Asker::new(&endpoint, &given("BUCKET_REGION")?, key)?;
        Ok(Self { bucket: given("BUCKET_NAME")?, asker })
    }

    /// Signs a request to the bucket, and sends it.
    pub(super) async fn ask(&self, method: &'static str, key: &str, body: Vec<u8>) -> Result<Answer> {
        let ask = Ask { body, ..Ask::new(method, format!("/{}/{key}", self.bucket)) };
        self.asker.ask(ask, Signed::Headers).await
    }

    /// Puts an object, reads it, and deletes it.
    pub(super) async fn round_trip(&self) -> Result<()> {
        // The gateway may learn of a key later than the application.
        let deadline = Instant::now() + Duration::from_secs(30);
        let put = loop {
            let answer = self.ask("PUT", "rook/test", b"Test Data".to_vec()).await?;
            let is_early = matches!(answer.code(), Some("InvalidAccessKeyId" | "ServiceUnavailable" | "SlowDown"));
            if !is_early || Instant::now() > deadline {
                break answer;
            }
            sleep(LOOK).await;
        };
        ensure!(put.is_done(), "PUT is answered {} {:?}", put.status, put.code());
        let got = self.ask("GET", "rook/test", Vec::new()).await?;
        ensure!(got.is_done() && got.body == "Test Data", "GET is answered {} {:?}", got.status, got.body);
        let deleted = self.ask("DELETE", "rook/test", Vec::new()).await?;
        ensure!(deleted.is_done(), "DELETE is answered {} {:?}", deleted.status, deleted.code());
        let gone = self.ask("GET", "rook/test", Vec::new()).await?;
        ensure!(gone.code() == Some("NoSuchKey"), "a deleted object is answered {} {:?}", gone.status, gone.code());
        Ok(())
    }
}

/// Deletes a claim and waits until it is gone.
pub(super) async fn gone(setup: &Setup<'_>, claim: &ObjectBucketClaim) -> Result<()> {
    let (api, name, uid) = (claims(setup), claim.name_any(), claim.uid().unwrap_or_default());
    api.delete(&name, &DeleteParams::default()).await.with_context(|| format!("can't delete {name}"))?;
    setup.environment.wait(&api, &name, "gone", is_deleted(&uid)).await.map(|_| ())
}
