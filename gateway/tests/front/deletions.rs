//! DeleteObjects: an S3 store gets a document written by the gateway, and none of a client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use ring::digest;
use rstest::rstest;
use s3_sim::{Dialect, Store};
use stowage_api::{
    AccessCredentialFacts, AccessMode, AccessRecord, AccessRef, AccessScope, AccessUid, BucketName, BucketRecord,
    ClaimRef, ClaimUid, Consent, Endpoint, NamespaceUid, Prefix, SecretKey,
};
use stowage_gateway::body::Body;
use stowage_gateway::front::Peer;
use tower::{BoxError, ServiceExt};

use crate::{Ask, Asked, SECRET, STORE, STORE_KEY, SYSTEM, Stage, answer, ask, body, code, now};

pub(crate) const BUCKET: &str = "album";

/// Objects whose names differ in ways that a reader of XML, paths or tables may miss.
const OBJECTS: [&str; 9] = [
    "secret",
    "shared/a",
    "shared/a\n",
    "shared/a\r",
    "shared/a ",
    "shared/a&b",
    "shared/a&amp;b",
    "shared/a%26b",
    "shared2/a",
];

/// Returns a store with the bucket and its objects.
pub(crate) fn store() -> Store {
    let store = Store::new(Arc::new(now), Dialect::default());
    store.add_account("stowage", STORE_KEY, "store-secret");
    assert!(store.put_bucket("stowage", BUCKET));
    for key in OBJECTS {
        assert!(store.put_object(BUCKET, key, "content").is_some(), "{key:?}");
    }
    store
}

/// Returns the objects that were deleted.
fn gone(store: &Store) -> Vec<&'static str> {
    let left = store.objects(BUCKET);
    OBJECTS.into_iter().filter(|key| !left.contains_key(*key)).collect()
}

/// Returns the only call to the store besides GetBucketVersioning.
fn only(stage: &Stage) -> Asked {
    let mut asked = stage.asked();
    asked.retain(|asked| !asked.line().ends_with("?versioning="));
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked.remove(0)
}

/// Returns the response of the store, which verifies signatures and digests.
fn carried_out(store: &Store, asked: &Asked) -> Response<Body> {
    let Ok(bytes) = asked.body.clone() else { return answer(400, &[], "") };
    let mut request = Request::new(s3s::Body::from(bytes));
    *request.method_mut() = asked.method.clone();
    *request.uri_mut() = asked.uri.clone();
    *request.headers_mut() = asked.headers.clone();
    let answered = store.http().oneshot(request).now_or_never().expect("it waits for nothing");
    let (parts, answered) = answered.expect("it answers").into_parts();
    let text = answered.collect().now_or_never().expect("it is there").expect("it is whole");
    Response::from_parts(parts, body(text.to_bytes()))
}

/// Writes the record of the bucket. If `shared`, it has consent for the access's namespace.
fn share(stage: &Stage, shared: bool) {
    let consent = shared.then(|| (NamespaceUid::new("n-1"), Consent::full()));
    let record = BucketRecord {
        claim: ClaimRef { namespace: "team-a".into(), name: "album".into() },
        uid: ClaimUid::new("c-1"),
        endpoint: Endpoint::parse(STORE).expect("a URL"),
        bucket: BucketName::parse(BUCKET).expect("a name"),
        accesses: BTreeMap::from_iter(consent),
        ..BucketRecord::fixture()
    };
    put(stage, &record.content(SYSTEM).to_secret());
}

fn put(stage: &Stage, secret: &k8s_openapi::api::core::v1::Secret) {
    let name = secret.metadata.name.clone().expect("it has a name");
    stage.internal(&name, serde_json::to_value(secret).expect("it is JSON"));
}

