//! What is measured (spec §4), in the OpenMetrics text format.
//!
//! Names and meaning are those of controller-runtime where it has them, so that its dashboards work. Label sets are
//! closed: controllers, phases, policies, triggers, operations, results, and the names of backends, whose series go with
//! them; never a claim, a bucket or a namespace. What can be read off the caches is read when somebody asks
//! (`controller::gauges`), so that it can't drift from them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use tokio::time::Instant;

use crate::api::Deletion;
use crate::plan::Trigger;

/// The metrics of one operator. Clones are the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    controllers: Controllers,
    upstream: Family<UpstreamLabels, Histogram, Buckets>,
    finalizers: Family<PolicyLabels, Histogram, Buckets>,
    purged: Family<BackendLabels, Counter>,
    rotations: Family<TriggerLabels, Counter>,
}

/// The families of controller-runtime.
#[derive(Clone)]
struct Controllers {
    total: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    time: Family<ControllerLabels, Histogram, Buckets>,
    active: Family<ControllerLabels, Gauge>,
    most: Family<ControllerLabels, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: &'static str,
    result: PassResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpstreamLabels {
    backend: String,
    operation: &'static str,
    result: CallResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    policy: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TriggerLabels {
    trigger: Trigger,
}

/// Label of everything that is counted by backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct BackendLabels {
    pub(crate) backend: String,
}

/// How a pass ended, in controller-runtime's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PassResult {
    /// Nothing is left to do until something changes.
    Success,
    /// Another pass is due at a known time.
    RequeueAfter,
    /// Something failed; another pass follows after a backoff.
    Error,
}

/// How a call to a store ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CallResult {
    Success,
    /// 404, which to most questions is an answer like any other.
    NotFound,
    /// 409, likewise.
    Conflict,
    Denied,
    Throttled,
    Unsupported,
    Failed,
    NoAnswer,
}

macro_rules! label_value {
    ($type:ty { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl EncodeLabelValue for $type {
            fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
                let word = match self { $(Self::$variant => $word),+ };
                EncodeLabelValue::encode(&word, encoder)
            }
        }
    };
}

label_value!(PassResult { Success => "success", RequeueAfter => "requeue_after", Error => "error" });
label_value!(CallResult {
    Success => "success",
    NotFound => "not_found",
    Conflict => "conflict",
    Denied => "denied",
    Throttled => "throttled",
    Unsupported => "unsupported",
    Failed => "failed",
    NoAnswer => "no_answer",
});
label_value!(Trigger { Interval => "interval", Request => "request", Repair => "repair", Move => "move" });

impl CallResult {
    const ALL: [Self; 8] = [
        Self::Success,
        Self::NotFound,
        Self::Conflict,
        Self::Denied,
        Self::Throttled,
        Self::Unsupported,
        Self::Failed,
        Self::NoAnswer,
    ];
}

/// Upper bounds of a histogram's buckets, in seconds.
#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

const PASS_SECONDS: Buckets = Buckets(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);
const CALL_SECONDS: Buckets = Buckets(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
const FINALIZER_SECONDS: Buckets = Buckets(&[0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0]);

/// Every operation that a store is asked for: what the series of a backend are made of.
const OPERATIONS: [&str; 13] = [
    "AbortMultipartUpload",
    "CreateBucket",
    "DeleteBucket",
    "DeleteObjects",
    "GetBucketTagging",
    "GetBucketVersioning",
    "HeadBucket",
    "ListBuckets",
    "ListMultipartUploads",
    "ListObjectVersions",
    "ListObjectsV2",
    "PutBucketTagging",
    "PutBucketVersioning",
];

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
    /// Everything at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let controllers = Controllers::register(&mut registry);
        let inner = Inner {
            controllers,
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
            registry: Mutex::new(registry),
        };
        // What has not happened yet is 0, not unknown.
        for trigger in [Trigger::Interval, Trigger::Request, Trigger::Repair, Trigger::Move] {
            drop(inner.rotations.get_or_create(&TriggerLabels { trigger }));
        }
        for policy in ["Retain", "Delete"] {
            drop(inner.finalizers.get_or_create(&PolicyLabels { policy }));
        }
        Self(Arc::new(inner))
    }

    /// Everything as text, as a scrape gets it.
    pub fn encode(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.0.registry.lock()).expect("writing to a String does not fail");
        page
    }

    /// Adds what is read off when somebody asks.
    pub(crate) fn collect(&self, collector: impl Collector) {
        self.0.registry.lock().register_collector(Box::new(collector));
    }

    /// The metrics of a controller that runs at most `most` passes at once.
    pub(crate) fn controller(&self, controller: &'static str, most: u16) -> ControllerMetrics {
        let families = &self.0.controllers;
        families.most.get_or_create(&ControllerLabels { controller }).set(i64::from(most));
        drop(families.active.get_or_create(&ControllerLabels { controller }));
        drop(families.errors.get_or_create(&ControllerLabels { controller }));
        drop(families.retries.get_or_create(&QueueLabels { name: controller }));
        ControllerMetrics { families: families.clone(), controller }
    }

    /// Takes in a call to a store.
    pub(crate) fn called(&self, backend: &str, operation: &'static str, result: CallResult, took: Duration) {
        let labels = UpstreamLabels { backend: backend.to_owned(), operation, result };
        self.0.upstream.get_or_create(&labels).observe(took.as_secs_f64());
        drop(self.0.purged.get_or_create(&BackendLabels { backend: backend.to_owned() }));
    }

    /// Takes in that a claim's finalizer is off, this long after its deletion.
    pub(crate) fn finalized(&self, policy: Deletion, took: Duration) {
        let policy = match policy {
            Deletion::Retain => "Retain",
            Deletion::Delete | Deletion::Force => "Delete",
        };
        self.0.finalizers.get_or_create(&PolicyLabels { policy }).observe(took.as_secs_f64());
    }

    /// Takes in that objects were deleted.
    pub(crate) fn purged(&self, backend: &str, objects: u64) {
        self.0.purged.get_or_create(&BackendLabels { backend: backend.to_owned() }).inc_by(objects);
    }

    /// Takes in that a credential is being replaced.
    pub(crate) fn rotated(&self, trigger: Trigger) {
        self.0.rotations.get_or_create(&TriggerLabels { trigger }).inc();
    }

    /// Drops the series of a backend that is gone.
    pub(crate) fn forget_backend(&self, backend: &str) {
        for operation in OPERATIONS {
            for result in CallResult::ALL {
                let labels = UpstreamLabels { backend: backend.to_owned(), operation, result };
                self.0.upstream.remove(&labels);
            }
        }
        self.0.purged.remove(&BackendLabels { backend: backend.to_owned() });
    }
}

impl Controllers {
    fn register(registry: &mut Registry) -> Self {
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
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
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

/// A pass under way.
pub(crate) struct Pass<'a> {
    metrics: &'a ControllerMetrics,
    began: Instant,
}

impl ControllerMetrics {
    /// An object is queued.
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
    /// Its turn has come.
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
    /// The pass is over.
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
