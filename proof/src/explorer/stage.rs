//! The stage of the simulated world: takes the steps of a scenario.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use s3_sim::{Protection, Store, Versioning};
use serde_json::Value;
use stowage_operator::api::Endpoint;
use stowage_operator::api::wire::{self, Role};
use stowage_world::effects::{GatewayCalls, GatewayPlan, Plan};
use stowage_world::history::facts::label;
use stowage_world::history::{Facts, What};
use stowage_world::scenes::{self, Stage as _, StoreStep, Target};
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Operator, Options, World};
use tokio::time::{Instant, timeout};

use super::others;
use super::scenario::{Scenario, ScenarioStep, WorldStep};
use super::script::{self, HeldKey};
use super::tenants::Tenant;
use crate::oracles::Promise;

/// Interval of checking for a goal, in virtual time.
const GLANCE: Duration = Duration::from_secs(5);
/// Maximum time for a scenario to reach a goal, in virtual time.
pub(super) const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// Fields of internal Secrets that can be derived from the claim.
const DERIVED: [&str; 2] = ["quota_soft_bytes", "quota_hard_bytes"];

/// A field of credentials and bindings that can be copied from the record.
const OF_RECORD: &str = wire::ENDPOINT;

/// Reasons of `Ready` that name the obstacle to a deletion.
const BLOCKED: [&str; 3] = ["BucketNotEmpty", "DeletionBlocked", "Paused"];

/// Error: a goal was not reached in time.
pub(super) struct NeverCame;

/// A simulated world with the operators in it.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) operators: Vec<Operator>,
    /// Operators that were stopped.
    pub(super) stopped: Vec<Operator>,
    /// Highest number of operators that ran at once.
    pub(super) most_operators: usize,
    /// True if operators elect a leader.
    pub(super) elects: bool,
    /// Number of calls before faults could begin.
    pub(super) before: u64,
    /// Number of calls of gateways before faults could begin.
    gateways_before: u64,
    /// True if the plans have no fault: then each step must reach its goal.
    is_undisturbed: bool,
    /// Additional lag of each gateway.
    pub(super) further_lags: Vec<Duration>,
    /// The key that a tenant kept.
    kept: Option<HeldKey>,
    /// Lasting faults of the plan, from [`Self::begin`] on.
    lasting: Plan,
    /// Lasting faults of the plan of the gateways' calls.
    lasting_at_gateways: GatewayPlan,
    seed: u64,
    tenants: u64,
}

impl Stage {
    /// Creates the world of a scenario, in which operators may make at most `most_calls` calls.
    pub(super) fn new(
        scenario: &Scenario,
        seed: u64,
        (plan, gateway_plan): (Plan, GatewayPlan),
        most_calls: u64,
    ) -> Self {
        let is_undisturbed = plan.is_empty() && gateway_plan.is_empty();
        let (lasting, plan) = plan.lasting_and_once();
        let (lasting_at_gateways, gateway_plan) = gateway_plan.lasting_and_once();
        let options = (scenario.world)();
        let gateway_plan = options.gateway_plan.is_some().then_some(gateway_plan);
        let options = Options { seed, plan, history: true, gateway_plan, ..options };
        Self { is_undisturbed, lasting, lasting_at_gateways, ..Self::within(options, most_calls) }
    }

    /// Creates a world with these options, in which operators may make at most `most_calls` calls.
    pub(super) fn within(options: Options, most_calls: u64) -> Self {
        let (seed, elects) = (options.seed, options.elects);
        let further_lags = vec![Duration::ZERO; options.gateways];
        let world = World::new(options);
        world.gateway_effects.bound(most_calls);
        world.effects.bound(most_calls);
        Self {
            world,
            operators: Vec::new(),
            stopped: Vec::new(),
            most_operators: 0,
            elects,
            before: 0,
            gateways_before: 0,
            is_undisturbed: false,
            further_lags,
            kept: None,
            lasting: Plan::default(),
            lasting_at_gateways: GatewayPlan::default(),
            seed,
            tenants: 0,
        }
    }

