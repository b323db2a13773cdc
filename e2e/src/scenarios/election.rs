//! Leader election: the leader is killed or terminated, and another operator takes over.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::wait::await_condition;
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use tokio::time::timeout;

const ELECTS: [&str; 1] = ["--leader-elect"];
/// Time limit for a bound claim after the leader was killed: the Lease expires after 45 s.
const AFTER_KILL: Duration = Duration::from_secs(50);
/// Time limit for a new leader after an idle leader received SIGTERM.
const AFTER_END: Duration = Duration::from_secs(1);

/// Kills the leader, and then terminates its successor, with other operators on standby.
pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("election").await?;
    let mut first = setup.start_operator(&ELECTS).await?;
    setup.under(&mut first, bound(&setup, "first")).await?;
    let killed = holder(&setup).await?;
    let mut second = setup.start_another_operator(&ELECTS).await?;
    let began = Instant::now();
    first.kill().await?;
    setup.under(&mut second, bound(&setup, "second")).await?;
    let after_kill = began.elapsed();
    ensure!(after_kill <= AFTER_KILL, "after a kill a claim was bound in {:.1} s", after_kill.as_secs_f64());
    let ended = holder(&setup).await?;
    ensure!(ended != killed, "the Lease names {killed}, who was killed");

    let mut third = setup.start_another_operator(&ELECTS).await?;
    // Time to get into standby.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    let (followed, terminated) = tokio::join!(follows(&setup, &ended, began), second.terminate());
    terminated?;
    let after_end = followed?;
    ensure!(after_end <= AFTER_END, "after an orderly end another led in {:.2} s", after_end.as_secs_f64());
    setup.under(&mut third, bound(&setup, "third")).await?;
    third.terminate().await?;
    Ok(format!(
        "a claim was bound {:.1} s after the leader was killed; another led {:.2} s after one was told to end",
        after_kill.as_secs_f64(),
        after_end.as_secs_f64()
    ))
}

async fn bound(setup: &Setup<'_>, name: &str) -> Result<()> {
    setup.claim(name, json!({})).await?;
    setup.ready(name).await.map(drop)
}

fn leases(setup: &Setup<'_>) -> Api<Lease> {
    Api::namespaced(setup.environment.client.clone(), &setup.system)
}

fn held_by(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns the holder of the Lease.
async fn holder(setup: &Setup<'_>) -> Result<String> {
    let lease = leases(setup).get("stowage-operator").await.context("can't read the Lease")?;
    held_by(&lease).map(str::to_owned).context("the Lease names nobody")
}

/// Waits until the Lease has another holder, and returns the time since `began`.
async fn follows(setup: &Setup<'_>, before: &str, began: Instant) -> Result<Duration> {
    let other =
        |lease: Option<&Lease>| lease.is_some_and(|lease| held_by(lease).is_some_and(|holder| holder != before));
    let waited = timeout(setup.environment.patience, await_condition(leases(setup), "stowage-operator", other)).await;
    waited.context("nobody followed")?.context("can't watch the Lease")?;
    Ok(began.elapsed())
}
