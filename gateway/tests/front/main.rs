//! The whole path of a request: a gateway that follows a simulated cluster, with a store that
//! records its requests.

mod access;
mod answers;
mod configuration;
mod copies;
mod cors;
mod deletions;
mod forms;
mod listener;
mod outage;
mod quotas;
mod rechecks;
mod requests;
mod shares;
mod versions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::runtime::watcher;
use kube_sim::{Cluster, GroupVersionResource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use stowage_api::{SecretKey, Unlabelled};
use stowage_gateway::body::Body;
use stowage_gateway::front::{Config, Gateway, Gears, Peer, Proxies};
use stowage_gateway::head::Domains;
use stowage_gateway::metrics::Metrics;
use stowage_gateway::registry::{Live, Registry, Setting, Source};
use stowage_gateway::sigv4::{Outgoing, Signer};
use stowage_gateway::upstream::{Connect, ConnectError, RustlsConnect, Transport, Trust};
use stowage_gateway::uri;
use tokio::task::JoinHandle;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};

const SYSTEM: &str = "stowage-system";
pub(crate) const STORE: &str = "http://s3.example:9000";
pub(crate) const STORE_KEY: &str = "STOREADMINKEY";
pub(crate) const KEY: &str = "AKIAONE";
pub(crate) const SECRET: &str = "tenant-secret-of-a-test-0123456789-abcde";

/// A request to the store.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The body, or the reason why it broke off.
    pub(crate) body: Result<Bytes, String>,
}

impl Asked {
    /// Returns method, path and query.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri.path_and_query().expect("it has a path"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

type Answer = dyn Fn(&Asked) -> Response<Body> + Send + Sync;

/// A gateway, with its cluster and its store.
pub(crate) struct Stage {
    pub(crate) gateway: Gateway,
    pub(crate) cluster: Cluster,
    source: Source,
    work: Vec<JoinHandle<Infallible>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
    down: Arc<Mutex<Option<&'static str>>>,
}

#[derive(Clone)]
struct Store {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
    down: Arc<Mutex<Option<&'static str>>>,
}

impl Connect for Store {
    fn connect(&self, _: &Trust) -> Result<Transport, ConnectError> {
        let (store, real) = (self.clone(), RustlsConnect.connect(&Trust::Anything)?);
        Ok(BoxCloneSyncService::new(service_fn(move |mut request: Request<Body>| {
            let (store, real) = (store.clone(), real.clone());
            async move {
                if store.down.lock().is_some_and(|bucket| request.uri().path().starts_with(bucket)) {
                    // No process listens there.
                    *request.uri_mut() = Uri::from_static("http://127.0.0.1:1/");
                    // Boxed, because the compiler can't prove through the service that the future
                    // is `Send`.
                    let answer: BoxFuture<'static, _> = Box::pin(real.oneshot(request));
                    return answer.await;
                }
                let (parts, body) = request.into_parts();
                let body = body.collect().await.map(|body| body.to_bytes()).map_err(|error| error.to_string());
                let broken = body.clone().err();
                let asked = Asked { method: parts.method, uri: parts.uri, headers: parts.headers, body };
                let answer = store.answer.lock().clone();
                let answer = answer(&asked);
                store.asked.lock().push(asked);
                broken.map_or(Ok(answer), |why| Err(BoxError::from(why)))
            }
        })))
    }
}

pub(crate) fn body(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn answer(status: u16, headers: &[(&'static str, &'static str)], text: &'static str) -> Response<Body> {
    let mut answer = Response::new(body(text));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    for (name, value) in headers {
        answer.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    answer
}

pub(crate) fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().expect("a time")
}

pub(crate) fn config() -> Config {
    Config {
        region: "us-east-1".to_owned(),
        proxies: Proxies::default(),
        domains: Domains::new(["gateway.example".to_owned()]),
        backend_calls: 16,
        per_claim: 4,
        anonymous_rps: 5,
        max_staleness: Duration::MAX,
    }
}

fn secrets() -> GroupVersionResource {
    GroupVersionResource::gvr("", "v1", "secrets")
}

fn put_backend(cluster: &Cluster, name: &str, further: Value) {
    let mut spec = json!({"endpoint": STORE, "adminCredentialsSecretRef": {"name": "admin", "namespace": SYSTEM}});
    for (key, value) in further.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let backends = GroupVersionResource::gvr("broker.stowage.io", "v1alpha1", "s3backends");
    cluster.put(&backends, "", name, json!({"spec": spec})).expect("a backend");
}

impl Stage {
    /// Starts with a tenant of the bucket `photos` on the backend `main`.
    pub(crate) async fn new() -> Self {
        Self::told(config()).await
    }

    pub(crate) async fn told(config: Config) -> Self {
        let cluster = Cluster::new(Arc::new(now), 7);
        for definition in stowage_api::crds() {
            cluster.install_crd(&definition).expect("the project's own are valid");
        }
        let admin = json!({
            "metadata": {"labels": {"broker.stowage.io/backend-credentials": "true"},
                         "annotations": {"broker.stowage.io/endpoints": STORE}},
            "stringData": {"AWS_ACCESS_KEY_ID": STORE_KEY, "AWS_SECRET_ACCESS_KEY": "store-secret"},
        });
        let namespaces = GroupVersionResource::gvr("", "v1", "namespaces");
        let namespace = json!({});
        cluster.put(&namespaces, "", SYSTEM, namespace).expect("a namespace");
        cluster.put(&secrets(), SYSTEM, "admin", admin).expect("a Secret");
        put_backend(&cluster, "main", json!({}));
        let store = Store {
            asked: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(|_: &Asked| answer(200, &[], "")) as Arc<Answer>)),
            down: Arc::default(),
        };
        let stage = Self::of(cluster, store, config, 1);
        stage.credential(KEY, "photos", json!({}));
        stage.until(|stage| stage.gateway.registry().is_ready() && stage.knows(KEY)).await;
        stage
    }

