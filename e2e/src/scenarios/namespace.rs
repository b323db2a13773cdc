//! A namespace is deleted with everything in it.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::wait::conditions::is_deleted;
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

pub(super) async fn deleted(environment: &Environment) -> Result<String> {
    let setup = environment.setup("namespace").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, goes(&setup)).await?;
    operator.terminate().await?;
    Ok("the namespace went; of its two buckets the one to be retained is there, and no key".to_owned())
}

async fn goes(setup: &Setup<'_>) -> Result<()> {
    let store = &setup.environment.store;
    let bucket = |name: &str| format!("{}-{name}", setup.tenant);
    let kept = setup.claim("kept", json!({})).await?;
    let emptied = setup.claim("emptied", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    for name in ["kept", "emptied"] {
        setup.ready(name).await?;
        store.put(&bucket(name), 1).await?;
    }
    let namespaces: Api<Namespace> = Api::all(setup.environment.client.clone());
    let found = namespaces.get(&setup.tenant).await.context("no namespace")?;
    namespaces.delete(&setup.tenant, &DeleteParams::default()).await.context("can't delete the namespace")?;
    let uid = found.uid().unwrap_or_default();
    setup.environment.wait(&namespaces, &setup.tenant, "gone", is_deleted(&uid)).await?;
    setup.nothing_left(&kept).await?;
    setup.nothing_left(&emptied).await?;
    let left = store.keys(&bucket("kept")).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");
    let left = store.tags(&bucket("emptied")).await?;
    ensure!(left.is_none(), "bucket {} is still there", bucket("emptied"));
    Ok(())
}
