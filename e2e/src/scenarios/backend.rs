//! A backend is deleted before its claims.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube::runtime::wait::conditions::is_deleted;
use serde_json::json;
use stowage_operator::api::Phase;
use stowage_operator::api::wire::Role;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

pub(super) async fn first(environment: &Environment) -> Result<String> {
    let setup = environment.setup("backend").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, without_backend(&setup)).await?;
    operator.terminate().await?;
    Ok("the retaining claim went without its backend, the deleting one when that was back".to_owned())
}

async fn without_backend(setup: &Setup<'_>) -> Result<()> {
    let store = &setup.environment.store;
    let kept = setup.claim("kept", json!({})).await?;
    let emptied = setup.claim("emptied", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    for name in ["kept", "emptied"] {
        setup.ready(name).await?;
        store.put(&format!("{}-{name}", setup.tenant), 1).await?;
    }
    delete_backend(setup).await?;
    for claim in [&kept, &emptied] {
        let shown = setup.shows(&claim.name_any(), "BackendNotReady").await?;
        let phase = shown.status.and_then(|status| status.phase);
        ensure!(phase == Some(Phase::Bound), "without its backend a claim's phase is {phase:?}");
        let keys = setup.internal(claim, Role::VirtualCredential).await?.len();
        ensure!(keys == 1, "without its backend a claim has {keys} keys");
    }

    setup.delete(&kept).await?;
    setup.nothing_left(&kept).await?;
    let left = store.keys(&format!("{}-kept", setup.tenant)).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");

    setup.ask_to_delete("emptied").await?;
    setup.shows("emptied", "DeletionBlocked").await?;
    let keys = setup.internal(&emptied, Role::VirtualCredential).await?.len();
    ensure!(keys == 0, "a claim that is being deleted has {keys} keys");
    setup.make_backend().await?;
    setup.gone(&emptied).await?;
    setup.nothing_left(&emptied).await?;
    let left = store.tags(&format!("{}-emptied", setup.tenant)).await?;
    ensure!(left.is_none(), "the bucket is still there");
    Ok(())
}

/// Deletes the backend; nothing blocks that.
async fn delete_backend(setup: &Setup<'_>) -> Result<()> {
    let backends = setup.backends();
    let found = backends.get(&setup.backend).await.context("no backend")?;
    backends.delete(&setup.backend, &DeleteParams::default()).await.context("can't delete the backend")?;
    let uid = found.uid().unwrap_or_default();
    setup.environment.wait(&backends, &setup.backend, "gone", is_deleted(&uid)).await.map(|_| ())
}
