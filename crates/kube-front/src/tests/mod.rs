//! Tests of the front through its service. One file per topic; this one has the fixture: a cluster
//! with one kind of custom resources.

mod compact;
mod front;
mod front_writes;
mod kept;
mod policies;
#[path = "../../../kube-sim/src/tests/thing.rs"]
mod thing;
mod webhooks;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_sim::Cluster;
use serde_json::{Value, json};

use thing::definition;

/// The fixed time of every test.
pub(super) const NOW: &str = "2030-01-02T03:04:05Z";

pub(super) fn parse(definition: Value) -> CustomResourceDefinition {
    serde_json::from_value(definition).expect("a definition")
}

pub(super) fn empty_cluster() -> Cluster {
    let now: Timestamp = NOW.parse().expect("a time");
    Cluster::new(Arc::new(move || now), 7)
}

/// Creates a cluster with the definition and the namespace `ns`.
pub(super) fn furnished_cluster() -> Cluster {
    let cluster = empty_cluster();
    cluster.install_crd(&parse(definition())).expect("the definition is sound");
    assert!(cluster.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})));
    cluster
}
