//! What becomes of a bucket is decided by the policy that its claim has in the end.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::failure::refusal;

pub(super) async fn policy(environment: &Environment) -> Result<String> {
    let setup = environment.setup("policy").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, edited(&setup)).await?;
    operator.terminate().await?;
    Ok("Delete edited to Retain kept its bucket; Retain edited to Delete, and a late forceDelete, took theirs"
        .to_owned())
}

async fn edited(setup: &Setup<'_>) -> Result<()> {
    let store = &setup.environment.store;
    let bucket = |name: &str| format!("{}-{name}", setup.tenant);
    let force = json!({"deletionPolicy": "Delete", "forceDelete": true});
    let spared = setup.claim("spared", force.clone()).await?;
    let taken = setup.claim("taken", json!({})).await?;
    let late = setup.claim("late", json!({"deletionPolicy": "Delete"})).await?;
    for name in ["spared", "taken", "late"] {
        setup.ready(name).await?;
        store.put(&bucket(name), 1).await?;
    }

    let half = setup.patch("taken", json!({"spec": {"forceDelete": true}})).await;
    match half {
        Err(why) if refusal(&why).is_some_and(|status| status.message.contains("forceDelete")) => {}
        Err(why) => return Err(why).context("forceDelete with Retain was not refused"),
        Ok(()) => bail!("forceDelete with Retain was taken"),
    }

    let retain = json!({"spec": {"deletionPolicy": "Retain", "forceDelete": false}});
    setup.patch("spared", retain).await?;
    setup.patch("taken", json!({"spec": force})).await?;
    setup.delete(&spared).await?;
    setup.delete(&taken).await?;
    setup.ask_to_delete("late").await?;
    setup.shows("late", "BucketNotEmpty").await?;
    setup.patch("late", json!({"spec": {"forceDelete": true}})).await?;
    setup.gone(&late).await?;

    for claim in [&spared, &taken, &late] {
        setup.nothing_left(claim).await?;
    }
    let left = store.keys(&bucket("spared")).await?;
    ensure!(left.len() == 1, "the retained bucket holds {left:?}");
    for name in ["taken", "late"] {
        let left = store.tags(&bucket(name)).await?;
        ensure!(left.is_none(), "bucket {} is still there", bucket(name));
    }
    Ok(())
}
