//! The maximum rate of these servers on this machine: a bare loop of the writes and S3 calls that
//! the measured operator made, without any logic, with the same watch and the same clients.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use stowage_testbed::console::tell;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::Store;
use stowage_testbed::users::User;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::claims::API;
use super::counts::NEW;
use super::environment::{Environment, HOME, MAIN, Mark};
use super::phase::{Figures, Phase};
use super::phases::Asked;
use super::settings::Settings;
use crate::measure::figures::{Unit, milliseconds};

/// Number of claims that the loop works on at once.
const WORKERS: usize = 32;

/// Requests for each claim, in this order: calls to the store in the middle, as in operators, and
/// the status last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mix {
    before: Vec<Write>,
    store: Vec<&'static str>,
    after: Vec<Write>,
    /// Kinds of requests made for each claim that the loop has no counterpart for.
    pub(crate) left_out: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    PatchClaim,
    PatchStatus,
    CreateSecret,
    ApplySecret,
    PatchSecret,
    CreateEvent,
}

const MERGE: &str = "application/merge-patch+json";

/// S3 calls that the loop can make.
const CALLS: [&str; 5] = ["HeadBucket", "CreateBucket", "GetBucketTagging", "PutBucketTagging", "GetBucketVersioning"];

impl Mix {
    /// Derives the requests per claim from an operator's requests, each kind with its average
    /// count. Reads of the API server are left out.
    pub(crate) fn of(asked: &Asked) -> Self {
        let mut mix = Self::default();
        let each = |count: u64| (count as f64 / asked.claims.max(1) as f64).round() as usize;
        for (kind, count) in asked.kubernetes.sorted() {
            let write = match kind.trim_end_matches(NEW) {
                "patch bucketclaims" | "update bucketclaims" => Write::PatchClaim,
                "patch bucketclaims/status" | "update bucketclaims/status" => Write::PatchStatus,
                "create secrets" => Write::CreateSecret,
                "patch secrets" if kind.ends_with(NEW) => Write::ApplySecret,
                "patch secrets" | "update secrets" => Write::PatchSecret,
                "create events" | "patch events" => Write::CreateEvent,
                read if ["get ", "list ", "watch "].iter().any(|verb| read.starts_with(verb)) => continue,
                other => {
                    mix.left_out.extend((each(count) > 0).then(|| other.to_owned()));
                    continue;
                }
            };
            let list = if matches!(write, Write::PatchClaim) { &mut mix.before } else { &mut mix.after };
            list.extend(std::iter::repeat_n(write, each(count)));
        }
        mix.after.sort_by_key(|write| matches!(write, Write::PatchStatus));
        for (kind, count) in asked.store.sorted() {
            match CALLS.into_iter().find(|call| *call == kind) {
                Some(call) => mix.store.extend(std::iter::repeat_n(call, each(count))),
                None => mix.left_out.extend((each(count) > 0).then(|| kind.to_owned())),
            }
        }
        // A bucket is created before its tags are read.
        mix.store.sort_by_key(|call| CALLS.iter().position(|known| known == call));
        mix
    }

    pub(crate) fn told(&self) -> String {
        let (kubernetes, store) = (self.before.len() + self.after.len(), self.store.len());
        format!("a bare loop of {kubernetes} writes and {store} S3 calls a claim, {WORKERS} at once")
    }
}

/// Clients of the loop.
struct Loop {
    client: Client,
    store: Store,
    mix: Mix,
}

