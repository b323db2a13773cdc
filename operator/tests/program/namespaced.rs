//! Requests of an operator that serves some namespaces (spec §3.9): from its start, with a
//! namespace that doesn't exist yet and a record of a claim that it doesn't serve.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use stowage_operator::api::{
    AddressingStyle, BucketRecord, ClaimRef, ClaimUid, Endpoint, Gateway, Publishing, Unlabelled,
};
use stowage_operator::plan::Reach;
use stowage_operator::upstream::{Limits, RustlsConnect};
use stowage_operator::{Clock, Config, Metrics, Parts, Uptime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::service_fn;

const OWN: &str = "stowage-system";
/// The namespace that exists from the beginning.
const FIRST: &str = "team-a";
/// The namespace that is created later.
const LATE: &str = "team-c";
/// The namespace that isn't served.
const OTHER: &str = "team-b";
const CLAIMS: &str = "/apis/broker.stowage.io/v1alpha1/namespaces/";

/// An API server with a claim in each namespace, which refuses writes.
struct Server {
    /// Method, path and query of each request.
    asked: Mutex<Vec<String>>,
    is_late_there: watch::Sender<bool>,
}

impl Server {
    fn new() -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), is_late_there: watch::Sender::new(false) })
    }

    fn client(self: &Arc<Self>) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (status, body) = server.answer(&request);
            let frames = body.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            async move { Response::builder().status(status).body(StreamBody::new(frames)) }
        });
        Client::new(service, OWN)
    }

    fn answer(&self, request: &Request<Body>) -> (u16, BoxStream<'static, Bytes>) {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        self.asked.lock().push(format!("{} {path}?{query}", request.method()));
        let selects = |name: &str| query.contains(&format!("fieldSelector=metadata.name%3D{name}&"));
        if query.contains("watch=true") {
            let comes = path == "/api/v1/namespaces" && (selects(LATE) || query.ends_with(LATE));
            return (200, if comes { self.coming() } else { stream::pending().boxed() });
        }
        if request.method() != Method::GET || !query.contains("limit=") {
            return (500, one(&json!({"kind": "Status", "status": "Failure", "code": 500, "message": "it is broken"})));
        }
        let is_there = *self.is_late_there.borrow();
        let items = match path {
            "/api/v1/namespaces" if query.contains(FIRST) => vec![namespace(FIRST)],
            "/api/v1/namespaces" if is_there && query.contains(LATE) => vec![namespace(LATE)],
            "/api/v1/namespaces/stowage-system/secrets" => vec![record()],
            "/apis/broker.stowage.io/v1alpha1/bucketclaims" => vec![claim(FIRST)],
            _ => path
                .strip_prefix(CLAIMS)
                .and_then(|it| it.strip_suffix("/bucketclaims"))
                .map(claim)
                .into_iter()
                .collect(),
        };
        (200, one(&json!({"metadata": {"resourceVersion": "9"}, "items": items})))
    }

    /// Returns a watch that shows the late namespace once it exists.
    fn coming(&self) -> BoxStream<'static, Bytes> {
        let mut there = self.is_late_there.subscribe();
        let event = async move {
            let _ = there.wait_for(|there| *there).await;
            Bytes::from(format!("{}\n", json!({"type": "ADDED", "object": namespace(LATE)})))
        };
        stream::once(event).chain(stream::pending()).boxed()
    }

    fn asked_about(&self, part: &str) -> Vec<String> {
        self.asked.lock().iter().filter(|it| it.contains(part)).cloned().collect()
    }
}

fn one(value: &Value) -> BoxStream<'static, Bytes> {
    stream::iter([Bytes::from(value.to_string())]).boxed()
}

