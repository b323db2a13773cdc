//! Configuration and dependencies of an operator.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use crate::api::{Gateway, Publishing, Unlabelled};
use crate::metrics::Metrics;
use crate::plan::Reach;
use crate::upstream::{Connect, Limits};
use crate::{Clock, Election, Uptime};

/// Configuration of an operator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Namespace of the internal Secrets.
    pub operator_namespace: String,
    /// Namespace of the ConfigMaps that gateways write; `None` means that of the internal Secrets.
    pub usage_namespace: Option<String>,
    /// The namespaces whose claims and accesses are served.
    pub reach: Reach,
    /// Namespaces in addition to the operator's own that may contain admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// Policy for admin Secrets whose owner has not opted in.
    pub unlabelled_credentials: Unlabelled,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// Allowed content of consumer Secrets.
    pub publishing: Publishing,
    /// Distinguishes this cluster's buckets from those of another; default is the UID of
    /// `kube-system`.
    pub installation: Option<String>,
    /// Number of claims reconciled at once.
    pub max_concurrent_reconciles: u16,
    /// Limits of calls to each store.
    pub limits: Limits,
    /// Maximum number of objects that one pass deletes from a bucket.
    pub purge_slice: u32,
    /// Changes nothing in the cluster or at a store, and logs what would be done.
    pub read_only: bool,
    /// Leader election; `None` means that this operator always works.
    pub election: Option<Election>,
    /// Serves BucketAccesses. If the CRD is not installed yet, the watch waits for it and
    /// everything else works.
    pub accesses: bool,
    /// The `provisioner` of storage classes whose ObjectBucketClaims are served; `None` serves
    /// none.
    pub obc: Option<String>,
    /// Interval between two reconciliations of an unchanged object, jittered.
    pub resync_interval: Duration,
}

/// Dependencies of an operator.
#[derive(Clone)]
pub struct Parts {
    /// Client of the API server.
    pub client: Client,
    /// HTTP clients for the stores.
    pub connect: Arc<dyn Connect>,
    /// Wall clock.
    pub clock: Clock,
    /// Monotonic clock of the election.
    pub uptime: Uptime,
    /// Metrics of this operator; must not be shared with another.
    pub metrics: Metrics,
    /// Set once all caches are filled and work begins, or once the leader is known.
    pub ready: Option<tokio::sync::watch::Sender<bool>>,
}