/// Starts a gateway with this store. Returns it with the id of an access's key, limited to the
/// prefix.
pub(crate) async fn stage(store: &Store, prefix: Option<&str>) -> (Stage, String) {
    let stage = Stage::new().await;
    let store = store.clone();
    stage.store_answers(move |asked| carried_out(&store, asked));
    let access = AccessRef { namespace: "team-b".into(), name: "cleaner".into() };
    let uid = AccessUid::new("a-1");
    let record = AccessRecord { access: access.clone(), uid: uid.clone(), ..AccessRecord::fixture() };
    let scope = AccessScope {
        bucket: BucketName::parse(BUCKET).expect("a name"),
        backend: "main".into(),
        endpoint: Endpoint::parse(STORE).expect("a URL"),
        claim: Some(ClaimUid::new("c-1")),
        mode: AccessMode::ReadWrite,
        prefix: prefix.map(|prefix| Prefix::parse(prefix).expect("a prefix")),
    };
    let facts = AccessCredentialFacts { access, uid, generation: 1, scopes: vec![scope] };
    let id = facts.access_key_id().to_string();
    share(&stage, true);
    put(&stage, &record.content(SYSTEM).to_secret());
    put(&stage, &facts.content(SYSTEM, Some(&SecretKey::new(SECRET.to_owned()))).to_secret());
    stage.until(|stage| stage.knows(&id)).await;
    (stage, id)
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn crc32(bytes: &[u8]) -> String {
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, bytes);
    STANDARD.encode(u32::try_from(sum).expect("it has 32 bits").to_be_bytes())
}

/// Returns a request with this document, its signed hash and a CRC32, as Amazon's SDKs send it.
pub(crate) fn delete(document: &str) -> Ask {
    let mut request = ask("POST", &format!("/{BUCKET}?delete="))
        .with("content-type", "application/xml")
        .with("x-amz-sdk-checksum-algorithm", "CRC32")
        .with("x-amz-checksum-crc32", &crc32(document.as_bytes()))
        .sending(document.to_owned());
    request.payload = sha256(document.as_bytes());
    request
}

pub(crate) fn document(keys: &[&str]) -> String {
    let object = |key: &&str| format!("<Object><Key>{key}</Key></Object>");
    format!("<Delete>{}</Delete>", keys.iter().map(object).collect::<String>())
}

// covers: 8.prefix.deleteObjects, 6.deleteObjects.written
#[tokio::test]
async fn what_is_inside_is_deleted_by_a_document_of_ours() {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let sent = "<Delete>\n <Object><Key>shared/a</Key></Object><Object><Key>shared/none</Key></Object>\n</Delete>";
    let (status, _, text) = stage.signed_as(&id, delete(sent)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert!(text.contains("<Key>shared/a</Key>") && !text.contains("<Error>"), "{text}");
    assert_eq!(gone(&store), ["shared/a"]);
    let asked = only(&stage);
    let written = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>shared/a</Key></Object>\
        <Object><Key>shared/none</Key></Object></Delete>";
    assert_eq!(asked.body.as_deref(), Ok(written.as_bytes()));
    assert_eq!(asked.line(), "POST /album?delete=");
    assert_eq!(asked.header("content-length"), Some(written.len().to_string().as_str()));
    assert_eq!(asked.header("x-amz-content-sha256"), Some(sha256(written.as_bytes()).as_str()));
    assert!(asked.header("content-md5").is_some());
    for about_the_other in ["x-amz-checksum-crc32", "x-amz-sdk-checksum-algorithm", "content-encoding"] {
        assert_eq!(asked.header(about_the_other), None);
    }
}

// covers: 8.prefix.deleteObjects
#[rstest]
#[case(&["shared/a", "secret"])]
#[case(&["shared2/a"])]
#[case(&["shared/a", "shared"])]
#[case(&["shared/a", "shared%2Fa"])]
#[case(&["shared/a", "/shared/a"])]
#[tokio::test]
async fn one_key_outside_refuses_them_all(#[case] keys: &[&str]) {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let (status, _, text) = stage.signed_as(&id, delete(&document(keys))).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "AccessDenied"), "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
}

// covers: 6.deleteObjects.written
/// The store deletes the object whose key was checked, and none with a similar one.
#[rstest]
#[case("shared/a&amp;b", "shared/a&b")]
#[case("shared/a&amp;amp;b", "shared/a&amp;b")]
#[case("shared/a%26b", "shared/a%26b")]
#[case("shared/a&#13;", "shared/a\r")]
#[case("shared/a&#10;", "shared/a\n")]
#[case("shared/a\r\n", "shared/a\n")]
#[case("shared/a ", "shared/a ")]
#[case("<![CDATA[shared/a&b]]>", "shared/a&b")]
#[tokio::test]
async fn a_key_is_the_same_to_gateway_and_store(#[case] written: &str, #[case] expected: &str) {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let (status, _, text) = stage.signed_as(&id, delete(&document(&[written]))).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(gone(&store), [expected]);
}

// covers: 6.deleteObjects.strict, 6.segments
#[rstest]
#[case("", "MalformedXML")]
#[case("<Delete><Object><Key>shared/a</Key></Object>", "MalformedXML")]
#[case("<Delete><Object><Key>shared/a</Key><Key>secret</Key></Object></Delete>", "MalformedXML")]
#[case("<Delete><Object><Key>shared/a<!-- --></Key></Object></Delete>", "MalformedXML")]
#[case("<!DOCTYPE a [<!ENTITY b \"secret\">]><Delete><Object><Key>&b;</Key></Object></Delete>", "MalformedXML")]
#[case("<Delete><Object><Key>shared/&#1;</Key></Object></Delete>", "MalformedXML")]
#[case("<Delete><Object><Key>shared/../secret</Key></Object></Delete>", "InvalidArgument")]
#[case("<Delete><Object><Key>shared/&#x2e;./secret</Key></Object></Delete>", "InvalidArgument")]
#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused(#[case] document: &str, #[case] expected: &str) {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let (status, _, text) = stage.signed_as(&id, delete(document)).await;
    assert_eq!((status.as_u16(), code(&text)), (400, expected), "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
}

// covers: 6.deleteObjects.bound
#[tokio::test]
async fn a_longer_document_than_any_is_not_read() {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let long = format!("{}{}", document(&["shared/a"]), " ".repeat(2 << 20));
    let (status, _, text) = stage.signed_as(&id, delete(&long)).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "EntityTooLarge"), "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
}