    /// Takes a step that only a simulated world can take.
    async fn take_own(&mut self, step: &WorldStep) -> Result<(), NeverCame> {
        match step {
            WorldStep::Restore(target) => self.restore(*target),
            WorldStep::Age => self.age(),
            WorldStep::TenantAt(namespace, claim, gateway) => {
                self.hire(("bucketclaims", namespace, claim), *gateway);
            }
            WorldStep::AccessTenant(namespace, access) => self.hire(("bucketaccesses", namespace, access), 0),
            WorldStep::Keep(namespace, claim) => self.kept = script::read_key(&self.world, namespace, claim),
            WorldStep::FallBehind(gateway, lag) => self.fall_behind(*gateway, *lag),
            WorldStep::Requests { gateway, attempts, .. } => {
                script::play(&self.world, *gateway, self.kept.as_ref(), attempts()).await;
            }
            WorldStep::StartOperator => {
                let operator = self.world.start_operator();
                self.operators.push(operator);
                self.most_operators = self.most_operators.max(self.operators.len());
            }
            WorldStep::StopOperator => {
                let last = self.operators.pop();
                self.stop(last);
            }
            WorldStep::StopFirstOperator => {
                let first = (!self.operators.is_empty()).then(|| self.operators.remove(0));
                self.stop(first);
            }
            WorldStep::AnyOrder(steps) => return Box::pin(self.in_any_order(steps)).await,
            WorldStep::Outage(outage) => self.world.effects.begin_outage(outage.clone()),
            WorldStep::Recovery(host) => self.world.effects.end_outages(host),
            WorldStep::Soon(goal, time) => return self.until(*time, |facts| (goal.holds)(facts)).await,
            WorldStep::Leap(time) => tokio::time::advance(*time).await,
        }
        Ok(())
    }

    /// Returns true if a fault of the plan lasts until it is ended.
    pub(super) fn has_lasting(&self) -> bool {
        !self.lasting.is_empty()
    }

    /// Returns the promise that is broken if the user's goal is not reached.
    ///
    /// After a lasting fault it is L6: everything recovers once the fault is over. If a claim is
    /// being deleted and no condition names an obstacle it is L2: a deletion completes.
    pub(super) fn unreached(&self) -> Promise {
        let facts = self.world.facts();
        let hangs = |(namespace, name, claim): (_, _, &Value)| {
            !claim["metadata"]["deletionTimestamp"].is_null() && !BLOCKED.contains(&facts.ready(namespace, name))
        };
        if self.has_lasting() {
            Promise::L6
        } else if facts.all("bucketclaims").any(hangs) {
            Promise::L2
        } else {
            Promise::L1
        }
    }

    /// Returns the promise that is broken if the operator loops; it depends on whether a fault
    /// lasts.
    pub(super) fn unbounded(&self) -> Promise {
        if self.has_lasting() { Promise::E2 } else { Promise::L4 }
    }

    fn stop(&mut self, operator: Option<Operator>) {
        if let Some(operator) = operator {
            operator.stop();
            self.stopped.push(operator);
        }
    }

    fn begin(&mut self) {
        self.before = self.world.effects.count();
        self.gateways_before = self.world.gateway_effects.count();
        self.world.effects.arm(self.lasting.clone());
        self.world.gateway_effects.arm(self.lasting_at_gateways.clone());
    }

    /// Takes steps in an order that the seed decides, a few seconds apart.
    async fn in_any_order(&mut self, steps: &[ScenarioStep]) -> Result<(), NeverCame> {
        let mut order: Vec<&ScenarioStep> = steps.iter().collect();
        let mut random = fastrand::Rng::with_seed(self.seed);
        random.shuffle(&mut order);
        for step in order {
            Box::pin(self.take(step)).await?;
            self.pass(Duration::from_millis(random.u64(0..5_000))).await;
        }
        Ok(())
    }