fn namespace(name: &str) -> Value {
    let metadata = json!({"name": name, "uid": format!("n-{name}"), "resourceVersion": "9"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

fn claim(namespace: &str) -> Value {
    let metadata = json!({
        "name": "photos", "namespace": namespace, "uid": format!("c-{namespace}"), "resourceVersion": "9",
        "generation": 1,
    });
    json!({"metadata": metadata, "spec": {"backendRef": {"name": "main"}, "quota": {"hard": "1Gi"}}})
}

/// Returns the record of a claim in the namespace that isn't served.
fn record() -> Value {
    let record = BucketRecord {
        claim: ClaimRef { namespace: OTHER.to_owned(), name: "photos".to_owned() },
        uid: ClaimUid::new("c-other"),
        ..BucketRecord::fixture()
    };
    let mut secret = serde_json::to_value(record.content(OWN).to_secret()).expect("it is JSON");
    secret["metadata"]["uid"] = "s-1".into();
    secret["metadata"]["resourceVersion"] = "9".into();
    secret
}

fn config(reach: Reach) -> Config {
    Config {
        operator_namespace: OWN.to_owned(),
        usage_namespace: None,
        reach,
        trusted_namespaces: BTreeSet::new(),
        unlabelled_credentials: Unlabelled::Refused,
        gateway: Gateway {
            endpoint: Endpoint::parse("http://gateway.example").expect("a URL"),
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: Publishing::default(),
        installation: Some("cluster".to_owned()),
        read_only: false,
        election: None,
        max_concurrent_reconciles: 16,
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 1000,
        accesses: true,
        obc: None,
        resync_interval: Duration::from_secs(600),
    }
}

fn parts(server: &Arc<Server>, ready: watch::Sender<bool>) -> Parts {
    Parts {
        client: server.client(),
        connect: Arc::new(RustlsConnect),
        clock: Clock::system(),
        uptime: Uptime::system(),
        metrics: Metrics::new(),
        ready: Some(ready),
    }
}

const HOUR: Duration = Duration::from_secs(3600);

// covers: 3.9.rights, 3.9.orphans, 3.9.absent, 3.9.ready
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_outside_of_the_namespaces_that_are_served() {
    let server = Server::new();
    let (ready, mut readiness) = watch::channel(false);
    let reach = Reach::of(vec![FIRST.to_owned(), LATE.to_owned()]).expect("no name stands twice");
    let operator = tokio::spawn(stowage_operator::run(config(reach), parts(&server, ready), std::future::pending()));
    let filled = timeout(HOUR, readiness.wait_for(|ready| *ready)).await;
    filled.expect("nobody waits for what isn't there").expect("the operator runs");
    sleep(HOUR).await;
    assert_eq!(server.asked_about(OTHER), [] as [&str; 0], "it is nobody's to ask about");
    assert_eq!(server.asked_about(&format!("namespaces/{LATE}/")), [] as [&str; 0], "it isn't there");
    assert_eq!(server.asked_about("DELETE"), [] as [&str; 0]);
    let works_on = |namespace: &str| server.asked_about(&format!("{CLAIMS}{namespace}/bucketclaims/photos"));
    assert!(!works_on(FIRST).is_empty(), "its claim is worked on");
    for asked in server.asked.lock().iter() {
        let by_name = asked.contains("fieldSelector=metadata.name%3Dteam-") || asked.contains("/namespaces/");
        assert!(by_name || asked.contains("/s3backends"), "{asked}");
    }
    server.is_late_there.send_replace(true);
    sleep(HOUR).await;
    assert!(!works_on(LATE).is_empty(), "it is served once it is there");
    assert!(!operator.is_finished());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_the_cluster_asks_for_all_namespaces_at_once() {
    let server = Server::new();
    let (ready, mut readiness) = watch::channel(false);
    let config = Config { usage_namespace: Some("counts".to_owned()), ..config(Reach::Cluster) };
    let operator = tokio::spawn(stowage_operator::run(config, parts(&server, ready), std::future::pending()));
    timeout(HOUR, readiness.wait_for(|ready| *ready)).await.expect("in time").expect("the operator runs");
    sleep(HOUR).await;
    operator.abort();
    for kind in ["/api/v1/secrets?", "/api/v1/namespaces?", "/v1alpha1/bucketclaims?", "/v1alpha1/bucketaccesses?"] {
        assert!(!server.asked_about(kind).is_empty(), "{kind}");
    }
    assert!(!server.asked_about(&format!("{CLAIMS}{OTHER}/bucketclaims/photos")).is_empty(), "is its claim gone?");
    let counts = "/api/v1/namespaces/counts/configmaps?";
    assert!(!server.asked_about(counts).is_empty(), "gateways tell there what buckets hold");
    assert_eq!(server.asked_about("/configmaps?").len(), server.asked_about(counts).len(), "and nowhere else");
}
