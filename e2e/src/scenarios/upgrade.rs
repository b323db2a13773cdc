//! Objects that an operator of the first version left in a cluster are served, with the same bucket
//! and the same key. Fields that are new since then are added to them (spec §2).

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use stowage_operator::api::wire::{self, Role};
use stowage_operator::api::{self, AccessKeyId, BucketClaim, BucketName, ClaimUid, Endpoint, RecordName};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::{from_json, text};

use stowage_testbed::definitions;

use super::rotation;
use crate::tenant::Tenant;

const DEFINITIONS: &str = include_str!("../../upgrade/first-crds.yaml");
const OBJECTS: &str = include_str!("../../upgrade/first-objects.yaml");
const CLAIM: &str = "data";

/// Plays the scenario, and restores this version's definitions for later scenarios even if it
/// fails.
pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("upgrade").await?;
    for document in stowage_world::parse("first-crds.yaml", DEFINITIONS)? {
        let definition: CustomResourceDefinition = document.object.try_parse().context("first-crds.yaml")?;
        definitions::apply(environment, &definition).await?;
        definitions::established(environment, &definition.name_any()).await?;
    }
    let left = first_version(&setup).await;
    for definition in api::crds() {
        definitions::apply(environment, &definition).await?;
        definitions::established(environment, &definition.name_any()).await?;
    }
    let gateway = setup.start_gateway().await?;
    let served = served_on(&setup, left?, &gateway.url()).await?;
    gateway.end().await?;
    Ok(served)
}

/// Objects of the first version.
struct Left {
    claim: BucketClaim,
    bucket: String,
    key: AccessKeyId,
}

/// Creates a bound claim with its bucket as by the first version, but without its Secrets, because
/// these contain the gateway's endpoint.
async fn first_version(setup: &Setup<'_>) -> Result<Left> {
    let bucket = format!("{}-{CLAIM}", setup.tenant);
    let claim: BucketClaim = from_json(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
        "metadata": {"name": CLAIM, "finalizers": [api::FINALIZER]},
        "spec": {"backendRef": {"name": setup.backend}},
    }));
    let claim = setup.claims().create(&PostParams::default(), &claim).await.context("can't make the claim")?;
    let uid = claim.uid().context("the claim has no UID")?;
    let key = AccessKeyId::of(&ClaimUid::new(&uid), 1);
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({"status": {
        "observedGeneration": 1, "phase": "Bound", "bucketName": bucket, "bucketOrigin": "Created",
        "backend": {"name": setup.backend, "endpoint": setup.environment.endpoint},
        "boundSecretName": format!("{CLAIM}-s3"), "accessKeyId": key.as_str(), "rotationGeneration": 1,
        "rotatedAt": "2026-01-01T00:00:00Z",
        "conditions": [
            condition("Ready", "Bound"),
            condition("BucketCreated", "CreatedOnBackend"),
            condition("CredentialsProvisioned", "SecretWritten"),
        ],
    }});
    let claims: Api<BucketClaim> = Api::namespaced(setup.environment.client.clone(), &setup.tenant);
    let told = claims.patch_status(CLAIM, &PatchParams::default(), &Patch::Merge(status)).await;
    told.context("can't write the claim's status")?;

    let store = &setup.environment.store;
    store.make(&bucket).await?;
    let namespaces: Api<Namespace> = Api::all(setup.environment.client.clone());
    let installation = namespaces.get("kube-system").await.context("can't read namespace kube-system")?;
    let (installation, name) = (installation.uid().unwrap_or_default(), format!("{}/{CLAIM}", setup.tenant));
    let tags = [(wire::TAG_INSTALLATION, &*installation), (wire::TAG_CLAIM, &*name), (wire::TAG_CLAIM_UID, &*uid)];
    store.tag(&bucket, &tags).await?;
    Ok(Left { claim, bucket, key })
}

