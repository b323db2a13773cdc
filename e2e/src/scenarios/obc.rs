//! ObjectBucketClaims, as charts for Rook and NooBaa have them. What Rook's own tests assert of a
//! provisioner is asserted here, but for what spec §9 refuses by name.

mod chart;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::conditions::is_deleted;
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, OBC_PROVISIONER, ObjectBucket, ObjectBucketClaim};
use tokio::time::sleep;

use super::crds;
use crate::objects::{from_json, text};
use crate::request::{Answer, Ask, Asker, Signed};
use crate::stage::Stage;
use crate::store::Key;
use crate::testbed::Testbed;

/// Whose definitions of the kinds there are in clusters, as the simulator has them.
const DEFINITIONS: [(&str, &str); 2] = [
    ("rook", include_str!("../../../world/src/foreign/rook.yaml")),
    ("noobaa", include_str!("../../../world/src/foreign/noobaa.yaml")),
];
/// The value of the label that says who serves a claim.
const LABEL: &str = "broker.stowage.io-bucket";
/// How long nothing may be written at rest.
const REST: Duration = Duration::from_secs(4);
/// Between two looks at what is announced to nobody.
const LOOK: Duration = Duration::from_millis(50);
/// An object that is too large for the first quota of a claim, and not for the second.
const LARGE: usize = 100 << 10;
const QUOTAS: [&str; 2] = ["64Ki", "10Mi"];

/// What a ConfigMap tells.
const CONFIG_KEYS: [&str; 5] = ["BUCKET_HOST", "BUCKET_NAME", "BUCKET_PORT", "BUCKET_REGION", "BUCKET_SUBREGION"];

/// The claims: one whose bucket goes with it, one whose bucket stays.
const GOES: &str = "photos";
const STAYS: &str = "films";

pub(super) async fn play(testbed: &Testbed) -> Result<String> {
    for (whose, definitions) in DEFINITIONS {
        let definitions = read(definitions)?;
        for definition in &definitions {
            crds::apply(testbed, definition).await?;
            crds::established(testbed, &definition.name_any()).await?;
        }
        let stage = testbed.stage(&format!("obc-{whose}")).await?;
        let gateway = stage.start_gateway().await?;
        let mut operator = stage.start_operator_behind(&gateway.url(), &["--obc"]).await?;
        let played = stage.under(&mut operator, in_turn(&stage)).await;
        played.with_context(|| format!("with the definitions of {whose}"))?;
        operator.terminate().await?;
        gateway.end().await?;
        for definition in &definitions {
            away(testbed, definition).await?;
        }
    }
    Ok("ObjectBucketClaims bound, used, limited and deleted with the definitions of Rook and of NooBaa".to_owned())
}

fn read(definitions: &str) -> Result<Vec<CustomResourceDefinition>> {
    let documents = stowage_world::parse("definitions", definitions)?;
    documents.into_iter().map(|it| it.object.try_parse().context("a definition")).collect()
}

/// Takes a definition away, with which there are no objects left.
async fn away(testbed: &Testbed, definition: &CustomResourceDefinition) -> Result<()> {
    let (api, name) = (crds::definitions(testbed), definition.name_any());
    let uid = api.get(&name).await.with_context(|| format!("no {name}"))?.uid().unwrap_or_default();
    api.delete(&name, &DeleteParams::default()).await.with_context(|| format!("can't delete {name}"))?;
    testbed.wait(&api, &name, "gone", is_deleted(&uid)).await.map(|_| ())
}

async fn in_turn(stage: &Stage<'_>) -> Result<()> {
    class(stage, "delete", "Delete").await?;
    class(stage, "retain", "Retain").await?;
    let prefix = &stage.backend;
    claim(stage, GOES, "delete", json!({"generateBucketName": prefix, "additionalConfig": {"maxSize": QUOTAS[0]}}))
        .await?;
    claim(stage, STAYS, "retain", json!({"bucketName": format!("{prefix}-films")})).await?;
    let goes = bound(stage, GOES).await?;
    let stays = bound(stage, STAYS).await?;
    let bucket = &goes.app.bucket;
    // A name has 63 bytes at most, of which a UID has 36.
    let made_up = format!("{prefix:.26}-{}", goes.claim.uid().unwrap_or_default());
    ensure!(*bucket == made_up, "the bucket is {bucket}, and not {made_up}");
    for bound in [&goes, &stays] {
        bound.app.round_trip().await?;
    }
    at_rest(stage).await?;
    limited(stage, &goes).await?;
    refused(stage).await?;
    chart::play(stage, &class_name(stage, "delete")).await?;
    deleted(stage, goes, stays).await
}

fn class_name(stage: &Stage<'_>, name: &str) -> String {
    format!("{}-{name}", stage.backend)
}

