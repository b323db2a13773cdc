//! Memory of the operator for objects that tenants make as large as possible (spec §3.5).
//!
//! The tests cover everything from the list to the pass. The API server generates each object on
//! request and stores none, so all allocated memory is the operator's.

#![expect(clippy::print_stdout, reason = "memory of each kind, for people")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::ByteString;
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};
use stowage_operator::api::{
    AccessCredentialFacts, AccessMode, AccessRef, AccessScope, AccessUid, AddressingStyle, BucketName, BucketRecord,
    ClaimUid, Consent, Endpoint, Gateway, NamespaceUid, Prefix, SecretKey, Unlabelled,
};
use stowage_operator::upstream::{Limits, RustlsConnect};
use stowage_operator::{Clock, Config, Metrics, Parts, Uptime};
use tower::service_fn;

/// The system's allocator, with counters.
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

/// Limit for each object, however a tenant fills it: 5,000 of them take 108 MiB in addition to an
/// empty operator. Memory grows only with their number, so a few are enough here.
const MOST_KEPT: usize = 22 * KIB;
/// Limit for a bucket record, however many namespaces name the bucket. Tenants can't create
/// records.
const MOST_KEPT_OF_RECORD: usize = 64 * KIB;
/// Number of objects of a kind: enough that the running pass weighs little in comparison.
const MANY: usize = 200;
/// Memory of an operator without objects.
const LEAST: usize = 6 * MIB;
/// Limit while lists arrive.
const MOST_AT_ONCE: usize = 48 * MIB;

/// Objects of one kind, each as large as the API server accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    FullSecret,
    OwnedSecret,
    TemplatedSecret,
    Claim,
    Access,
    Obc,
    ObjectBucket,
    ObcConfigMap,
    Record,
    AccessKey,
}

/// Watched paths, whose lists were read to the end.
static WATCHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

const INTERNAL: &str = "/api/v1/namespaces/stowage-system/secrets";

impl Kind {
    /// Returns the path of their list, and a function that makes one.
    fn list(self) -> (&'static str, fn(usize) -> String) {
        match self {
            Self::None => ("", claim),
            Self::FullSecret => ("/api/v1/secrets", full),
            Self::OwnedSecret => ("/api/v1/secrets", owned),
            Self::TemplatedSecret => ("/api/v1/secrets", templated),
            Self::Claim => ("/apis/broker.stowage.io/v1alpha1/bucketclaims", claim),
            Self::Access => ("/apis/broker.stowage.io/v1alpha1/bucketaccesses", access),
            Self::Obc => ("/apis/objectbucket.io/v1alpha1/objectbucketclaims", obc),
            Self::ObjectBucket => ("/apis/objectbucket.io/v1alpha1/objectbuckets", object_bucket),
            Self::ObcConfigMap => ("/api/v1/configmaps", config_map),
            Self::Record => (INTERNAL, record),
            Self::AccessKey => (INTERNAL, access_key),
        }
    }

    /// Returns the memory limit of each.
    fn most_kept(self) -> usize {
        if self == Self::Record { MOST_KEPT_OF_RECORD } else { MOST_KEPT }
    }
}

/// Returns a Secret with our label and a megabyte in a field of ours.
fn full(number: usize) -> String {
    let data = json!({"BUCKET_NAME": "eHh4".repeat(MIB / 3)});
    consumer(number, &json!([]), &json!({}), &data)
}

/// Returns a Secret whose controller has a longer UID than any real object.
fn owned(number: usize) -> String {
    let uid = format!("{number}{}", "u".repeat(1_200_000));
    let owner = json!([{"apiVersion": "v1", "kind": "x", "name": "x", "uid": uid, "controller": true}]);
    consumer(number, &owner, &json!({}), &json!({}))
}

/// Returns a Secret which claims that templates wrote all its content, as much as fits into
/// annotations.
fn templated(number: usize) -> String {
    let names: Vec<String> = (0..900).map(|name| format!("n{name}")).collect();
    let told = json!({"annotations": names}).to_string();
    let mut annotations: Map<String, Value> = names.into_iter().map(|name| (name, json!("v".repeat(250)))).collect();
    annotations.insert("broker.stowage.io/template".to_owned(), json!(told));
    consumer(number, &json!([]), &Value::Object(annotations), &json!({}))
}

fn consumer(number: usize, owners: &Value, annotations: &Value, data: &Value) -> String {
    let mut metadata = metadata(number);
    metadata["labels"] = json!({"broker.stowage.io/role": "consumer-secret"});
    metadata["ownerReferences"] = owners.clone();
    metadata["annotations"] = annotations.clone();
    json!({"metadata": metadata, "data": data}).to_string()
}

