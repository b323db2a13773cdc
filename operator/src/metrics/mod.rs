//! Metrics (spec §4), in the OpenMetrics text format.
//!
//! Metrics that controller-runtime has too keep its names and meanings, so that its dashboards
//! work. Label sets are closed: controllers, phases, policies, triggers, operations, results, and
//! the names of backends, whose series are removed with them. A claim, a bucket or a namespace is
//! never a label. Gauges of cached objects are computed from the caches on each scrape
//! (`controller::gauges`), so that the two can't drift apart.

mod family;
mod labels;
mod passes;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::api::Deletion;
use crate::kubernetes::CONTROLLER;
use crate::plan::Trigger;

pub(crate) use labels::{BackendLabels, CallResult, PassResult};
pub(crate) use passes::ControllerMetrics;

use family::{Buckets, register};
use labels::{LeaderLabels, PolicyLabels, TriggerLabels, UpstreamLabels};
use passes::Controllers;

/// The metrics of one operator. Clones share their state.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    controllers: Controllers,
    upstream: Family<UpstreamLabels, Histogram, Buckets>,
    /// The operations in `upstream`, needed to remove all series of a deleted backend.
    operations: Mutex<BTreeSet<&'static str>>,
    finalizers: Family<PolicyLabels, Histogram, Buckets>,
    purged: Family<BackendLabels, Counter>,
    rotations: Family<TriggerLabels, Counter>,
    leader: Family<LeaderLabels, Gauge>,
    current: Current,
}

/// Collector over the current caches. They are replaced when a process becomes the leader again.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<Option<Box<dyn Collector>>>>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl Collector for Current {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        self.0.lock().as_ref().map_or(Ok(()), |collector| collector.encode(encoder))
    }
}

const CALL_SECONDS: Buckets = Buckets(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
const FINALIZER_SECONDS: Buckets = Buckets(&[0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0]);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates all metrics at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register(
            "stowage_build",
            "Which version this is",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        let controllers = Controllers::register(&mut registry);
        let current = Current::default();
        registry.register_collector(Box::new(current.clone()));
        let inner = Inner {
            controllers,
            operations: Mutex::default(),
            upstream: register(
                &mut registry,
                "stowage_upstream_request_duration_seconds",
                "How long calls to the stores took, by how they ended",
                Family::new_with_constructor(CALL_SECONDS),
            ),
            finalizers: register(
                &mut registry,
                "stowage_finalizer_duration_seconds",
                "How long claims took from their deletion to the end of their finalizer, by deletion policy",
                Family::new_with_constructor(FINALIZER_SECONDS),
            ),
            purged: register(
                &mut registry,
                "stowage_purged_objects",
                "Versions, delete markers and unfinished uploads deleted from buckets that were emptied",
                Family::default(),
            ),
            rotations: register(
                &mut registry,
                "stowage_rotations",
                "Credentials replaced, by what asked for it",
                Family::default(),
            ),
            leader: register(
                &mut registry,
                "leader_election_master_status",
                "Whether this process leads: 1 or 0; there is none where it takes part in no election",
                Family::default(),
            ),
            current,
            registry: Mutex::new(registry),
        };
        // Known label values start at 0 instead of absent.
        for trigger in Trigger::ALL {
            drop(inner.rotations.get_or_create(&TriggerLabels { trigger }));
        }
        for policy in ["Retain", "Delete"] {
            drop(inner.finalizers.get_or_create(&PolicyLabels { policy }));
        }
        Self(Arc::new(inner))
    }

    /// Encodes all metrics as the text of a scrape.
    pub fn encode(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.0.registry.lock()).expect("writing to a String does not fail");
        page
    }

    /// Sets the collector that computes gauges on each scrape, and replaces the previous one.
    pub(crate) fn collect(&self, collector: impl Collector) {
        *self.0.current.0.lock() = Some(Box::new(collector));
    }

    /// Records if this process leads, when it takes part in an election. A process that doesn't
    /// lead has no caches, so the collector is removed.
    pub(crate) fn leads(&self, leads: bool) {
        if !leads {
            *self.0.current.0.lock() = None;
        }
        let labels = LeaderLabels { name: CONTROLLER };
        self.0.leader.get_or_create(&labels).set(i64::from(leads));
    }

    /// Returns the metrics of a controller that runs at most `most` passes at once.
    pub(crate) fn controller(&self, controller: &'static str, most: u16) -> ControllerMetrics {
        self.0.controllers.of(controller, most)
    }

    /// Counts a call to a store.
    pub(crate) fn called(&self, backend: &str, operation: &'static str, result: CallResult, took: Duration) {
        let labels = UpstreamLabels { backend: backend.to_owned(), operation, result };
        self.0.operations.lock().insert(operation);
        self.0.upstream.get_or_create(&labels).observe(took.as_secs_f64());
        drop(self.0.purged.get_or_create(&BackendLabels { backend: backend.to_owned() }));
    }

    /// Records the removal of a claim's finalizer, this long after its deletion.
    pub(crate) fn finalized(&self, policy: Deletion, took: Duration) {
        let policy = match policy {
            Deletion::Retain => "Retain",
            Deletion::Delete | Deletion::Force => "Delete",
        };
        self.0.finalizers.get_or_create(&PolicyLabels { policy }).observe(took.as_secs_f64());
    }

    /// Counts deleted objects.
    pub(crate) fn purged(&self, backend: &str, objects: u64) {
        self.0.purged.get_or_create(&BackendLabels { backend: backend.to_owned() }).inc_by(objects);
    }

    /// Counts a rotation.
    pub(crate) fn rotated(&self, trigger: Trigger) {
        self.0.rotations.get_or_create(&TriggerLabels { trigger }).inc();
    }

    /// Removes the series of a deleted backend.
    pub(crate) fn forget_backend(&self, backend: &str) {
        for operation in self.0.operations.lock().iter().copied() {
            for result in CallResult::ALL {
                let labels = UpstreamLabels { backend: backend.to_owned(), operation, result };
                self.0.upstream.remove(&labels);
            }
        }
        self.0.purged.remove(&BackendLabels { backend: backend.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 4.metric.backend
    #[test]
    fn no_series_of_a_backend_outlives_it_whatever_was_asked_of_its_store() {
        let metrics = Metrics::new();
        for backend in ["gone", "main"] {
            for operation in ["ListBuckets", "GetBucketAcl", "DeleteObject", "of-a-later-version"] {
                metrics.called(backend, operation, CallResult::Success, Duration::from_millis(3));
            }
            metrics.purged(backend, 7);
        }
        metrics.forget_backend("gone");
        let page = metrics.encode();
        assert!(!page.contains("\"gone\"") && page.contains("backend=\"main\",operation=\"GetBucketAcl\""), "{page}");
    }
}
