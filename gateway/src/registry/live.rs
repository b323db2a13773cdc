//! Keys that no watch has told of yet: asked for by name, for the one request that names them.
//!
//! A key reaches its tenant as soon as the operator has stored it, and the watch may be a moment
//! behind. What is found never gets into the tables: the answer may be older than a deletion that
//! the watch has told of. What is asked is bounded, as anybody may make up ids.

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

/// How long an answer is good for other requests that name the same key.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Questions a second, of all clients together.
const A_SECOND: u32 = 20;
/// Most answers that are remembered.
const MOST: usize = 256;

/// Asks the API server for keys by name.
pub struct Live {
    secrets: Api<Secret>,
    rate: Rates<()>,
    recent: Mutex<BTreeMap<String, Recent>>,
}

/// What was asked not long ago. Who asks for the same meanwhile waits for the same answer.
#[derive(Clone)]
struct Recent {
    since: Instant,
    answer: Shared<BoxFuture<'static, Option<Arc<Key>>>>,
}

impl Live {
    /// Nothing was asked yet. `namespace` is the operator's.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, rate: Rates::default(), recent: Mutex::default() }
    }

    /// The key of this id, if the API server has it now; `None` also where it can't be asked.
    pub async fn key(&self, id: &str) -> Option<Arc<Key>> {
        if !is_ours(id) {
            return None;
        }
        let recent = self.recent(id, Instant::now())?;
        recent.answer.await
    }

    /// What was asked of this id within the last second, or leave to ask.
    fn recent(&self, id: &str, now: Instant) -> Option<Recent> {
        let mut recent = self.recent.lock();
        recent.retain(|_, asked| now.duration_since(asked.since) < GOOD_FOR);
        if let Some(asked) = recent.get(id) {
            return Some(asked.clone());
        }
        if recent.len() >= MOST || self.rate.pass((), A_SECOND, now).is_err() {
            return None;
        }
        // A task of its own: who asks and goes away doesn't have the next one ask again.
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

/// Whether an id can be one of the operator's: `AKIA` and 16 characters of base32 (spec §2).
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

    /// A cluster with one key, that counts what it is asked.
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
