//! Memory of a gateway for objects of maximum size (spec §6): those that the operator writes for
//! tenants, and those that a holder of a gateway's token could forge.
//!
//! All objects come from an API server that generates each on request and keeps none, so the memory
//! allocated here is the gateway's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher;
use serde_json::{Value, json};
use stowage_api::{
    AccessCredentialFacts, AccessMode, AccessRef, AccessScope, AccessUid, BucketName, BucketRecord, ClaimUid, Consent,
    Counters, CredentialFacts, Endpoint, Figures, Measured, NamespaceUid, Prefix, Quantity, RecordName, Scanning,
    SecretKey, Snapshot, Unlabelled,
};
use stowage_gateway::front::{Config, Gateway, Gears, Proxies};
use stowage_gateway::head::Domains;
use stowage_gateway::metrics::Metrics;
use stowage_gateway::registry::{Live, Registry, Setting, Source};
use stowage_gateway::upstream::RustlsConnect;
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
/// Number of objects of a kind.
const MANY: usize = 100;
/// Maximum memory while lists written by gateways are received.
const MOST_AT_ONCE: usize = 96 * MIB;

const SYSTEM: &str = "stowage-system";
const SECRETS: &str = "/api/v1/namespaces/stowage-system/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/stowage-system/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/stowage-system/leases";
const BACKENDS: &str = "/apis/broker.stowage.io/v1alpha1/s3backends";

/// Lists of objects that were read to their end.
static READ: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Objects of one kind, each of the maximum size that is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    Record,
    AccessKey,
    Lease,
    Counters,
    Snapshot,
}

impl Kind {
    /// Returns the list of such objects, and a function that generates one.
    fn list(self) -> (&'static str, fn(usize) -> Value) {
        match self {
            Self::None => (LEASES, lease),
            Self::Record => (SECRETS, record),
            Self::AccessKey => (SECRETS, access_key),
            Self::Lease => (LEASES, lease),
            Self::Counters => (CONFIG_MAPS, counters),
            Self::Snapshot => (CONFIG_MAPS, snapshot),
        }
    }

    /// Returns the maximum memory for each object.
    fn most_kept(self) -> usize {
        match self {
            Self::None => 0,
            Self::Record => 192 * KIB,
            Self::AccessKey => 40 * KIB,
            Self::Lease => KIB,
            Self::Counters => 64 * KIB,
            Self::Snapshot => 192 * KIB,
        }
    }
}

/// Returns pseudorandom letters, different for each number.
fn noise(number: usize, length: usize, letters: &[u8]) -> String {
    let mut state = number as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(letters[(state >> 33) as usize % letters.len()])
    };
    (0..length).map(|_| next()).collect()
}

const DIGITS: &[u8] = b"0123456789abcdef";

fn bucket(number: usize) -> BucketName {
    BucketName::parse(&noise(number, 63, DIGITS)).expect("a name")
}

fn endpoint() -> Endpoint {
    Endpoint::parse("http://127.0.0.1:1").expect("a URL")
}

fn secret_key() -> SecretKey {
    SecretKey::new("tenant-secret-of-a-test-0123456789-abcde".to_owned())
}

/// Returns consent to as many namespaces as fit into a record, with rules of the maximum length in
/// the schema.
fn consents() -> &'static BTreeMap<NamespaceUid, Consent> {
    static ALL: OnceLock<BTreeMap<NamespaceUid, Consent>> = OnceLock::new();
    ALL.get_or_init(|| {
        let prefix = |rule: usize, prefix: usize| Prefix::parse(&format!("{}/", noise(8 * rule + prefix, 62, DIGITS)));
        let rule = |rule: usize| Consent {
            max_mode: AccessMode::ReadOnly,
            prefixes: (0..8).map(|it| prefix(rule, it).expect("a prefix")).collect(),
        };
        let rules: Vec<Consent> = (0..8).map(rule).collect();
        let of = |at: usize| (NamespaceUid::new(noise(at, 36, DIGITS)), rules[at % rules.len()].clone());
        let all = |most: usize| (0..most).map(of).collect::<BTreeMap<_, _>>();
        let fits = |most: &usize| BucketRecord::accesses_text(&all(*most)).len() <= BucketRecord::LONGEST_ACCESSES;
        all((1..=1000).rev().find(fits).expect("some fit"))
    })
}

fn record(number: usize) -> Value {
    let record = BucketRecord {
        uid: ClaimUid::new(format!("u-{number}")),
        endpoint: endpoint(),
        bucket: bucket(number),
        absence: true,
        accesses: consents().clone(),
        ..BucketRecord::fixture()
    };
    internal(number, record.content(SYSTEM).to_secret())
}