/// Runs the loop for the number of claims that were measured.
pub(crate) async fn play(settings: &Settings, environment: &Environment, mix: Mix, title: &str) -> Result<Figures> {
    tell(&format!("{title}: {} claims, {}", settings.claims, mix.told()));
    let client = environment.plane.client(User::Operator).await?;
    let store = Store::new(environment.main.url(), REGION, &environment.serving.key)?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();
    for (path, sender) in [
        (format!("{API}/bucketclaims"), Some(sender)),
        (format!("{API}/s3backends"), None),
        ("/api/v1/namespaces".to_owned(), None),
        ("/api/v1/secrets".to_owned(), None),
    ] {
        // Before the first claim is created, so that none is missed.
        let version = version(&client, &path).await?;
        tasks.spawn(watch(client.clone(), path, version, sender));
    }
    let (receiver, work) = (Arc::new(tokio::sync::Mutex::new(receiver)), Arc::new(Loop { client, store, mix }));
    for _ in 0..WORKERS {
        tasks.spawn(work.clone().serve(receiver.clone()));
    }
    let batch = settings.batch("create", settings.claims, MAIN);
    let before = environment.mark(None)?;
    let told = |count| tell(&format!("{title}: {count} of {} are Bound", batch.len()));
    let done = async {
        let bound = environment.claims.until_bound(&batch, settings.timeout, told);
        tokio::try_join!(environment.claims.make(&batch), bound).map(|_| ())
    };
    tokio::select! {
        done = done => done?,
        Some(ended) = tasks.join_next() => {
            ended.context("the bare loop ended")??;
            anyhow::bail!("the bare loop ended before all claims were Bound");
        }
    }
    let after = environment.mark(None)?;
    let times = environment.claims.times_to_bound(&batch);
    let mut figures = Figures::default();
    figures.add(Phase::Create, "claims/s", Unit::PerSecond, times.per_second());
    figures.add_times(Phase::Create, "to Bound", &times.each);
    let each = |count: u64| count as f64 / times.each.len().max(1) as f64;
    let kubernetes = after.kubernetes.since(&before.kubernetes).total();
    let store = after.store.requests.since(&before.store.requests).total();
    figures.add(Phase::Create, "Kubernetes requests", Unit::PerClaim, each(kubernetes));
    figures.add(Phase::Create, "S3 calls", Unit::PerClaim, each(store));
    let took = after.at.saturating_duration_since(before.at).as_secs_f64().max(f64::EPSILON);
    for (what, usage) in Mark::PROCESSES.into_iter().skip(1) {
        let cpu = usage(&after).cpu.saturating_sub(usage(&before).cpu);
        let each = milliseconds(cpu) / times.each.len().max(1) as f64;
        figures.add(Phase::Create, format!("CPU per claim, {what}"), Unit::Milliseconds, each);
        figures.add(
            Phase::Create,
            format!("of one processor, {what}"),
            Unit::Percent,
            100.0 * cpu.as_secs_f64() / took,
        );
    }
    Ok(figures)
}

/// Namespace and name of a claim, sent from the watch to a worker.
type Found = (String, String);

/// Returns the current version of a collection.
async fn version(client: &Client, path: &str) -> Result<String> {
    let list: Value = client.request(Request::get(format!("{path}?limit=1")).body(Vec::new())?).await?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

/// Watches a collection from a version on, and reads all events, like an operator. The API server
/// ends a watch with a slow reader; it continues at the last version.
async fn watch(
    client: Client,
    path: String,
    mut version: String,
    sender: Option<mpsc::UnboundedSender<Found>>,
) -> Result<()> {
    loop {
        let request = Request::get(format!("{path}?watch=true&resourceVersion={version}")).body(Vec::new())?;
        let mut lines = client.request_stream(request).await?.lines();
        while let Some(Ok(line)) = lines.next().await {
            let event: Value = serde_json::from_str(&line)?;
            ensure!(event["type"] != "ERROR", "the watch of {path} can't go on: {}", event["object"]["message"]);
            let text = |field: &str| event["object"]["metadata"][field].as_str().unwrap_or_default().to_owned();
            version = text("resourceVersion");
            if let Some(sender) = sender.as_ref().filter(|_| event["type"] == "ADDED") {
                let _ = sender.send((text("namespace"), text("name")));
            }
        }
    }
}

impl Loop {
    async fn serve(self: Arc<Self>, claims: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Found>>>) -> Result<()> {
        loop {
            let next = claims.lock().await.recv().await;
            let Some((namespace, name)) = next else { std::future::pending().await };
            self.bind(&namespace, &name)
                .await
                .with_context(|| format!("the bare loop, at claim {namespace}/{name}"))?;
        }
    }

    async fn bind(&self, namespace: &str, name: &str) -> Result<()> {
        let bucket = format!("{namespace}-{name}");
        let made: Mutex<Vec<String>> = Mutex::default();
        for (number, write) in self.mix.before.iter().enumerate() {
            self.write(*write, namespace, name, number, false, &made).await?;
        }
        for call in &self.mix.store {
            self.store.call(call, &bucket).await?;
        }
        for (number, write) in self.mix.after.iter().enumerate() {
            let last = number + 1 == self.mix.after.len();
            self.write(*write, namespace, name, number, last, &made).await?;
        }
        Ok(())
    }

    async fn write(
        &self,
        write: Write,
        namespace: &str,
        name: &str,
        number: usize,
        last: bool,
        made: &Mutex<Vec<String>>,
    ) -> Result<()> {
        let claim = format!("{API}/namespaces/{namespace}/bucketclaims/{name}");
        let secret = format!("{namespace}-{name}-{number}");
        let secrets = format!("/api/v1/namespaces/{HOME}/secrets");
        let request = match write {
            Write::PatchClaim => {
                let finalizer = format!("bench.stowage.io/write-{number}");
                patch(claim, MERGE, &json!({"metadata": {"finalizers": [finalizer]}}))?
            }
            Write::PatchStatus => patch(format!("{claim}/status"), MERGE, &status(name, number, last))?,
            Write::CreateSecret => {
                made.lock().push(secret.clone());
                post(secrets, &a_secret(&secret))?
            }
            Write::ApplySecret => {
                made.lock().push(secret.clone());
                let path = format!("{secrets}/{secret}?fieldManager=bench&force=true");
                patch(path, "application/apply-patch+yaml", &a_secret(&secret))?
            }
            Write::PatchSecret => {
                let Some(known) = made.lock().first().cloned() else { return Ok(()) };
                let value = json!({"metadata": {"annotations": {"bench.stowage.io/write": number.to_string()}}});
                patch(format!("{secrets}/{known}"), MERGE, &value)?
            }
            Write::CreateEvent => {
                let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
                post(path, &event(namespace, name, number))?
            }
        };
        self.client.request_text(request).await.map(|_| ()).with_context(|| format!("{write:?}"))
    }
}

fn patch(path: String, how: &str, value: &Value) -> Result<Request<Vec<u8>>> {
    Ok(Request::patch(path).header("content-type", how).body(value.to_string().into_bytes())?)
}

fn post(path: String, value: &Value) -> Result<Request<Vec<u8>>> {
    Ok(Request::post(path).header("content-type", "application/json").body(value.to_string().into_bytes())?)
}

/// Returns a status of about the length of a real one.
fn status(name: &str, number: usize, last: bool) -> Value {
    let (phase, status) = if last { ("Bound", "True") } else { ("Pending", "False") };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": status, "reason": "Bench", "message": format!("write {number} of the bare loop"),
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        })
    };
    let conditions: Vec<Value> = ["Ready", "BucketReady", "CredentialsReady"].into_iter().map(condition).collect();
    json!({"status": {"phase": phase, "bucketName": name, "observedGeneration": 1, "conditions": conditions}})
}