/// Returns a valid request with a change to its headers or body.
fn told(change: impl FnOnce(&mut Ask)) -> Ask {
    let mut request = delete(&document(&["shared/a"]));
    change(&mut request);
    request
}

fn set(request: &mut Ask, name: &'static str, value: &'static str) {
    request.headers.insert(name, http::HeaderValue::from_static(value));
}

// covers: 6.deleteObjects.written
#[rstest]
#[case(told(|it| it.payload = sha256(b"another")), "XAmzContentSHA256Mismatch")]
#[case(told(|it| set(it, "content-md5", "JfnnlDI7RTiF9RgfG2JNCw==")), "BadDigest")]
#[case(told(|it| set(it, "content-md5", "AAAA")), "InvalidDigest")]
#[case(told(|it| set(it, "x-amz-checksum-crc32", "AAAAAA==")), "BadDigest")]
#[case(told(|it| set(it, "x-amz-checksum-xxhash64", "AAAAAAAAAAA=")), "NotImplemented")]
#[case(told(|it| set(it, "content-length", "500")), "IncompleteBody")]
#[tokio::test]
async fn a_body_that_is_not_what_was_said_deletes_nothing(#[case] request: Ask, #[case] expected: &str) {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let (status, _, text) = stage.signed_as(&id, request).await;
    assert!(!status.is_success());
    assert_eq!(code(&text), expected, "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
}

/// Returns a request with its document in chunks, followed by a checksum.
fn in_chunks(document: &str, sum: &str) -> Ask {
    let framed = format!("{:x}\r\n{document}\r\n0\r\nx-amz-checksum-crc32:{sum}\r\n\r\n", document.len());
    let mut request = ask("POST", &format!("/{BUCKET}?delete="))
        .with("content-encoding", "aws-chunked")
        .with("x-amz-decoded-content-length", &document.len().to_string())
        .with("x-amz-trailer", "x-amz-checksum-crc32")
        .sending(framed);
    request.payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned();
    request
}

// covers: 6.deleteObjects.written
#[tokio::test]
async fn a_checksum_behind_the_body_is_held_against_it() {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let document = document(&["shared/a"]);
    let (status, _, text) = stage.signed_as(&id, in_chunks(&document, "AAAAAA==")).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "BadDigest"), "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
    let (status, _, text) = stage.signed_as(&id, in_chunks(&document, &crc32(document.as_bytes()))).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(gone(&store), ["shared/a"]);
    assert_eq!(only(&stage).header("x-amz-trailer"), None);
}

