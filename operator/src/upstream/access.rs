//! Configuration shared by all clients of stores.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::Unlabelled;
use crate::mandate::Mandate;
use crate::metrics::Metrics;

use super::connect::Connect;

/// Limits that keep one slow store from delaying the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of concurrent calls per backend, not counting probes.
    pub calls: usize,
    /// Deadline of each call.
    pub timeout: Duration,
}

/// Sources of admin credentials, and dependencies of all store clients.
pub struct Access {
    /// Client to read the Secrets.
    pub client: Client,
    /// Factory of HTTP clients.
    pub connect: Arc<dyn Connect>,
    /// Limits of every client.
    pub limits: Limits,
    /// Permission for calls that change something.
    pub mandate: Mandate,
    /// Namespaces that may contain admin and CA Secrets.
    pub namespaces: Vec<String>,
    /// Policy for admin Secrets whose owner has not opted in.
    pub unlabelled: Unlabelled,
    /// Receives the name of a backend when its circuit closes or lets a trial through.
    pub recoveries: UnboundedSender<String>,
    /// Metrics of the calls.
    pub metrics: Metrics,
}
