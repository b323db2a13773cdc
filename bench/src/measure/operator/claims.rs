//! Claims, made and deleted at once by tenants, and when each was seen Bound, and gone. Seen by one
//! watch, of which only what counts is read.

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

/// Where claims are, for whoever asks by hand.
pub(crate) const API: &str = "/apis/broker.stowage.io/v1alpha1";
/// How many requests tenants have under way at once.
const TENANTS: usize = 32;
/// Between two looks at how many are Bound.
const LOOK: Duration = Duration::from_millis(5);
/// Between two words about how it goes.
const WORD: Duration = Duration::from_secs(5);

/// How a watch tells that it can't go on. Its object is a `Status`, which is no claim.
const ERROR: &str = r#"{"type":"ERROR""#;

/// Claims that were made together. Their names tell of it.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) name: String,
    /// Namespace and name of each.
    claims: Vec<(String, String)>,
    pub(crate) backend: String,
    /// Further fields of each spec.
    pub(crate) further: Value,
}

/// What was seen of a claim.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    made: Option<Instant>,
    bound: Option<Instant>,
    deleted: Option<Instant>,
    gone: Option<Instant>,
}

/// What was seen of all.
#[derive(Default)]
struct Board {
    /// By `namespace/name`.
    claims: HashMap<String, Moments>,
    /// By batch, how many were seen.
    bound: HashMap<String, usize>,
    gone: HashMap<String, usize>,
}

/// Everybody's claims.
pub(crate) struct Claims {
    tenant: Client,
    board: Arc<Mutex<Board>>,
    watching: JoinHandle<()>,
}

/// What came of a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// From the request to what was waited for, of those that came to it.
    pub(crate) each: Vec<Duration>,
    /// From the first request to the last that came to it.
    pub(crate) whole: Duration,
    /// How many didn't in time.
    pub(crate) missing: usize,
}

impl Times {
    pub(crate) fn per_second(&self) -> f64 {
        if self.whole.is_zero() { 0.0 } else { self.each.len() as f64 / self.whole.as_secs_f64() }
    }
}

impl Batch {
    /// So many, spread over these namespaces in turns.
    pub(crate) fn new(name: &str, count: usize, namespaces: &[String], backend: &str, further: Value) -> Self {
        let names = (0..count).zip(namespaces.iter().cycle());
        let claims = names.map(|(number, namespace)| (namespace.clone(), format!("{name}-{number:05}"))).collect();
        Self { name: name.to_owned(), claims, backend: backend.to_owned(), further }
    }

    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Namespace and name of each.
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

/// The batch that a claim is of.
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

    /// Makes all of a batch at once.
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

    /// Deletes all of a batch at once.
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

    /// How many of a batch were seen Bound.
    pub(crate) fn bound(&self, batch: &Batch) -> usize {
        self.board.lock().bound.get(&batch.name).copied().unwrap_or(0)
    }

    /// How many of a batch were seen to be gone.
    pub(crate) fn gone(&self, batch: &Batch) -> usize {
        self.board.lock().gone.get(&batch.name).copied().unwrap_or(0)
    }

    /// Waits until all of a batch were seen Bound, or the time is over.
    pub(crate) async fn until_bound(&self, batch: &Batch, patience: Duration, tell: impl Fn(usize)) -> Result<()> {
        self.until(batch, patience, || self.bound(batch), tell).await
    }

    /// Waits until all of a batch were seen to be gone, or the time is over.
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

    /// How long each of a batch took from being made to Bound.
    pub(crate) fn times_to_bound(&self, batch: &Batch) -> Times {
        self.times(batch, |moments| moments.made.zip(moments.bound))
    }

    /// How long each of a batch took from being deleted to being gone.
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

/// A claim, as far as it counts.
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

/// Reads all changes, from now on. A watch that ends goes on where it was, and one that is too old
/// begins with a list, in which only what is gone can be missed.
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
            // Whatever it is, a list is a beginning.
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
