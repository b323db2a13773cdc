//! Kills a simulator with a data directory at random moments under load. After a restart,
//! everything that was answered must be present, and nothing else but requests that were in
//! progress.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::{PATIENCE, s3};

/// Number of crashes, unless `STOWAGE_CRASHES` sets another one.
const CRASHES: u64 = 10;
/// Maximum time before a crash, in milliseconds.
const LONGEST_LIFE: u64 = 300;
/// Number of concurrent writers of ConfigMaps, and of objects.
const WRITERS: u64 = 3;
/// Number of names that each writer uses.
const NAMES: u64 = 5;

/// The last known value at a place; `None` after a deletion.
#[derive(Clone, Debug)]
struct Known<T> {
    answered: Option<T>,
    /// The value of a request without an answer, which may be present instead.
    asked: Option<Option<T>>,
}

impl<T: Clone + PartialEq + Debug> Known<T> {
    fn nothing() -> Self {
        Self { answered: None, asked: None }
    }

    fn answered(&mut self, value: Option<T>) {
        (self.answered, self.asked) = (value, None);
    }

    /// Compares with the value that was found, which is known from now on.
    fn meet(&mut self, place: &str, found: Option<T>) {
        let is_asked = self.asked.as_ref().is_some_and(|asked| *asked == found);
        assert!(is_asked || self.answered == found, "{place} holds {found:?} and should hold {self:?}");
        self.answered(found);
    }
}

/// A running simulator.
struct Process {
    child: Child,
    served: Value,
}

