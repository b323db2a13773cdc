//! The watches, against a scripted API server.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher;
use stowage_api::wire::Role;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;

const SECRETS: &str = "/api/v1/namespaces/stowage-system/secrets";
const BACKENDS: &str = "/apis/broker.stowage.io/v1alpha1/s3backends";
const VAULT: &str = "/api/v1/namespaces/vault/secrets";
/// The watch of one Secret in that namespace.
const ADMIN: &str = "/api/v1/namespaces/vault/secrets/admin";

type Sent = UnsyncBoxBody<Bytes, Infallible>;

/// An API server. Clones are handles to the same one.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The objects of each list, by path.
    objects: BTreeMap<&'static str, Vec<Value>>,
    /// The status of refused requests, by path.
    refused: BTreeMap<&'static str, u16>,
    /// The last watch of each path. Those of a single object have its name appended.
    watches: BTreeMap<String, UnboundedSender<Bytes>>,
    /// Path and query of every request.
    asked: Vec<String>,
}

impl Server {
    /// Creates a server with a store and a key to a bucket on it.
    fn usual() -> Self {
        let server = Self::default();
        server.put(SECRETS, &[json!(credential("u-1", 1, Some(HERE)))]);
        server.put(BACKENDS, &[raw(backend("main", HERE, json!({})))]);
        server.put(VAULT, &[json!(store_secret(&name("vault", "admin"), "AKADMIN", HERE))]);
        server
    }

    fn put(&self, path: &'static str, objects: &[Value]) {
        self.0.lock().objects.insert(path, objects.to_vec());
    }

    fn refuse(&self, paths: &[&'static str], status: u16) {
        self.0.lock().refused = paths.iter().map(|path| (*path, status)).collect();
    }

    /// Sends an event on a watch.
    fn send(&self, path: &str, kind: &str, object: &Value) {
        let mut object = object.clone();
        if object.get("code").is_none() {
            object["metadata"]["resourceVersion"] = "9".into();
        }
        let line = json!({"type": kind, "object": object}).to_string() + "\n";
        let sent = self.0.lock().watches.get(path).map(|watch| watch.send(line.into()));
        assert!(matches!(sent, Some(Ok(()))), "nobody watches {path}");
    }

    /// Ends every watch.
    fn hang_up(&self) {
        self.0.lock().watches.clear();
    }

    fn asked(&self, path: &str) -> Vec<String> {
        let all = std::mem::take(&mut self.0.lock().asked);
        all.into_iter().filter(|asked| asked.starts_with(path)).collect()
    }

    fn answer(&self, request: &Request<Body>) -> Response<Sent> {
        let mut state = self.0.lock();
        let path = request.uri().path().to_owned();
        state.asked.push(request.uri().to_string());
        if let Some(code) = state.refused.get(path.as_str()) {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                                "reason": "Refused", "message": "no"});
            let mut answer = Response::new(whole_body(&status));
            *answer.status_mut() = StatusCode::from_u16(*code).expect("a status");
            return answer;
        }
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            let (sender, receiver) = unbounded_channel();
            let of_one = request.uri().query().and_then(|query| query.split_once("metadata.name%3D"));
            let name = of_one.and_then(|(_, rest)| rest.split('&').next());
            state.watches.insert(name.map_or(path.clone(), |name| format!("{path}/{name}")), sender);
            return Response::new(StreamBody::new(pieces(receiver)).boxed_unsync());
        }
        let items = state.objects.get(path.as_str()).cloned().unwrap_or_default();
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": items});
        Response::new(whole_body(&list))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            std::future::ready(Ok::<_, Infallible>(server.answer(&request)))
        });
        Client::new(service, "default")
    }
}

fn whole_body(of: &Value) -> Sent {
    Full::new(Bytes::from(of.to_string())).boxed_unsync()
}

fn pieces(receiver: UnboundedReceiver<Bytes>) -> impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    stream::unfold(receiver, |mut receiver| async move { Some((Ok(Frame::data(receiver.recv().await?)), receiver)) })
}

fn raw(backend: SeenBackend) -> Value {
    json!(backend.0.expect("it can be decoded"))
}

/// A registry that follows a server.
struct Followed {
    registry: Registry,
    task: JoinHandle<Infallible>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Followed {
    async fn by(server: &Server) -> Self {
        let registry = Registry::new(setting(Unlabelled::Refused));
        let watch = watcher::Config::default();
        let source = Source { client: server.client(), namespace: NAMESPACE.to_owned(), watch };
        let followed = Self { task: tokio::spawn(registry.follow(source)), registry };
        pass(Duration::from_millis(1)).await;
        followed
    }

    fn age(&self) -> Option<Duration> {
        self.registry.age(Instant::now())
    }

    fn access(&self) -> Result<String, Unusable> {
        let backend = self.registry.backend("main").expect("it is known");
        backend.access.as_ref().map(|access| access.key.id.clone()).map_err(Clone::clone)
    }
}

/// Advances the time, and lets other tasks run.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_the_server_lists_and_tells_is_known() {
    let server = Server::usual();
    let followed = Followed::by(&server).await;
    let registry = &followed.registry;
    assert!(registry.is_ready());
    assert_eq!(followed.access(), Ok("AKADMIN".to_owned()));
    let key = registry.key(&id("u-1", 1)).expect("it is known");
    let own = key.credential().expect("a claim's");
    assert!(registry.ask(|tables| tables.reach_scope(own, &own.scopes[0])).is_ok());

