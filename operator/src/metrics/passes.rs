//! Metrics of passes: the families of controller-runtime.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::family::{Buckets, register};
use super::labels::{ControllerLabels, PassResult, QueueLabels, ResultLabels};

const PASS_SECONDS: Buckets = Buckets(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);

/// The families of controller-runtime.
#[derive(Clone)]
pub(super) struct Controllers {
    total: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    time: Family<ControllerLabels, Histogram, Buckets>,
    active: Family<ControllerLabels, Gauge>,
    most: Family<ControllerLabels, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
}

impl Controllers {
    /// Registers the families.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let histogram = Family::new_with_constructor(PASS_SECONDS);
        Self {
            total: register(registry, "controller_runtime_reconcile", "Passes, by how they ended", Family::default()),
            errors: register(registry, "controller_runtime_reconcile_errors", "Passes that failed", Family::default()),
            time: register(registry, "controller_runtime_reconcile_time_seconds", "How long passes took", histogram),
            active: register(
                registry,
                "controller_runtime_active_workers",
                "Passes under way, those that wait for a store included",
                Family::default(),
            ),
            most: register(
                registry,
                "controller_runtime_max_concurrent_reconciles",
                "How many passes work at once, not counting those that wait for a store",
                Family::default(),
            ),
            depth: register(registry, "workqueue_depth", "Objects whose pass waits for its turn", Family::default()),
            adds: register(registry, "workqueue_adds", "Objects that were queued for a pass", Family::default()),
            retries: register(registry, "workqueue_retries", "Passes that were queued again", Family::default()),
        }
    }

    /// Returns the metrics of one controller that runs at most `most` passes at once.
    pub(super) fn of(&self, controller: &'static str, most: u16) -> ControllerMetrics {
        self.most.get_or_create(&ControllerLabels { controller }).set(i64::from(most));
        drop(self.active.get_or_create(&ControllerLabels { controller }));
        drop(self.errors.get_or_create(&ControllerLabels { controller }));
        drop(self.retries.get_or_create(&QueueLabels { name: controller }));
        ControllerMetrics { families: self.clone(), controller }
    }
}

/// The metrics of one controller.
pub(crate) struct ControllerMetrics {
    families: Controllers,
    controller: &'static str,
}

/// An object that waits for its pass.
pub(crate) struct Queued<'a> {
    metrics: &'a ControllerMetrics,
}

/// A running pass.
pub(crate) struct Pass<'a> {
    metrics: &'a ControllerMetrics,
    began: Instant,
}

impl ControllerMetrics {
    /// Counts an object that is queued.
    pub(crate) fn queued(&self) -> Queued<'_> {
        self.families.adds.get_or_create(&self.queue()).inc();
        self.families.depth.get_or_create(&self.queue()).inc();
        Queued { metrics: self }
    }

    fn queue(&self) -> QueueLabels {
        QueueLabels { name: self.controller }
    }

    fn labels(&self) -> ControllerLabels {
        ControllerLabels { controller: self.controller }
    }
}

impl<'a> Queued<'a> {
    /// Counts the start of its pass.
    pub(crate) fn begin(self) -> Pass<'a> {
        let metrics = self.metrics;
        metrics.families.active.get_or_create(&metrics.labels()).inc();
        Pass { metrics, began: Instant::now() }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.metrics.families.depth.get_or_create(&self.metrics.queue()).dec();
    }
}

impl Pass<'_> {
    /// Counts the end of the pass.
    pub(crate) fn end(self, result: PassResult) {
        let ControllerMetrics { families, controller } = self.metrics;
        families.total.get_or_create(&ResultLabels { controller, result }).inc();
        families.time.get_or_create(&self.metrics.labels()).observe(self.began.elapsed().as_secs_f64());
        if result == PassResult::Error {
            families.errors.get_or_create(&self.metrics.labels()).inc();
        }
        if result != PassResult::Success {
            families.retries.get_or_create(&self.metrics.queue()).inc();
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.metrics.families.active.get_or_create(&self.metrics.labels()).dec();
    }
}