    /// Starts another replica of the gateway, with its own ids.
    pub(crate) async fn beside(&self) -> Self {
        let store = Store { asked: self.asked.clone(), answer: self.answer.clone(), down: self.down.clone() };
        let stage = Self::of(self.cluster.clone(), store, config(), 2);
        stage.until(|stage| stage.gateway.registry().is_ready() && stage.knows(KEY)).await;
        stage
    }

    fn of(cluster: Cluster, store: Store, config: Config, first_id: u64) -> Self {
        let client = cluster.client(SYSTEM);
        let registry =
            Registry::new(Setting { namespaces: [SYSTEM.to_owned()].into(), unlabelled: Unlabelled::Refused });
        let gears = Gears {
            registry: registry.clone(),
            live: Live::new(client.clone(), SYSTEM),
            connect: Box::new(store.clone()),
            clock: Arc::new(now),
            clock_of_clients: Arc::new(now),
            first_id,
            log: None,
            metrics: Metrics::new(),
        };
        let watch = watcher::Config::default().timeout(0).disable_bookmarks();
        let source = Source { client, namespace: SYSTEM.to_owned(), watch };
        let gateway = Gateway::new(gears, config);
        let counting = (gateway.clone(), source.clone());
        let follows = source.clone();
        let work = vec![
            tokio::spawn(async move { match counting.0.keep_quotas(counting.1).await {} }),
            tokio::spawn(async move { match registry.follow(follows).await {} }),
        ];
        let Store { asked, answer, down } = store;
        Self { gateway, cluster, source, work, asked, answer, down }
    }

    /// Shuts down gracefully.
    pub(crate) async fn end(self) {
        self.work.iter().for_each(JoinHandle::abort);
        self.gateway.part(&self.source).await;
    }

    /// Stores a key for a bucket on `main`, with `further` merged into its Secret.
    pub(crate) fn credential(&self, id: &str, bucket: &str, further: Value) {
        let scopes = json!([{"bucket": bucket, "backend": "main"}]).to_string();
        let mut data = json!({
            "access_key_id": id, "secret_access_key": SECRET, "claim_uid": format!("uid-of-{bucket}"),
            "bucket_scopes": scopes, "bucket_name": bucket, "backend": "main",
        });
        let mut annotations = json!({});
        for (key, value) in further["data"].as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        for (key, value) in further["annotations"].as_object().into_iter().flatten() {
            annotations[key] = value.clone();
        }
        let labels = json!({"broker.stowage.io/role": "virtual-credential"});
        let secret = json!({"metadata": {"labels": labels, "annotations": annotations}, "stringData": data});
        self.internal(&format!("vc-{}", id.to_lowercase()), secret);
    }

