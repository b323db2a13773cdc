//! Deletion of claims with `deletionPolicy: Delete`, and of claims with their finalizer stripped,
//! and the fate of their buckets.

use anyhow::{Context as _, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::conditions::is_deleted;
use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::{Setup, ready_message};

/// A finalizer of another program, for example a backup tool.
const FINALIZER: &str = "example.com/backup";

/// More than one DeleteObjects request can delete, and more than one slice.
const OBJECTS: usize = 1_200;
const SLICE: &str = "500";

/// A bucket with many objects and an unfinished upload is emptied and deleted.
pub(super) async fn forced(environment: &Environment) -> Result<String> {
    let setup = environment.setup("forced").await?;
    let mut operator = setup.start_operator(&["--purge-slice", SLICE]).await?;
    let seen = setup.under(&mut operator, async {
        let claim = setup.claim("data", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
        setup.ready("data").await?;
        let bucket = format!("{}-data", setup.tenant);
        let puts = stream::iter(0..OBJECTS).map(|key| setup.environment.store.put(&bucket, key));
        puts.buffer_unordered(16).try_collect::<()>().await?;
        setup.environment.store.begin_upload(&bucket).await?;
        setup.delete(&claim).await?;
        let left = setup.environment.store.tags(&bucket).await?;
        ensure!(left.is_none(), "bucket {bucket} is still there");
        setup.nothing_left(&claim).await?;
        Ok(format!("bucket {bucket} went with its {OBJECTS} objects and an unfinished upload"))
    });
    let seen = seen.await?;
    operator.terminate().await?;
    Ok(seen)
}

/// A key with another program's finalizer isn't deleted, and still opens its bucket. The claim
/// waits, and its status names the Secret.
pub(super) async fn kept(environment: &Environment) -> Result<String> {
    let setup = environment.setup("kept").await?;
    let mut operator = setup.start_operator(&[]).await?;
    let seen = setup.under(&mut operator, async {
        let claim = setup.claim("data", json!({"deletionPolicy": "Delete"})).await?;
        setup.ready("data").await?;
        let bucket = format!("{}-data", setup.tenant);
        let keys = setup.internal(&claim, Role::VirtualCredential).await?;
        let key = keys.first().context("there is no key")?.name_any();
        set_finalizers(&setup, &key, json!([FINALIZER])).await?;
        setup.ask_to_delete("data").await?;
        let told = setup.shows("data", "BackendError").await?;
        let message = ready_message(&told);
        ensure!(message.contains(&key) && message.contains(FINALIZER), "the claim says: {message}");
        let kept = setup.environment.store.tags(&bucket).await?;
        ensure!(kept.is_some(), "bucket {bucket} is gone before the key");
        set_finalizers(&setup, &key, json!(null)).await?;
        setup.gone(&claim).await?;
        setup.nothing_left(&claim).await?;
        let left = setup.environment.store.tags(&bucket).await?;
        ensure!(left.is_none(), "bucket {bucket} is still there");
        Ok(format!("bucket {bucket} and its claim went after the key that was kept"))
    });
    let seen = seen.await?;
    operator.terminate().await?;
    Ok(seen)
}

async fn set_finalizers(setup: &Setup<'_>, secret: &str, finalizers: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let patched = setup.secrets(&setup.system).patch(secret, &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("can't patch Secret {secret}")).map(|_| ())
}

/// A claim with its finalizer stripped by hand leaves keys behind, which are revoked. Its bucket is
/// kept.
pub(super) async fn stripped(environment: &Environment) -> Result<String> {
    let setup = environment.setup("stripped").await?;
    // The record is kept for one deadline longer, until no earlier call can reach the store any
    // more. The default deadline is 30 s.
    let mut operator = setup.start_operator(&["--upstream-timeout", "5"]).await?;
    let claim = setup.under(&mut operator, async {
        setup.claim("data", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
        setup.ready("data").await
    });
    let claim = claim.await?;
    let mut left_behind = setup.internal(&claim, Role::VirtualCredential).await?;
    left_behind.extend(setup.internal(&claim, Role::BucketRecord).await?);
    ensure!(left_behind.len() == 2, "a bound claim has {} internal Secrets", left_behind.len());
    // A running operator would restore its finalizer at once.
    operator.pause().await?;
    setup.patch("data", json!({"metadata": {"finalizers": null}})).await?;
    setup.delete(&claim).await?;
    operator.resume().await?;
    let bucket = format!("{}-data", setup.tenant);
    let seen = setup.under(&mut operator, async {
        for secret in left_behind {
            let (secrets, uid) = (setup.secrets(&setup.system), secret.uid().unwrap_or_default());
            setup.environment.wait(&secrets, &secret.name_any(), "revoked", is_deleted(&uid)).await?;
        }
        let kept = setup.environment.store.tags(&bucket).await?;
        ensure!(kept.is_some(), "bucket {bucket} is gone");
        Ok(())
    });
    seen.await?;
    operator.terminate().await?;
    Ok(format!("the key and the record of a claim without finalizer are gone, bucket {bucket} is not"))
}
