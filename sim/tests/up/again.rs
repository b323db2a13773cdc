//! Tests of a simulator that starts again: after a stop, after a reset, or from a snapshot.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use stowage_sim::up::{Options, Up};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Bench, PATIENCE, options, put, s3};

impl Bench {
    async fn keeping(folder: TempDir) -> Self {
        let data = Some(folder.path().join("data"));
        let up = Up::start(Options { data, ..options(&folder) }).await.expect("it starts");
        Self { up, folder }
    }

    async fn stop(self) -> TempDir {
        self.up.stop().await;
        self.folder
    }

    async fn map(&self, name: &str) {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("it is one");
        let api = Api::<ConfigMap>::default_namespaced(self.kube().await);
        api.create(&PostParams::default(), &map).await.expect("it is made");
    }

    async fn has_map(&self, name: &str) -> bool {
        let api = Api::<ConfigMap>::default_namespaced(self.kube().await);
        api.get_opt(name).await.expect("an answer").is_some()
    }

    /// Returns the content of the claim's Secret once it names this gateway.
    async fn connection_here(&self) -> Value {
        let begun = Instant::now();
        loop {
            let connection = self.connection("photos").await;
            if connection["AWS_ENDPOINT_URL_S3"] == self.up.served().s3 {
                return connection;
            }
            assert!(begun.elapsed() < PATIENCE, "the Secret names another gateway");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Creates the claim of the tests, with an object in its bucket.
    async fn photos(&self) -> Value {
        self.claim("photos", json!({"backendRef": {"name": "main"}})).await;
        let connection = self.connection("photos").await;
        let begun = Instant::now();
        while let Err(code) = put(&s3(&connection), "default-photos", "a").await {
            assert!(code == 403 && begun.elapsed() < PATIENCE, "{code}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        connection
    }
}

/// Returns the content of the tests' object, once the gateway knows its key.
async fn read(connection: &Value) -> Option<Vec<u8>> {
    read_at(connection, "a").await
}

async fn read_at(connection: &Value, key: &str) -> Option<Vec<u8>> {
    let begun = Instant::now();
    loop {
        let answer = s3(connection).get_object().bucket("default-photos").key(key).send().await;
        match answer {
            Ok(answer) => return Some(answer.body.collect().await.ok()?.to_vec()),
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(_) => return None,
        }
    }
}

#[tokio::test]
async fn what_it_held_is_there_after_it_ended_and_at_other_addresses_too() {
    let bench = Bench::keeping(TempDir::new().expect("there is room")).await;
    bench.photos().await;
    let admin = |path: &'static str, body| bench.admin(Method::POST, path, Some(body));
    assert_eq!(admin("/clock", json!({"advanceSeconds": 3600})).await.0, 200);
    let maps = Api::<ConfigMap>::default_namespaced(bench.kube().await);
    let version = maps.list(&ListParams::default()).await.expect("it serves").metadata.resource_version;
    let version: u64 = version.and_then(|version| version.parse().ok()).expect("a number");

    let bench = Bench::keeping(bench.stop().await).await;
    let connection = bench.connection_here().await;
    assert_eq!(read(&connection).await.as_deref(), Some(&b"seen"[..]));
    let (_, status) = bench.admin(Method::GET, "/status", None).await;
    assert_eq!(status["clock"]["aheadSeconds"], 3600);
    let maps = Api::<ConfigMap>::default_namespaced(bench.kube().await);
    let now = maps.list(&ListParams::default()).await.expect("it serves").metadata.resource_version;
    assert!(now.and_then(|now| now.parse::<u64>().ok()).is_some_and(|now| now > version));
    // Clients with an old version have to list again.
    use futures::StreamExt;
    let events = maps.watch(&WatchParams::default(), "1").await.expect("it opens");
    let first = events.boxed().next().await.expect("there is an event").expect("it is one");
    assert!(matches!(&first, WatchEvent::Error(status) if status.code == 410), "{first:?}");
}

#[tokio::test]
async fn a_copy_outlives_its_source_that_is_deleted_after_a_restart() {
    let bench = Bench::keeping(TempDir::new().expect("there is room")).await;
    let client = s3(&bench.photos().await);
    let copy = client.copy_object().bucket("default-photos").key("b").copy_source("default-photos/a");
    copy.send().await.expect("a copy");

    let folder = bench.stop().await;
    // An unfinished file of an earlier process is removed.
    let unfinished = folder.path().join("data/snapshot-9.new");
    std::fs::write(&unfinished, "half of it").expect("there is room");
    let bench = Bench::keeping(folder).await;
    assert!(!unfinished.exists());
    let connection = bench.connection_here().await;
    assert_eq!(read(&connection).await.as_deref(), Some(&b"seen"[..]));
    s3(&connection).delete_object().bucket("default-photos").key("a").send().await.expect("a deletion");
    assert_eq!(read_at(&connection, "b").await.as_deref(), Some(&b"seen"[..]));

    let bench = Bench::keeping(bench.stop().await).await;
    assert_eq!(read_at(&bench.connection_here().await, "b").await.as_deref(), Some(&b"seen"[..]));
}

/// The operator is stopped while time is moved, and started again even if the client disconnects.
#[tokio::test]
async fn the_operator_works_on_though_a_client_goes_away_while_it_rests() {
    let bench = Bench::new().await;
    let address = bench.up.served().admin.trim_start_matches("http://").to_owned();
    let body = json!({"advanceSeconds": 1}).to_string();
    let length = body.len();
    let request = format!(
        "POST /clock HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    for wait in (0..20).step_by(2) {
        let mut stream = TcpStream::connect(&address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        tokio::time::sleep(Duration::from_millis(wait)).await;
        drop(stream);
    }
    bench.photos().await;
}

/// Repeated writes take no more space than a few times the size of the current data.
#[tokio::test]
async fn what_is_written_over_is_let_go_of() {
    let bench = Bench::keeping(TempDir::new().expect("there is room")).await;
    let connection = bench.photos().await;
    let api = Api::<ConfigMap>::default_namespaced(bench.kube().await);
    let map = |number: usize| {
        let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"it": "x".repeat(900_000)}});
        serde_json::from_value::<ConfigMap>(map).expect("it is one")
    };
    for number in 0..20 {
        api.create(&PostParams::default(), &map(number)).await.expect("it is made");
    }
    for number in 0..60 {
        let (name, again) = (format!("map-{}", number % 20), json!({"data": {"number": number.to_string()}}));
        let changed = api.patch(&name, &PatchParams::default(), &Patch::Merge(&again)).await;
        changed.expect("it is changed");
    }
    let kept = std::fs::metadata(bench.folder.path().join("data/records.redb")).expect("it is there").len();
    assert!(kept < 50_000_000, "{kept} bytes for 18,000,000");
    bench.map("after").await;
    let bench = Bench::keeping(bench.stop().await).await;
    assert!(bench.has_map("map-0").await && bench.has_map("map-19").await && bench.has_map("after").await);
    assert_eq!(bench.connection("photos").await["AWS_ACCESS_KEY_ID"], connection["AWS_ACCESS_KEY_ID"]);
    assert_eq!(read(&bench.connection_here().await).await.as_deref(), Some(&b"seen"[..]));
}

#[tokio::test]
async fn a_second_one_on_the_same_directory_is_refused() {
    let bench = Bench::keeping(TempDir::new().expect("there is room")).await;
    let data: PathBuf = bench.folder.path().join("data");
    let options = Options { data: Some(data), ..options(&bench.folder) };
    let why = Up::start(options).await.err().expect("it is refused");
    assert!(why.contains("another simulator uses"), "{why}");
}

#[tokio::test]
async fn data_of_a_newer_simulator_is_refused_and_stays() {
    let folder = TempDir::new().expect("there is room");
    let journal = folder.path().join("data/journal-0");
    std::fs::create_dir_all(folder.path().join("data")).expect("there is room");
    std::fs::write(&journal, "stowage-sim data 3\nand more").expect("there is room");
    let data = Some(folder.path().join("data"));
    let why = Up::start(Options { data, ..options(&folder) }).await.err().expect("it is refused");
    assert!(why.contains("newer stowage-sim, in form 3"), "{why}");
    assert_eq!(std::fs::read(&journal).expect("it is there"), b"stowage-sim data 3\nand more");
}

#[tokio::test]
async fn after_a_reset_it_is_as_at_the_beginning() {
    for kept in [false, true] {
        let folder = TempDir::new().expect("there is room");
        let bench = if kept { Bench::keeping(folder).await } else { Bench::new().await };
        bench.photos().await;
        bench.map("mine").await;
        let namespaces = Api::<Namespace>::all(bench.kube().await);
        let before = namespaces.get("default").await.expect("it is there");
        let (code, answer) = bench.admin(Method::POST, "/reset", Some(json!({}))).await;
        assert_eq!(code, 204, "{answer}");
        let after = namespaces.get("default").await.expect("it is there");
        assert_ne!(before.metadata.uid, after.metadata.uid);
        assert!(!bench.has_map("mine").await);
        let (_, view) = bench.admin(Method::GET, "/view", None).await;
        assert_eq!((&view["claimCount"], &view["buckets"]), (&json!(0), &json!([])), "{view:#}");
        let connection = bench.photos().await;
        assert!(read(&connection).await.is_some());
        let folder = bench.stop().await;
        if kept {
            let bench = Bench::keeping(folder).await;
            assert!(!bench.has_map("mine").await);
            assert!(read(&bench.connection_here().await).await.is_some());
        }
    }
}

/// Snapshots can be exchanged between simulators with a data directory and without one.
#[tokio::test]
async fn a_snapshot_is_gone_on_from_elsewhere() {
    for kept in [false, true] {
        let folder = TempDir::new().expect("there is room");
        let first = if kept { Bench::new().await } else { Bench::keeping(folder).await };
        first.photos().await;
        first.map("first").await;
        let (code, file) = snapshot(&first, None).await;
        assert_eq!(code, 200);
        first.stop().await;

        let folder = TempDir::new().expect("there is room");
        let second = if kept { Bench::keeping(folder).await } else { Bench::new().await };
        second.map("second").await;
        assert_eq!(snapshot(&second, Some(&file[..file.len() - 1])).await.0, 422, "it is cut off");
        assert!(second.has_map("second").await, "it is as it was");
        let (code, answer) = snapshot(&second, Some(&file)).await;
        assert_eq!(code, 204, "{}", String::from_utf8_lossy(&answer));
        assert!(second.has_map("first").await && !second.has_map("second").await);
        assert_eq!(read(&second.connection_here().await).await.as_deref(), Some(&b"seen"[..]));
        let folder = second.stop().await;
        if kept {
            let bench = Bench::keeping(folder).await;
            assert!(bench.has_map("first").await && !bench.has_map("second").await);
            assert_eq!(read(&bench.connection_here().await).await.as_deref(), Some(&b"seen"[..]));
        }
    }
}

/// Downloads a snapshot, or uploads one.
async fn snapshot(bench: &Bench, file: Option<&[u8]>) -> (u16, Vec<u8>) {
    use http_body_util::{BodyExt, Full};
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let method = if file.is_some() { Method::POST } else { Method::GET };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{}/snapshot", bench.up.served().admin))
        .header("content-type", "application/vnd.stowage.snapshot")
        .body(Full::new(bytes::Bytes::copy_from_slice(file.unwrap_or_default())))
        .expect("it is a request");
    let (head, body) = http.request(request).await.expect("an answer").into_parts();
    (head.status.as_u16(), body.collect().await.expect("a whole answer").to_bytes().to_vec())
}
