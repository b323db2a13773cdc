//! Construction of metric families.

use prometheus_client::metrics::family::MetricConstructor;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// Upper bounds of a histogram's buckets, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Buckets(pub(super) &'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Registers a metric by name and returns it.
pub(super) fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