    server.send(SECRETS, "ADDED", &json!(binding("u-1", "main", Some(HERE))));
    server.send(SECRETS, "DELETED", &json!(credential("u-1", 1, Some(HERE))));
    server.send(ADMIN, "MODIFIED", &json!(store_secret(&name("vault", "admin"), "AKNEXT", HERE)));
    pass(SECOND).await;
    assert!(registry.key(&id("u-1", 1)).is_none() && registry.binding("photos").is_some());
    assert_eq!(followed.access(), Ok("AKNEXT".to_owned()));
}

/// One watch for all roles, so Secrets become known in the order of their writes.
#[tokio::test(start_paused = true)]
async fn one_watch_asks_for_the_internal_secrets_of_every_role() {
    let server = Server::usual();
    let _followed = Followed::by(&server).await;
    let asked = server.asked(SECRETS);
    assert_eq!(asked.len(), 2, "a list and a watch: {asked:?}");
    for query in &asked {
        for role in Role::ALL {
            assert_eq!(query.contains(role.as_str()), role != Role::ConsumerSecret, "{query}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_view_is_as_old_as_the_last_sign_of_life() {
    let server = Server::usual();
    let followed = Followed::by(&server).await;
    let began = Instant::now();
    pass(60 * SECOND).await;
    assert_eq!(followed.age().map(|age| age.as_secs()), Some(60));
    let bookmark = |kind| json!({"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": "9"}});
    server.send(SECRETS, "BOOKMARK", &bookmark("Secret"));
    pass(SECOND).await;
    assert_eq!(followed.age().map(|age| age.as_secs()), Some(61), "the other has said nothing");
    server.send(BACKENDS, "BOOKMARK", &bookmark("S3Backend"));
    pass(SECOND).await;
    assert_eq!(followed.age().map(|age| age.as_secs()), Some(2));
    assert_eq!(followed.registry.ages(began).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_known_stays_known_while_the_server_is_away() {
    let server = Server::usual();
    let followed = Followed::by(&server).await;
    server.refuse(&[SECRETS, BACKENDS, VAULT], 500);
    server.hang_up();
    server.asked(SECRETS);
    pass(3600 * SECOND).await;
    assert!(followed.age().is_some_and(|age| age >= 3599 * SECOND), "{:?}", followed.age());
    assert!(followed.registry.key(&id("u-1", 1)).is_some() && followed.access().is_ok());
    let tries = server.asked(SECRETS).len();
    assert!((60..300).contains(&tries), "{tries} tries in an hour");
    server.refuse(&[], 500);
    pass(60 * SECOND).await;
    assert!(followed.age().is_some_and(|age| age <= 60 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_list_after_an_expired_watch_takes_the_place_of_what_was_known() {
    let server = Server::usual();
    let followed = Followed::by(&server).await;
    server.put(SECRETS, &[json!(credential("u-1", 2, Some(HERE)))]);
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
                      "message": "too old"});
    server.send(SECRETS, "ERROR", &gone);
    pass(60 * SECOND).await;
    let known = [1, 2].map(|generation| followed.registry.key(&id("u-1", generation)).is_some());
    assert_eq!(known, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_may_not_be_read_closes_its_store_alone() {
    let server = Server::usual();
    server.refuse(&[VAULT], 403);
    let followed = Followed::by(&server).await;
    assert!(followed.registry.is_ready());
    assert_eq!(followed.access(), Err(Unusable::Unwatched(name("vault", "admin"), Failure::Refused(403))));
    pass(120 * SECOND).await;
    assert!(followed.age().is_some_and(|age| age <= 121 * SECOND));
    server.refuse(&[], 403);
    pass(60 * SECOND).await;
    assert_eq!(followed.access(), Ok("AKADMIN".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn just_those_secrets_are_watched_that_backends_name() {
    let server = Server::usual();
    let followed = Followed::by(&server).await;
    let watched = |server: &Server| server.0.lock().watches.get(ADMIN).is_some_and(|watch| !watch.is_closed());
    assert!(watched(&server));
    assert!(server.asked(VAULT).iter().all(|query| query.contains("metadata.name%3Dadmin")));
    let own = json!({"gatewayCredentialsSecretRef": {"name": "gateway", "namespace": NAMESPACE}});
    server.send(BACKENDS, "MODIFIED", &raw(backend("main", HERE, own)));
    pass(SECOND).await;
    assert!(!watched(&server), "it has ended");
    assert!(server.asked(SECRETS).iter().all(|query| query.contains("metadata.name%3Dgateway")));
    let watches: Vec<Watch> = followed.registry.ages(Instant::now()).into_iter().map(|(watch, _)| watch).collect();
    assert_eq!(watches, [Watch::Secrets, Watch::Backends, Watch::StoreSecret(name(NAMESPACE, "gateway"))]);
}

/// An S3Backend with a value of a newer CRD doesn't affect the others.
#[tokio::test(start_paused = true)]
async fn a_backend_that_cannot_be_decoded_takes_none_with_it() {
    let server = Server::usual();
    let mut newer = raw(backend("newer", HERE, json!({})));
    newer["spec"]["addressingStyle"] = "diagonal".into();
    server.put(BACKENDS, &[newer, raw(backend("main", HERE, json!({})))]);
    let followed = Followed::by(&server).await;
    assert!(followed.registry.is_ready() && followed.access().is_ok());
    assert!(followed.registry.backend("newer").is_none());
}
