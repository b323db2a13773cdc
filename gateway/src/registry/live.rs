//! Live reads of claims' keys that no watch has delivered yet, by name, for the one request that
//! uses them. Keys of accesses are not read this way (spec §8).
//!
//! A tenant gets a key as soon as the operator has stored it, and the watch may be a moment behind.
//! The result never enters the tables, because it may be older than a deletion that the watch has
//! delivered. The number of reads is limited, as anyone can invent ids.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use parking_lot::Mutex;
use stowage_api::ServedCredential;
use stowage_api::wire::{self, Role};
use tokio::time::{Instant, timeout};

use super::internal::Key;
use crate::limits::Rates;

/// Maximum age of a result that is reused for other requests with the same key.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// Time limit of a read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of reads per second, for all clients together.
const A_SECOND: u32 = 20;
/// Maximum number of remembered results.
const MOST: usize = 256;

/// Reads keys by name from the API server.
pub struct Live {
    secrets: Api<Secret>,
    rate: Rates<()>,
    recent: Mutex<BTreeMap<String, Recent>>,
}

/// A recent read. Requests for the same id meanwhile share its result.
#[derive(Clone)]
struct Recent {
    since: Instant,
    answer: Shared<BoxFuture<'static, Option<Arc<Key>>>>,
}

impl Live {
    /// Creates a reader. `namespace` is the operator's.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, rate: Rates::default(), recent: Mutex::default() }
    }

    /// Returns the key with this id if the API server has it now. Also returns `None` if it can't
    /// be read.
    pub async fn key(&self, id: &str) -> Option<Arc<Key>> {
        if !is_ours(id) {
            return None;
        }
        let recent = self.recent(id, Instant::now())?;
        recent.answer.await
    }

    /// Returns the read of this id from the last second, or starts one if the rate allows it.
    fn recent(&self, id: &str, now: Instant) -> Option<Recent> {
        let mut recent = self.recent.lock();
        recent.retain(|_, asked| now.duration_since(asked.since) < GOOD_FOR);
        if let Some(asked) = recent.get(id) {
            return Some(asked.clone());
        }
        if recent.len() >= MOST || self.rate.pass((), A_SECOND, now).is_err() {
            return None;
        }
        // A separate task: if the client disconnects, the next request doesn't have to read again.
        let asking = tokio::spawn(ask(self.secrets.clone(), id.to_owned()));
        let answer = async move { asking.await.ok().flatten() };
        let asked = Recent { since: now, answer: answer.boxed().shared() };
        recent.insert(id.to_owned(), asked.clone());
        Some(asked)
    }
}

async fn ask(secrets: Api<Secret>, id: String) -> Option<Arc<Key>> {
    let name = ServedCredential::secret_name(&id);
    let secret = match timeout(PATIENCE, secrets.get_opt(&name)).await {
        Ok(Ok(secret)) => secret?,
        Ok(Err(_)) | Err(_) => {
            tracing::debug!("a key could not be asked for");
            return None;
        }
    };
    let role = secret.metadata.labels.as_ref().and_then(|labels| labels.get(wire::ROLE));
    role.filter(|role| *role == Role::VirtualCredential.as_str())?;
    let credential = ServedCredential::read(&secret).ok().filter(|credential| credential.id == id)?;
    Some(Arc::new(Key::of(credential)))
}

/// Returns true if an id can be the operator's: `AKIA` and 16 characters of base32 (spec §2).
fn is_ours(id: &str) -> bool {
    let is_base32 = |byte: u8| matches!(byte, b'A'..=b'Z' | b'2'..=b'7');
    id.len() == 20 && id.strip_prefix("AKIA").is_some_and(|rest| rest.bytes().all(is_base32))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    const ID: &str = "AKIA6PWYIRN6WZZLJBUY";

    /// Returns a cluster with one key, which counts its requests.
    fn live(asked: &Arc<AtomicUsize>) -> Live {
        let asked = asked.clone();
        let service = service_fn(move |request: Request<Body>| {
            asked.fetch_add(1, Ordering::Relaxed);
            let found = request.uri().path().ends_with("/vc-akia6pwyirn6wzzljbuy");
            let data = json!({
                "access_key_id": "QUtJQTZQV1lJUk42V1paTEpCVVk=",
                "secret_access_key": "czNjcjN0LW9mLWEtdGVzdC0wMTIzNDU2Nzg5LWFiY2RlZmdoaWprbA==",
                "claim_uid": "dQ==",
                "bucket_scopes": "W10=",
            });
            let labels = json!({"broker.stowage.io/role": "virtual-credential"});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": data,
                "metadata": {"name": "vc-akia6pwyirn6wzzljbuy", "namespace": "system", "labels": labels}});
            let none = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found", "metadata": {}});
            let (status, body) = if found { (200, secret) } else { (404, none) };
            let answer = Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
            async move { answer }
        });
        Live::new(Client::new(service, "system"), "system")
    }

    // covers: 6.live
    #[tokio::test(start_paused = true)]
    async fn a_key_is_asked_for_once_a_second() {
        let asked = Arc::default();
        let live = live(&asked);
        let (one, other) = tokio::join!(live.key(ID), live.key(ID));
        assert!(one.is_some() && other.is_some());
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(GOOD_FOR).await;
        assert!(live.key(ID).await.is_some());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_anybody_makes_up_is_bounded() {
        let asked = Arc::default();
        let live = live(&asked);
        assert!(live.key("AKIAIOSFODNN7EXAMPLE1").await.is_none(), "it is too long");
        assert!(live.key("AKIAIOSFODNN0EXAMPLE").await.is_none(), "there is no 0 in base32");
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for number in 0..1000_u32 {
            let id: String =
                format!("AKIA{number:016}").replace('0', "A").replace('1', "B").replace('8', "C").replace('9', "D");
            assert!(live.key(&id).await.is_none());
        }
        assert!(asked.load(Ordering::Relaxed) <= 2 * A_SECOND as usize, "{asked:?}");
        assert!(live.recent.lock().len() <= MOST);
    }
}