/// Starts a gateway that knows a claim's key for the whole bucket. Returns it with the key's id.
pub(crate) async fn of_claim(store: &Store) -> (Stage, String) {
    let stage = Stage::new().await;
    let store = store.clone();
    stage.store_answers(move |asked| carried_out(&store, asked));
    stage.credential("WHOLE", BUCKET, serde_json::json!({}));
    stage.until(|stage| stage.knows("WHOLE")).await;
    (stage, "WHOLE".to_owned())
}

// covers: 6.deleteObjects, 6.deleteObjects.written
/// With a key that resolves to a path outside of its bucket, a tenant could delete objects of other
/// tenants in stores that keep buckets as folders.
#[rstest]
#[case::of_a_claim(false)]
#[case::of_an_access(true)]
#[tokio::test]
async fn a_key_for_the_whole_bucket_has_its_document_read_and_written(#[case] of_access: bool) {
    let store = store();
    let (stage, id) = if of_access { stage(&store, None).await } else { of_claim(&store).await };
    for key in ["../other/secret", "a/../../other/secret", "./secret", "a/&#x2e;./../x"] {
        let (status, _, text) = stage.signed_as(&id, delete(&document(&["shared/a", key]))).await;
        assert_eq!((status.as_u16(), code(&text)), (400, "InvalidArgument"), "{key}: {text}");
    }
    let commented = "<Delete><!-- all --><Object><Key>secret</Key></Object></Delete>";
    let (status, _, text) = stage.signed_as(&id, delete(commented)).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "MalformedXML"), "{text}");
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
    let (status, _, text) =
        stage.signed_as(&id, delete("<Delete>\n<Object><Key>secret</Key></Object>\n</Delete>")).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(gone(&store), ["secret"]);
    let written = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>secret</Key></Object></Delete>";
    assert_eq!(only(&stage).body.as_deref(), Ok(written.as_bytes()));
}

/// Returns a request whose body arrives when `ready` completes.
fn waiting(request: Ask, id: &str, ready: impl Future<Output = ()> + Send + 'static) -> Request<Body> {
    let bytes = request.body.clone();
    let frame = async move {
        ready.await;
        Ok::<_, BoxError>(http_body::Frame::data(bytes))
    };
    request.signed(id, SECRET).map(|_| StreamBody::new(Box::pin(frame.into_stream())).boxed_unsync())
}

const PEER: Peer =
    Peer { address: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9), is_tls: false };

// covers: 8.prefix.deleteObjects
#[tokio::test]
async fn consent_is_looked_at_once_the_keys_are_there() {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let (ready, waits) = tokio::sync::oneshot::channel::<()>();
    let (asks, asked_for) = tokio::sync::oneshot::channel::<()>();
    let come = async move {
        asks.send(()).expect("the test waits");
        waits.await.expect("the test goes on");
    };
    let request = waiting(delete(&document(&["shared/a"])), &id, come);
    let gateway = stage.gateway.clone();
    let serving = tokio::spawn(async move { gateway.serve(request, PEER).await.status().as_u16() });
    asked_for.await.expect("its body is asked for");
    share(&stage, false);
    while stage.signed_as(&id, ask("GET", &format!("/{BUCKET}/shared/a"))).await.0.as_u16() != 403 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ready.send(()).expect("it is waited for");
    assert_eq!(serving.await.expect("it ends"), 403);
    assert!(stage.asked().iter().all(|asked| asked.method != "POST") && gone(&store).is_empty());
}

// covers: 6.deleteObjects.bound
#[tokio::test]
async fn a_document_that_does_not_come_is_not_waited_for() {
    let store = store();
    let (stage, id) = stage(&store, Some("shared/")).await;
    let request = waiting(delete(&document(&["shared/a"])), &id, std::future::pending());
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let (status, _, text) = stage.send(request).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "RequestTimeout"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 60);
    assert!(stage.asked().is_empty() && gone(&store).is_empty());
}
