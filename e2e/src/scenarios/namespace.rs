//! A namespace goes with all that is in it.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::wait::conditions::is_deleted;
use serde_json::json;

use crate::stage::Stage;
use crate::testbed::Testbed;

pub(super) async fn deleted(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("namespace").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, goes(&stage)).await?;
    operator.terminate().await?;
    Ok("the namespace went; of its two buckets the one to be retained is there, and no key".to_owned())
}

async fn goes(stage: &Stage<'_>) -> Result<()> {
    let store = &stage.testbed.store;
    let bucket = |name: &str| format!("{}-{name}", stage.tenant);
    let kept = stage.claim("kept", json!({})).await?;
    let emptied = stage.claim("emptied", json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    for name in ["kept", "emptied"] {
        stage.ready(name).await?;
        store.put(&bucket(name), 1).await?;
    }
    let namespaces: Api<Namespace> = Api::all(stage.testbed.client.clone());
    let found = namespaces.get(&stage.tenant).await.context("no namespace")?;
    namespaces.delete(&stage.tenant, &DeleteParams::default()).await.context("can't delete the namespace")?;
    let uid = found.uid().unwrap_or_default();
    stage.testbed.wait(&namespaces, &stage.tenant, "gone", is_deleted(&uid)).await?;
    stage.nothing_left(&kept).await?;
    stage.nothing_left(&emptied).await?;
    let left = store.keys(&bucket("kept")).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");
    let left = store.tags(&bucket("emptied")).await?;
    ensure!(left.is_none(), "bucket {} is still there", bucket("emptied"));
    Ok(())
}
