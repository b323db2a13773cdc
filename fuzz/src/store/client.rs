//! The operator's client of a scripted store.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{SharedHttpConnector, http_client_fn};
use kube::client::Body;
use serde_json::json;
use stowage_operator::Metrics;
use stowage_operator::api::{Backend, BucketName, SecretKey, Unlabelled};
use stowage_operator::mandate::Mandate;
use stowage_operator::upstream::{Access, Limits, RustlsConnect, Upstream};
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, service_fn};

use super::script::Store;

/// Returns the bucket of all requests.
pub(super) fn bucket() -> BucketName {
    BucketName::parse("photos").expect("a name")
}

/// Creates a client of that store, in region `us-east-1`.
pub(super) fn client(store: &Store) -> Upstream {
    let nobody = service_fn(async |_: http::Request<Body>| {
        Err::<http::Response<Body>, _>(BoxError::from("there is no API server"))
    });
    let access = Access {
        client: kube::Client::new(nobody, "default"),
        connect: Arc::new(RustlsConnect),
        limits: Limits { calls: 8, timeout: Duration::from_secs(10) },
        mandate: Mandate::Always,
        namespaces: Vec::new(),
        unlabelled: Unlabelled::Refused,
        recoveries: unbounded_channel().0,
        metrics: Metrics::new(),
    };
    let backend = serde_json::from_value(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main"},
        "spec": {"endpoint": "http://s3.example", "adminCredentialsSecretRef": {"name": "a", "namespace": "b"}},
    }));
    let backend = Backend::parse(&backend.expect("a backend")).expect("one that can be read");
    let connector = SharedHttpConnector::new(store.clone());
    let http = http_client_fn(move |_, _| connector.clone());
    Upstream::new(&backend, "id", &SecretKey::new("key".to_owned()), http, &access)
}
