//! Tests of admission webhooks outside of a simulator: called over HTTPS, as by an API server.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Bench;

/// A server of webhooks, which stops when this is dropped.
struct Hooks {
    /// URL of the server, `https://HOST:PORT`.
    url: String,
    /// The certificate of its authority, in PEM.
    authority: String,
    _work: JoinSet<()>,
}

impl Hooks {
    async fn start() -> Self {
        let (tls, authority) = identity("authority of webhooks");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let url = format!("https://{}", listener.local_addr().expect("it has an address"));
        let moved = || async { axum::response::Redirect::temporary("/mutate") };
        let service = Router::new()
            .route("/mutate", post(mutate))
            .route("/validate", post(validate))
            .route("/moved", post(moved));
        let mut work = JoinSet::new();
        work.spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, acceptor.clone(), service.clone()));
            }
        });
        Self { url, authority, _work: work }
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, service: Router) -> io::Result<()> {
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let served = http1::Builder::new().serve_connection(stream, TowerToHyperService::new(service));
    served.await.map_err(io::Error::other)
}

/// Creates a TLS configuration with a certificate of a new authority.
fn identity(of: &str) -> (ServerConfig, String) {
    let key = KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.distinguished_name.push(DnType::CommonName, of);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&key).expect("a certificate").pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let server = server.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key);
    (config.expect("TLS"), pem)
}

fn answer(review: &Value, mut response: Value) -> Json<Value> {
    response["uid"] = review["request"]["uid"].clone();
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// Labels every object.
async fn mutate(Json(review): Json<Value>) -> Json<Value> {
    let labels = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]);
    let patch = BASE64_STANDARD.encode(labels.to_string());
    answer(&review, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

/// Denies objects without the label, and those named `bad`.
async fn validate(Json(review): Json<Value>) -> Json<Value> {
    let object = &review["request"]["object"];
    let is_good = object["metadata"]["labels"]["seen"] == "yes" && object["metadata"]["name"] != "bad";
    answer(&review, json!({"allowed": is_good, "status": {"message": "it is bad", "code": 403}}))
}

impl Bench {
    /// Configures a webhook for ConfigMaps in namespace default.
    async fn ask(&self, sort: &str, client: &Value) {
        let name = sort.to_lowercase();
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}WebhookConfiguration"),
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.example.org"), "clientConfig": client, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["configmaps"],
                }],
            }],
        });
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", &format!("{sort}WebhookConfiguration"));
        let configurations: Api<DynamicObject> = Api::all_with(self.kube().await, &ApiResource::from_gvk(&kind));
        let applied = configurations.patch(&name, &PatchParams::apply("test"), &Patch::Apply(configuration)).await;
        applied.unwrap_or_else(|error| panic!("{error}"));
    }

    async fn put_map(&self, name: &str) -> Result<ConfigMap, String> {
        let maps: Api<ConfigMap> = Api::default_namespaced(self.kube().await);
        let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).expect("a map");
        maps.create(&PostParams::default(), &map).await.map_err(|error| match error {
            kube::Error::Api(status) => format!("{}: {}", status.code, status.message),
            other => other.to_string(),
        })
    }
}

fn client(hooks: &Hooks, path: &str) -> Value {
    json!({"url": format!("{}{path}", hooks.url), "caBundle": BASE64_STANDARD.encode(&hooks.authority)})
}

#[tokio::test]
async fn webhooks_change_and_deny_what_is_written() {
    let (bench, hooks) = (Bench::new().await, Hooks::start().await);
    bench.ask("Mutating", &client(&hooks, "/mutate")).await;
    bench.ask("Validating", &client(&hooks, "/validate")).await;
    let made = bench.put_map("good").await.expect("it is let through");
    assert_eq!(made.metadata.labels.expect("labels")["seen"], "yes");
    let refused = bench.put_map("bad").await.expect_err("it is denied");
    assert_eq!(refused, "403: admission webhook \"validating.example.org\" denied the request: it is bad");
    // Writes of the operator are not reviewed, and neither are objects that no rule selects.
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    bench.connection("photos").await;
    bench.up.stop().await;
}

/// The error names the URL of a webhook that can't be called.
#[tokio::test]
async fn a_webhook_that_cannot_be_asked_refuses() {
    let (bench, hooks) = (Bench::new().await, Hooks::start().await);
    let stranger = identity("another authority").1;
    let cases = [
        (
            json!({"url": format!("{}/mutate", hooks.url), "caBundle": BASE64_STANDARD.encode(stranger)}),
            "UnknownIssuer",
        ),
        (client(&hooks, "/nowhere"), "failed to call webhook: the server could not find the requested resource"),
        (client(&hooks, "/moved"), "the server responded with the status code 307 but did not return more information"),
        (json!({"url": "https://127.0.0.1:1/mutate"}), "Post \"https://127.0.0.1:1/mutate?timeout=10s\": "),
        (
            json!({"service": {"name": "hook", "namespace": "default"}}),
            "Post \"https://hook.default.svc:443/?timeout=10s\": nothing runs in this cluster, so no Service has an address: give the webhook a clientConfig.url",
        ),
    ];
    for (client, expected) in cases {
        bench.ask("Mutating", &client).await;
        let refused = bench.put_map("one").await.expect_err("nobody can say what it should be");
        let begins = "500: Internal error occurred: failed calling webhook \"mutating.example.org\": ";
        assert!(refused.starts_with(begins) && refused.contains(expected), "{refused}");
    }
    bench.up.stop().await;
}
