//! What becomes of a bucket is decided by the policy that its claim has in the end.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use crate::failure::refusal;
use crate::stage::Stage;
use crate::testbed::Testbed;

pub(super) async fn policy(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("policy").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, edited(&stage)).await?;
    operator.terminate().await?;
    Ok("Delete edited to Retain kept its bucket; Retain edited to Delete, and a late forceDelete, took theirs"
        .to_owned())
}

async fn edited(stage: &Stage<'_>) -> Result<()> {
    let store = &stage.testbed.store;
    let bucket = |name: &str| format!("{}-{name}", stage.tenant);
    let force = json!({"deletionPolicy": "Delete", "forceDelete": true});
    let spared = stage.claim("spared", force.clone()).await?;
    let taken = stage.claim("taken", json!({})).await?;
    let late = stage.claim("late", json!({"deletionPolicy": "Delete"})).await?;
    for name in ["spared", "taken", "late"] {
        stage.ready(name).await?;
        store.put(&bucket(name), 1).await?;
    }

    let half = stage.patch("taken", json!({"spec": {"forceDelete": true}})).await;
    match half {
        Err(why) if refusal(&why).is_some_and(|status| status.message.contains("forceDelete")) => {}
        Err(why) => return Err(why).context("forceDelete with Retain was not refused"),
        Ok(()) => bail!("forceDelete with Retain was taken"),
    }

    let retain = json!({"spec": {"deletionPolicy": "Retain", "forceDelete": false}});
    stage.patch("spared", retain).await?;
    stage.patch("taken", json!({"spec": force})).await?;
    stage.delete(&spared).await?;
    stage.delete(&taken).await?;
    stage.ask_to_delete("late").await?;
    stage.shows("late", "BucketNotEmpty").await?;
    stage.patch("late", json!({"spec": {"forceDelete": true}})).await?;
    stage.gone(&late).await?;

    for claim in [&spared, &taken, &late] {
        stage.nothing_left(claim).await?;
    }
    let left = store.keys(&bucket("spared")).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");
    for name in ["taken", "late"] {
        let left = store.tags(&bucket(name)).await?;
        ensure!(left.is_none(), "bucket {} is still there", bucket(name));
    }
    Ok(())
}