fn classes(stage: &Stage<'_>) -> Api<StorageClass> {
    Api::all(stage.testbed.client.clone())
}

async fn class(stage: &Stage<'_>, name: &str, policy: &str) -> Result<()> {
    let class = from_json(json!({
        "metadata": {"name": class_name(stage, name)},
        "provisioner": "broker.stowage.io/bucket", "reclaimPolicy": policy,
        "parameters": {"backend": stage.backend},
    }));
    let made = classes(stage).create(&PostParams::default(), &class).await;
    made.with_context(|| format!("can't make storage class {name}")).map(|_| ())
}

fn claims(stage: &Stage<'_>) -> Api<ObjectBucketClaim> {
    Api::namespaced(stage.testbed.tenant.clone(), &stage.tenant)
}

fn object_buckets(stage: &Stage<'_>) -> Api<ObjectBucket> {
    Api::all(stage.testbed.client.clone())
}

fn config_maps(stage: &Stage<'_>) -> Api<ConfigMap> {
    Api::namespaced(stage.testbed.tenant.clone(), &stage.tenant)
}

async fn claim(stage: &Stage<'_>, name: &str, class: &str, further: Value) -> Result<()> {
    let mut claim = json!({
        "apiVersion": "objectbucket.io/v1alpha1", "kind": "ObjectBucketClaim", "metadata": {"name": name},
        "spec": {"storageClassName": class_name(stage, class)},
    });
    if let (Value::Object(spec), Value::Object(further)) = (&mut claim["spec"], further) {
        spec.extend(further);
    }
    let made = claims(stage).create(&PostParams::default(), &from_json(claim)).await;
    made.with_context(|| format!("can't make ObjectBucketClaim {name}")).map(|_| ())
}

async fn patch(stage: &Stage<'_>, name: &str, patch: Value) -> Result<()> {
    let patched = claims(stage).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.with_context(|| format!("can't patch ObjectBucketClaim {name}")).map(|_| ())
}

/// Waits until a claim is in a phase.
async fn shows(stage: &Stage<'_>, name: &str, phase: &'static str) -> Result<ObjectBucketClaim> {
    let is_in = |claim: Option<&ObjectBucketClaim>| {
        claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some(phase)
    };
    let found = stage.testbed.wait(&claims(stage), name, phase, is_in).await?;
    found.with_context(|| format!("ObjectBucketClaim {name} is gone"))
}

/// Waits until an Event on a claim has this reason.
async fn tells(stage: &Stage<'_>, name: &str, reason: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(stage.testbed.client.clone(), &stage.tenant);
    let deadline = Instant::now() + stage.testbed.patience;
    let is_it = |event: &Event| {
        let regarding = event.regarding.clone().unwrap_or_default();
        let is_claim = regarding.kind.as_deref() == Some("ObjectBucketClaim");
        is_claim && regarding.name.as_deref() == Some(name) && event.reason.as_deref() == Some(reason)
    };
    loop {
        let all = events.list(&ListParams::default()).await.context("can't list Events")?;
        if all.iter().any(is_it) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "no Event tells {reason} of {name}");
        sleep(LOOK).await;
    }
}

/// A claim that is Bound, and what there is of it.
struct Bound {
    claim: ObjectBucketClaim,
    object_bucket: ObjectBucket,
    config_map: ConfigMap,
    secret: Secret,
    app: App,
}

