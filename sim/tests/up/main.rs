//! Tests of the simulator over its sockets, as its users use it.

mod again;
mod crash;
mod given;
mod history;
mod shared;
mod webhooks;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::TokioExecutor;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use stowage_operator::api::BucketClaim;
use stowage_operator::upstream::{Connect, RustlsConnect, Trust};
use stowage_sim::up::{Authorization, Listen, Options, Up};
use tempfile::TempDir;

/// Time limit for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

struct Bench {
    up: Up,
    folder: TempDir,
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn options(folder: &TempDir) -> Options {
    let listen = Listen { kube: anywhere(), s3: anywhere(), store: anywhere(), admin: anywhere() };
    let (kubeconfig, manifests) = (folder.path().join("kubeconfig"), Vec::new());
    Options {
        listen,
        kubeconfig,
        operator: true,
        authorization: Authorization::AllowAll,
        obc: false,
        workloads_ready: false,
        data: None,
        manifests,
    }
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts a simulator with changed options.
    async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempDir::new().expect("there is room");
        let mut options = options(&folder);
        change(&mut options);
        let up = Up::start(options).await.expect("it starts");
        Self { up, folder }
    }

    /// Creates a client from the kubeconfig that was written.
    async fn kube(&self) -> kube::Client {
        let read = Kubeconfig::read_from(self.folder.path().join("kubeconfig")).expect("it is written");
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        kube::Client::try_from(config.expect("it names the cluster")).expect("it can be used")
    }

    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        admin(&self.up.served().admin, method, path, body).await
    }

    /// Creates a claim in namespace default.
    async fn claim(&self, name: &str, spec: Value) {
        let claims: Api<BucketClaim> = Api::default_namespaced(self.kube().await);
        let claim = json!({"apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
            "metadata": {"name": name}, "spec": spec});
        let claim = serde_json::from_value(claim).expect("it is a claim");
        claims.create(&PostParams::default(), &claim).await.expect("it is made");
    }

    /// Returns the content of its Secret once the claim is ready.
    async fn connection(&self, name: &str) -> Value {
        self.connection_of("default", name).await
    }

    async fn connection_of(&self, namespace: &str, name: &str) -> Value {
        connection_at(&self.up.served().admin, namespace, name).await
    }
}

