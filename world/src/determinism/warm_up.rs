//! First use of statics that draw random numbers once per process.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Config, Credentials, Region};
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_sim::Cluster;
use seeded::VirtualClock;

use crate::installation::definitions;

/// An S3 store that always answers 503, to initialize the SDK's retry buckets.
#[derive(Debug)]
struct Busy;

impl HttpConnector for Busy {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        let status = StatusCode::try_from(503).expect("503 is a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::empty())))
    }
}

/// Uses each of these statics, with no other effect.
pub(super) async fn draw_once() {
    // The SDK draws a number for the span of each call. If no subscriber was ever set in the
    // process, the `log` fallback makes it draw although nothing listens; once another thread sets
    // a subscriber, it does not. Setting one here makes all runs equal.
    drop(tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::default()));

    drop(kube::runtime::reflector::store::<ConfigMap>());

    // The schemas that all clusters share, and the tables of the CEL compiler.
    let cluster = Cluster::new(VirtualClock::new().clock(), 0);
    for definition in definitions() {
        cluster.serve(definition).expect("the project's own CRDs are valid");
    }

    let config = Config::builder()
        .behavior_version_latest()
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("none", "none", None, None, "warm-up"))
        .endpoint_url("http://warm-up.invalid")
        .retry_config(RetryConfig::standard().with_max_attempts(2))
        .http_client(http_client_fn(|_, _| SharedHttpConnector::new(Busy)))
        .build();
    // The call is expected to fail.
    let _busy = Client::from_conf(config).list_buckets().send().await;
}
