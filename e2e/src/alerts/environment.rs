//! Environment of a scene: a simulated world with operator, gateway, and a tenant that uses them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use aws_sdk_s3::Client;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::Value;
use stowage_gateway::server::Gauges;
use stowage_operator::api::BucketClaim;
use stowage_testbed::objects::text;
use stowage_world::effects::{GatewayPlan, Plan};
use stowage_world::fixtures::BASE;
use stowage_world::{OPERATOR_NAMESPACE, Operator, Options, World};
use tokio::time::Instant;

use super::scrapes::{INTERVAL, Scrapes, Target};

pub(super) const OPERATOR: Target = Target { job: "stowage-operator", pod: "stowage-operator-1" };
pub(super) const GATEWAY: Target = Target { job: "stowage-gateway-metrics", pod: "stowage-gateway-1" };
/// The tenant's namespace.
pub(super) const TENANT: &str = "team-a";
/// Region of the store in a world.
const REGION: &str = "us-east-1";

/// A world with Prometheus scraping it.
pub(super) struct Environment {
    pub(super) world: World,
    pub(super) operator: Operator,
    pub(super) scrapes: Scrapes,
    /// True if Prometheus can scrape the operator.
    pub(super) operator_answers: bool,
    /// True if Prometheus can scrape the gateway.
    pub(super) gateway_answers: bool,
}

impl Environment {
    /// Creates a world with one backend and an operator that has just started.
    pub(super) async fn new(options: Options) -> Self {
        let mut world = World::new(options);
        world.apply(&world.kube(), BASE).await;
        let operator = world.start_operator();
        Self { world, operator, scrapes: Scrapes::default(), operator_answers: true, gateway_answers: true }
    }

    /// Advances the time by minutes, with scrapes.
    pub(super) async fn watch(&mut self, minutes: u64) {
        for _ in 0..minutes * 60 / INTERVAL {
            self.tick().await;
        }
    }

    /// Advances the time to the next scrape, and takes it.
    pub(super) async fn tick(&mut self) {
        self.world.pass(Duration::from_secs(INTERVAL)).await;
        self.scrape();
    }

    /// Like [`watch`](Self::watch), with a tenant reading one object before each scrape.
    pub(super) async fn watch_reader(&mut self, minutes: u64, reader: &Client, bucket: &str, key: &str) {
        for _ in 0..minutes * 60 / INTERVAL {
            // Errors are ignored: the gateway's metrics count them.
            let _ = reader.get_object().bucket(bucket).key(key).send().await;
            self.tick().await;
        }
    }

    /// Takes a scrape.
    pub(super) fn scrape(&mut self) {
        let of_gateway = || self.world.gateway().production().measure(Instant::now(), 0, &Gauges::default());
        let pages = [
            (OPERATOR, self.operator_answers.then(|| self.operator.metrics())),
            (GATEWAY, self.gateway_answers.then(of_gateway)),
        ];
        self.scrapes.take(OPERATOR_NAMESPACE, &pages);
    }

    pub(super) async fn apply(&self, yaml: &str) {
        self.world.apply(&self.world.kube(), yaml).await;
    }

    fn claims(&self) -> Api<BucketClaim> {
        Api::namespaced(self.world.kube(), TENANT)
    }

    /// Patches the tenant's claim of this name.
    pub(super) async fn edit(&self, name: &str, patch: &Value) -> Result<()> {
        let done = self.claims().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        done.map(drop).context("the claim can't be edited")
    }

    /// Requests the deletion of the tenant's claim of this name.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        self.claims().delete(name, &DeleteParams::default()).await.map(drop).context("the claim can't be deleted")
    }

    /// Waits until the tenant's claim is bound, and returns its bucket and a client with its key.
    pub(super) async fn bound(&mut self, name: &str) -> Result<(String, Client)> {
        let secrets: Api<Secret> = Api::namespaced(self.world.kube(), TENANT);
        for _ in 0..10 {
            self.watch(1).await;
            let secret = secrets.get_opt(&format!("{name}-s3")).await.context("its Secret can't be read")?;
            let Some(secret) = secret else { continue };
            let [bucket, id, key] =
                ["BUCKET_NAME", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|field| text(&secret, field));
            return Ok((bucket, self.world.tenant(&id, &key, REGION)));
        }
        anyhow::bail!("{name} was not bound within ten minutes")
    }

    /// Injects faults into the operator's calls from now on, in the syntax of plans.
    pub(super) fn break_operator(&self, plan: &str) -> Result<()> {
        self.world.effects.arm(plan.parse::<Plan>().with_context(|| format!("`{plan}` is no plan"))?);
        Ok(())
    }

    /// Injects faults into the gateway's calls from now on.
    pub(super) fn break_gateway(&self, plan: &str) -> Result<()> {
        self.world.gateway_effects.arm(plan.parse::<GatewayPlan>().with_context(|| format!("`{plan}` is no plan"))?);
        Ok(())
    }
}