    /// Stores a backend, with `further` merged into its spec.
    pub(crate) fn backend(&self, name: &str, further: Value) {
        put_backend(&self.cluster, name, further);
    }

    /// Stores a Secret of the operator's.
    pub(crate) fn internal(&self, name: &str, secret: Value) {
        self.cluster.put(&secrets(), SYSTEM, name, secret).expect("a Secret");
    }

    pub(crate) fn knows(&self, id: &str) -> bool {
        self.gateway.registry().key(id).is_some()
    }

    pub(crate) async fn until(&self, fact: impl Fn(&Self) -> bool) {
        let waited = async {
            while !fact(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waited).await.expect("it comes to hold");
    }

    /// Sets the store's responses from now on.
    pub(crate) fn store_answers(&self, answer: impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static) {
        *self.answer.lock() = Arc::new(answer);
    }

    /// Makes stores unreachable for requests below this path.
    pub(crate) fn none_is_reached(&self, below: Option<&'static str>) {
        *self.down.lock() = below;
    }

    /// Returns all requests to the store so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    /// Returns the only request to the store.
    pub(crate) fn only(&self) -> Asked {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.into_iter().next().expect("there is one")
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
        let peer = Peer { address: ([203, 0, 113, 9], 4711).into(), is_tls: false };
        let (parts, body) = self.gateway.serve(request, peer).await.into_parts();
        let text = body.collect().await.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        (parts.status, parts.headers, text.unwrap_or_else(|error| format!("broken off: {error}")))
    }

    /// Signs a request with this key and sends it.
    pub(crate) async fn signed_as(&self, id: &str, request: Ask) -> (StatusCode, HeaderMap, String) {
        self.send(request.signed(id, SECRET)).await
    }

    /// Signs a request as the tenant of `photos` and sends it.
    pub(crate) async fn signed(&self, request: Ask) -> (StatusCode, HeaderMap, String) {
        self.signed_as(KEY, request).await
    }
}

/// A request to be signed.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: String,
    pub(crate) body: Bytes,
}

pub(crate) fn ask(method: &'static str, target: &str) -> Ask {
    Ask {
        method,
        target: target.to_owned(),
        host: "gateway.example".to_owned(),
        headers: HeaderMap::new(),
        payload: "UNSIGNED-PAYLOAD".to_owned(),
        body: Bytes::new(),
    }
}

impl Ask {
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
        self
    }

    pub(crate) fn sending(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.with("content-length", &length)
    }

    pub(crate) fn at(mut self, host: &str) -> Self {
        self.host = host.to_owned();
        self
    }

    pub(crate) fn plain(self) -> Request<Body> {
        let mut request = Request::new(body(self.body));
        *request.method_mut() = self.method.parse().expect("a method");
        *request.uri_mut() = self.target.parse().expect("a target");
        *request.headers_mut() = self.headers;
        request.headers_mut().insert("host", HeaderValue::from_str(&self.host).expect("a host"));
        request
    }

    pub(crate) fn signed(self, id: &str, secret: &str) -> Request<Body> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let path = uri::decode_path(path).expect("a path");
        let query = uri::parse_query(query).expect("a query");
        let signer = Signer::new(id.to_owned(), &SecretKey::new(secret.to_owned()), "us-east-1".to_owned());
        let outgoing =
            Outgoing { method: self.method, host: &self.host, path: &path, query: &query, payload: &self.payload };
        let mut headers = self.headers.clone();
        signer.sign(&outgoing, &mut headers, now()).expect("it can be signed");
        Ask { headers, ..self }.plain()
    }
}

/// Returns the code of an error.
pub(crate) fn code(text: &str) -> &str {
    text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("none", |(code, _)| code)
}
