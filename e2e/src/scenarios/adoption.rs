//! A bucket that was there before its claim.

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use stowage_operator::api::BucketOrigin;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

/// Somebody's bucket is taken over when that is allowed, used, and left as it was found.
pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("adopt").await?;
    let mut operator = setup.start_operator(&[]).await?;
    let bucket = setup.under(&mut operator, taken_over(&setup)).await?;
    operator.terminate().await?;
    Ok(format!("bucket {bucket} was refused, then taken over, and left with what is in it and without a change"))
}

async fn taken_over(setup: &Setup<'_>) -> Result<String> {
    let store = &setup.environment.store;
    let bucket = format!("{}-data", setup.tenant);
    store.make(&bucket).await?;
    store.put(&bucket, 1).await?;
    setup.claim("data", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    setup.shows("data", "BucketExists").await?;

    let any = Patch::Merge(json!({"spec": {"adoptionPolicy": "Any"}}));
    let patched = setup.backends().patch(&setup.backend, &PatchParams::default(), &any).await;
    patched.context("can't patch the backend")?;
    let claim = setup.ready("data").await?;
    let origin = claim.status.as_ref().and_then(|status| status.bucket_origin);
    ensure!(origin == Some(BucketOrigin::Adopted), "the origin is {origin:?}");

    setup.delete(&claim).await?;
    setup.nothing_left(&claim).await?;
    told(setup, "BucketRetained").await?;
    let left = store.keys(&bucket).await?;
    ensure!(left.len() == 1, "bucket {bucket} holds {left:?}");
    let tags = store.tags(&bucket).await?.unwrap_or_default();
    ensure!(tags.is_empty(), "bucket {bucket} was given the tags {tags:?}");
    setup.environment.unchanged_by_operator(&bucket).await?;
    Ok(bucket)
}

/// Waits for an event in the tenant's namespace with this reason.
async fn told(setup: &Setup<'_>, reason: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(setup.environment.client.clone(), &setup.tenant);
    let mut stream = std::pin::pin!(watcher(events, watcher::Config::default()).default_backoff().applied_objects());
    let heard = async {
        while let Some(event) = stream.try_next().await? {
            if event.reason.as_deref() == Some(reason) {
                return Ok(());
            }
        }
        Err(anyhow!("the events ended"))
    };
    let patience = setup.environment.patience;
    tokio::time::timeout(patience, heard)
        .await
        .map_err(|_| anyhow!("no event {reason} within {} s", patience.as_secs()))?
}