    /// Waits until a condition is met, while the cluster's own controllers run.
    pub(super) async fn until(&self, patience: Duration, holds: impl Fn(&Facts) -> bool) -> Result<(), NeverCame> {
        let deadline = Instant::now() + patience;
        while !holds(&self.world.facts()) {
            // Everything due at a wall-clock time comes later by as much as the clock was set back
            // meanwhile.
            let behind: Duration = self.world.effects.fired().into_iter().map(others::is_behind).sum();
            if Instant::now() > deadline + behind {
                return Err(NeverCame);
            }
            self.pass(GLANCE).await;
        }
        Ok(())
    }

    /// Lets time pass while the cluster's own controllers run: every few seconds, or every few
    /// minutes if weeks pass.
    pub(super) async fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        let glance = GLANCE.max(time / 2_000);
        while Instant::now() < end {
            let (start, left) = (Instant::now(), end - Instant::now());
            // Until there is a write, only the last round has anything to do.
            let rounds = left.as_nanos().saturating_sub(1) / glance.as_nanos();
            let idle = glance * u32::try_from(rounds).unwrap_or(u32::MAX);
            if !idle.is_zero() && timeout(idle, self.world.news_for_controllers()).await.is_err() {
                continue;
            }
            let since = Duration::from_nanos_u128((Instant::now() - start).as_nanos() % glance.as_nanos());
            self.world.pass(left.min(glance - since)).await;
            self.world.run_cluster_controllers();
        }
    }

    /// Sends a user's patch. An error is noted and ignored: the object may be gone, or the API
    /// server may refuse the patch.
    async fn patch(&self, target: Target, patch: &Value) {
        let answer = self.api(target).patch(target.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        if let Err(error) = answer {
            self.world.note(What::Acted(format!("the user is told: {error}")));
        }
    }

    async fn delete(&self, target: Target) {
        if let Err(error) = self.api(target).delete(target.name, &DeleteParams::default()).await {
            self.world.note(What::Acted(format!("the user is told: {error}")));
        }
    }

    fn api(&self, target: Target) -> Api<DynamicObject> {
        target.kind.api(self.world.kube(), target.namespace)
    }

    /// Restores an object from a backup: the same, except for its UID, its status and its
    /// finalizers.
    fn restore(&self, target: Target) {
        self.world.cluster.recreate(target.kind.plural(), target.namespace, target.name);
    }

    /// Removes fields from the internal Secrets that an older version would not have written: all
    /// that can be derived.
    fn age(&self) {
        for (namespace, name, secret) in self.world.facts().all("secrets") {
            let role = label(secret, wire::ROLE);
            let internal = role.is_some_and(|role| role != Role::ConsumerSecret.as_str());
            let is_record = role == Some(Role::BucketRecord.as_str());
            if internal && namespace == OPERATOR_NAMESPACE {
                self.world.cluster.change("secrets", namespace, name, |secret| {
                    if let Some(data) = secret["data"].as_object_mut() {
                        let is_lost = |field: &str| DERIVED.contains(&field) || (field == OF_RECORD && !is_record);
                        data.retain(|field, _| !is_lost(field));
                    }
                });
            }
        }
    }

    fn at_store(&self, step: &StoreStep) {
        let store = &self.world.store;
        let protect = |bucket: &str, key: &str, legal_hold| {
            store.protect(bucket, key, Protection { retention: None, legal_hold });
        };
        match step {
            StoreStep::PutBucket { account, bucket } => {
                store.put_bucket(account, bucket);
            }
            StoreStep::LetIn { bucket, account } => {
                store.let_in(bucket, account);
            }
            StoreStep::PutObject { bucket, key } => {
                store.put_object(bucket, key, "data");
            }
            StoreStep::EnableVersioning { bucket } => {
                store.set_versioning(bucket, Versioning::Enabled);
            }
            StoreStep::StartUpload { bucket, key } => {
                store.start_upload(bucket, key);
            }
            StoreStep::Hold { bucket, key } => protect(bucket, key, true),
            StoreStep::Release { bucket, key } => protect(bucket, key, false),
            StoreStep::RemoveBucket { bucket } => {
                store.remove_bucket(bucket);
            }
            StoreStep::CopyBucket { bucket, endpoint } => self.copy_bucket(bucket, endpoint),
            StoreStep::PutBucketAt { account, bucket, endpoint } => {
                if let Some(store) = self.store_at(endpoint) {
                    store.put_bucket(account, bucket);
                }
            }
            StoreStep::AddKey { account, id, key } => store.add_account(account, id, key),
            StoreStep::RevokeKey { id } => {
                store.revoke_key(id);
            }
        }
    }

    /// Returns the store at an endpoint; `None` for an invalid or unknown one, to which nothing is
    /// copied.
    fn store_at(&self, endpoint: &str) -> Option<Store> {
        self.world.store_at(&Endpoint::parse(endpoint).ok()?)
    }

    fn copy_bucket(&self, name: &str, endpoint: &str) {
        let store = &self.world.store;
        let (Some(bucket), Some(other)) = (store.bucket(name), self.store_at(endpoint)) else { return };
        other.put_bucket(ADMIN_ACCOUNT, name);
        other.set_tags(name, bucket.tags);
        for (key, bytes) in store.objects(name) {
            other.put_object(name, &key, bytes);
        }
    }

    fn fall_behind(&mut self, gateway: usize, lag: Duration) {
        if let (Some(behind), Some(gateway)) = (self.further_lags.get_mut(gateway), self.world.gateways().get(gateway))
        {
            *behind = lag;
            gateway.fall_behind(lag);
        }
    }

    /// Returns the gateways' calls and clears their trace; for a world that has ended.
    pub(super) fn take_gateway_calls(&self, until: u64) -> GatewayCalls {
        let effects = &self.world.gateway_effects;
        let (fired, before) = (effects.fired(), self.gateways_before);
        GatewayCalls { trace: effects.take_trace(), before, until, fired }
    }

    fn hire(&mut self, of: (&'static str, &'static str, &'static str), at: usize) {
        let (plural, namespace, claim) = of;
        let Some(chronicle) = self.world.chronicle() else { return };
        let world = &self.world;
        let Some(gateway) = world.gateways().get(at).cloned() else { return };
        let (cluster, clock) = (world.cluster.clone(), world.clock.clone());
        self.tenants += 1;
        let tenant = Tenant { cluster, gateway, at, chronicle, clock, plural, namespace, claim };
        let seed = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(self.tenants);
        self.world.spawn(tenant.work(seed));
    }

    /// Changes an annotation of every claim as a third party, which has no effect except that the
    /// operator reconciles all of them.
    pub(super) fn touch_claims(&self, facts: &Facts, touch: u32) {
        for (namespace, name, _) in facts.all("bucketclaims") {
            self.world.cluster.change("bucketclaims", namespace, name, |claim| {
                claim["metadata"]["annotations"]["example.org/touched"] = touch.to_string().into();
            });
        }
    }
}

impl scenes::Stage for Stage {
    type More = WorldStep;
    type Failed = NeverCame;

    async fn take(&mut self, step: &ScenarioStep) -> Result<(), NeverCame> {
        let waits = matches!(
            step,
            ScenarioStep::Until(_)
                | ScenarioStep::Settle(..)
                | ScenarioStep::Pass(_)
                | ScenarioStep::More(WorldStep::Soon(..))
        );
        if !waits {
            self.world.note(What::Acted(step.to_string()));
        }
        match step {
            ScenarioStep::Apply(yaml) => self.world.apply(&self.world.kube(), yaml).await,
            ScenarioStep::Patch(target, patch) => self.patch(*target, patch).await,
            ScenarioStep::Delete(target) => self.delete(*target).await,
            ScenarioStep::Store(step) => self.at_store(step),
            ScenarioStep::Tenant(namespace, claim) => self.hire(("bucketclaims", namespace, claim), 0),
            ScenarioStep::Begin => self.begin(),
            ScenarioStep::Until(goal) => return self.until(PATIENCE, |facts| (goal.holds)(facts)).await,
            ScenarioStep::Settle(time, goal) => {
                self.pass(*time).await;
                if self.is_undisturbed && !(goal.holds)(&self.world.facts()) {
                    return Err(NeverCame);
                }
            }
            ScenarioStep::Pass(time) => self.pass(*time).await,
            ScenarioStep::More(step) => return self.take_own(step).await,
        }
        Ok(())
    }
}
