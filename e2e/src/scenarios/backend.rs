//! A backend goes before its claims.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube::runtime::wait::conditions::is_deleted;
use serde_json::json;
use stowage_operator::api::Phase;
use stowage_operator::api::wire::Role;

use crate::stage::Stage;
use crate::testbed::Testbed;

pub(super) async fn first(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("backend").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, without_backend(&stage)).await?;
    operator.terminate().await?;
    Ok("the retaining claim went without its backend, the deleting one when that was back".to_owned())
}

async fn without_backend(stage: &Stage<'_>) -> Result<()> {
    let store = &stage.testbed.store;
    let kept = stage.claim("kept", json!({})).await?;
    let emptied = stage.claim("emptied", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    for name in ["kept", "emptied"] {
        stage.ready(name).await?;
        store.put(&format!("{}-{name}", stage.tenant), 1).await?;
    }
    delete_backend(stage).await?;
    for claim in [&kept, &emptied] {
        let shown = stage.shows(&claim.name_any(), "BackendNotReady").await?;
        let phase = shown.status.and_then(|status| status.phase);
        ensure!(phase == Some(Phase::Bound), "without its backend a claim's phase is {phase:?}");
        let keys = stage.internal(claim, Role::VirtualCredential).await?.len();
        ensure!(keys == 1, "without its backend a claim has {keys} keys");
    }

    stage.delete(&kept).await?;
    stage.nothing_left(&kept).await?;
    let left = store.keys(&format!("{}-kept", stage.tenant)).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");

    stage.ask_to_delete("emptied").await?;
    stage.shows("emptied", "DeletionBlocked").await?;
    let keys = stage.internal(&emptied, Role::VirtualCredential).await?.len();
    ensure!(keys == 0, "a claim that is being deleted has {keys} keys");
    stage.make_backend().await?;
    stage.gone(&emptied).await?;
    stage.nothing_left(&emptied).await?;
    let left = store.tags(&format!("{}-emptied", stage.tenant)).await?;
    ensure!(left.is_none(), "the bucket is still there");
    Ok(())
}

/// Deletes the backend, which nothing holds back.
async fn delete_backend(stage: &Stage<'_>) -> Result<()> {
    let backends = stage.backends();
    let found = backends.get(&stage.backend).await.context("no backend")?;
    backends.delete(&stage.backend, &DeleteParams::default()).await.context("can't delete the backend")?;
    let uid = found.uid().unwrap_or_default();
    stage.testbed.wait(&backends, &stage.backend, "gone", is_deleted(&uid)).await.map(|_| ())
}
