//! What all clients of stores have in common.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::Unlabelled;
use crate::mandate::Mandate;
use crate::metrics::Metrics;

use super::connect::Connect;

/// What keeps one store from costing the others anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls under way at once, per backend; a probe is made besides.
    pub calls: usize,
    /// Deadline of each call.
    pub timeout: Duration,
}

/// Where admin credentials may come from.
pub struct Access {
    /// Reads the Secrets.
    pub client: Client,
    /// Makes the HTTP clients.
    pub connect: Arc<dyn Connect>,
    /// Bounds of every client.
    pub limits: Limits,
    /// Whether calls may be made that change something.
    pub mandate: Mandate,
    /// Namespaces that admin and CA Secrets may be in.
    pub namespaces: Vec<String>,
    /// Whether an admin Secret is used whose owner says nothing of what it is for.
    pub unlabelled: Unlabelled,
    /// Told the name of a backend when its store, having been given a rest, can be asked again.
    pub recoveries: UnboundedSender<String>,
    /// Where calls are counted.
    pub metrics: Metrics,
}
