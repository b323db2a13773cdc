//! Claims that tenants create and delete at once, with the times at which each was seen Bound, and
//! gone. They are observed by one watch, which parses only the required fields.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// API path of claims, for requests without a typed client.
pub(crate) const API: &str = "/apis/broker.stowage.io/v1alpha1";
/// Number of concurrent requests of tenants.
const TENANTS: usize = 32;
/// Interval between checks of the number of Bound claims.
const LOOK: Duration = Duration::from_millis(5);
/// Interval between progress messages.
const WORD: Duration = Duration::from_secs(5);

/// Start of a watch event that ends the watch. Its object is a `Status`, not a claim.
const ERROR: &str = r#"{"type":"ERROR""#;

/// Claims that are created together. Their names begin with the batch's name.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) name: String,
    /// Namespace and name of each.
    claims: Vec<(String, String)>,
    pub(crate) backend: String,
    /// Further fields of each spec.
    pub(crate) further: Value,
}

/// Times of a claim's events.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    made: Option<Instant>,
    bound: Option<Instant>,
    deleted: Option<Instant>,
    gone: Option<Instant>,
}

/// Events of all claims.
#[derive(Default)]
struct Board {
    /// By `namespace/name`.
    claims: HashMap<String, Moments>,
    /// Number of claims seen Bound and seen gone, by batch.
    bound: HashMap<String, usize>,
    gone: HashMap<String, usize>,
}

/// All claims of the cluster.
pub(crate) struct Claims {
    tenant: Client,
    board: Arc<Mutex<Board>>,
    watching: JoinHandle<()>,
}

/// Times of a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// From the request to the expected event, for those that reached it.
    pub(crate) each: Vec<Duration>,
    /// From the first request to the last expected event.
    pub(crate) whole: Duration,
    /// Number of claims that didn't reach it in time.
    pub(crate) missing: usize,
}

impl Times {
    pub(crate) fn per_second(&self) -> f64 {
        if self.whole.is_zero() { 0.0 } else { self.each.len() as f64 / self.whole.as_secs_f64() }
    }
}

impl Batch {
    /// Creates a batch of `count` claims, distributed over these namespaces in turns.
    pub(crate) fn new(name: &str, count: usize, namespaces: &[String], backend: &str, further: Value) -> Self {
        let names = (0..count).zip(namespaces.iter().cycle());
        let claims = names.map(|(number, namespace)| (namespace.clone(), format!("{name}-{number:05}"))).collect();
        Self { name: name.to_owned(), claims, backend: backend.to_owned(), further }
    }

    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Returns namespace and name of each.
    pub(crate) fn claims(&self) -> &[(String, String)] {
        &self.claims
    }

    fn object(&self, name: &str) -> Value {
        let mut spec = json!({"backendRef": {"name": self.backend}});
        if let (Some(spec), Some(further)) = (spec.as_object_mut(), self.further.as_object()) {
            spec.extend(further.clone());
        }
        json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
            "metadata": {"name": name}, "spec": spec,
        })
    }
}

/// Returns the batch of a claim, by its name.
fn batch_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(batch, _)| batch)
}

impl Claims {
    /// Watches all claims of the cluster as `admin`.
    pub(crate) fn watch(admin: Client, tenant: Client) -> Self {
        let board = Arc::new(Mutex::new(Board::default()));
        let watching = tokio::spawn(watch(admin, board.clone()));
        Self { tenant, board, watching }
    }

    /// Creates all claims of a batch at once.
    pub(crate) async fn make(&self, batch: &Batch) -> Result<()> {
        self.at_once(
            batch,
            |moments| &mut moments.made,
            |namespace, name| {
                let body = batch.object(name).to_string().into_bytes();
                Request::post(format!("{API}/namespaces/{namespace}/bucketclaims"))
                    .header("content-type", "application/json")
                    .body(body)
            },
        )
        .await
        .context("can't make a claim")
    }