/// Returns a key to as many buckets as an access may name, with prefixes of the maximum total
/// length.
fn access_key(number: usize) -> Value {
    let controls: Vec<u8> = (1..8).chain(14..32).collect();
    let scope = |entry: usize| AccessScope {
        bucket: bucket(1000 * number + entry),
        backend: "main".to_owned(),
        endpoint: endpoint(),
        claim: Some(ClaimUid::new(noise(1000 * number + entry, 36, DIGITS))),
        mode: AccessMode::ReadOnly,
        prefix: Prefix::parse(&format!("{}/", noise(1000 * number + entry, 60, &controls))).ok(),
    };
    let facts = AccessCredentialFacts {
        access: AccessRef { namespace: "team-a".to_owned(), name: "reader".to_owned() },
        uid: AccessUid::new(format!("u-{number}")),
        generation: 1,
        scopes: (0..64).map(scope).collect(),
    };
    internal(number, facts.content(SYSTEM, Some(&secret_key())).to_secret())
}

/// Returns a key to a bucket with a limit: without one, gateways exchange nothing.
fn limited() -> Value {
    let record = BucketRecord { uid: ClaimUid::new("u"), endpoint: endpoint(), ..BucketRecord::fixture() };
    let quota_hard = Quantity::Text("1000".to_owned()).bytes().ok();
    let facts = CredentialFacts { quota_hard, ..record.key_fixture(1) };
    internal(MANY, facts.content(SYSTEM, Some(&secret_key())).to_secret())
}

fn internal(number: usize, secret: Secret) -> Value {
    stored(number, serde_json::to_value(secret).expect("a Secret"))
}

fn lease(number: usize) -> Value {
    let metadata = json!({
        "name": format!("stowage-gateway-{number:063}"), "namespace": SYSTEM,
        "labels": {"broker.stowage.io/usage": "replica"},
        "annotations": {"broker.stowage.io/renewals": "7", "theirs": "x".repeat(200_000)},
    });
    stored(number, json!({"metadata": metadata, "spec": {"holderIdentity": "h".repeat(500_000)}}))
}

fn forged(number: usize, map: ConfigMap) -> Value {
    let mut map = serde_json::to_value(map).expect("a ConfigMap");
    map["metadata"]["annotations"] = json!({"theirs": "x".repeat(200_000)});
    map["binaryData"] = json!({"theirs": "eHh4".repeat(100_000)});
    stored(number, map)
}

fn counters(number: usize) -> Value {
    let largest = Figures { base: 0, written: u64::MAX, open: u64::MAX, removals: u64::MAX };
    let name = |at: usize| RecordName::parse(&format!("br-{at:040x}")).expect("a name");
    let of = (0..Counters::MOST).map(|at| (name(at), largest)).collect();
    forged(number, Counters { replica: format!("{number:063}"), shard: 0, of }.config_map(SYSTEM))
}

fn snapshot(number: usize) -> Value {
    let of = || (0..Measured::MOST_REPLICAS).map(|at| (format!("{at:038}"), u64::MAX)).collect();
    let measured = Measured {
        number: 1,
        bytes: u64::MAX,
        objects: 1,
        began: Timestamp::UNIX_EPOCH,
        took_ms: 1,
        covers: of(),
        removals: of(),
    };
    let bucket = RecordName::parse(&format!("br-{number:040x}")).expect("a name");
    let scanning = Some(Scanning { so_far: measured.clone(), marker: "m".repeat(1000) });
    forged(number, Snapshot { bucket, measured: Some(measured), scanning, failing_since: None }.config_map(SYSTEM))
}

fn stored(number: usize, mut object: Value) -> Value {
    object["metadata"]["uid"] = format!("uid-{number}").into();
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

/// Returns a parameter of a query as a number.
fn number(query: &str, name: &str) -> Option<usize> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Returns a page of a list of `of` objects, each generated when it is sent.
fn page(query: &str, of: usize, object: impl Fn(usize) -> Value + Send + 'static) -> BoxStream<'static, Bytes> {
    let from = number(query, "continue").unwrap_or_default();
    let to = number(query, "limit").map_or(of, |limit| of.min(from + limit));
    let next = if to < of { to.to_string() } else { String::new() };
    let head = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":["#);
    let items =
        (from..to).map(move |number| Bytes::from(object(number).to_string() + if number + 1 < to { "," } else { "" }));
    stream::iter([Bytes::from(head)].into_iter().chain(items).chain([Bytes::from_static(b"]}")])).boxed()
}

/// Answers like an API server: lists, watches without events, and errors for everything else.
fn answer(request: &Request<Body>, kind: Kind) -> (u16, BoxStream<'static, Bytes>) {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let is_of_one = query.contains("fieldSelector");
    if query.contains("watch=true") {
        if !is_of_one {
            READ.lock().expect("nobody panics with it").insert(path.to_owned());
        }
        return (200, stream::pending().boxed());
    }
    if request.method() != Method::GET {
        let refusal = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "it is broken"});
        return (500, stream::iter([Bytes::from(refusal.to_string())]).boxed());
    }
    let (of_kind, object) = kind.list();
    let many = if path == of_kind && kind != Kind::None { MANY } else { 0 };
    match path {
        _ if is_of_one => (200, page(query, 0, lease)),
        SECRETS => (200, page(query, many + 1, move |number| if number == many { limited() } else { object(number) })),
        BACKENDS => {
            let credentials = json!({"name": "admin", "namespace": SYSTEM});
            let spec = json!({"endpoint": endpoint().as_str(), "adminCredentialsSecretRef": credentials});
            let backend = stored(0, json!({"metadata": {"name": "main"}, "spec": spec}));
            (200, page(query, 1, move |_| backend.clone()))
        }
        _ => (200, page(query, many, object)),
    }
}

