//! Hostile answers of a store: of any size, and with any text as error code (spec §3.5).

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use rstest::rstest;
use s3_sim::{InProcess, Store};
use s3s::Body;
use stowage_operator::upstream::{Connect, ConnectError, Trust};
use stowage_operator::{Clock, Metrics, Parts};
use stowage_world::determinism::run_seeded;
use stowage_world::{Options, World};
use tower::{ServiceExt, service_fn};

use crate::support::{BASE, claim, claim_with, message, object, ready};

/// Size of a flood, if it is read to the end.
const FLOOD: u64 = 600 << 20;
/// A limit above what the operator reads of any answer.
const MOST: u64 = 4 << 20;
/// Maximum length of all conditions of an object.
const MOST_TOLD: usize = 4096;

/// Chooses the hostile answer to a request by method and by path and query; `None` leaves it to the
/// store.
type Answers = fn(&Method, &str) -> Option<Hostile>;

/// A hostile answer.
#[derive(Clone, Copy)]
enum Hostile {
    /// Endless blanks, after this status.
    Flood(u16),
    /// An error with a code of this many letters.
    Code(u16, usize),
}

/// A store that answers normally until it is made hostile.
#[derive(Clone)]
struct Turned {
    store: Store,
    answers: Arc<Mutex<Option<Answers>>>,
    /// Bytes read from the bodies of all floods, and the maximum of one.
    taken: Arc<AtomicU64>,
    most_of_one: Arc<AtomicU64>,
    floods: Arc<AtomicU64>,
}

impl Turned {
    fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            answers: Arc::default(),
            taken: Arc::default(),
            most_of_one: Arc::default(),
            floods: Arc::default(),
        }
    }

    fn says(&self, answers: Answers) {
        *self.answers.lock().unwrap() = Some(answers);
    }

    fn answer(&self, hostile: Hostile) -> Response<Body> {
        let (status, body) = match hostile {
            Hostile::Flood(status) => {
                self.floods.fetch_add(1, Ordering::Relaxed);
                let flood = Flood { left: FLOOD, sent: 0, taken: self.taken.clone(), most: self.most_of_one.clone() };
                (status, Body::http_body(flood))
            }
            Hostile::Code(status, length) => {
                let code = "x".repeat(length);
                (status, Body::from(Bytes::from(format!("<Error><Code>{code}</Code></Error>"))))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        response
    }
}

impl Connect for Turned {
    fn connect(&self, _: &Trust) -> Result<SharedHttpClient, ConnectError> {
        let turned = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let answers = *turned.answers.lock().unwrap();
            let hostile = answers.and_then(|answers| answers(request.method(), &asked));
            let hostile = hostile.map(|hostile| turned.answer(hostile));
            let store = turned.store.http();
            async move {
                match hostile {
                    Some(answer) => Ok(answer),
                    None => store.oneshot(request).await,
                }
            }
        });
        Ok(SharedHttpClient::new(InProcess::new(service)))
    }
}

/// A body of blanks that counts how much of it is read.
struct Flood {
    left: u64,
    sent: u64,
    taken: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
}

impl http_body::Body for Flood {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        static BLANKS: [u8; 64 << 10] = [b' '; 64 << 10];
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let size = self.left.min(BLANKS.len() as u64);
        self.left -= size;
        self.sent += size;
        self.taken.fetch_add(size, Ordering::Relaxed);
        self.most.fetch_max(self.sent, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&BLANKS[..usize::try_from(size).unwrap()])))))
    }
}

/// Creates a world with an operator, whose store can become hostile.
async fn world() -> (World, Turned) {
    let world = World::new(Options { seed: 1, ..Options::default() });
    world.apply(&world.kube(), BASE).await;
    let turned = Turned::of(&world.store);
    let now = world.clock.clock();
    let parts = Parts {
        client: world.kube(),
        connect: Arc::new(turned.clone()),
        clock: Clock::new(move || now()),
        uptime: world.uptime(),
        metrics: Metrics::new(),
        ready: None,
    };
    tokio::spawn(stowage_operator::run(world.config(), parts, pending()));
    until(&world, "the backend is Ready", |world| backend(world).contains("EndpointReachable")).await;
    (world, turned)
}

async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) {
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
}

/// Returns all conditions of the backend.
fn backend(world: &World) -> String {
    object(world, "s3backends", "", "main")["status"]["conditions"].to_string()
}

/// Returns all conditions of the claim.
fn conditions(world: &World) -> String {
    object(world, "bucketclaims", "team-a", "photos")["status"]["conditions"].to_string()
}