    /// Deletes all claims of a batch at once.
    pub(crate) async fn delete(&self, batch: &Batch) -> Result<()> {
        self.at_once(
            batch,
            |moments| &mut moments.deleted,
            |namespace, name| {
                Request::delete(format!("{API}/namespaces/{namespace}/bucketclaims/{name}")).body(Vec::new())
            },
        )
        .await
        .context("can't delete a claim")
    }

    async fn at_once(
        &self,
        batch: &Batch,
        moment: impl Fn(&mut Moments) -> &mut Option<Instant>,
        request: impl Fn(&str, &str) -> http::Result<Request<Vec<u8>>>,
    ) -> Result<()> {
        let requests = batch.claims.iter().map(|(namespace, name)| {
            let asked = request(namespace, name);
            let (moment, key) = (&moment, format!("{namespace}/{name}"));
            async move {
                let asked = asked?;
                *moment(self.board.lock().claims.entry(key).or_default()) = Some(Instant::now());
                self.tenant.request_text(asked).await.map(|_| ()).map_err(anyhow::Error::from)
            }
        });
        futures::stream::iter(requests).buffer_unordered(TENANTS).try_collect().await
    }

    /// Returns the number of claims of a batch that were seen Bound.
    pub(crate) fn bound(&self, batch: &Batch) -> usize {
        self.board.lock().bound.get(&batch.name).copied().unwrap_or(0)
    }

    /// Returns the number of claims of a batch that were seen gone.
    pub(crate) fn gone(&self, batch: &Batch) -> usize {
        self.board.lock().gone.get(&batch.name).copied().unwrap_or(0)
    }

    /// Waits until all claims of a batch were seen Bound, or the time is over.
    pub(crate) async fn until_bound(&self, batch: &Batch, patience: Duration, tell: impl Fn(usize)) -> Result<()> {
        self.until(batch, patience, || self.bound(batch), tell).await
    }

    /// Waits until all claims of a batch were seen gone, or the time is over.
    pub(crate) async fn until_gone(&self, batch: &Batch, patience: Duration, tell: impl Fn(usize)) -> Result<()> {
        self.until(batch, patience, || self.gone(batch), tell).await
    }

