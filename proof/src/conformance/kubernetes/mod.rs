//! Conformance of the Kubernetes API: random operations, determined by a seed.

mod bodies;
mod call;
mod definitions;
mod generate;
mod pair;
pub(super) mod rules;
mod settle;
mod side;
mod strange;
mod table;
mod themes;
mod watch;

use std::sync::Arc;

pub use call::{Call, Kind, Operation, Page, Scope, Verb, Watch};
pub use definitions::{Accepted, accept};
pub use generate::sequence;
use kube_sim::Cluster;
pub use pair::KubernetesPair;

/// Returns a simulated cluster with the project's definitions installed. It uses the real time.
///
/// # Panics
/// Never: a test installs the definitions.
pub fn simulated() -> Cluster {
    let cluster = Cluster::new(Arc::new(jiff::Timestamp::now), 1);
    for definition in stowage_operator::api::crds() {
        cluster.install_crd(&definition).expect("the project's definitions are accepted");
    }
    cluster
}