/// Waits until a claim is Bound, and checks all that consumers of such claims expect.
async fn bound(stage: &Stage<'_>, name: &str) -> Result<Bound> {
    let claim = shows(stage, name, "Bound").await?;
    let named = claim.spec.object_bucket_name.clone().context("spec.objectBucketName names nothing")?;
    let object_bucket = object_buckets(stage).get(&named).await.with_context(|| format!("no ObjectBucket {named}"))?;
    let phase = object_bucket.status.as_ref().and_then(|status| status.phase.as_deref());
    ensure!(phase == Some("Bound"), "ObjectBucket {named} is {phase:?}");
    let of = &object_bucket.spec.claim_ref;
    let is_its = (of.namespace.as_str(), of.name.as_str()) == (stage.tenant.as_str(), name);
    ensure!(is_its && claim.uid().as_ref() == Some(&of.uid), "ObjectBucket {named} is for {of:?}");

    let config_map = config_maps(stage).get(name).await.with_context(|| format!("no ConfigMap {name}"))?;
    let secret = stage.secrets(&stage.tenant).get(name).await.with_context(|| format!("no Secret {name}"))?;
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

/// An app that was given what a claim's ConfigMap and Secret say, and nothing else.
struct App {
    bucket: String,
    asker: Asker,
}

impl App {
    /// The one with this environment.
    fn of(env: &BTreeMap<String, String>) -> Result<Self> {
        let given = |name: &str| {
            let value = env.get(name).filter(|value| !value.is_empty());
            value.cloned().with_context(|| format!("nothing says {name}"))
        };
        let endpoint = format!("http://{}:{}", given("BUCKET_HOST")?, given("BUCKET_PORT")?);
        let key = Key { id: given("AWS_ACCESS_KEY_ID")?, secret: given("AWS_SECRET_ACCESS_KEY")? };
        let asker = Asker::new(&endpoint, &given("BUCKET_REGION")?, key)?;
        Ok(Self { bucket: given("BUCKET_NAME")?, asker })
    }

    async fn ask(&self, method: &'static str, key: &str, body: Vec<u8>) -> Result<Answer> {
        let ask = Ask { body, ..Ask::new(method, format!("/{}/{key}", self.bucket)) };
        self.asker.ask(ask, Signed::Headers).await
    }

    /// Puts an object, reads it, and deletes it.
    async fn round_trip(&self) -> Result<()> {
        // The gateway may hear of a key after who was given it.
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

/// Claims stay Bound, and nothing is written: neither to them nor to what was made for them.
async fn at_rest(stage: &Stage<'_>) -> Result<()> {
    let before = versions(stage).await?;
    ensure!(before.len() >= 9, "what was made for two claims is {before:?}");
    sleep(REST).await;
    let after = versions(stage).await?;
    let changed: Vec<_> = after.iter().filter(|it| !before.contains(it)).collect();
    ensure!(before == after, "at rest there was written to {changed:?}");
    for name in [GOES, STAYS] {
        shows(stage, name, "Bound").await?;
    }
    Ok(())
}

/// The version of each object. Of a claim with a quota the status tells what is stored, so that
/// BucketClaim is left out.
async fn versions(stage: &Stage<'_>) -> Result<Vec<(String, String, Option<String>)>> {
    fn of<K: ResourceExt>(kind: &str, all: &[K]) -> Vec<(String, String, Option<String>)> {
        all.iter().map(|it| (kind.to_owned(), it.name_any(), it.resource_version())).collect()
    }
    let all = ListParams::default();
    let mine = |name: &str| name.starts_with(&format!("obc-{}-", stage.tenant));
    let mut buckets = object_buckets(stage).list(&all).await.context("can't list ObjectBuckets")?.items;
    buckets.retain(|bucket| mine(&bucket.name_any()));
    let mut shadows = stage.claims().list(&all).await.context("can't list BucketClaims")?.items;
    shadows.retain(|claim| claim.spec.quota.is_none());
    let secrets = stage.secrets(&stage.tenant).list(&all).await.context("can't list Secrets")?;
    let config_maps = config_maps(stage).list(&all).await.context("can't list ConfigMaps")?;
    let claims = claims(stage).list(&all).await.context("can't list ObjectBucketClaims")?;
    Ok([
        of("ObjectBucketClaim", &claims.items),
        of("ObjectBucket", &buckets),
        of("BucketClaim", &shadows),
        of("Secret", &secrets.items),
        of("ConfigMap", &config_maps.items),
    ]
    .concat())
}

/// A quota is kept, and raised by an edit: with nothing made anew, and the same key.
async fn limited(stage: &Stage<'_>, goes: &Bound) -> Result<()> {
    let large = async || goes.app.ask("PUT", "large", vec![b'x'; LARGE]).await;
    let full = large().await?;
    ensure!(full.code() == Some("QuotaExceeded"), "over a quota PUT is answered {} {:?}", full.status, full.code());
    let shadow = async || stage.claims().get(&format!("obc-{GOES}")).await.context("no BucketClaim");
    let before = shadow().await?;
    patch(stage, GOES, json!({"spec": {"additionalConfig": {"maxSize": QUOTAS[1]}}})).await?;
    let deadline = Instant::now() + stage.testbed.patience;
    while !large().await?.is_done() {
        ensure!(Instant::now() < deadline, "a quota that was raised does not come to the gateway");
        sleep(LOOK).await;
    }
    ensure!(shadow().await?.uid() == before.uid(), "the BucketClaim was made anew");
    let after = bound(stage, GOES).await?;
    ensure!(after.claim.uid() == goes.claim.uid(), "the ObjectBucketClaim is another");
    ensure!(after.object_bucket.uid() == goes.object_bucket.uid(), "the ObjectBucket was made anew");
    let key = |bound: &Bound| text(&bound.secret, "AWS_ACCESS_KEY_ID");
    ensure!(key(&after) == key(goes), "the key was replaced");
    let deleted = goes.app.ask("DELETE", "large", Vec::new()).await?;
    ensure!(deleted.is_done(), "DELETE is answered {} {:?}", deleted.status, deleted.code());
    Ok(())
}

/// A Secret or ConfigMap of somebody else is left alone, and what can't be given is refused by
/// name.
async fn refused(stage: &Stage<'_>) -> Result<()> {
    let secrets = stage.secrets(&stage.tenant);
    let secret: Secret = from_json(json!({"metadata": {"name": "taken"}, "stringData": {"whose": "somebody's"}}));
    let secret = secrets.create(&PostParams::default(), &secret).await.context("can't make a Secret")?;
    let config_map: ConfigMap = from_json(json!({"metadata": {"name": "told"}, "data": {"whose": "somebody's"}}));
    let config_map = config_maps(stage).create(&PostParams::default(), &config_map).await;
    let config_map = config_map.context("can't make a ConfigMap")?;
    let cases = [
        ("taken", json!({}), "Failed", "SecretConflict"),
        ("told", json!({}), "Pending", "NameTaken"),
        ("counted", json!({"maxObjects": "1000"}), "Failed", "UnsupportedConfig"),
    ];
    for (name, config, ..) in &cases {
        let spec = json!({"generateBucketName": stage.backend, "additionalConfig": config});
        claim(stage, name, "delete", spec).await?;
    }
    for (name, _, phase, reason) in &cases {
        tells(stage, name, reason).await?;
        shows(stage, name, phase).await?;
    }
    // What is not asked for any more is in nobody's way.
    patch(stage, "counted", json!({"spec": {"additionalConfig": null}})).await?;
    bound(stage, "counted").await?.app.round_trip().await?;
    for (name, ..) in cases {
        let claim = claims(stage).get(name).await.with_context(|| format!("no ObjectBucketClaim {name}"))?;
        gone(stage, &claim).await?;
    }
    let after = secrets.get("taken").await.context("the Secret is gone")?;
    ensure!(after == secret, "somebody's Secret was written to");
    let after = config_maps(stage).get("told").await.context("the ConfigMap is gone")?;
    ensure!(after == config_map, "somebody's ConfigMap was written to");
    Ok(())
}

/// Deletes a claim and waits until it is gone.
async fn gone(stage: &Stage<'_>, claim: &ObjectBucketClaim) -> Result<()> {
    let (api, name, uid) = (claims(stage), claim.name_any(), claim.uid().unwrap_or_default());
    api.delete(&name, &DeleteParams::default()).await.with_context(|| format!("can't delete {name}"))?;
    stage.testbed.wait(&api, &name, "gone", is_deleted(&uid)).await.map(|_| ())
}

/// Claims go after their classes, and with them all that was made for them; over the buckets the
/// classes had decided.
async fn deleted(stage: &Stage<'_>, goes: Bound, stays: Bound) -> Result<()> {
    let kept = stays.app.ask("PUT", "kept", b"kept".to_vec()).await?;
    ensure!(kept.is_done(), "PUT is answered {} {:?}", kept.status, kept.code());
    for class in ["delete", "retain"] {
        let deleted = classes(stage).delete(&class_name(stage, class), &DeleteParams::default()).await;
        deleted.context("can't delete a storage class")?;
    }
    for bound in [&goes, &stays] {
        gone(stage, &bound.claim).await?;
        let named = bound.object_bucket.name_any();
        let left = object_buckets(stage).get_opt(&named).await.context("can't read an ObjectBucket")?;
        ensure!(left.is_none(), "ObjectBucket {named} is left");
        // Not the operator deletes these, but the collector of what has no owner any more.
        let (name, secrets) = (bound.claim.name_any(), stage.secrets(&stage.tenant));
        let uid = bound.secret.uid().unwrap_or_default();
        stage.testbed.wait(&secrets, &name, "collected", is_deleted(&uid)).await?;
        let uid = bound.config_map.uid().unwrap_or_default();
        stage.testbed.wait(&config_maps(stage), &name, "collected", is_deleted(&uid)).await?;
    }
    let left = claims(stage).list(&ListParams::default()).await.context("can't list ObjectBucketClaims")?.items.len();
    ensure!(left == 0, "{left} ObjectBucketClaims are left");
    let left: Vec<BucketClaim> = stage.claims().list(&ListParams::default()).await.context("no list")?.items;
    ensure!(left.is_empty(), "{} BucketClaims are left", left.len());
    let store = &stage.testbed.store;
    ensure!(store.tags(&goes.app.bucket).await?.is_none(), "bucket {} is left", goes.app.bucket);
    let keys = store.keys(&stays.app.bucket).await?;
    ensure!(keys == ["kept"], "the retained bucket holds {keys:?}");
    Ok(store.remove(&stays.app.bucket).await?)
}