fn metadata(number: usize) -> Value {
    let name = format!("{}-{number}", "n".repeat(200));
    json!({"namespace": "team-a", "name": name, "uid": format!("u-{number}"), "resourceVersion": "1"})
}

/// Metadata with a rotate annotation and many finalizers.
fn asking(number: usize) -> Value {
    let mut metadata = metadata(number);
    metadata["annotations"] = json!({"broker.stowage.io/rotate": "r".repeat(250_000)});
    metadata["finalizers"] = (0..5000).map(|finalizer| format!("example.com/f-{finalizer}")).collect();
    metadata
}

/// Returns a template as large as the schema allows.
fn template() -> Value {
    let map = |text: &str, longest: usize| -> Map<String, Value> {
        (0..32).map(|key| (format!("{key:02}{}", "k".repeat(40)), json!(text.repeat(longest)))).collect()
    };
    json!({"labels": map("x", 63), "annotations": map("\u{1}", 256), "data": map("\u{fc}", 4096)})
}

/// Conditions, as the operator writes them for an impossible spec.
fn conditions() -> Value {
    let condition = |kind: &str| {
        let time = "2026-01-01T00:00:00Z";
        json!({"type": kind, "status": "False", "reason": "R", "message": "m".repeat(600), "lastTransitionTime": time})
    };
    json!(["Ready", "Stalled", "CredentialsProvisioned"].map(condition))
}

fn claim(number: usize) -> String {
    let labels = |rule: usize| -> Map<String, Value> {
        (0..8).map(|label| (format!("l{rule}{label}"), json!("v".repeat(8)))).collect()
    };
    let rule = |rule: usize| {
        let names: Vec<String> = (0..32).map(|name| format!("n{rule}{name}")).collect();
        let prefixes: Vec<String> = (0..8).map(|prefix| format!("p{rule}{prefix}{}/", "x".repeat(20))).collect();
        let namespaces = json!({"names": names, "selector": {"matchLabels": labels(rule)}});
        json!({"namespaces": namespaces, "maxMode": "ReadOnly", "prefixes": prefixes})
    };
    let sharing: Vec<Value> = (0..8).map(rule).collect();
    let spec = json!({"backendRef": {"name": "main"}, "sharing": sharing, "secretTemplate": template()});
    json!({"metadata": asking(number), "spec": spec, "status": {"conditions": conditions()}}).to_string()
}

fn access(number: usize) -> String {
    let entry = |entry: usize| {
        let claim = json!({"name": format!("c{number}-{entry}"), "namespace": "team-b"});
        json!({"claimRef": claim, "mode": "ReadOnly", "prefix": format!("{entry:02}{}/", "p".repeat(45))})
    };
    let shown = |entry: usize| json!({"bucket": format!("{entry:02}{}", "b".repeat(60)), "state": "Closed", "reason": "ConsentPending"});
    let spec = json!({
        "buckets": (0..64).map(entry).collect::<Vec<_>>(), "secretTemplate": template(),
        "writeConnectionSecretToRef": {"name": "s".repeat(250)},
    });
    let status = json!({"buckets": (0..64).map(shown).collect::<Vec<_>>(), "conditions": conditions()});
    json!({"metadata": asking(number), "spec": spec, "status": status}).to_string()
}

fn obc(number: usize) -> String {
    let long = || "x".repeat(10_000);
    let config: Map<String, Value> = (0..50).map(|key| (format!("{key:02}{}", long()), json!(long()))).collect();
    let spec = json!({"storageClassName": long(), "bucketName": long(), "additionalConfig": config});
    json!({"metadata": asking(number), "spec": spec}).to_string()
}

fn object_bucket(number: usize) -> String {
    let long = || "x".repeat(100_000);
    let entry = |key: usize| (format!("{key:02}{}", "k".repeat(200)), json!("v".repeat(10_000)));
    let map = || (0..30).map(entry).collect::<Map<_, _>>();
    let claim = json!({"apiVersion": long(), "kind": long(), "namespace": long(), "name": long(), "uid": long()});
    let endpoint = json!({
        "bucketHost": long(), "bucketPort": 80, "bucketName": long(), "region": long(), "subRegion": long(),
        "additionalConfig": map(),
    });
    let spec = json!({
        "storageClassName": long(), "reclaimPolicy": long(), "claimRef": claim, "endpoint": endpoint,
        "additionalState": map(),
    });
    json!({"metadata": asking(number), "spec": spec, "status": {"phase": long()}}).to_string()
}

