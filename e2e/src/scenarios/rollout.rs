//! Gateways are replaced while they are in use, as by a Deployment: a new one becomes ready, and
//! then an old one is terminated.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::{try_join, try_join_all};
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::gateway::Gateway;
use tokio::time::{interval, sleep};

use crate::balancer::Balancer;
use crate::tenant::Tenant;

const CLAIM: &str = "data";
/// Number of gateways at rest, each of which is replaced.
const REPLICAS: usize = 2;
/// Number of tenants that use the bucket at the same time, each over separate connections.
const TENANTS: usize = 4;
/// Interval of uses per tenant. A use is two requests, so the total is 200 requests a second.
const PACE: Duration = Duration::from_millis(40);
/// Time for which a terminated gateway still gets connections: a Service is updated later.
const LATE: Duration = Duration::from_secs(1);
/// Seconds for which a terminated gateway accepts connections: longer than [`LATE`].
const DRAIN: u64 = 2;

/// Replaces two gateways under 200 requests a second, none of which may fail.
pub(super) async fn gateways(environment: &Environment) -> Result<String> {
    let setup = environment.setup("rollout").await?;
    let balancer = Balancer::start().await?;
    let mut running = Vec::new();
    for _ in 0..REPLICAS {
        running.push(setup.start_gateway_that_drains(DRAIN).await?);
    }
    list(&balancer, &running)?;
    let mut operator = setup.start_operator_behind(&balancer.url(), &[]).await?;
    let told = setup.under(&mut operator, in_use(&setup, &balancer, &mut running)).await?;
    operator.terminate().await?;
    for gateway in running {
        gateway.end().await?;
    }
    Ok(told)
}

async fn in_use(setup: &Setup<'_>, balancer: &Balancer, running: &mut Vec<Gateway>) -> Result<String> {
    setup.claim(CLAIM, json!({})).await?;
    setup.ready(CLAIM).await?;
    let ended = Cell::new(false);
    let replaced = async {
        let replaced = replace(setup, balancer, running).await;
        ended.set(true);
        replaced
    };
    let start = Instant::now();
    let using = try_join_all((0..TENANTS).map(|_| uses(setup, &ended)));
    let ((), uses) = try_join(replaced, using).await?;
    let (uses, seconds) = (uses.iter().sum::<usize>(), start.elapsed().as_secs_f64());
    let requests = 2 * uses;
    // Tenants are slower than their interval on a slow machine, and too low a load would prove
    // nothing.
    let least = 0.5 * 2.0 * TENANTS as f64 / PACE.as_secs_f64();
    let rate = requests as f64 / seconds;
    ensure!(rate >= least, "there were {rate:.0} requests a second, and {least:.0} at least are to be shown");
    Ok(format!("{REPLICAS} gateways replaced under {requests} requests, {rate:.0} a second: 0 failed"))
}

/// Replaces each gateway by a new one.
async fn replace(setup: &Setup<'_>, balancer: &Balancer, running: &mut Vec<Gateway>) -> Result<()> {
    for _ in 0..REPLICAS {
        running.push(setup.start_gateway_that_drains(DRAIN).await?);
        list(balancer, running)?;
        let old = running.remove(0);
        let hears = async {
            sleep(LATE).await;
            list(balancer, running)
        };
        try_join(old.end(), hears).await?;
    }
    Ok(())
}

fn list(balancer: &Balancer, gateways: &[Gateway]) -> Result<()> {
    let addresses: Result<Vec<_>> = gateways.iter().map(Gateway::address).collect();
    balancer.list(&addresses?);
    Ok(())
}

/// Uses the bucket until `ended`; returns the number of uses.
async fn uses(setup: &Setup<'_>, ended: &Cell<bool>) -> Result<usize> {
    let secret = setup.secrets(&setup.tenant).get(&format!("{CLAIM}-s3")).await.context("no consumer Secret")?;
    let tenant = Tenant::of(&secret)?;
    let (mut count, mut pace) = (0, interval(PACE));
    while !ended.get() {
        pace.tick().await;
        tenant.use_bucket(count).await.with_context(|| format!("use {count} while gateways are replaced"))?;
        count += 1;
    }
    Ok(count)
}
