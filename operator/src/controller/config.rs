//! What an operator is given when it starts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use crate::api::{Gateway, Publishing, Unlabelled};
use crate::metrics::Metrics;
use crate::plan::Reach;
use crate::upstream::{Connect, Limits};
use crate::{Clock, Election, Uptime};

/// What an operator is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Namespace of the internal Secrets.
    pub operator_namespace: String,
    /// Namespace of the ConfigMaps that gateways write; `None` = that of the internal Secrets.
    pub usage_namespace: Option<String>,
    /// The namespaces whose claims and accesses are served.
    pub reach: Reach,
    /// Namespaces besides it that may hold admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// Whether admin Secrets are used whose owner says nothing of what they are for.
    pub unlabelled_credentials: Unlabelled,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// What may stand in consumer Secrets.
    pub publishing: Publishing,
    /// What tells this cluster's buckets from another's; the UID of `kube-system` when absent.
    pub installation: Option<String>,
    /// Claims worked on at once.
    pub max_concurrent_reconciles: u16,
    /// Bounds on calls to each store.
    pub limits: Limits,
    /// Most objects that one pass deletes from a bucket.
    pub purge_slice: u32,
    /// Nothing is changed, neither in the cluster nor at a store: what would be done is logged.
    pub read_only: bool,
    /// Which of several operators works; without it this one does, whoever else is there.
    pub election: Option<Election>,
    /// Whether BucketAccesses are served. Where the cluster doesn't know the kind yet, its watch
    /// waits for that, and everything else goes on.
    pub accesses: bool,
    /// What storage classes call the provisioner of ObjectBucketClaims; without it none is served.
    pub obc: Option<String>,
    /// Distance at which everything is looked at again, jittered.
    pub resync_interval: Duration,
}

/// What an operator works with.
#[derive(Clone)]
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// HTTP clients for the stores.
    pub connect: Arc<dyn Connect>,
    /// The time of day.
    pub clock: Clock,
    /// What an election goes by.
    pub uptime: Uptime,
    /// Where what happens is counted. Of one operator: not to be used twice.
    pub metrics: Metrics,
    /// Told when every cache is filled and work begins, or when it is known who works.
    pub ready: Option<tokio::sync::watch::Sender<bool>>,
}