    async fn until(
        &self,
        batch: &Batch,
        patience: Duration,
        count: impl Fn() -> usize,
        tell: impl Fn(usize),
    ) -> Result<()> {
        let (start, mut told) = (Instant::now(), Instant::now());
        while count() < batch.len() && start.elapsed() < patience {
            if self.watching.is_finished() {
                return Err(anyhow!("the watch of the claims has ended"));
            }
            if told.elapsed() > WORD {
                tell(count());
                told = Instant::now();
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns the times of a batch from creation to Bound.
    pub(crate) fn times_to_bound(&self, batch: &Batch) -> Times {
        self.times(batch, |moments| moments.made.zip(moments.bound))
    }

    /// Returns the times of a batch from deletion to gone.
    pub(crate) fn times_to_gone(&self, batch: &Batch) -> Times {
        self.times(batch, |moments| moments.deleted.zip(moments.gone))
    }

    fn times(&self, batch: &Batch, ends: impl Fn(&Moments) -> Option<(Instant, Instant)>) -> Times {
        let board = self.board.lock();
        let moments =
            batch.claims.iter().filter_map(|(namespace, name)| board.claims.get(&format!("{namespace}/{name}")));
        let ends: Vec<(Instant, Instant)> = moments.filter_map(ends).collect();
        let whole = ends.iter().map(|(from, _)| *from).min().zip(ends.iter().map(|(_, to)| *to).max());
        Times {
            missing: batch.len() - ends.len(),
            whole: whole.map_or(Duration::ZERO, |(from, to)| to.saturating_duration_since(from)),
            each: ends.into_iter().map(|(from, to)| to.saturating_duration_since(from)).collect(),
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Board {
    fn see(&mut self, kind: &str, claim: &Claim) {
        let key = format!("{}/{}", claim.metadata.namespace, claim.metadata.name);
        let moments = self.claims.entry(key).or_default();
        let batch = || batch_of(&claim.metadata.name).to_owned();
        if kind == "DELETED" {
            if moments.gone.replace(Instant::now()).is_none() {
                *self.gone.entry(batch()).or_default() += 1;
            }
        } else if claim.is_bound() && moments.bound.is_none() {
            moments.bound = Some(Instant::now());
            *self.bound.entry(batch()).or_default() += 1;
        }
    }
}

/// A claim, with the required fields only.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Claim {
    metadata: Metadata,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    resource_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Claim,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Metadata,
    items: Vec<Claim>,
}

impl Claim {
    fn is_bound(&self) -> bool {
        self.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    }
}

/// Reads all changes from now on. A watch that ends is continued at its last version. If that
/// version is too old, it begins with a new list, which misses only deletions.
async fn watch(client: Client, board: Arc<Mutex<Board>>) {
    let mut version = String::new();
    loop {
        if version.is_empty() {
            match list(&client).await {
                Ok(list) => {
                    let mut board = board.lock();
                    list.items.iter().for_each(|claim| board.see("ADDED", claim));
                    version = list.metadata.resource_version;
                }
                Err(_) => sleep(WORD).await,
            }
            continue;
        }
        if follow(&client, &mut version, &board).await.is_err() {
            sleep(LOOK).await;
        }
    }
}

async fn list(client: &Client) -> Result<List> {
    let request = Request::get(format!("{API}/bucketclaims")).body(Vec::new())?;
    Ok(client.request::<List>(request).await?)
}

async fn follow(client: &Client, version: &mut String, board: &Mutex<Board>) -> Result<()> {
    let path = format!("{API}/bucketclaims?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let mut lines = client.request_stream(Request::get(path).body(Vec::new())?).await?.lines();
    while let Some(line) = lines.next().await {
        let line = line?;
        if line.starts_with(ERROR) {
            // Starts with a new list, whatever the error is.
            version.clear();
            return Ok(());
        }
        let Event { kind, object } = serde_json::from_str(&line)?;
        version.clone_from(&object.metadata.resource_version);
        if kind != "BOOKMARK" {
            board.lock().see(&kind, &object);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: Value) -> Event {
        serde_json::from_value(text).unwrap()
    }

    fn told(kind: &str, name: &str, phase: Option<&str>) -> Event {
        let metadata = json!({"name": name, "namespace": "a", "resourceVersion": "7"});
        event(json!({"type": kind, "object": {"metadata": metadata, "status": {"phase": phase}}}))
    }

    #[test]
    fn a_claim_counts_once_for_its_batch_however_often_it_is_told_of() {
        let mut board = Board::default();
        for (kind, phase) in [("ADDED", None), ("MODIFIED", Some("Pending")), ("MODIFIED", Some("Bound"))] {
            board.see(kind, &told(kind, "create-00001", phase).object);
        }
        board.see("MODIFIED", &told("MODIFIED", "create-00001", Some("Bound")).object);
        board.see("MODIFIED", &told("MODIFIED", "beside-00001", Some("Bound")).object);
        board.see("DELETED", &told("DELETED", "create-00001", Some("Bound")).object);
        assert_eq!((board.bound["create"], board.bound["beside"], board.gone["create"]), (1, 1, 1));
    }

    #[test]
    fn a_claim_without_a_status_is_not_bound() {
        assert!(!event(json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}})).object.is_bound());
    }

    #[test]
    fn a_batch_is_spread_over_namespaces() {
        let namespaces = ["a".to_owned(), "b".to_owned()];
        let batch = Batch::new("create", 3, &namespaces, "main", json!({"deletionPolicy": "Delete"}));
        let names: Vec<String> = batch.claims().iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        assert_eq!(names, ["a/create-00000", "b/create-00001", "a/create-00002"]);
        assert_eq!(batch.object("x")["spec"], json!({"backendRef": {"name": "main"}, "deletionPolicy": "Delete"}));
        assert_eq!(batch_of("create-00002"), batch.name);
    }
}
