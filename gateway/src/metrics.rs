//! Metrics in the OpenMetrics text format. All label sets are closed: operations, classes of
//! status, known S3 error codes, kinds of authentication, and the names of backends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the histogram buckets of durations, in seconds.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

/// The metrics of one gateway. Clones are handles to the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    turnaround: Family<OperationLabels, Histogram, Durations>,
    store: Family<BackendLabels, Histogram, Durations>,
    troubles: Family<TroubleLabels, Counter>,
    resting: Family<BackendLabels, Gauge>,
    received: Counter,
    sent: Counter,
    dropped_lines: Gauge<u64, AtomicU64>,
    connections: Gauge<u64, AtomicU64>,
    refused_connections: Gauge<u64, AtomicU64>,
    age: Gauge<u64, AtomicU64>,
    keys: Gauge<u64, AtomicU64>,
    quotas: Family<QuotaLabels, Gauge<u64, AtomicU64>>,
    no_room: Family<RefusalLabels, Counter>,
    replicas: Gauge<u64, AtomicU64>,
}

/// The current numbers of connections, shared between server and metrics.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Open connections.
    pub open: Arc<AtomicU64>,
    /// Connections refused because of the limit on all, or on those of one source.
    pub refused: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
struct Durations;

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    status: &'static str,
    code: &'static str,
    authentication: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    backend: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuotaLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TroubleLabels {
    backend: String,
    kind: &'static str,
}

/// A problem between gateway and store, caused by no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The store refuses the gateway's key or signature.
    Key,
    /// The store denies the gateway something that a tenant may do.
    Denied,
    /// No connection, or a broken one.
    Unreachable,
    /// No answer in time.
    Late,
    /// The answer is not a store's.
    NotS3,
    /// The backend has no key or no trust anchor, so it can't be called.
    NotSetUp,
    /// The maximum number of calls is in progress.
    Busy,
    /// The store could not be reached recently and is not called for a while.
    Resting,
}

impl Trouble {
    /// All variants.
    pub const ALL: [Self; 8] = [
        Self::Key,
        Self::Denied,
        Self::Unreachable,
        Self::Late,
        Self::NotS3,
        Self::NotSetUp,
        Self::Busy,
        Self::Resting,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Late => "late",
            Self::NotS3 => "not-s3",
            Self::NotSetUp => "not-set-up",
            Self::Busy => "busy",
            Self::Resting => "resting",
        }
    }
}

/// One answered request.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The operation, or `None` if it is unknown.
    pub operation: Option<&'static str>,
    /// The status of the response.
    pub status: u16,
    /// S3's error code.
    pub code: Option<&'a str>,
    /// The place of the signature.
    pub authentication: Option<&'static str>,
    /// The time from the request's head to the response's.
    pub turnaround: Duration,
}

/// Error codes of stores with their own label value. The gateway's own codes have one each, too.
const STORE_CODES: [&str; 14] = [
    "BucketNotEmpty",
    "InternalError",
    "InvalidPart",
    "InvalidPartOrder",
    "InvalidRange",
    "MethodNotAllowed",
    "NoSuchBucket",
    "NoSuchKey",
    "NoSuchUpload",
    "NoSuchVersion",
    "NotModified",
    "PreconditionFailed",
    "ServiceUnavailable",
    "SlowDown",
];

fn known_code(code: &str) -> &'static str {
    let ours = crate::refusal::Code::ALL.iter().map(|code| code.as_str());
    ours.chain(STORE_CODES).find(|known| *known == code).unwrap_or("Other")
}