fn a_secret(name: &str) -> Value {
    let long = "c3Rvd2FnZSBiZW5jaCBzdG93YWdlIGJlbmNo";
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "labels": {"bench.stowage.io/role": "credential"}},
        "data": {"AWS_ACCESS_KEY_ID": long, "AWS_SECRET_ACCESS_KEY": long, "BUCKET_NAME": long, "AWS_REGION": long},
    })
}

fn event(namespace: &str, name: &str, number: usize) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": format!("{name}.{number}"), "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "stowage.io/bench",
        "reportingInstance": "bench", "action": "Bind", "reason": "Bench", "type": "Normal",
        "regarding": {"kind": "BucketClaim", "namespace": namespace, "name": name},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::operator::counts::Counts;

    fn counts(kinds: &[(&str, usize)]) -> Counts {
        let mut counts = Counts::default();
        kinds.iter().for_each(|(kind, count)| (0..*count).for_each(|_| counts.add(kind)));
        counts
    }

    #[test]
    fn the_loop_does_what_was_done_for_each_claim() {
        let asked = Asked {
            claims: 10,
            kubernetes: counts(&[
                ("patch bucketclaims", 10),
                ("patch bucketclaims/status", 21),
                ("create secrets", 29),
                ("patch secrets", 4),
                ("patch secrets (new)", 10),
                ("get secrets", 40),
                ("create leases", 10),
            ]),
            store: counts(&[("PutBucketTagging", 10), ("CreateBucket", 11), ("ListBuckets", 1), ("PutBucketAcl", 10)]),
        };
        let mix = Mix::of(&asked);
        assert_eq!(mix.before, [Write::PatchClaim]);
        assert_eq!(mix.after.iter().filter(|write| **write == Write::CreateSecret).count(), 3);
        assert_eq!(mix.after.iter().filter(|write| **write == Write::ApplySecret).count(), 1);
        assert!(!mix.after.contains(&Write::PatchSecret), "not even every second claim had one");
        assert_eq!(mix.after[mix.after.len() - 2..], [Write::PatchStatus, Write::PatchStatus]);
        assert_eq!(mix.store, ["CreateBucket", "PutBucketTagging"]);
        assert_eq!(mix.left_out, ["create leases", "PutBucketAcl"]);
    }
}