/// Returns a ConfigMap with the provisioner's label and a megabyte of data.
fn config_map(number: usize) -> String {
    let mut metadata = asking(number);
    metadata["labels"] = json!({"bucket-provisioner": "stowage.io-buckets", "theirs": "l".repeat(63)});
    let text = || "t".repeat(250);
    let owner = json!({
        "apiVersion": format!("objectbucket.io/{}", "v".repeat(200)), "kind": text(), "name": text(), "uid": text(),
        "controller": true,
    });
    metadata["ownerReferences"] = json!([owner]);
    let data = json!({
        "BUCKET_HOST": text(), "BUCKET_NAME": text(), "BUCKET_PORT": text(), "BUCKET_REGION": text(),
        "BUCKET_SUBREGION": text(), "theirs": "t".repeat(500_000),
    });
    json!({"metadata": metadata, "data": data}).to_string()
}

/// Pseudo-random letters, different for each number.
fn noise(number: usize, length: usize, letters: &[u8]) -> String {
    let mut state = number as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(letters[(state >> 33) as usize % letters.len()])
    };
    (0..length).map(|_| next()).collect()
}

const DIGITS: &[u8] = b"0123456789abcdef";

/// Returns the record of a claim that shares its bucket by rules as long as the schema allows, with
/// accesses in as many namespaces as a record has room for.
fn record(number: usize) -> String {
    static ACCESSES: OnceLock<String> = OnceLock::new();
    let record = BucketRecord {
        uid: ClaimUid::new(format!("u-{number}")),
        bucket: BucketName::parse(&noise(number, 63, DIGITS)).expect("a name"),
        absence: true,
        ..BucketRecord::fixture()
    };
    let mut secret = serde_json::to_value(record.content("stowage-system").to_secret()).expect("a Secret");
    secret["data"]["accesses"] = "ACCESSES".into();
    internal(number, secret).replacen("ACCESSES", ACCESSES.get_or_init(accesses), 1)
}

/// Returns the accesses of such a record, encoded as in a Secret.
fn accesses() -> String {
    let prefix = |rule: usize, prefix: usize| Prefix::parse(&format!("{}/", noise(8 * rule + prefix, 62, DIGITS)));
    let rule = |rule: usize| Consent {
        max_mode: AccessMode::ReadOnly,
        prefixes: (0..8).map(|it| prefix(rule, it).expect("a prefix")).collect(),
    };
    let rules: Vec<Consent> = (0..8).map(rule).collect();
    let of = |at: usize| (NamespaceUid::new(noise(at, 36, DIGITS)), rules[at % rules.len()].clone());
    let text = |most: usize| BucketRecord::accesses_text(&(0..most).map(of).collect());
    let mut texts = (0..=1000).rev().step_by(10).map(text);
    let longest = texts.find(|text| text.len() <= BucketRecord::LONGEST_ACCESSES).expect("some fit");
    let encoded = serde_json::to_value(ByteString(longest.into_bytes())).expect("a text");
    encoded.as_str().expect("it is encoded as one").to_owned()
}

/// Returns a key to as many buckets as an access may name, with prefixes of the maximum total
/// length, some of whose letters take two bytes in JSON.
fn access_key(number: usize) -> String {
    let letters = [DIGITS, b"\"\\"].concat();
    let scope = |entry: usize| {
        let seed = 1000 * number + entry;
        AccessScope {
            bucket: BucketName::parse(&noise(seed, 63, DIGITS)).expect("a name"),
            backend: "main".to_owned(),
            endpoint: Endpoint::parse("https://s3.example:9000").expect("a URL"),
            claim: Some(ClaimUid::new(noise(seed, 36, DIGITS))),
            mode: AccessMode::ReadOnly,
            prefix: Some(Prefix::parse(&format!("{}/", noise(seed, 60, &letters))).expect("a prefix")),
        }
    };
    let access = AccessRef { namespace: "team-a".to_owned(), name: format!("{}-{number}", "n".repeat(200)) };
    let facts = AccessCredentialFacts {
        access,
        uid: AccessUid::new(format!("u-{number}")),
        generation: 1,
        scopes: (0..64).map(scope).collect(),
    };
    let key = SecretKey::new("k".repeat(40));
    let secret = facts.content("stowage-system", Some(&key)).to_secret();
    internal(number, serde_json::to_value(secret).expect("a Secret"))
}

fn internal(number: usize, mut secret: Value) -> String {
    for (field, value) in
        [("name", format!("s-{number}")), ("uid", format!("u-{number}")), ("resourceVersion", "1".to_owned())]
    {
        secret["metadata"][field] = value.into();
    }
    secret.to_string()
}

