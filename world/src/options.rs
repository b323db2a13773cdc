//! What a world is made with.

use std::time::Duration;

use s3_sim::Dialect;
use stowage_operator::api::Publishing;
use stowage_operator::plan::Reach;

use crate::backends::BackendStore;
use crate::effects::{GatewayPlan, Plan};
use crate::foreign::Foreign;

/// What a world is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of everything that the cluster draws: UIDs, generated names.
    pub seed: u64,
    /// Faults of the operator's calls.
    pub plan: Plan,
    /// Most objects that the operator deletes from a bucket in one pass.
    pub purge_slice: u32,
    /// Most passes of the operator that run at once.
    pub max_concurrent_reconciles: u16,
    /// How often the operator looks at what is at rest.
    pub resync_interval: Duration,
    /// What may stand in consumer Secrets.
    pub publishing: Publishing,
    /// How many writes the cluster has seen before: resourceVersions go on from there.
    pub writes_before: u64,
    /// The reading of S3 that the stores follow, but for the region, which is that of the backend.
    pub dialect: Dialect,
    /// After how long each life of the operator comes to an end of itself, as by a bug; it doesn't
    /// if absent.
    pub operator_ends_after: Option<Duration>,
    /// Whether what happens is noted, for [`World::history`](crate::World::history).
    pub history: bool,
    /// The backends that there are stores for, and that the gateway serves: those of one endpoint
    /// share a store.
    pub backends: Vec<BackendStore>,
    /// How many gateways there are, at least one.
    pub gateways: usize,
    /// Whether operators elect the one that works.
    pub elects: bool,
    /// How far operators reach, in the order in which they are started; the last holds for all that
    /// follow.
    pub reaches: Vec<Reach>,
    /// Whether there are accesses.
    pub accesses: Accesses,
    /// Whose definitions of ObjectBucketClaims there are; without any the operator serves none.
    pub foreign: Option<Foreign>,
    /// Faults of the gateways' calls; without a plan these are neither numbered nor noted.
    pub gateway_plan: Option<GatewayPlan>,
    /// After how long a watch of a gateway ends and is begun again, which is a sign of life.
    /// Without end unless given, which is least to do.
    pub gateway_watch: Option<Duration>,
}

/// Whether a world has accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// Neither cluster nor operator know of them: each call is as it was before there were any.
    Absent,
    /// The operator would serve them, and the cluster doesn't know the kind.
    Unknown,
    /// There can be some.
    Served,
}

impl Default for Options {
    /// No faults, the operator's own defaults, and one backend: [`BackendStore::main`].
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
