//! The [`Options`] type.

use std::time::Duration;

use s3_sim::Dialect;
use stowage_operator::api::Publishing;
use stowage_operator::plan::Reach;

use crate::backends::BackendStore;
use crate::effects::{GatewayPlan, Plan};
use crate::foreign::Foreign;

/// Options of a simulated world: its operators, gateways, stores and faults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of everything random in the cluster: UIDs, generated names.
    pub seed: u64,
    /// Faults of the operator's calls.
    pub plan: Plan,
    /// Maximum number of objects that the operator deletes from a bucket in one pass.
    pub purge_slice: u32,
    /// Maximum number of concurrent passes of the operator.
    pub max_concurrent_reconciles: u16,
    /// Interval at which the operator looks at objects at rest.
    pub resync_interval: Duration,
    /// Settings for the contents of consumer Secrets.
    pub publishing: Publishing,
    /// Number of earlier writes in the cluster. resourceVersions continue from it.
    pub writes_before: u64,
    /// S3 dialect of the stores, except the region, which is the backend's.
    pub dialect: Dialect,
    /// Time after which each operator process ends by itself, as from a bug; `None` = it does not.
    pub operator_ends_after: Option<Duration>,
    /// True to record events for [`World::history`](crate::World::history).
    pub history: bool,
    /// Backends with a store, which the gateway serves. Backends with the same endpoint share a
    /// store.
    pub backends: Vec<BackendStore>,
    /// Number of gateways, at least one.
    pub gateways: usize,
    /// True if operators elect a leader.
    pub elects: bool,
    /// Namespaces that each operator serves, in the order of their starts. The last value applies
    /// to all further operators.
    pub reaches: Vec<Reach>,
    /// Support for accesses.
    pub accesses: Accesses,
    /// Definitions of ObjectBucketClaims; with `None` the operator does not serve them.
    pub foreign: Option<Foreign>,
    /// Faults of the gateways' calls. Without a plan, the calls are neither numbered nor recorded.
    pub gateway_plan: Option<GatewayPlan>,
    /// Time after which a gateway's watch ends and is restarted, which is a sign of life; `None` =
    /// it never ends, which is the least work.
    pub gateway_watch: Option<Duration>,
}

/// Support for accesses in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// Neither cluster nor operator know accesses. Each call is the same as in versions without
    /// accesses.
    Absent,
    /// The operator would serve accesses, but the cluster does not have the kind.
    Unknown,
    /// Accesses can be created.
    Served,
}

impl Default for Options {
    /// Returns options without faults, with the operator's defaults and one backend,
    /// [`BackendStore::main`].
    fn default() -> Self {
        Self {
            seed: 0,
            plan: Plan::default(),
            purge_slice: 10_000,
            max_concurrent_reconciles: 16,
            resync_interval: Duration::from_secs(600),
            publishing: Publishing::default(),
            writes_before: 0,
            dialect: Dialect::default(),
            operator_ends_after: None,
            history: false,
            backends: vec![BackendStore::main()],
            gateways: 1,
            elects: false,
            reaches: vec![Reach::Cluster],
            accesses: Accesses::Absent,
            foreign: None,
            gateway_plan: None,
            gateway_watch: None,
        }
    }
}
