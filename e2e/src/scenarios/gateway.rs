//! Faults between the gateway and the store. No call of the operator passes there.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use serde_json::json;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

use super::whole::whole;
use crate::tenant::Tenant;

/// Faults for the gateway's calls; each use of the bucket is a PutObject and a ListObjectsV2.
pub(super) const PLAN: &str = "s3:PutObject@2 lost-answer; s3:ListObjectsV2@3 unreachable; s3:PutObject@5 slow-down; \
    s3:PutObject@7 internal-error; s3:ListObjectsV2@8 access-denied";
/// Uses with a fault, counted from one. If the first call of a use fails, the second one is not
/// made.
const SPOILT: [usize; 5] = [2, 4, 5, 7, 11];
const USES: usize = 12;
const CLAIM: &str = "data";

/// Checks that each fault fails exactly the use that meets it, and that the claim doesn't change.
pub(super) async fn faults(environment: &Environment) -> Result<String> {
    let setup = environment.setup("gateway").await?;
    let gateway = setup.start_gateway_behind_proxy().await?;
    let mut operator = setup.start_operator_behind(&gateway.url(), &[]).await?;
    let told = setup.under(&mut operator, async {
        setup.claim(CLAIM, json!({})).await?;
        let claim = setup.ready(CLAIM).await?;
        whole(&setup, &claim).await?;
        gateway.proxy()?.set_plan(PLAN.parse()?)?;
        let spoilt = uses(&setup).await?;
        ensure!(spoilt == SPOILT, "uses {spoilt:?} failed, and not {SPOILT:?}");
        let unmet = gateway.proxy()?.effects().unfired();
        ensure!(unmet.is_empty(), "no call met {unmet}");
        let after = setup.claims().get(CLAIM).await.context("no claim")?;
        ensure!(after.resource_version() == claim.resource_version(), "the claim was changed");
        Ok(format!("{} of {USES} uses failed, each by its own fault, and the claim is as it was", spoilt.len()))
    });
    let told = told.await?;
    operator.terminate().await?;
    Ok(told)
}

/// Uses the bucket [`USES`] times; returns the numbers of the failed uses, counted from one.
async fn uses(setup: &Setup<'_>) -> Result<Vec<usize>> {
    let secret = setup.secrets(&setup.tenant).get(&format!("{CLAIM}-s3")).await.context("no consumer Secret")?;
    let tenant = Tenant::of(&secret)?;
    let mut failed = Vec::new();
    for number in 1..=USES {
        if tenant.use_bucket(number).await.is_err() {
            failed.push(number);
        }
    }
    Ok(failed)
}
