//! ObjectBucketClaims, as in charts for Rook and NooBaa. This asserts everything that Rook's own
//! tests assert of a provisioner, except for features that spec §9 refuses by name.

mod chart;
mod claims;

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
use stowage_operator::api::BucketClaim;
use stowage_testbed::definitions;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::{from_json, text};
use tokio::time::sleep;

use self::claims::{Bound, LOOK, bound, claims, config_maps, gone, object_buckets, shows};

/// Definitions of the kinds by their projects, as in the simulator.
const DEFINITIONS: [(&str, &str); 2] = [
    ("rook", include_str!("../../../../world/src/foreign/rook.yaml")),
    ("noobaa", include_str!("../../../../world/src/foreign/noobaa.yaml")),
];
/// Time in which nothing may be written at rest.
const REST: Duration = Duration::from_secs(4);
/// Size of an object that exceeds the first quota of a claim and not the second.
const LARGE: usize = 100 << 10;
const QUOTAS: [&str; 2] = ["64Ki", "10Mi"];

/// A claim with its bucket deleted, and one with its bucket retained.
const GOES: &str = "photos";
const STAYS: &str = "films";

pub(super) async fn play(environment: &Environment) -> Result<String> {
    for (whose, definitions) in DEFINITIONS {
        let definitions = read(definitions)?;
        for definition in &definitions {
            definitions::apply(environment, definition).await?;
            definitions::established(environment, &definition.name_any()).await?;
        }
        let setup = environment.setup(&format!("obc-{whose}")).await?;
        let gateway = setup.start_gateway().await?;
        let mut operator = setup.start_operator_behind(&gateway.url(), &["--obc"]).await?;
        let played = setup.under(&mut operator, in_turn(&setup)).await;
        played.with_context(|| format!("with the definitions of {whose}"))?;
        operator.terminate().await?;
        gateway.end().await?;
        for definition in &definitions {
            away(environment, definition).await?;
        }
    }
    Ok("ObjectBucketClaims bound, used, limited and deleted with the definitions of Rook and of NooBaa".to_owned())
}

fn read(definitions: &str) -> Result<Vec<CustomResourceDefinition>> {
    let documents = stowage_world::parse("definitions", definitions)?;
    documents.into_iter().map(|it| it.object.try_parse().context("a definition")).collect()
}

/// Deletes a definition; there are no objects of it left.
async fn away(environment: &Environment, definition: &CustomResourceDefinition) -> Result<()> {
    let (api, name) = (definitions::definitions(environment), definition.name_any());
    let uid = api.get(&name).await.with_context(|| format!("no {name}"))?.uid().unwrap_or_default();
    api.delete(&name, &DeleteParams::default()).await.with_context(|| format!("can't delete {name}"))?;
    environment.wait(&api, &name, "gone", is_deleted(&uid)).await.map(|_| ())
}

async fn in_turn(setup: &Setup<'_>) -> Result<()> {
    class(setup, "delete", "Delete").await?;
    class(setup, "retain", "Retain").await?;
    let prefix = &setup.backend;
    claim(setup, GOES, "delete", json!({"generateBucketName": prefix, "additionalConfig": {"maxSize": QUOTAS[0]}}))
        .await?;
    claim(setup, STAYS, "retain", json!({"bucketName": format!("{prefix}-films")})).await?;
    let goes = bound(setup, GOES).await?;
    let stays = bound(setup, STAYS).await?;
    let bucket = &goes.app.bucket;
    // A name has at most 63 bytes, 36 of which are the UID.
    let made_up = format!("{prefix:.26}-{}", goes.claim.uid().unwrap_or_default());
    ensure!(*bucket == made_up, "the bucket is {bucket}, and not {made_up}");
    for bound in [&goes, &stays] {
        bound.app.round_trip().await?;
    }
    at_rest(setup).await?;
    limited(setup, &goes).await?;
    refused(setup).await?;
    chart::play(setup, &class_name(setup, "delete")).await?;
    deleted(setup, goes, stays).await
}

fn class_name(setup: &Setup<'_>, name: &str) -> String {
    format!("{}-{name}", setup.backend)
}

fn classes(setup: &Setup<'_>) -> Api<StorageClass> {
    Api::all(setup.environment.client.clone())
}

async fn class(setup: &Setup<'_>, name: &str, policy: &str) -> Result<()> {
    let class = from_json(json!({
        "metadata": {"name": class_name(setup, name)},
        "provisioner": "broker.stowage.io/bucket", "reclaimPolicy": policy,
        "parameters": {"backend": setup.backend},
    }));
    let made = classes(setup).create(&PostParams::default(), &class).await;
    made.with_context(|| format!("can't make storage class {name}")).map(|_| ())
}

