//! One fault at a time, each with a separate claim, which reaches the same result as without
//! faults.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_world::effects::{Line, Plan, PlanError};

use super::whole::whole;

/// A case, with the plan for the operator's calls.
enum Case {
    /// A claim is created while an operator runs.
    Comes(&'static str),
    /// A claim is deleted with its bucket and the objects in it.
    Goes(&'static str),
    /// An operator starts, and then a claim is created.
    Watched(&'static str),
}

use Case::{Comes, Goes, Watched};

const CASES: [Case; 20] = [
    Comes("kube:patch bucketclaims@1 lost-answer"),
    Comes("kube:create secrets@1 lost-answer"),
    Comes("kube:create secrets@2 lost-answer"),
    Comes("kube:create secrets@3 lost-answer"),
    Comes("kube:patch secrets@1 lost-answer"),
    Comes("kube:patch bucketclaims/status@1 lost-answer"),
    Comes("s3:CreateBucket@1 lost-answer"),
    Comes("s3:PutBucketTagging@1 lost-answer"),
    Comes("s3:CreateBucket@1 hang"),
    Comes("kube:patch bucketclaims@1 conflict"),
    Comes("kube:patch secrets@1 conflict"),
    Comes("kube:patch bucketclaims/status@1 conflict"),
    Goes("kube:delete secrets@1 lost-answer"),
    Goes("kube:patch secrets@1 lost-answer"),
    Goes("kube:patch bucketclaims@1 lost-answer"),
    Goes("s3:DeleteObjects@1 lost-answer"),
    Goes("s3:DeleteBucket@1 lost-answer"),
    Goes("s3:DeleteBucket@1 hang"),
    Watched("kube:watch bucketclaims@1 watch-cut"),
    Watched("kube:watch bucketclaims@1 watch-gone"),
];

/// Deadline of store calls, in seconds, which is also the duration of a hanging call.
const DEADLINE: [&str; 2] = ["--upstream-timeout", "2"];

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("faults").await?;
    let mut operator = setup.start_operator(&DEADLINE).await?;
    for (index, case) in CASES.iter().enumerate() {
        let (Comes(text) | Goes(text) | Watched(text)) = case;
        if matches!(case, Watched(_)) {
            operator.kill().await?;
            setup.fault_proxy()?.plan(read(text)?, "create").await?;
            operator = setup.start_operator(&DEADLINE).await?;
        }
        let name = format!("claim-{index:02}");
        let played = setup.under(&mut operator, met(&setup, &name, case)).await;
        played.context(*text)?;
    }
    operator.kill().await?;
    Ok(format!("{} faults, and each claim came to its end", CASES.len()))
}

fn read(text: &str) -> Result<Plan, PlanError> {
    text.parse()
}

/// Plays one case. Fails if its fault has met no call by the end.
async fn met(setup: &Setup<'_>, name: &str, case: &Case) -> Result<()> {
    let fault_proxy = setup.fault_proxy()?;
    match case {
        Comes(text) => {
            fault_proxy.plan(read(text)?, "create").await?;
            comes(setup, name).await?;
        }
        Goes(text) => goes(setup, name, read(text)?).await?,
        Watched(_) => {
            let hit = |line: &Line| line.fault.is_some() && line.world == Some(200);
            fault_proxy
                .until(setup.environment.patience, "watch", |calls| calls.of_this_life().iter().any(hit))
                .await?;
            comes(setup, name).await?;
        }
    }
    fault_proxy.all_met().await
}

async fn comes(setup: &Setup<'_>, name: &str) -> Result<()> {
    setup.claim(name, json!({})).await?;
    let claim = setup.ready(name).await?;
    whole(setup, &claim).await.map(|_| ())
}

async fn goes(setup: &Setup<'_>, name: &str, plan: Plan) -> Result<()> {
    let (fault_proxy, store) = (setup.fault_proxy()?, &setup.environment.store);
    setup.claim(name, json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    let claim = setup.ready(name).await?;
    let bucket = whole(setup, &claim).await?.bucket;
    store.put(&bucket, 1).await?;
    fault_proxy.plan(plan, "delete-forced").await?;
    setup.delete(&claim).await?;
    setup.nothing_left(&claim).await?;
    let left = store.tags(&bucket).await?;
    ensure!(left.is_none(), "bucket {bucket} is still there");
    Ok(())
}