impl Metrics {
    /// Creates the metrics, all at zero.
    #[must_use]
    pub fn new() -> Self {
        let inner = Inner {
            registry: Mutex::new(Registry::with_prefix("stowage_gateway")),
            requests: Family::default(),
            turnaround: Family::new_with_constructor(Durations),
            store: Family::new_with_constructor(Durations),
            troubles: Family::default(),
            resting: Family::default(),
            received: Counter::default(),
            sent: Counter::default(),
            dropped_lines: Gauge::default(),
            connections: Gauge::default(),
            refused_connections: Gauge::default(),
            age: Gauge::default(),
            keys: Gauge::default(),
            quotas: Family::default(),
            no_room: Family::default(),
            replicas: Gauge::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }

    /// Counts a response.
    pub fn answered(&self, answered: &Answered<'_>) {
        let operation = answered.operation.unwrap_or("none");
        let labels = RequestLabels {
            operation,
            status: class(answered.status),
            code: answered.code.map_or("", known_code),
            authentication: answered.authentication.unwrap_or("none"),
        };
        self.0.requests.get_or_create(&labels).inc();
        let turnaround = self.0.turnaround.get_or_create(&OperationLabels { operation });
        turnaround.observe(answered.turnaround.as_secs_f64());
    }

    /// Counts the bytes of bodies: received from clients for a store, and sent to clients.
    pub fn bytes(&self, received: u64, sent: u64) {
        self.0.received.inc_by(received);
        self.0.sent.inc_by(sent);
    }

    /// Records the time until a store began its answer.
    pub fn store_answered(&self, backend: &str, after: Duration) {
        let labels = BackendLabels { backend: backend.to_owned() };
        self.0.store.get_or_create(&labels).observe(after.as_secs_f64());
    }

    /// Counts a problem between gateway and store.
    pub fn trouble(&self, backend: &str, trouble: Trouble) {
        let labels = TroubleLabels { backend: backend.to_owned(), kind: trouble.as_str() };
        self.0.troubles.get_or_create(&labels).inc();
    }

    /// Removes the series of a backend that no longer exists.
    pub fn forget(&self, backend: &str) {
        self.0.store.remove(&BackendLabels { backend: backend.to_owned() });
        for trouble in Trouble::ALL {
            self.0.troubles.remove(&TroubleLabels { backend: backend.to_owned(), kind: trouble.as_str() });
        }
    }

    /// Sets which stores have an open circuit, of all that were called.
    pub fn resting(&self, stores: &[(String, bool)]) {
        self.0.resting.clear();
        for (backend, is_resting) in stores {
            let labels = BackendLabels { backend: backend.clone() };
            self.0.resting.get_or_create(&labels).set(i64::from(*is_resting));
        }
    }

    /// Sets the gauges that are read when metrics are scraped: dropped lines of the access log,
    /// connections open and refused, the age of the cached cluster state in seconds, and known
    /// keys.
    pub fn read_off(&self, dropped: u64, open: u64, refused: u64, age: u64, keys: u64) {
        self.0.dropped_lines.set(dropped);
        self.0.connections.set(open);
        self.0.refused_connections.set(refused);
        self.0.age.set(age);
        self.0.keys.set(keys);
    }

    /// Sets the gauges of quotas when metrics are scraped.
    pub fn quotas(&self, quotas: &crate::quota::Gauge) {
        let states = [
            ("limited", quotas.limited),
            ("above-soft", quotas.above_soft),
            ("full", quotas.full),
            ("failing", quotas.failing),
        ];
        for (state, buckets) in states {
            self.0.quotas.get_or_create(&QuotaLabels { state }).set(buckets);
        }
        self.0.replicas.set(quotas.replicas);
    }

    /// Counts a write refused for a quota.
    pub fn no_room(&self, code: crate::refusal::Code) {
        self.0.no_room.get_or_create(&RefusalLabels { code: code.as_str() }).inc();
    }

    /// Renders all metrics as text.
    ///
    /// # Errors
    /// Fails only for lack of memory.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut buffer = String::new();
        text::encode(&mut buffer, &self.0.registry.lock())?;
        Ok(buffer)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Inner {
    fn register(&self) {
        let mut registry = self.registry.lock();
        registry.register("requests", "Answered requests", self.requests.clone());
        let help = "Seconds from the head of a request to the head of its answer";
        registry.register("turnaround_seconds", help, self.turnaround.clone());
        registry.register("store_seconds", "Seconds until a store begins its answer", self.store.clone());
        registry.register("store_troubles", "What is wrong between gateway and stores", self.troubles.clone());
        registry.register("store_resting", "1 where a store can't be reached and is left alone", self.resting.clone());
        registry.register("received_bytes", "Bytes of bodies received from clients for a store", self.received.clone());
        registry.register("sent_bytes", "Bytes of bodies sent to clients", self.sent.clone());
        let help = "Lines of the access log that found no room since the start";
        registry.register("access_log_dropped_lines", help, self.dropped_lines.clone());
        registry.register("connections", "Open connections of clients", self.connections.clone());
        let help = "Connections refused since the start, because there were too many";
        registry.register("refused_connections", help, self.refused_connections.clone());
        let help = "Seconds since the API server was last heard of";
        registry.register("view_age_seconds", help, self.age.clone());
        registry.register("keys", "Keys that are known", self.keys.clone());
        registry.register("quota_buckets", "Buckets with a limit, by what is known of them", self.quotas.clone());
        registry.register("quota_refusals", "Writes that were refused for a limit", self.no_room.clone());
        registry.register("quota_replicas", "Gateways that keep count together", self.replicas.clone());
    }
}

fn class(status: u16) -> &'static str {
    match status {
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_is_gone_leaves_no_series() {
        let metrics = Metrics::new();
        metrics.store_answered("main", Duration::from_millis(3));
        Trouble::ALL.into_iter().for_each(|trouble| metrics.trouble("main", trouble));
        metrics.forget("main");
        let text = metrics.text().expect("it can be written");
        assert!(!text.contains("backend=\"main\""), "{text}");
    }

    #[test]
    fn a_store_makes_no_series_of_its_own_words() {
        let metrics = Metrics::new();
        for number in 0..100 {
            let code = format!("Code{number}");
            metrics.answered(&Answered {
                operation: Some("GetObject"),
                status: 404,
                code: Some(&code),
                authentication: None,
                turnaround: Duration::from_millis(3),
            });
        }
        let text = metrics.text().expect("it can be written");
        let line = "stowage_gateway_requests_total{operation=\"GetObject\",status=\"4xx\",code=\"Other\",authentication=\"none\"} 100";
        assert!(text.contains(line), "{text}");
    }
}
