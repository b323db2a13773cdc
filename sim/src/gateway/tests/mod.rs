//! The gateway as tenants see it: the AWS SDK before it, the simulated store behind it.

mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use k8s_openapi::ByteString;
use kube::runtime::watcher::Event;
use rstest::rstest;
use s3_sim::{Dialect, InProcess, Store};
use tower::ServiceExt as _;

use super::*;

const SECRET_KEY: &str = "a-secret-key-that-must-not-show";

fn secret(name: String, data: &[(&str, &str)]) -> Secret {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
    let data = Some(data.iter().map(entry).collect());
    let metadata = kube::core::ObjectMeta { name: Some(name), ..Default::default() };
    Secret { metadata, data, ..Secret::default() }
}

/// The internal Secret of a key for one bucket on the backend `main`.
pub(super) fn credential_secret(access_key: &str, bucket: &str, expires_at: Option<&str>) -> Secret {
    let scopes = format!(r#"[{{"bucket":"{bucket}","backend":"main"}}]"#);
    let data = [("access_key_id", access_key), ("secret_access_key", SECRET_KEY), ("bucket_scopes", &scopes)];
    let mut secret = secret(Credential::secret_name(access_key), &data);
    let annotation = expires_at.map(|time| (EXPIRES_AT.to_owned(), time.to_owned()));
    secret.metadata.annotations = annotation.map(|annotation| BTreeMap::from([annotation]));
    secret
}

/// The Secret of public access to a bucket on the backend `main`.
pub(super) fn binding_secret(bucket: &str) -> Secret {
    let data = [
        ("bucket_name", bucket),
        ("backend", "main"),
        ("claim_uid", "uid-1"),
        ("anonymous_mode", "ReadOnly"),
        ("anonymous_per_source_ip_rps", "5"),
    ];
    secret("ab-uid-1".to_owned(), &data)
}

/// A gateway before a store with the buckets `photos` and `films`; told of Secrets by hand.
struct Stage {
    gateway: Gateway,
    store: Store,
    seconds: Arc<AtomicI64>,
}

const NAMESPACE: &str = "stowage-system";
const START: i64 = 1_800_000_000;

impl Stage {
    fn new(behind: fn(&Store) -> Behind) -> Self {
        let stage = Self::unready(behind);
        for role in [CREDENTIAL_ROLE, BINDING_ROLE] {
            stage.gateway.apply(role, Event::Init);
            stage.gateway.apply(role, Event::InitDone);
        }
        stage
    }

    fn unready(behind: fn(&Store) -> Behind) -> Self {
        let nowhere = tower::service_fn(|_: Request<kube::client::Body>| async {
            Err::<Response<kube::client::Body>, BoxError>("there is no cluster in this test".into())
        });
        Self::before(Client::new(nowhere, "default"), behind)
    }

    /// A gateway that would watch this cluster.
    fn before(client: Client, behind: fn(&Store) -> Behind) -> Self {
        let seconds = Arc::new(AtomicI64::new(START));
        let now = Arc::clone(&seconds);
        let clock: WallClock =
            Arc::new(move || jiff::Timestamp::from_second(now.load(Ordering::Relaxed)).expect("a time in range"));
        let store = Store::new(Arc::clone(&clock), Dialect::default());
        for bucket in ["photos", "films"] {
            store.put_bucket("admin", bucket);
            store.put_object(bucket, "hello.txt", "hello");
        }
        let gateway = Gateway::before(client, NAMESPACE, clock, behind(&store));
        Self { gateway, store, seconds }
    }

    fn tell(&self, secret: Secret) {
        self.gateway.apply(CREDENTIAL_ROLE, Event::Apply(secret));
    }

    fn client(&self, access_key: &str) -> aws_sdk_s3::Client {
        InProcess::new(self.gateway.http()).client(access_key, SECRET_KEY, "us-east-1")
    }

    /// An unsigned request: status and body.
    async fn anonymous(&self, method: &str, path: &str) -> (u16, String) {
        let request = Request::builder().method(method).uri(format!("http://s3.simulation{path}"));
        let request = request.header("host", "s3.simulation").body(Body::empty()).expect("a request");
        let response = self.gateway.http().oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

/// The store as a backend of the gateway's own process.
fn here(store: &Store) -> Behind {
    let main: Arc<dyn S3> = Arc::new(store.as_account("admin"));
    Behind::Here(Arc::new(move |name| (name == "main").then(|| main.clone())))
}

/// The store as a server, which sees signed requests.
fn over_http(store: &Store) -> Behind {
    store.add_account("admin", "ADMIN", "admin-secret");
    let endpoint = http::Uri::from_static("http://store.simulation:9000");
    let main = Remote::through(store.http(), &endpoint, "us-east-1", "ADMIN", "admin-secret");
    Behind::Remote(BTreeMap::from([("main".to_owned(), main.expect("it is the URL of a store"))]))
}

#[track_caller]
fn refused<T: std::fmt::Debug, E>(result: Result<T, SdkError<E>>) -> (String, u16)
where
    E: ProvideErrorMetadata + std::fmt::Debug,
{
    let error = result.expect_err("a refusal");
    let status = error.raw_response().map(|response| response.status().as_u16()).unwrap_or_default();
    (error.code().unwrap_or_default().to_owned(), status)
}

fn denied() -> (String, u16) {
    ("AccessDenied".to_owned(), 403)
}

fn unknown_key() -> (String, u16) {
    ("InvalidAccessKeyId".to_owned(), 403)
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_tenant_uses_its_bucket(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    stage.tell(credential_secret("AKIAONE", "photos", None));
    let client = stage.client("AKIAONE");
    let body = ByteStream::from_static(b"meow");
    client.put_object().bucket("photos").key("cat").body(body).send().await.expect("a write");
    let got = client.get_object().bucket("photos").key("cat").send().await.expect("a read");
    assert_eq!(got.body.collect().await.expect("a body").into_bytes(), "meow");
    let listed = client.list_objects_v2().bucket("photos").send().await.expect("a listing");
    assert_eq!(listed.key_count(), Some(2));
    let copy = client.copy_object().bucket("photos").key("copy").copy_source("photos/cat");
    copy.send().await.expect("a copy within the bucket");
    client.delete_object().bucket("photos").key("cat").send().await.expect("a delete");
    client.head_bucket().bucket("photos").send().await.expect("its bucket");
    assert_eq!(stage.store.objects("photos").into_keys().collect::<Vec<_>>(), ["copy", "hello.txt"]);
    let missing = client.head_object().bucket("photos").key("cat").send().await;
    assert_eq!(refused(missing), ("NotFound".to_owned(), 404));
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_neighbours_bucket_is_denied(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    stage.tell(credential_secret("AKIAONE", "photos", None));
    let client = stage.client("AKIAONE");
    for bucket in ["films", "no-such-bucket"] {
        assert_eq!(refused(client.get_object().bucket(bucket).key("hello.txt").send().await), denied());
        assert_eq!(refused(client.put_object().bucket(bucket).key("k").send().await), denied());
        assert_eq!(refused(client.list_objects_v2().bucket(bucket).send().await), denied());
    }
    let copy = client.copy_object().bucket("photos").key("stolen").copy_source("films/hello.txt").send().await;
    assert_eq!(refused(copy), denied());
    let listed = client.list_buckets().send().await.expect("the scope");
    let names: Vec<_> = listed.buckets().iter().filter_map(|bucket| bucket.name()).collect();
    assert_eq!(names, ["photos"]);
}

// covers: 3.2.gateway
#[rstest]
#[tokio::test(start_paused = true)]
async fn buckets_are_not_the_tenants_to_administer(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    stage.tell(credential_secret("AKIAONE", "photos", None));
    let client = stage.client("AKIAONE");
    assert_eq!(refused(client.create_bucket().bucket("photos").send().await), denied());
    assert_eq!(refused(client.create_bucket().bucket("new-bucket").send().await), denied());
    assert_eq!(refused(client.delete_bucket().bucket("photos").send().await), denied());
    assert_eq!(refused(client.get_bucket_tagging().bucket("photos").send().await), denied());
    assert_eq!(refused(client.delete_bucket_tagging().bucket("photos").send().await), denied());
    assert_eq!(refused(client.put_bucket_policy().bucket("photos").policy("{}").send().await), denied());
    let public = aws_sdk_s3::types::ObjectCannedAcl::PublicRead;
    assert_eq!(refused(client.put_object().bucket("photos").key("k").acl(public).send().await), denied());
    let hold = aws_sdk_s3::types::ObjectLockLegalHoldStatus::On;
    let locked = client.put_object().bucket("photos").key("k").object_lock_legal_hold_status(hold);
    assert_eq!(refused(locked.send().await), denied());
    assert_eq!(stage.store.objects("photos").len(), 1);
}

// covers: 3.3.stamp.enforced
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_key_works_until_its_time(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    let end = jiff::Timestamp::from_second(START + 300).expect("a time in range").to_string();
    stage.tell(credential_secret("AKIAONE", "photos", Some(&end)));
    let client = stage.client("AKIAONE");
    let get = || client.get_object().bucket("photos").key("hello.txt").send();
    stage.seconds.store(START + 299, Ordering::Relaxed);
    get().await.expect("one second left");
    stage.seconds.store(START + 300, Ordering::Relaxed);
    assert_eq!(refused(get().await), unknown_key());
    assert_eq!(refused(client.list_buckets().send().await), unknown_key());
}

// covers: 3.3.byHand
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_deleted_secret_revokes_its_key(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    let secret = credential_secret("AKIAONE", "photos", None);
    stage.tell(secret.clone());
    let client = stage.client("AKIAONE");
    client.head_bucket().bucket("photos").send().await.expect("a live key");
    stage.gateway.apply(CREDENTIAL_ROLE, Event::Delete(secret));
    let get = client.get_object().bucket("photos").key("hello.txt").send().await;
    assert_eq!(refused(get), unknown_key());
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_wrong_secret_is_refused(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    stage.tell(credential_secret("AKIAONE", "photos", None));
    let client = InProcess::new(stage.gateway.http()).client("AKIAONE", "guessed", "us-east-1");
    let get = client.get_object().bucket("photos").key("hello.txt").send().await;
    assert_eq!(refused(get), ("SignatureDoesNotMatch".to_owned(), 403));
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn before_the_first_lists_nothing_is_refused_for_good(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::unready(behind);
    assert!(!stage.gateway.is_ready());
    let get = stage.client("AKIAONE").get_object().bucket("photos").key("hello.txt").send().await;
    assert_eq!(refused(get), ("ServiceUnavailable".to_owned(), 503));
    assert_eq!(stage.anonymous("GET", "/photos/hello.txt").await.0, 503);
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn an_unknown_backend_may_come_yet(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    let mut secret = credential_secret("AKIAONE", "photos", None);
    let elsewhere = br#"[{"bucket":"photos","backend":"elsewhere"}]"#;
    secret.data.get_or_insert_default().insert("bucket_scopes".to_owned(), ByteString(elsewhere.to_vec()));
    stage.tell(secret);
    let get = stage.client("AKIAONE").get_object().bucket("photos").key("hello.txt").send().await;
    assert_eq!(refused(get), ("ServiceUnavailable".to_owned(), 503));
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn the_public_reads_what_is_bound(#[values(here, over_http)] behind: fn(&Store) -> Behind) {
    let stage = Stage::new(behind);
    assert_eq!(stage.anonymous("GET", "/photos/hello.txt").await.0, 403);
    stage.gateway.apply(BINDING_ROLE, Event::Apply(binding_secret("photos")));
    assert_eq!(stage.anonymous("GET", "/photos/hello.txt").await, (200, "hello".to_owned()));
    assert_eq!(stage.anonymous("HEAD", "/photos/hello.txt").await.0, 200);
    let (status, listing) = stage.anonymous("GET", "/photos?list-type=2").await;
    assert_eq!((status, listing.contains("<Key>hello.txt</Key>")), (200, true));
    for (method, path) in [
        ("GET", "/films/hello.txt"),
        ("GET", "/photos/hello.txt?versionId=null"),
        ("GET", "/photos?versions"),
        ("GET", "/photos?tagging"),
        ("GET", "/"),
        ("PUT", "/photos/new"),
        ("DELETE", "/photos/hello.txt"),
        ("DELETE", "/photos"),
    ] {
        assert_eq!(stage.anonymous(method, path).await.0, 403, "{method} {path}");
    }
    stage.gateway.apply(BINDING_ROLE, Event::Delete(binding_secret("photos")));
    assert_eq!(stage.anonymous("GET", "/photos/hello.txt").await.0, 403);
}

#[rstest]
#[case("https://store")]
#[case("http://store/prefix")]
#[case("store")]
fn what_is_no_url_of_a_store_is_refused(#[case] url: &str) {
    let refused = Remote::new(&url.parse().expect("a URI"), "us-east-1", "a", "b").expect_err("it is refused");
    assert!(refused.to_string().starts_with(url), "{refused}");
}

#[tokio::test]
async fn a_store_that_nobody_serves_is_asked_again_later() {
    let stage = Stage::new(|_| {
        let nowhere = Remote::new(&http::Uri::from_static("http://127.0.0.1:1"), "us-east-1", "a", "b");
        Behind::Remote(BTreeMap::from([("main".to_owned(), nowhere.expect("it is the URL of a store"))]))
    });
    stage.tell(credential_secret("AKIAONE", "photos", None));
    let client = stage.client("AKIAONE");
    let get = client.get_object().bucket("photos").key("hello.txt").send().await;
    assert_eq!(refused(get), ("ServiceUnavailable".to_owned(), 503));
}
