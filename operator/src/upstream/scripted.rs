//! A scripted store for tests of one client, which records its requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, service_fn};

use super::{Access, Limits, RustlsConnect, Upstream};
use crate::api::{Backend, SecretKey, Unlabelled};
use crate::mandate::Mandate;
use crate::metrics::Metrics;

/// A recorded request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    method: String,
    pub(super) uri: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

/// A scripted answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) region: Option<&'static str>,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn ok(body: &str) -> Self {
        Self { status: 200, region: None, body: body.to_owned() }
    }

    pub(super) fn error(status: u16, code: &str) -> Self {
        Self { status, ..Self::ok(&format!("<Error><Code>{code}</Code></Error>")) }
    }
}

type Script = dyn Fn(&str, &str) -> Reply + Send + Sync;

/// The scripted store.
#[derive(Clone)]
pub(super) struct Store {
    /// Answers a method and a URI.
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl HttpConnector for Store {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (method, uri) = (request.method().to_owned(), request.uri().to_owned());
        let Reply { status, region, body } = (self.script)(&method, &uri);
        let headers = request.headers().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let content = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        self.asked.lock().push(Asked { method, uri, headers, body: content });
        let mut response = HttpResponse::new(StatusCode::try_from(status).expect("a status"), SdkBody::from(body));
        if let Some(region) = region {
            response.headers_mut().insert("x-amz-bucket-region", region);
        }
        HttpConnectorFuture::ready(Ok(response))
    }
}

impl Store {
    pub(super) fn that(says: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(says), asked: Arc::default() }
    }

    /// Returns the requests with a method, in order.
    pub(super) fn asked(&self, method: &str) -> Vec<Asked> {
        let asked = self.asked.lock();
        asked.iter().filter(|asked| asked.method == method).cloned().collect()
    }

    /// Returns a client of the store, in region `us-east-1`.
    pub(super) fn upstream(&self) -> Upstream {
        let store = self.clone();
        client("http://s3.example", http_client_fn(move |_, _| SharedHttpConnector::new(store.clone())))
    }
}

/// Returns a client of an endpoint, in region `us-east-1`.
pub(super) fn client(endpoint: &str, http: SharedHttpClient) -> Upstream {
    let nobody = service_fn(async |_: http::Request<kube::client::Body>| {
        Err::<http::Response<kube::client::Body>, _>(BoxError::from("there is no API server"))
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
        "spec": {"endpoint": endpoint, "adminCredentialsSecretRef": {"name": "a", "namespace": "b"}},
    }));
    let backend = Backend::parse(&backend.expect("a backend")).expect("one that can be read");
    Upstream::new(&backend, "id", &SecretKey::new("key".into()), http, &access)
}