/// Creates the Secrets of the first version.
async fn keep_secrets(setup: &Setup<'_>, left: &Left, gateway: &str) -> Result<()> {
    let endpoint = Endpoint::parse(&setup.environment.endpoint)?;
    let record = RecordName::of(&endpoint, &BucketName::parse(&left.bucket)?);
    let (uid, credential) = (left.claim.uid().unwrap_or_default(), left.key.secret_name());
    let words = [
        ("$RECORD", record.as_str()),
        ("$CREDENTIAL", &credential),
        ("$SYSTEM", &setup.system),
        ("$TENANT", &setup.tenant),
        ("$BACKEND", &setup.backend),
        ("$BUCKET", &left.bucket),
        ("$STORE", endpoint.as_str()),
        ("$GATEWAY", gateway),
        ("$UID", &uid),
        ("$KEY", left.key.as_str()),
    ];
    let filled = words.iter().fold(OBJECTS.to_owned(), |text, (word, value)| text.replace(word, value));
    for document in stowage_world::parse("first-objects.yaml", &filled)? {
        let secret: Secret = document.object.try_parse().context("first-objects.yaml")?;
        let namespace = secret.namespace().unwrap_or_default();
        let made = setup.secrets(&namespace).create(&PostParams::default(), &secret).await;
        made.with_context(|| format!("can't make Secret {}", secret.name_any()))?;
    }
    Ok(())
}

async fn served_on(setup: &Setup<'_>, left: Left, gateway: &str) -> Result<String> {
    keep_secrets(setup, &left, gateway).await?;
    let before =
        setup.claims().get(CLAIM).await.context("the claim is gone with the definitions of the first version")?;
    ensure!(before.spec == left.claim.spec, "its spec is {:?}", before.spec);
    let app = Tenant::of(&connection(setup).await?)?;
    works(setup, &app).await.context("before this version's operator is there")?;

    let mut operator = setup.start_operator_behind(gateway, &[]).await?;
    let done = setup.under(&mut operator, goes_on(setup, &left, &app)).await;
    operator.terminate().await?;
    done
}

/// Checks that the key still works, gets the fields that the first version did not write, is
/// replaced like any other, and is deleted with its claim.
async fn goes_on(setup: &Setup<'_>, left: &Left, app: &Tenant) -> Result<String> {
    let secrets = setup.secrets(&setup.system);
    let noted = |secret: Option<&Secret>| secret.is_some_and(|secret| !text(secret, wire::ENDPOINT).is_empty());
    setup
        .environment
        .wait(&secrets, &left.key.secret_name(), "brought up to date", noted)
        .await?
        .context("its key is gone")?;
    let claim = setup.ready(CLAIM).await?;
    let status = claim.status.clone().unwrap_or_default();
    ensure!(status.access_key_id.as_deref() == Some(left.key.as_str()), "its key is {:?}", status.access_key_id);
    ensure!(status.bucket_name.as_ref() == Some(&left.bucket), "its bucket is {:?}", status.bucket_name);
    ensure!(Tenant::of(&connection(setup).await?)?.key_id == app.key_id, "its Secret holds another key");
    let keys = setup.internal(&claim, Role::VirtualCredential).await?.len();
    ensure!(keys == 1, "it has {keys} keys");
    works(setup, app).await.context("under this version's operator")?;
    setup.environment.unchanged_by_operator(&left.bucket).await?;

    setup.patch(CLAIM, json!({"metadata": {"annotations": {wire::ROTATE: "now"}}})).await?;
    let rotated = |claim: Option<&BucketClaim>| {
        claim.and_then(|claim| claim.status.as_ref()).is_some_and(|status| status.rotation_generation == Some(2))
    };
    let (limit, claims) = (rotation::limit(setup), setup.claims());
    setup.environment.wait_for_up_to(limit, &claims, CLAIM, "rotated", rotated).await?.context("the claim is gone")?;
    works(setup, &Tenant::of(&connection(setup).await?)?).await.context("with the next key")?;
    setup.delete(&claim).await?;
    setup.nothing_left(&claim).await?;
    ensure!(setup.environment.store.tags(&left.bucket).await?.is_some(), "its bucket is gone, which is to be kept");
    Ok("a claim of the first version kept bucket and key, was rotated, and went".to_owned())
}

async fn connection(setup: &Setup<'_>) -> Result<Secret> {
    setup.secrets(&setup.tenant).get(&format!("{CLAIM}-s3")).await.context("no consumer Secret")
}

/// Uses the bucket, once the gateway knows the key.
async fn works(setup: &Setup<'_>, app: &Tenant) -> Result<()> {
    let began = Instant::now();
    loop {
        match app.use_bucket(1).await {
            Ok(()) => return Ok(()),
            Err(why) if began.elapsed() > setup.environment.patience => {
                return Err(why).context("the key does not work");
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(200)).await,
        }
    }
}
