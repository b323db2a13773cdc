//! What the operator holds in memory of objects that tenants fill to the brim (spec §3.5).
//!
//! All of it, from the list to the pass, against an API server that makes up each object as it is
//! asked for and keeps none: what is allocated here is the operator's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use stowage_operator::api::{AddressingStyle, Endpoint, Gateway, Unlabelled};
use stowage_operator::upstream::{Limits, RustlsConnect};
use stowage_operator::{Clock, Config, Metrics, Parts, Uptime};
use tower::service_fn;

/// The system's allocator, which also counts.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one hands everything on")]
// SAFETY: each call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST_HELD.fetch_max(held, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// For each hostile object: it may be larger than one of ours, not by orders.
const MOST_KEPT: usize = 250 * 16 * KIB;
/// While lists come in.
const MOST_AT_ONCE: usize = 48 * MIB;

/// A Secret of a megabyte under our label, in a field of ours.
fn full(number: usize) -> String {
    let data = json!({"BUCKET_NAME": "eHh4".repeat(MIB / 3)});
    consumer(number, &json!([]), &data)
}

/// One whose controller has a UID as no object has it.
fn owned(number: usize) -> String {
    let uid = format!("{number}{}", "u".repeat(1_200_000));
    let owner = json!([{"apiVersion": "v1", "kind": "x", "name": "x", "uid": uid, "controller": true}]);
    consumer(number, &owner, &json!({}))
}

fn consumer(number: usize, owners: &serde_json::Value, data: &serde_json::Value) -> String {
    let metadata = json!({
        "namespace": "team-a", "name": format!("s-{number}"), "uid": format!("u-{number}"), "resourceVersion": "1",
        "labels": {"broker.stowage.io/role": "consumer-secret"}, "ownerReferences": owners,
    });
    json!({"metadata": metadata, "data": data}).to_string()
}

fn claim(number: usize) -> String {
    let finalizers: Vec<String> = (0..5000).map(|finalizer| format!("example.com/f-{finalizer}")).collect();
    let metadata = json!({
        "namespace": "team-a", "name": format!("c-{number}"), "uid": format!("c-{number}"), "resourceVersion": "1",
        "annotations": {"broker.stowage.io/rotate": "r".repeat(250_000)}, "finalizers": finalizers,
    });
    json!({"metadata": metadata, "spec": {"backendRef": {"name": "main"}}}).to_string()
}

/// A parameter of a query, as a number.
fn number(query: &str, name: &str) -> Option<usize> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// A page of a list of so many objects, each made as it is sent.
fn page(query: &str, of: usize, object: fn(usize) -> String) -> impl Stream<Item = Bytes> + Send + use<> {
    let from = number(query, "continue").unwrap_or_default();
    let to = number(query, "limit").map_or(of, |limit| of.min(from + limit));
    let next = if to < of { to.to_string() } else { String::new() };
    let head = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":["#);
    let items = (from..to).map(move |number| Bytes::from(object(number) + if number + 1 < to { "," } else { "" }));
    stream::iter([Bytes::from(head)].into_iter().chain(items).chain([Bytes::from_static(b"]}")]))
}

/// The answer of the API server: objects of tenants in lists, silence in watches, an error else.
fn answer(request: &Request<Body>) -> (u16, stream::BoxStream<'static, Bytes>) {
    let query = request.uri().query().unwrap_or_default();
    if query.contains("watch=true") {
        return (200, stream::pending().boxed());
    }
    if request.method() != Method::GET || number(query, "limit").is_none() {
        let refusal = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "it is broken"});
        return (500, stream::iter([Bytes::from(refusal.to_string())]).boxed());
    }
    let list = match request.uri().path() {
        "/api/v1/secrets" => page(query, 150, |number| if number < 100 { full(number) } else { owned(number) }).boxed(),
        "/apis/broker.stowage.io/v1alpha1/bucketclaims" => page(query, 100, claim).boxed(),
        _ => page(query, 0, claim).boxed(),
    };
    (200, list)
}

fn client() -> Client {
    let service = service_fn(|request: Request<Body>| async move {
        let (status, body) = answer(&request);
        let frames = body.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        Response::builder().status(status).body(StreamBody::new(frames))
    });
    Client::new(service, "stowage-system")
}

fn config() -> Config {
    Config {
        operator_namespace: "stowage-system".to_owned(),
        usage_namespace: None,
        reach: stowage_operator::plan::Reach::Cluster,
        trusted_namespaces: BTreeSet::new(),
        unlabelled_credentials: Unlabelled::Refused,
        gateway: Gateway {
            endpoint: Endpoint::parse("http://gateway.example").expect("a URL"),
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: stowage_operator::api::Publishing::default(),
        read_only: false,
        election: None,
        installation: Some("cluster".to_owned()),
        max_concurrent_reconciles: 16,
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 1000,
        accesses: true,
        obc: None,
        resync_interval: Duration::from_secs(600),
    }
}

// covers: 3.5.memory, 3.5.memory.page
#[tokio::test]
async fn a_tenants_objects_take_no_more_than_their_share() {
    let before = HELD.load(Ordering::Relaxed);
    MOST_HELD.store(before, Ordering::Relaxed);
    let (ready, mut readiness) = tokio::sync::watch::channel(false);
    let parts = Parts {
        client: client(),
        connect: Arc::new(RustlsConnect),
        clock: Clock::system(),
        uptime: Uptime::system(),
        metrics: Metrics::new(),
        ready: Some(ready),
    };
    let operator = tokio::spawn(stowage_operator::run(config(), parts, std::future::pending()));
    let filled = tokio::time::timeout(Duration::from_secs(120), readiness.wait_for(|ready| *ready)).await;
    filled.expect("it takes two minutes at most").expect("the operator runs");
    // The passes begin, and are tried again.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let held = HELD.load(Ordering::Relaxed) - before;
    let most_held = MOST_HELD.load(Ordering::Relaxed) - before;
    operator.abort();
    let told = format!("{} KiB are held, {} KiB were at most", held / KIB, most_held / KIB);
    assert!(held <= MOST_KEPT && most_held <= MOST_AT_ONCE, "{told}");
}
