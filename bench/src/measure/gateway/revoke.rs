//! Time for which a key still works after its Secret was deleted.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use tokio::time::sleep;

use super::asks::{Asking, Tenant};
use super::case::{Case, Figures};
use super::environment::Environment;
use super::load::{Connection, Target, connect, told};
use super::message::Source;
use super::settings::Settings;
use super::subjects::Running;

/// Name of the 99th percentile.
pub(super) const REFUSAL: &str = "to the refusal, p99";
/// Interval of requests with the same key.
const LOOK: Duration = Duration::from_micros(500);

/// Revokes keys one after the other, and sends requests with each until one is refused.
pub(super) async fn play(
    settings: &Settings,
    environment: &Environment,
    running: &Running,
    figures: &mut Figures,
) -> Result<()> {
    let target = Target { address: running.address, tls: None };
    let mut connection = Source::new(connect(&target).await?);
    let mut times = Vec::new();
    for nth in 0..settings.revocations {
        let tenant = environment.further_tenant()?;
        times.push(
            one(settings, environment, running, &mut connection, &tenant)
                .await
                .with_context(|| format!("key {nth}"))?,
        );
    }
    figures.add_times(Case::Revoke, "to the refusal", &times);
    Ok(())
}

async fn one(
    settings: &Settings,
    environment: &Environment,
    running: &Running,
    connection: &mut Connection,
    tenant: &Tenant,
) -> Result<Duration> {
    let host = running.address.to_string();
    let ask = Asking { host: &host, now: Timestamp::now() }.buckets(tenant)?;
    let began = Instant::now();
    // Waits for the key to arrive by the watch. Until then the gateway may find it by a live read,
    // which is not measured.
    while told(connection, &ask).await?.0 != 200 {
        ensure!(began.elapsed() < settings.patience, "a new key is not known");
        sleep(LOOK).await;
    }
    sleep(20 * LOOK).await;
    let ended = Instant::now();
    environment.revoke(tenant)?;
    loop {
        let (status, text) = told(connection, &ask).await?;
        if status == 403 {
            ensure!(text.contains("<Code>InvalidAccessKeyId</Code>"), "{text}");
            return Ok(ended.elapsed());
        }
        ensure!(status == 200, "{status}: {text}");
        ensure!(
            ended.elapsed() < settings.patience,
            "a key still opens {} s after its end",
            settings.patience.as_secs()
        );
        sleep(LOOK).await;
    }
}