async fn claim(setup: &Setup<'_>, name: &str, class: &str, further: Value) -> Result<()> {
    let mut claim = json!({
        "apiVersion": "objectbucket.io/v1alpha1", "kind": "ObjectBucketClaim", "metadata": {"name": name},
        "spec": {"storageClassName": class_name(setup, class)},
    });
    if let (Value::Object(spec), Value::Object(further)) = (&mut claim["spec"], further) {
        spec.extend(further);
    }
    let made = claims(setup).create(&PostParams::default(), &from_json(claim)).await;
    made.with_context(|| format!("can't make ObjectBucketClaim {name}")).map(|_| ())
}

async fn patch(setup: &Setup<'_>, name: &str, patch: Value) -> Result<()> {
    let patched = claims(setup).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.with_context(|| format!("can't patch ObjectBucketClaim {name}")).map(|_| ())
}

/// Waits until an Event on a claim has this reason.
async fn tells(setup: &Setup<'_>, name: &str, reason: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(setup.environment.client.clone(), &setup.tenant);
    let deadline = Instant::now() + setup.environment.patience;
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

/// Checks that claims stay Bound, and that neither they nor the objects created for them are
/// written.
async fn at_rest(setup: &Setup<'_>) -> Result<()> {
    let before = versions(setup).await?;
    ensure!(before.len() >= 9, "what was made for two claims is {before:?}");
    sleep(REST).await;
    let after = versions(setup).await?;
    let changed: Vec<_> = after.iter().filter(|it| !before.contains(it)).collect();
    ensure!(before == after, "at rest there was written to {changed:?}");
    for name in [GOES, STAYS] {
        shows(setup, name, "Bound").await?;
    }
    Ok(())
}

/// Returns the version of each object. Leaves out BucketClaims with a quota, because their status
/// shows the current usage.
async fn versions(setup: &Setup<'_>) -> Result<Vec<(String, String, Option<String>)>> {
    fn of<K: ResourceExt>(kind: &str, all: &[K]) -> Vec<(String, String, Option<String>)> {
        all.iter().map(|it| (kind.to_owned(), it.name_any(), it.resource_version())).collect()
    }
    let all = ListParams::default();
    let mine = |name: &str| name.starts_with(&format!("obc-{}-", setup.tenant));
    let mut buckets = object_buckets(setup).list(&all).await.context("can't list ObjectBuckets")?.items;
    buckets.retain(|bucket| mine(&bucket.name_any()));
    let mut shadows = setup.claims().list(&all).await.context("can't list BucketClaims")?.items;
    shadows.retain(|claim| claim.spec.quota.is_none());
    let secrets = setup.secrets(&setup.tenant).list(&all).await.context("can't list Secrets")?;
    let config_maps = config_maps(setup).list(&all).await.context("can't list ConfigMaps")?;
    let claims = claims(setup).list(&all).await.context("can't list ObjectBucketClaims")?;
    Ok([
        of("ObjectBucketClaim", &claims.items),
        of("ObjectBucket", &buckets),
        of("BucketClaim", &shadows),
        of("Secret", &secrets.items),
        of("ConfigMap", &config_maps.items),
    ]
    .concat())
}

/// Checks that a quota is enforced, and that an edit can raise it without new objects and with the
/// same key.
async fn limited(setup: &Setup<'_>, goes: &Bound) -> Result<()> {
    let large = async || goes.app.ask("PUT", "large", vec![b'x'; LARGE]).await;
    let full = large().await?;
    ensure!(full.code() == Some("QuotaExceeded"), "over a quota PUT is answered {} {:?}", full.status, full.code());
    let shadow = async || setup.claims().get(&format!("obc-{GOES}")).await.context("no BucketClaim");
    let before = shadow().await?;
    patch(setup, GOES, json!({"spec": {"additionalConfig": {"maxSize": QUOTAS[1]}}})).await?;
    let deadline = Instant::now() + setup.environment.patience;
    while !large().await?.is_done() {
        ensure!(Instant::now() < deadline, "a quota that was raised does not come to the gateway");
        sleep(LOOK).await;
    }
    ensure!(shadow().await?.uid() == before.uid(), "the BucketClaim was made anew");
    let after = bound(setup, GOES).await?;
    ensure!(after.claim.uid() == goes.claim.uid(), "the ObjectBucketClaim is another");
    ensure!(after.object_bucket.uid() == goes.object_bucket.uid(), "the ObjectBucket was made anew");
    let key = |bound: &Bound| text(&bound.secret, "AWS_ACCESS_KEY_ID");
    ensure!(key(&after) == key(goes), "the key was replaced");
    let deleted = goes.app.ask("DELETE", "large", Vec::new()).await?;
    ensure!(deleted.is_done(), "DELETE is answered {} {:?}", deleted.status, deleted.code());
    Ok(())
}

/// Checks that Secrets and ConfigMaps of others are left alone, and that unsupported requests are
/// refused by name.
async fn refused(setup: &Setup<'_>) -> Result<()> {
    let secrets = setup.secrets(&setup.tenant);
    let secret: Secret = from_json(json!({"metadata": {"name": "taken"}, "stringData": {"whose": "somebody's"}}));
    let secret = secrets.create(&PostParams::default(), &secret).await.context("can't make a Secret")?;
    let config_map: ConfigMap = from_json(json!({"metadata": {"name": "told"}, "data": {"whose": "somebody's"}}));
    let config_map = config_maps(setup).create(&PostParams::default(), &config_map).await;
    let config_map = config_map.context("can't make a ConfigMap")?;
    let cases = [
        ("taken", json!({}), "Failed", "SecretConflict"),
        ("told", json!({}), "Pending", "NameTaken"),
        ("counted", json!({"maxObjects": "1000"}), "Failed", "UnsupportedConfig"),
    ];
    for (name, config, ..) in &cases {
        let spec = json!({"generateBucketName": setup.backend, "additionalConfig": config});
        claim(setup, name, "delete", spec).await?;
    }
    for (name, _, phase, reason) in &cases {
        tells(setup, name, reason).await?;
        shows(setup, name, phase).await?;
    }
    // Removing the unsupported request is enough.
    patch(setup, "counted", json!({"spec": {"additionalConfig": null}})).await?;
    bound(setup, "counted").await?.app.round_trip().await?;
    for (name, ..) in cases {
        let claim = claims(setup).get(name).await.with_context(|| format!("no ObjectBucketClaim {name}"))?;
        gone(setup, &claim).await?;
    }
    let after = secrets.get("taken").await.context("the Secret is gone")?;
    ensure!(after == secret, "somebody's Secret was written to");
    let after = config_maps(setup).get("told").await.context("the ConfigMap is gone")?;
    ensure!(after == config_map, "somebody's ConfigMap was written to");
    Ok(())
}

/// Deletes the classes and then the claims. All objects created for the claims are deleted; the
/// classes have determined the fate of the buckets before.
async fn deleted(setup: &Setup<'_>, goes: Bound, stays: Bound) -> Result<()> {
    let kept = stays.app.ask("PUT", "kept", b"kept".to_vec()).await?;
    ensure!(kept.is_done(), "PUT is answered {} {:?}", kept.status, kept.code());
    for class in ["delete", "retain"] {
        let deleted = classes(setup).delete(&class_name(setup, class), &DeleteParams::default()).await;
        deleted.context("can't delete a storage class")?;
    }
    for bound in [&goes, &stays] {
        gone(setup, &bound.claim).await?;
        let named = bound.object_bucket.name_any();
        let left = object_buckets(setup).get_opt(&named).await.context("can't read an ObjectBucket")?;
        ensure!(left.is_none(), "ObjectBucket {named} is left");
        // The garbage collector deletes these after their owner, not the operator.
        let (name, secrets) = (bound.claim.name_any(), setup.secrets(&setup.tenant));
        let uid = bound.secret.uid().unwrap_or_default();
        setup.environment.wait(&secrets, &name, "collected", is_deleted(&uid)).await?;
        let uid = bound.config_map.uid().unwrap_or_default();
        setup.environment.wait(&config_maps(setup), &name, "collected", is_deleted(&uid)).await?;
    }
    let left = claims(setup).list(&ListParams::default()).await.context("can't list ObjectBucketClaims")?.items.len();
    ensure!(left == 0, "{left} ObjectBucketClaims are left");
    let left: Vec<BucketClaim> = setup.claims().list(&ListParams::default()).await.context("no list")?.items;
    ensure!(left.is_empty(), "{} BucketClaims are left", left.len());
    let store = &setup.environment.store;
    ensure!(store.tags(&goes.app.bucket).await?.is_none(), "bucket {} is left", goes.app.bucket);
    let keys = store.keys(&stays.app.bucket).await?;
    ensure!(keys == ["kept"], "the retained bucket holds {keys:?}");
    Ok(store.remove(&stays.app.bucket).await?)
}
