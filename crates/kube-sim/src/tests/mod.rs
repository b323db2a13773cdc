//! Tests of the API with a real `kube::Client`, one file per topic. This file has the fixture: a
//! cluster with two kinds of custom resources, and helpers for requests.

mod admin;
mod apply;
mod builtins;
mod compact;
mod controller;
mod inventory;
mod kept;
mod lists;
mod mended;
mod objects;
mod owners;
mod strategic;
mod thing;
mod updates;
mod validation;
mod watches;
mod workloads;

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::Cluster;
use thing::definition;

/// A cluster with the namespace `ns`, and a client.
pub(super) struct Fixture {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
}

/// Time of the clock in every test.
pub(super) const NOW: &str = "2030-01-02T03:04:05Z";

pub(super) fn parse(definition: Value) -> CustomResourceDefinition {
    serde_json::from_value(definition).expect("a definition")
}

pub(super) fn empty_cluster() -> Cluster {
    let now: Timestamp = NOW.parse().expect("a time");
    Cluster::new(Arc::new(move || now), 7)
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let cluster = empty_cluster();
        cluster.install_crd(&parse(definition())).expect("the definition is sound");
        let client = cluster.client("ns");
        let fixture = Self { cluster, client };
        fixture.make_namespace("ns").await;
        fixture
    }

    pub(super) async fn make_namespace(&self, name: &str) {
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a namespace");
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &object).await.expect("a new namespace");
    }

    pub(super) fn things(&self) -> Api<DynamicObject> {
        self.things_in("ns")
    }

    pub(super) fn things_in(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("example.io", "v1", "Thing");
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::from_gvk(&kind))
    }

    pub(super) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), "ns")
    }

    pub(super) async fn make_thing(&self, name: &str) -> DynamicObject {
        self.things().create(&PostParams::default(), &thing(name)).await.expect("a new thing")
    }

    pub(super) async fn make_secret(&self, name: &str) -> Secret {
        self.secrets().create(&PostParams::default(), &secret(name)).await.expect("a new secret")
    }
}

/// Returns a valid thing.
pub(super) fn thing(name: &str) -> DynamicObject {
    thing_with(name, json!({"owner": "ann"}))
}

pub(super) fn thing_with(name: &str, spec: impl Into<Value>) -> DynamicObject {
    let spec: Value = spec.into();
    object(json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec,
    }))
}

pub(super) fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

pub(super) fn secret(name: &str) -> Secret {
    secret_from(json!({"metadata": {"name": name}, "stringData": {"key": "value"}}))
}

pub(super) fn secret_from(value: Value) -> Secret {
    serde_json::from_value(value).expect("a secret")
}

/// Returns the `Status` of a rejected request.
pub(super) fn refused<T: Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Returns the fields in the causes of a rejection.
pub(super) fn fields(status: &Status) -> Vec<String> {
    status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.field.clone()).collect()
}

pub(super) fn version(object: &impl kube::ResourceExt) -> u64 {
    object.resource_version().expect("a stored object has a version").parse().expect("a number")
}