/// Returns a numeric parameter of a query.
fn number(query: &str, name: &str) -> Option<usize> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Returns a page of a list of `of` objects, each generated when it is sent.
fn page(query: &str, of: usize, object: fn(usize) -> String) -> impl Stream<Item = Bytes> + Send + use<> {
    let from = number(query, "continue").unwrap_or_default();
    let to = number(query, "limit").map_or(of, |limit| of.min(from + limit));
    let next = if to < of { to.to_string() } else { String::new() };
    let head = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":["#);
    let items = (from..to).map(move |number| Bytes::from(object(number) + if number + 1 < to { "," } else { "" }));
    stream::iter([Bytes::from(head)].into_iter().chain(items).chain([Bytes::from_static(b"]}")]))
}

/// Answers like an API server: tenants' objects for lists, nothing for watches, an error otherwise.
fn answer(request: &Request<Body>, kind: Kind) -> (u16, stream::BoxStream<'static, Bytes>) {
    let query = request.uri().query().unwrap_or_default();
    if query.contains("watch=true") {
        WATCHED.lock().expect("nobody panics with it").insert(request.uri().path().to_owned());
        return (200, stream::pending().boxed());
    }
    if request.method() != Method::GET || number(query, "limit").is_none() {
        let refusal = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "it is broken"});
        return (500, stream::iter([Bytes::from(refusal.to_string())]).boxed());
    }
    let (path, object) = kind.list();
    let many = if request.uri().path() == path { MANY } else { 0 };
    (200, page(query, many, object).boxed())
}

fn client(kind: Kind) -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        let (status, body) = answer(&request, kind);
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
        // A pass holds the uncompressed texts of an object. On a slow machine some pass is always
        // running.
        max_concurrent_reconciles: 1,
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 1000,
        accesses: true,
        obc: Some("stowage.io/buckets".to_owned()),
        resync_interval: Duration::from_secs(600),
    }
}

/// Returns the memory in bytes of an operator with filled caches, and its maximum until then. It is
/// measured for three seconds, on a busy machine for up to a minute, until it is at most `enough`.
async fn taken(kind: Kind, enough: usize) -> (usize, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST_HELD.store(before, Ordering::Relaxed);
    WATCHED.lock().expect("nobody panics with it").clear();
    let (ready, mut readiness) = tokio::sync::watch::channel(false);
    let parts = Parts {
        client: client(kind),
        connect: Arc::new(RustlsConnect),
        clock: Clock::system(),
        uptime: Uptime::system(),
        metrics: Metrics::new(),
        ready: Some(ready),
    };
    let operator = tokio::spawn(stowage_operator::run(config(), parts, std::future::pending()));
    let filled = tokio::time::timeout(Duration::from_secs(120), readiness.wait_for(|ready| *ready)).await;
    filled.expect("it takes two minutes at most").expect("the operator runs");
    let (path, _) = kind.list();
    let is_read = || path.is_empty() || WATCHED.lock().expect("nobody panics with it").contains(path);
    for _ in 0..480 {
        if is_read() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(is_read(), "{kind:?}: the list is not read to its end");
    // Passes begin, are retried, and hold memory for a moment, so the minimum is what stays.
    let mut held = usize::MAX;
    for look in 0..240 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        held = held.min(HELD.load(Ordering::Relaxed).saturating_sub(before));
        if look >= 11 && held <= enough {
            break;
        }
    }
    let most_held = MOST_HELD.load(Ordering::Relaxed).saturating_sub(before);
    operator.abort();
    let _ = operator.await;
    (held, most_held)
}

// covers: 3.5.memory, 3.5.memory.page, 3.5.memory.record
#[tokio::test]
async fn a_tenants_objects_take_no_more_than_their_share() {
    let (least, _) = taken(Kind::None, LEAST).await;
    assert!(least <= LEAST, "{} KiB are held without any", least / KIB);
    let of_tenants = [Kind::FullSecret, Kind::OwnedSecret, Kind::TemplatedSecret, Kind::Claim, Kind::Access, Kind::Obc];
    let of_ours = [Kind::ObjectBucket, Kind::ObcConfigMap, Kind::Record, Kind::AccessKey];
    for kind in of_tenants.into_iter().chain(of_ours) {
        let (held, most_held) = taken(kind, least + MANY * kind.most_kept()).await;
        let each = held.saturating_sub(least) / MANY;
        let told = format!("{kind:?}: {} bytes each, {} KiB were at most", each, most_held / KIB);
        println!("{told}");
        assert!(each <= kind.most_kept() && most_held <= MOST_AT_ONCE, "{told}");
    }
}