/// Returns the length of the longest note of an Event.
fn longest_note(world: &World) -> usize {
    let objects = world.cluster.objects();
    let notes = objects.iter().filter(|o| o.plural == "events").filter_map(|o| o.object["note"].as_str());
    notes.map(str::len).max().unwrap_or_default()
}

fn tags_without_end(_: &Method, asked: &str) -> Option<Hostile> {
    asked.contains("tagging").then_some(Hostile::Flood(200))
}

fn error_without_end(_: &Method, asked: &str) -> Option<Hostile> {
    asked.contains("tagging").then_some(Hostile::Flood(403))
}

fn success_without_end(method: &Method, asked: &str) -> Option<Hostile> {
    (*method == Method::PUT && !asked.contains("tagging")).then_some(Hostile::Flood(200))
}

fn refusal_with_a_long_code(_: &Method, asked: &str) -> Option<Hostile> {
    asked.contains("tagging").then_some(Hostile::Code(401, 60_000))
}

fn failure_with_a_long_code(_: &Method, asked: &str) -> Option<Hostile> {
    asked.contains("tagging").then_some(Hostile::Code(500, 60_000))
}

// covers: 3.5.answer
#[rstest]
#[case::the_tags(tags_without_end)]
#[case::an_error(error_without_end)]
#[case::a_success_without_a_body(success_without_end)]
fn an_answer_without_end_is_a_failure_and_is_not_taken_in(#[case] answers: Answers) {
    run_seeded(1, || async {
        let (world, turned) = world().await;
        turned.says(answers);
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        until(&world, "it is told", |world| ready(world, "team-a", "photos") == "BackendError").await;
        let most = turned.most_of_one.load(Ordering::Relaxed);
        assert!(most > 0 && most <= MOST, "{most} bytes of one answer were taken in");
        let told = message(&world, "team-a", "photos");
        assert!(told.contains("longer than any of this operation"), "{told}");
        assert!(!told.contains("access") && world.store.bucket("team-a-photos").is_none(), "{told}");
        // The failed step is retried, and succeeds once the store is well.
        turned.says(|_, _| None);
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
    });
}

// covers: 3.5.answer
#[test]
fn a_list_without_end_keeps_a_bucket_from_being_emptied_and_nothing_else() {
    run_seeded(1, || async {
        let (world, turned) = world().await;
        let spec = "deletionPolicy: Delete, forceDelete: true";
        world.apply(&world.kube(), &claim_with("team-a", "photos", spec)).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        world.store.put_object("team-a-photos", "a", "x");
        turned.says(|_, asked: &str| asked.contains("versions").then_some(Hostile::Flood(200)));
        let request = Request::delete("/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos");
        let request = request.body(Vec::new()).expect("a request");
        world.kube().request::<serde_json::Value>(request).await.expect("it is there");
        until(&world, "it is told", |world| message(world, "team-a", "photos").contains("longer than any")).await;
        let most = turned.most_of_one.load(Ordering::Relaxed);
        assert!(most > 0 && most <= MOST, "{most} bytes of one answer were taken in");
        turned.says(|_, _| None);
        let gone = |world: &World| object(world, "bucketclaims", "team-a", "photos").is_null();
        until(&world, "it is gone", gone).await;
        assert!(world.store.bucket("team-a-photos").is_none());
    });
}

// covers: 1.condition.length, 3.5.code
#[rstest]
#[case::refused(refusal_with_a_long_code, "failed (HTTP 401)")]
#[case::failed(failure_with_a_long_code, "failed (HTTP 500)")]
fn an_error_code_of_any_length_does_not_reach_the_status(#[case] answers: Answers, #[case] says: &str) {
    run_seeded(1, || async {
        let (world, turned) = world().await;
        turned.says(answers);
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        until(&world, "it is told", |world| ready(world, "team-a", "photos") == "BackendError").await;
        world.pass(Duration::from_secs(60)).await;
        let told = conditions(&world);
        assert!(told.len() <= MOST_TOLD && longest_note(&world) <= 1024, "{} bytes of conditions", told.len());
        assert_eq!(message(&world, "team-a", "photos"), format!("GetBucketTagging: the store {says}"));
        turned.says(|_, asked: &str| asked.starts_with("/?").then_some(Hostile::Code(403, 60_000)));
        until(&world, "the backend tells it", |world| backend(world).contains("HTTP 403")).await;
        assert!(backend(&world).len() <= MOST_TOLD, "{} bytes of conditions", backend(&world).len());
    });
}