impl Process {
    /// Starts a process, at the addresses of the one before.
    async fn start(folder: &Path, before: Option<&Value>) -> Self {
        let address = |name: &str| {
            let url = before.and_then(|served| served[name].as_str()).unwrap_or("//127.0.0.1:0");
            url.rsplit('/').next().expect("there is a last part").to_owned()
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-sim"));
        command.args(["up", "-o", "json", "--data"]).arg(folder.join("data"));
        command.arg("--kubeconfig-out").arg(folder.join("kubeconfig"));
        for (flag, name) in [("kube", "kubernetes"), ("s3", "s3"), ("store", "store"), ("admin", "admin")] {
            command.arg(format!("--{flag}-address")).arg(address(name));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it is ready in time");
        let line = line.expect("it can be read").expect("it says where it serves");
        Self { child, served: serde_json::from_str(&line).expect("it is JSON") }
    }

    async fn kill(mut self) -> Value {
        self.child.kill().await.expect("it runs");
        self.served
    }
}

/// The compared part of a ConfigMap: UID, version, and its number.
type Map = (String, String, u64);

fn compared(map: &ConfigMap) -> Map {
    let text = |text: &Option<String>| text.clone().expect("a stored object has it");
    let number = map.data.as_ref().and_then(|data| data["number"].parse().ok()).expect("it was written");
    (text(&map.metadata.uid), text(&map.metadata.resource_version), number)
}

fn map(name: &str, number: u64) -> ConfigMap {
    let map = json!({"metadata": {"name": name}, "data": {"number": number.to_string(), "filler": "x".repeat(2000)}});
    serde_json::from_value(map).expect("it is one")
}

/// The answers that clients got.
#[derive(Default)]
struct Told {
    maps: Mutex<BTreeMap<String, Known<Map>>>,
    /// Numbers of ConfigMaps in requests without an answer: their version is unknown.
    numbers: Mutex<BTreeMap<String, u64>>,
    objects: Mutex<BTreeMap<String, Known<u64>>>,
    /// The version of each ConfigMap in the last event of a watch.
    seen: Mutex<BTreeMap<String, u64>>,
    parts: Mutex<Vec<i32>>,
    tokens: Mutex<Vec<String>>,
}

/// Writes ConfigMaps until a request fails.
async fn write_maps(api: Api<ConfigMap>, told: Arc<Told>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0.. {
        let name = format!("map-{}-{}", seed % WRITERS, random.u64(..NAMES));
        let number = seed * 1_000_000 + number;
        let known = told.maps.lock().get(&name).cloned().unwrap_or_else(Known::nothing);
        told.numbers.lock().insert(name.clone(), number);
        let outcome = match &known.answered {
            Some(_) if random.u8(..4) == 0 => {
                told.maps.lock().insert(name.clone(), Known { asked: Some(None), ..known });
                api.delete(&name, &DeleteParams::default()).await.map(|_| None)
            }
            Some(_) => api.replace(&name, &PostParams::default(), &map(&name, number)).await.map(Some),
            None => api.create(&PostParams::default(), &map(&name, number)).await.map(Some),
        };
        let Ok(map) = outcome else { return };
        told.maps.lock().entry(name).or_insert_with(Known::nothing).answered(map.as_ref().map(compared));
    }
}

/// Returns the bytes of an object, which follow from its number.
fn bytes(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let length = [0, 10, 5_000, 400_000][random.usize(..4)];
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

async fn write_objects(client: aws_sdk_s3::Client, told: Arc<Told>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0.. {
        let key = format!("object-{}-{}", seed % WRITERS, random.u64(..NAMES));
        let number = seed * 1_000_000 + number;
        let known = told.objects.lock().get(&key).cloned().unwrap_or_else(Known::nothing);
        let becomes = if known.answered.is_some() && random.u8(..4) == 0 { None } else { Some(number) };
        told.objects.lock().insert(key.clone(), Known { asked: Some(becomes), ..known });
        let request = client.put_object().bucket(BUCKET).key(&key).metadata("number", number.to_string());
        let outcome = match becomes {
            Some(_) => request.body(ByteStream::from(bytes(number))).send().await.map(drop).map_err(drop),
            None => client.delete_object().bucket(BUCKET).key(&key).send().await.map(drop).map_err(drop),
        };
        if outcome.is_err() {
            return;
        }
        told.objects.lock().entry(key).or_insert_with(Known::nothing).answered(becomes);
    }
}

/// Adds parts to an upload that is never completed.
async fn write_parts(client: aws_sdk_s3::Client, told: Arc<Told>, id: String) {
    loop {
        let number = i32::try_from(told.parts.lock().len() + 1).expect("there are few");
        let part = client.upload_part().bucket(BUCKET).key("parts").upload_id(&id).part_number(number);
        if number > 5_000 || part.body(ByteStream::from(bytes(7))).send().await.is_err() {
            return;
        }
        told.parts.lock().push(number);
    }
}

async fn watch(api: Api<ConfigMap>, told: Arc<Told>) {
    let Ok(list) = api.list(&ListParams::default()).await else { return };
    let version = list.metadata.resource_version.expect("a list has it");
    let Ok(events) = api.watch(&WatchParams::default(), &version).await else { return };
    let mut events = events.boxed();
    while let Ok(Some(event)) = events.try_next().await {
        let (WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map)) = event else { continue };
        let version = map.metadata.resource_version.and_then(|version| version.parse().ok()).expect("a number");
        told.seen.lock().insert(map.metadata.name.expect("it has one"), version);
    }
}

async fn take_tokens(api: Api<ServiceAccount>, told: Arc<Told>) {
    while told.tokens.lock().len() < 50 {
        let request = TokenRequest::default();
        let Ok(answer) = api.create_token_request("default", &PostParams::default(), &request).await else { return };
        told.tokens.lock().push(answer.status.expect("it has a token").token);
    }
}

const BUCKET: &str = "default-photos";

struct Bench {
    folder: TempDir,
    kube: kube::Client,
    s3: aws_sdk_s3::Client,
    upload: String,
    told: Arc<Told>,
}

impl Bench {
    /// Collects the clients' knowledge during the first run of the process.
    async fn new(folder: TempDir, served: &Value) -> Self {
        let read = Kubeconfig::read_from(folder.path().join("kubeconfig")).expect("it is written");
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let kube = kube::Client::try_from(config.expect("it is good")).expect("it is good");
        let claim = json!({"apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
            "metadata": {"name": "photos"}, "spec": {"backendRef": {"name": "main"}}});
        let claims = Api::<stowage_operator::api::BucketClaim>::default_namespaced(kube.clone());
        let claim = serde_json::from_value(claim).expect("it is a claim");
        claims.create(&PostParams::default(), &claim).await.expect("it is made");
        let connection = super::connection_at(served["admin"].as_str().expect("a URL"), "default", "photos").await;
        let s3 = s3(&connection);
        let begun = s3.create_multipart_upload().bucket(BUCKET).key("parts").send().await.expect("it is begun");
        let upload = begun.upload_id.expect("it has an id");
        Self { folder, kube, s3, upload, told: Arc::default() }
    }

    /// Starts the load, which ends with the process.
    async fn load(&self, seed: u64) -> JoinSet<()> {
        let mut load = JoinSet::new();
        let (maps, told) = (Api::<ConfigMap>::default_namespaced(self.kube.clone()), || self.told.clone());
        load.spawn(watch(maps.clone(), told()));
        load.spawn(take_tokens(Api::default_namespaced(self.kube.clone()), told()));
        load.spawn(write_parts(self.s3.clone(), told(), self.upload.clone()));
        for writer in 0..WRITERS {
            load.spawn(write_maps(maps.clone(), told(), seed * WRITERS + writer));
            load.spawn(write_objects(self.s3.clone(), told(), seed * WRITERS + writer));
        }
        load
    }

    /// Checks that everything that was answered is present.
    async fn check(&self) {
        self.check_maps().await;
        self.check_objects().await;
        let parts = self.s3.list_parts().bucket(BUCKET).key("parts").upload_id(&self.upload).send().await;
        let parts: Vec<i32> =
            parts.expect("the upload is there").parts().iter().filter_map(|it| it.part_number).collect();
        let known = std::mem::take(&mut *self.told.parts.lock());
        let shown = known.iter().copied().take(1000);
        assert!(shown.eq(parts.iter().copied().take(known.len())), "{known:?}, and there are {parts:?}");
        *self.told.parts.lock() = parts;
        let tokens = self.told.tokens.lock().clone();
        if let Some(token) = tokens.last() {
            let review = json!({"spec": {"token": token}});
            let review: TokenReview = serde_json::from_value(review).expect("it is one");
            let answer = Api::all(self.kube.clone()).create(&PostParams::default(), &review).await.expect("an answer");
            assert_eq!(answer.status.expect("it has one").authenticated, Some(true));
        }
    }

    async fn check_maps(&self) {
        let api = Api::<ConfigMap>::default_namespaced(self.kube.clone());
        let list = api.list(&ListParams::default().labels("")).await.expect("it serves");
        let is_ours = |map: &&ConfigMap| map.metadata.name.as_deref().is_some_and(|name| name.starts_with("map-"));
        let mut found: BTreeMap<String, Map> = BTreeMap::new();
        for map in list.items.iter().filter(is_ours) {
            found.insert(map.metadata.name.clone().expect("it has one"), compared(map));
        }
        let current: u64 = list.metadata.resource_version.and_then(|it| it.parse().ok()).expect("a number");
        for (name, version) in self.told.seen.lock().iter() {
            assert!(*version <= current, "{name} was seen at {version}, and the cluster stands at {current}");
            let held = found.get(name).map(|map| map.1.parse::<u64>().expect("a number"));
            assert!(held.is_none_or(|held| held >= *version), "{name} was seen at {version} and is at {held:?}");
        }
        let mut maps = self.told.maps.lock();
        let numbers = self.told.numbers.lock();
        for name in found.keys() {
            maps.entry(name.clone()).or_insert_with(Known::nothing);
        }
        for (name, known) in maps.iter_mut() {
            let there = found.get(name).cloned();
            // The version from a request without an answer is unknown to the client.
            if known.answered != there && there.as_ref().map(|it| it.2) == numbers.get(name).copied() {
                known.asked = Some(there.clone());
            }
            known.meet(name, there);
        }
    }

    async fn check_objects(&self) {
        let known = self.told.objects.lock().clone();
        for (key, mut known) in known {
            let found = match self.s3.get_object().bucket(BUCKET).key(&key).send().await {
                Ok(object) => {
                    let number = object.metadata().and_then(|it| it.get("number")).and_then(|it| it.parse().ok());
                    let number = number.expect("it was written with one");
                    let held = object.body.collect().await.expect("it is whole").into_bytes();
                    assert!(held == bytes(number), "{key} is torn: {} bytes of {}", held.len(), bytes(number).len());
                    Some(number)
                }
                Err(error) => {
                    assert_eq!(error.raw_response().map(|answer| answer.status().as_u16()), Some(404), "{error:?}");
                    None
                }
            };
            known.meet(&key, found);
            self.told.objects.lock().insert(key, known);
        }
    }
}

/// Each process starts with the data of the one that was killed.
#[tokio::test]
async fn what_was_answered_is_there_after_it_was_killed() {
    let crashes = std::env::var("STOWAGE_CRASHES").ok().and_then(|it| it.parse().ok()).unwrap_or(CRASHES);
    let folder = TempDir::new().expect("there is room");
    let mut process = Process::start(folder.path(), None).await;
    let bench = Bench::new(folder, &process.served).await;
    let mut random = fastrand::Rng::with_seed(1);
    for crash in 1..=crashes {
        let load = bench.load(crash).await;
        tokio::time::sleep(Duration::from_millis(random.u64(..LONGEST_LIFE))).await;
        let served = process.kill().await;
        // Pending requests fail.
        load.join_all().await;
        process = Process::start(bench.folder.path(), Some(&served)).await;
        bench.check().await;
    }
    let told = &bench.told;
    assert!(!told.maps.lock().is_empty() && !told.objects.lock().is_empty() && !told.tokens.lock().is_empty());
}