async fn admin(url: &str, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let http = Http::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = Request::builder()
        .method(method)
        .uri(format!("{url}{path}"))
        .header("content-type", "application/json")
        .body(Full::from(body.map(|body| body.to_string()).unwrap_or_default()))
        .expect("it is a request");
    let (head, body) = http.request(request).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("a whole answer").to_bytes();
    (head.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
}

/// Returns the content of a claim's Secret once the claim is ready.
async fn connection_at(url: &str, namespace: &str, name: &str) -> Value {
    let begun = Instant::now();
    loop {
        let path = format!("/claims/{namespace}/{name}/connection");
        match admin(url, Method::GET, &path, None).await {
            (200, connection) => return connection,
            (code, why) if begun.elapsed() > PATIENCE => panic!("{code} {why}"),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Creates an S3 client as an app does, from the content of the claim's Secret.
fn s3(connection: &Value) -> aws_sdk_s3::Client {
    let text = |key: &str| connection[key].as_str().expect("it is there").to_owned();
    let keys = Credentials::new(text("AWS_ACCESS_KEY_ID"), text("AWS_SECRET_ACCESS_KEY"), None, None, "test");
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(text("AWS_REGION")))
        .endpoint_url(text("AWS_ENDPOINT_URL_S3"))
        .credentials_provider(keys)
        .force_path_style(true)
        .retry_config(RetryConfig::disabled())
        .http_client(RustlsConnect.connect(&Trust::Anything).expect("it can be made"))
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

async fn put(client: &aws_sdk_s3::Client, bucket: &str, key: &str) -> Result<(), u16> {
    let body = ByteStream::from_static(b"seen");
    let answer = client.put_object().bucket(bucket).key(key).body(body).send().await;
    answer.map(drop).map_err(|error| error.raw_response().map_or(0, |answer| answer.status().as_u16()))
}

#[tokio::test]
async fn an_app_reaches_its_bucket_by_what_env_tells() {
    let bench = Bench::new().await;
    let (code, _) = bench.admin(Method::GET, "/claims/default/photos/connection", None).await;
    assert_eq!(code, 404);
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    let connection = bench.connection("photos").await;
    assert_eq!(connection["BUCKET_NAME"], "default-photos");
    assert_eq!(put(&s3(&connection), "default-photos", "a").await, Ok(()));
    assert_eq!(put(&s3(&connection), "another", "a").await, Err(403), "its key opens nothing else");
    bench.up.stop().await;
}

#[tokio::test]
async fn a_claim_that_cannot_be_bound_says_why() {
    let bench = Bench::new().await;
    bench.claim("lost", json!({"backendRef": {"name": "nowhere"}})).await;
    let begun = Instant::now();
    loop {
        let (code, why) = bench.admin(Method::GET, "/claims/default/lost/connection", None).await;
        let why = why["error"].as_str().unwrap_or_default();
        if code == 409 && why.contains("nowhere") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{code} {why}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_fault_meets_the_call_that_it_is_armed_for_and_the_claim_is_bound_all_the_same() {
    let bench = Bench::new().await;
    let plan = "s3:CreateBucket@1 lost-answer";
    let (code, armed) = bench.admin(Method::POST, "/faults", Some(json!({"plan": plan}))).await;
    assert_eq!((code, &armed["armed"]), (200, &json!(plan)));
    let (code, refusal) = bench.admin(Method::POST, "/faults", Some(json!({"plan": "s3:Nothing@1 hang"}))).await;
    assert_eq!(code, 422, "{refusal}");
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    bench.connection("photos").await;
    let (_, calls) = bench.admin(Method::GET, "/calls", None).await;
    let calls = calls["calls"].as_array().expect("a list");
    let met: Vec<&Value> = calls.iter().filter(|call| call["fault"] == "lost-answer").collect();
    assert_eq!((met.len(), &met[0]["answer"], &met[0]["world"]), (1, &json!("broken"), &json!(200)), "{calls:#?}");
    let (_, armed) = bench.admin(Method::GET, "/faults", None).await;
    assert_eq!(armed["armed"], "");
    let last = calls.last().expect("there are calls")["number"].as_u64().expect("a number");
    let (_, later) = bench.admin(Method::GET, &format!("/calls?after={}", last - 1), None).await;
    assert_eq!(later["calls"][0]["number"], last);
}

/// A key with a rotation interval of 90 days is rotated after that time, and both keys work during
/// the overlap.
#[tokio::test]
async fn time_is_moved_ahead_and_keys_rotate() {
    let bench = Bench::new().await;
    let policy = json!({"mode": "TimeBased", "intervalDays": 90, "overlapSeconds": 3600});
    bench.claim("photos", json!({"backendRef": {"name": "main"}, "rotationPolicy": policy})).await;
    let first = bench.connection("photos").await;
    let advance =
        async |seconds: u64| bench.admin(Method::POST, "/clock", Some(json!({"advanceSeconds": seconds}))).await;
    assert_eq!(advance(91 * 24 * 3600).await.0, 200);
    let begun = Instant::now();
    let second = loop {
        let now = bench.connection("photos").await;
        if now["AWS_ACCESS_KEY_ID"] != first["AWS_ACCESS_KEY_ID"] {
            break now;
        }
        assert!(begun.elapsed() < PATIENCE, "the key doesn't rotate");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for connection in [&first, &second] {
        assert_eq!(put(&s3(connection), "default-photos", "a").await, Ok(()));
    }
    // The first key's overlap begins now.
    while bench.admin(Method::GET, "/view", None).await.1["claims"][0]["keys"][0]["until"].is_null() {
        assert!(begun.elapsed() < PATIENCE, "nothing ends the first key");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(advance(2 * 3600).await.0, 200);
    assert_eq!(put(&s3(&first), "default-photos", "a").await, Err(403), "its overlap is over");
    assert_eq!(put(&s3(&second), "default-photos", "a").await, Ok(()));
}

#[tokio::test]
async fn an_address_that_is_taken_is_named_with_what_to_do() {
    let bench = Bench::new().await;
    let taken: SocketAddr = bench.up.served().admin.trim_start_matches("http://").parse().expect("an address");
    let folder = TempDir::new().expect("there is room");
    let listen = Listen { admin: taken, ..options(&folder).listen };
    let error = Up::start(Options { listen, ..options(&folder) }).await.err().expect("it is taken");
    assert!(error.contains(&taken.to_string()) && error.contains("--admin-address 127.0.0.1:0"), "{error}");
    assert!(!folder.path().join("kubeconfig").exists(), "nothing was written");
}

impl Bench {
    /// Returns the headers and the start of the body of a GET as text, at least `least` bytes.
    async fn text(&self, path: &str, least: usize) -> (http::HeaderMap, String) {
        self.text_after(path, least, None).await
    }

    /// Like [`Self::text`], for a client that has seen the event with this number.
    async fn text_after(&self, path: &str, least: usize, last: Option<u64>) -> (http::HeaderMap, String) {
        let http = Http::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let uri = format!("{}{path}", self.up.served().admin);
        let request = last.into_iter().fold(Request::get(uri), |request, last| request.header("last-event-id", last));
        let request = request.body(Full::default()).expect("it is a request");
        let (head, mut body) = http.request(request).await.expect("an answer").into_parts();
        let mut read = Vec::new();
        while read.len() < least {
            let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("there is more");
            let Some(Ok(frame)) = frame else { break };
            read.extend(frame.into_data().unwrap_or_default());
        }
        (head.headers, String::from_utf8(read).expect("it is text"))
    }
}

#[tokio::test]
async fn the_page_loads_and_runs_nothing_but_what_stands_in_it() {
    let bench = Bench::new().await;
    let (headers, page) = bench.text("/", usize::MAX).await;
    let policy = headers["content-security-policy"].to_str().expect("text").to_owned();
    let nonce = policy.split("script-src 'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert_eq!(page.matches(nonce).count(), 2, "style and script");
    for foreign in ["http://", "https://", "NONCE", "innerHTML"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[tokio::test]
async fn the_page_hears_of_claims_and_calls_and_of_no_secret() {
    let bench = Bench::new().await;
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    let connection = bench.connection("photos").await;
    assert_eq!(put(&s3(&connection), "default-photos", "a").await, Ok(()));
    let (_, events) = bench.text("/stream", 4000).await;
    assert!(events.contains("event: view\n") && events.contains("event: call\n"), "{events}");
    let begun = Instant::now();
    let view = loop {
        // The gateway's log is written concurrently with its answers.
        let (_, view) = bench.admin(Method::GET, "/view", None).await;
        if view["traffic"][0].is_object() || begun.elapsed() > PATIENCE {
            break view;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&view["claimCount"], &view["claims"][0]["phase"]), (&json!(1), &json!("Bound")));
    assert_eq!(view["claims"][0]["keys"][0]["id"], connection["AWS_ACCESS_KEY_ID"]);
    assert_eq!(view["buckets"][0]["objects"], 1);
    assert_eq!(view["traffic"][0]["operation"], "PutObject", "{view:#}");
    let secret = connection["AWS_SECRET_ACCESS_KEY"].as_str().expect("a text");
    assert!(!view.to_string().contains(secret) && !events.contains(secret));
}

/// A page from before a restart of the simulator may know higher call numbers.
#[tokio::test]
async fn a_page_that_knows_calls_to_come_is_told_of_those_that_there_were() {
    let bench = Bench::new().await;
    let (_, events) = bench.text_after("/stream", 1500, Some(1_000_000)).await;
    assert!(events.contains("event: call\n"), "{events}");
}

/// Kubernetes clients without a token have no access.
#[tokio::test]
async fn who_has_no_token_may_do_nothing() {
    let bench = Bench::new().await;
    let read = Kubeconfig::read_from(bench.folder.path().join("kubeconfig")).expect("it is written");
    let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("good");
    config.auth_info = kube::config::AuthInfo::default();
    let stranger = kube::Client::try_from(config).expect("it can be used");
    let refused = Api::<BucketClaim>::default_namespaced(stranger).list(&kube::api::ListParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), "{refused:?}");
    let claims = Api::<BucketClaim>::default_namespaced(bench.kube().await);
    assert!(claims.list(&kube::api::ListParams::default()).await.is_ok());
}