fn client(kind: Kind) -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        let (status, body) = answer(&request, kind);
        let frames = body.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        Response::builder().status(status).body(StreamBody::new(frames))
    });
    Client::new(service, SYSTEM)
}

fn gateway(client: &Client) -> Gateway {
    let registry = Registry::new(Setting { namespaces: [SYSTEM.to_owned()].into(), unlabelled: Unlabelled::Refused });
    let gears = Gears {
        registry,
        live: Live::new(client.clone(), SYSTEM),
        connect: Box::new(RustlsConnect),
        clock: Arc::new(Timestamp::now),
        clock_of_clients: Arc::new(Timestamp::now),
        first_id: 1,
        log: None,
        metrics: Metrics::new(),
    };
    let config = Config {
        region: "us-east-1".to_owned(),
        proxies: Proxies::default(),
        domains: Domains::new([]),
        backend_calls: 16,
        per_claim: 4,
        anonymous_rps: 5,
        max_staleness: Duration::MAX,
    };
    Gateway::new(gears, config)
}

/// Returns the bytes allocated once a gateway has read such objects, and the peak.
async fn taken(kind: Kind) -> (usize, usize) {
    let _ = consents();
    let before = HELD.load(Ordering::Relaxed);
    MOST_HELD.store(before, Ordering::Relaxed);
    READ.lock().expect("nobody panics with it").clear();
    let client = client(kind);
    let gateway = gateway(&client);
    let source = Source { client, namespace: SYSTEM.to_owned(), watch: watcher::Config::default() };
    let (counting, follows) = (gateway.clone(), source.clone());
    let registry = gateway.registry().clone();
    let work = [
        tokio::spawn(async move { match registry.follow(follows).await {} }),
        tokio::spawn(async move { match counting.keep_quotas(source).await {} }),
    ];
    let is_read =
        || [SECRETS, CONFIG_MAPS, LEASES].iter().all(|path| READ.lock().is_ok_and(|read| read.contains(*path)));
    for _ in 0..480 {
        if is_read() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(is_read(), "{kind:?}: the lists are not read to their end");
    assert_counted(&gateway, kind);
    let mut held = usize::MAX;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        held = held.min(HELD.load(Ordering::Relaxed).saturating_sub(before));
    }
    let most_held = MOST_HELD.load(Ordering::Relaxed).saturating_sub(before);
    for task in work {
        task.abort();
        let _ = task.await;
    }
    (held, most_held)
}

/// Checks the measurement itself: an object that doesn't count would take no memory.
fn assert_counted(gateway: &Gateway, kind: Kind) {
    let counts = gateway.registry().ask(stowage_gateway::registry::Tables::counts);
    let expected = |of: Kind| if kind == of { MANY } else { 0 };
    assert_eq!((counts.records, counts.keys), (expected(Kind::Record), expected(Kind::AccessKey) + 1), "{kind:?}");
}

// covers: 6.memory
#[tokio::test]
async fn what_is_known_of_an_object_takes_no_more_than_its_share() {
    let (least, _) = taken(Kind::None).await;
    for kind in [Kind::Record, Kind::AccessKey, Kind::Lease, Kind::Counters, Kind::Snapshot] {
        let (held, most_held) = taken(kind).await;
        let each = held.saturating_sub(least) / MANY;
        let told = format!("{kind:?}: {} bytes each, {} KiB were at most", each, most_held / KIB);
        assert!(each <= kind.most_kept(), "{told}");
        if ![Kind::Record, Kind::AccessKey].contains(&kind) {
            assert!(most_held <= MOST_AT_ONCE, "{told}");
        }
    }
}
