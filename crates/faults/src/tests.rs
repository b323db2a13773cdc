//! Tests of each fault, each crash point and the patterns of plans, with a minimal service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response};
use rstest::rstest;
use serde_json::Value;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt};

use super::*;

type Client = BoxCloneService<Request<()>, Response<Vec<u8>>, BoxError>;

const SECRETS: &str = "/api/v1/namespaces/team-a/secrets";
pub(super) const SECRET: &str = "/api/v1/namespaces/team-a/secrets/photos";
const STATUS: &str = "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos/status";
pub(super) const BUCKET: &str = "http://s3.local/photos";
const TAGGING: &str = "http://s3.local/photos?tagging";

/// A service and one operator in front of it.
pub(super) struct Bench {
    pub(super) effects: Effects,
    pub(super) instance: Instance,
    /// Requests that have reached the service, as `METHOD path`.
    applied: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub(super) fn new(plan: &str) -> Self {
        let effects = Effects::new(plan.parse().unwrap_or_else(|error| panic!("{error}")));
        Self { instance: effects.instance(), effects, applied: Arc::default() }
    }

    /// Returns a client of the current instance; the service answers 200 `done` after 10 ms.
    fn client(&self, layer: &EffectLayer) -> Client {
        let applied = Arc::clone(&self.applied);
        let world = tower::service_fn(move |request: Request<()>| {
            let applied = Arc::clone(&applied);
            async move {
                let line = format!("{} {}", request.method(), request.uri().path());
                applied.lock().unwrap().push(line);
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok::<_, BoxError>(Response::new(b"done".to_vec()))
            }
        });
        Client::new(layer.layer(world))
    }

    pub(super) async fn kube(&self, method: &str, uri: &str) -> Result<Response<Vec<u8>>, BoxError> {
        let client = self.client(&self.effects.kube_layer(&self.instance));
        client.oneshot(request(method, uri)).await
    }

    pub(super) async fn s3(&self, method: &str, uri: &str) -> Result<Response<Vec<u8>>, BoxError> {
        let client = self.client(&self.effects.s3_layer(&self.instance));
        client.oneshot(request(method, uri)).await
    }

    pub(super) fn applied(&self) -> usize {
        self.applied.lock().unwrap().len()
    }

    pub(super) fn line(&self, number: usize) -> String {
        self.effects.trace().lines()[number - 1].to_string()
    }
}

fn request(method: &str, uri: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(uri);
    request.body(()).expect("a valid request")
}

fn io_kind(answer: Result<Response<Vec<u8>>, BoxError>) -> std::io::ErrorKind {
    let error = answer.expect_err("the connection breaks");
    error.downcast_ref::<std::io::Error>().expect("an I/O error").kind()
}

#[tokio::test(start_paused = true)]
async fn without_a_plan_calls_pass() {
    let bench = Bench::new("");
    assert_eq!(bench.kube("PATCH", STATUS).await.unwrap().into_body(), b"done");
    assert_eq!(bench.s3("PUT", BUCKET).await.unwrap().into_body(), b"done");
    assert_eq!(
        bench.effects.trace().to_string(),
        "#1 kube:patch bucketclaims/status team-a/photos -> 200 0ms/1\n#2 s3:CreateBucket photos -> 200 10ms/1\n"
    );
}

#[rstest]
#[case("lost-request", 0, "#1 s3:CreateBucket photos -> broken [lost-request] 0ms/1")]
#[case("lost-answer", 1, "#1 s3:CreateBucket photos -> broken (world 200) [lost-answer] 0ms/1")]
#[tokio::test(start_paused = true)]
async fn a_broken_connection_tells_nothing(#[case] fault: &str, #[case] applied: usize, #[case] line: &str) {
    let bench = Bench::new(&format!("#1 {fault}"));
    let kind = io_kind(bench.s3("PUT", BUCKET).await);
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
    assert_eq!(bench.applied(), applied);
    assert_eq!(bench.line(1), line);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_store_refuses_the_connection() {
    let bench = Bench::new("s3:CreateBucket unreachable");
    let kind = io_kind(bench.s3("PUT", BUCKET).await);
    assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
    assert_eq!(bench.applied(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_never_ends() {
    let bench = Bench::new("#1 hang");
    let day = Duration::from_secs(86_400);
    let answer = tokio::time::timeout(day, bench.kube("GET", SECRET)).await;
    assert!(answer.is_err());
    assert_eq!(bench.applied(), 0);
    assert_eq!(bench.line(1), "#1 kube:get secrets team-a/photos -> dropped [hang] 0ms/1");
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_the_bound_never_begins() {
    let bench = Bench::new("");
    bench.effects.bound(1);
    bench.kube("GET", SECRET).await.unwrap();
    assert!(!bench.effects.exhausted());
    assert!(tokio::time::timeout(Duration::from_secs(3600), bench.kube("GET", SECRET)).await.is_err());
    assert!(bench.effects.exhausted());
    assert_eq!((bench.effects.count(), bench.applied.lock().unwrap().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_takes_its_time() {
    let bench = Bench::new("#1 slow(1500); #2 slow(1500)");
    let start = tokio::time::Instant::now();
    assert_eq!(bench.kube("PATCH", SECRET).await.unwrap().status(), 200);
    assert_eq!(start.elapsed(), Duration::from_millis(1510));
    assert_eq!(bench.applied(), 1);

    let given_up = tokio::time::timeout(Duration::from_secs(1), bench.kube("PATCH", SECRET)).await;
    assert!(given_up.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.applied(), 1, "who gives up has taken it back");
}

#[rstest]
#[case("conflict", "PATCH", SECRET, 409, "Conflict", 0)]
#[case("conflict", "POST", SECRETS, 409, "Conflict", 0)]
#[case("server-error(not)", "PUT", SECRET, 500, "InternalError", 0)]
#[case("server-error(applied)", "PUT", SECRET, 500, "InternalError", 1)]
#[case("throttle(7)", "DELETE", SECRET, 429, "TooManyRequests", 0)]
#[case("forbidden", "PATCH", STATUS, 403, "Forbidden", 0)]
#[case("denied", "POST", SECRETS, 400, "", 0)]
#[case("quota-exceeded", "POST", SECRETS, 403, "Forbidden", 0)]
#[case("namespace-terminating", "POST", SECRETS, 403, "Forbidden", 0)]
#[tokio::test(start_paused = true)]
async fn kubernetes_refuses_with_a_status(
    #[case] fault: &str,
    #[case] method: &str,
    #[case] uri: &str,
    #[case] code: u16,
    #[case] reason: &str,
    #[case] applied: usize,
) {
    let bench = Bench::new(&format!("#1 {fault}"));
    let answer = bench.kube(method, uri).await.unwrap();
    assert_eq!(answer.status(), code);
    let status: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()));
    assert_eq!((&status["code"], status["reason"].as_str().unwrap_or_default()), (&code.into(), reason));
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert_eq!(bench.applied(), applied);
}

#[tokio::test(start_paused = true)]
async fn refusals_carry_what_clients_look_at() {
    let bench = Bench::new("#1 throttle(7); #2 namespace-terminating; #3 conflict; #4 forbidden");
    let throttled = bench.kube("PATCH", SECRET).await.unwrap();
    assert_eq!(throttled.headers()["retry-after"], "7");
    let body: Value = serde_json::from_slice(throttled.body()).unwrap();
    assert_eq!(body["details"]["retryAfterSeconds"], 7);

    let terminating = bench.kube("POST", SECRETS).await.unwrap();
    let body: Value = serde_json::from_slice(terminating.body()).unwrap();
    assert_eq!(body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(body["details"]["causes"][0]["message"], "namespace team-a is being terminated");

    let conflict = bench.kube("PATCH", STATUS).await.unwrap();
    let body: Value = serde_json::from_slice(conflict.body()).unwrap();
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with(
        "Operation cannot be fulfilled on bucketclaims.broker.stowage.io \"photos\": the object has been modified"
    ));
    assert_eq!(body["details"]["group"], "broker.stowage.io");

    let forbidden = bench.kube("PATCH", STATUS).await.unwrap();
    let body: Value = serde_json::from_slice(forbidden.body()).unwrap();
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("cannot patch resource \"bucketclaims/status\" in API group \"broker.stowage.io\""));
}

#[rstest]
#[case("internal-error", 500, "<Code>InternalError</Code>")]
#[case("slow-down", 503, "<Code>SlowDown</Code>")]
#[case("access-denied", 403, "<Code>AccessDenied</Code>")]
#[tokio::test(start_paused = true)]
async fn a_store_refuses_with_its_code(#[case] fault: &str, #[case] code: u16, #[case] xml: &str) {
    let bench = Bench::new(&format!("#1 {fault}; #2 {fault}"));
    let answer = bench.s3("PUT", BUCKET).await.unwrap();
    assert_eq!(answer.status(), code);
    assert!(String::from_utf8_lossy(answer.body()).contains(xml));

    let head = bench.s3("HEAD", BUCKET).await.unwrap();
    assert_eq!(head.status(), code);
    assert!(head.body().is_empty(), "HEAD has no body to put a code in");
    assert_eq!(bench.applied(), 0);
}

#[rstest]
#[case("clock-skew", 403, "<Code>RequestTimeTooSkewed</Code>")]
#[case("error-in-200", 200, "<Code>InternalError</Code>")]
#[tokio::test(start_paused = true)]
async fn a_store_refuses_one_call(#[case] fault: &str, #[case] code: u16, #[case] xml: &str) {
    let bench = Bench::new(&format!("s3:GetBucketTagging@1 {fault}"));
    let answer = bench.s3("GET", TAGGING).await.unwrap();
    assert_eq!(answer.status(), code);
    assert!(String::from_utf8_lossy(answer.body()).contains(xml));
    assert_eq!(bench.s3("GET", TAGGING).await.unwrap().into_body(), b"done");
}

#[tokio::test(start_paused = true)]
async fn a_verb_is_down_for_a_minute() {
    let bench = Bench::new("#1 verb-down(CreateBucket)");
    assert_eq!(bench.s3("GET", TAGGING).await.unwrap().status(), 200, "another verb");
    let down = bench.s3("PUT", BUCKET).await.unwrap();
    assert_eq!(down.status(), 503);
    assert!(String::from_utf8_lossy(down.body()).contains("<Code>ServiceUnavailable</Code>"));
    assert!(bench.line(2).contains("[verb-down(CreateBucket)]"), "{}", bench.line(2));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.s3("PUT", BUCKET).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn revoked_credentials_are_good_for_nothing_for_a_minute() {
    let bench = Bench::new("s3:CreateBucket@1 credentials-revoked");
    assert_eq!(bench.s3("GET", TAGGING).await.unwrap().status(), 200);
    for (method, uri) in [("PUT", BUCKET), ("GET", TAGGING), ("PUT", BUCKET)] {
        let answer = bench.s3(method, uri).await.unwrap();
        assert_eq!(answer.status(), 403);
        assert!(String::from_utf8_lossy(answer.body()).contains("<Code>InvalidAccessKeyId</Code>"));
    }
    assert_eq!(bench.kube("PATCH", SECRET).await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.s3("PUT", BUCKET).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_implemented_stays_so() {
    let bench = Bench::new("s3:PutBucketTagging@1 not-implemented(tagging)");
    assert_eq!(bench.s3("GET", TAGGING).await.unwrap().status(), 200);
    assert_eq!(bench.s3("PUT", TAGGING).await.unwrap().status(), 501);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(bench.s3("GET", TAGGING).await.unwrap().status(), 501);
    assert_eq!(bench.s3("PUT", BUCKET).await.unwrap().status(), 200);
    assert_eq!(bench.applied(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_takes_its_time() {
    let bench = Bench::new("kube:create secrets webhook-timeout");
    let start = tokio::time::Instant::now();
    let answer = bench.kube("POST", SECRETS).await.unwrap();
    assert_eq!((answer.status().as_u16(), start.elapsed()), (500, Duration::from_secs(10)));
    assert!(String::from_utf8_lossy(answer.body()).contains("context deadline exceeded"));
    assert_eq!(bench.applied(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_world_does_not_go_by_where_there_is_no_world() {
    let bench = Bench::new("s3:CreateBucket vanish");
    let error = bench.s3("PUT", BUCKET).await.expect_err("it can't happen");
    assert_eq!(error.to_string(), "vanish has no world to happen in");
}

#[rstest]
#[case(301)]
#[case(400)]
#[case(403)]
#[tokio::test(start_paused = true)]
async fn a_head_answers_with_a_bare_status(#[case] code: u16) {
    let bench = Bench::new(&format!("s3:HeadBucket head({code})"));
    let answer = bench.s3("HEAD", BUCKET).await.unwrap();
    assert_eq!(answer.status(), code);
    assert!(answer.body().is_empty());
    assert_eq!(bench.applied(), 0);
}

/// Operator of the crash tests: makes two calls, one after the other, and notes each answer that it
/// receives.
async fn two_calls(bench: &Bench, seen: &Mutex<Vec<u32>>) {
    for uri in [SECRET, STATUS] {
        let answer = bench.kube("PATCH", uri).await;
        assert!(answer.is_ok());
        seen.lock().unwrap().push(bench.instance.id());
    }
}

#[rstest]
#[case("before", 0, 0, "-> died [")]
#[case("after-effect", 1, 0, "-> died (world 200) [")]
#[case("after-answer", 1, 1, "-> 200 [")]
#[tokio::test(start_paused = true)]
async fn a_crash_ends_the_life_at_its_point(
    #[case] point: &str,
    #[case] applied: usize,
    #[case] answers: usize,
    #[case] line: &str,
) {
    let mut bench = Bench::new(&format!("#1 crash({point}); #2 conflict"));
    let seen = Mutex::new(Vec::new());
    let outcome = run_until_crash(&bench.instance, two_calls(&bench, &seen)).await;
    assert_eq!(outcome, LifeEnd::Crashed { effect: Some(1) });
    assert!(bench.instance.is_dead());
    assert_eq!(bench.applied(), applied);
    assert_eq!(seen.lock().unwrap().len(), answers);
    assert!(bench.line(1).contains(line), "{}", bench.line(1));

    // The next instance continues with the numbers and the plan.
    bench.instance = bench.effects.instance();
    let outcome = run_until_crash(&bench.instance, two_calls(&bench, &seen)).await;
    assert_eq!(outcome, LifeEnd::Finished(()));
    assert_eq!(bench.effects.trace().effects(), 3);
    assert!(bench.line(2).contains("-> 409 [conflict]"));
    assert!(bench.line(3).ends_with("/2"));
    assert!(bench.effects.unfired().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_the_last_answer_comes_without_a_further_call() {
    let bench = Bench::new("#1 crash(after-answer)");
    let operator = async {
        bench.kube("PATCH", SECRET).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
    };
    let start = tokio::time::Instant::now();
    let outcome = run_until_crash(&bench.instance, operator).await;
    assert_eq!(outcome, LifeEnd::Crashed { effect: Some(1) });
    assert!(start.elapsed() < Duration::from_millis(15), "at once, not at some later call");
}

#[tokio::test(start_paused = true)]
async fn the_dead_reach_nothing() {
    let bench = Bench::new("#1 slow(100); #2 crash(before)");
    let pending = bench.kube("PATCH", SECRET);
    let crashing = bench.kube("PATCH", SECRET);
    let both = futures::future::join(pending, crashing);
    assert!(tokio::time::timeout(Duration::from_secs(9), both).await.is_err());
    assert_eq!(bench.applied(), 0, "what was on its way never arrives");

    let late = tokio::time::timeout(Duration::from_secs(9), bench.kube("PATCH", SECRET)).await;
    assert!(late.is_err());
    assert_eq!(bench.applied(), 0);
    assert_eq!(bench.effects.trace().effects(), 2, "the dead make no calls");
    assert!(bench.line(1).contains("-> died"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_its_way_to_the_dead_is_lost() {
    let bench = Bench::new("");
    let operator = async { bench.kube("PATCH", SECRET).await.map(|_| ()) };
    let killer = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        bench.instance.kill();
    };
    let (outcome, ()) = tokio::join!(run_until_crash(&bench.instance, operator), killer);
    assert!(matches!(outcome, LifeEnd::Crashed { effect: None }));
    assert_eq!(bench.applied(), 1);
    assert!(bench.line(1).contains("-> died"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_drops_the_operator() {
    let bench = Bench::new("#1 crash(before)");
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let operator = async {
        let _inside = inside;
        let _never = bench.kube("PATCH", SECRET).await;
    };
    run_until_crash(&bench.instance, operator).await;
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test(start_paused = true)]
async fn numbers_are_given_when_calls_start() {
    let bench = Bench::new("#1 slow(50)");
    let first = bench.kube("PATCH", SECRET);
    let second = bench.s3("PUT", BUCKET);
    let (first, second) = tokio::join!(first, second);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(*bench.applied.lock().unwrap(), ["PUT /photos".to_owned(), format!("PATCH {SECRET}")]);
    assert!(bench.line(1).starts_with("#1 kube:patch secrets"));
}

#[tokio::test(start_paused = true)]
async fn patterns_meet_what_they_name() {
    let bench =
        Bench::new("kube:patch bucketclaims/status@2 conflict; s3:CreateBucket slow-down; kube:patch secrets@1 hang");
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(bench.kube("PATCH", STATUS).await.unwrap().status().as_u16());
        codes.push(bench.s3("PUT", BUCKET).await.unwrap().status().as_u16());
        let parent = STATUS.trim_end_matches("/status");
        codes.push(bench.kube("PATCH", parent).await.unwrap().status().as_u16());
    }
    assert_eq!(codes, [200, 503, 200, 409, 503, 200, 200, 503, 200]);
    assert_eq!(bench.effects.unfired().to_string(), "kube:patch secrets@1 hang");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_cannot_apply_leaves_the_call_alone() {
    let bench = Bench::new("#1 conflict; #1 lost-answer; #2 head(403)");
    assert!(bench.s3("PUT", BUCKET).await.is_err(), "the second entry applies");
    assert_eq!(bench.s3("PUT", BUCKET).await.unwrap().status(), 200);
    assert_eq!(bench.effects.unfired().to_string(), "#1 conflict; #2 head(403)");
}

#[tokio::test(start_paused = true)]
async fn counters_tell_writes_from_reads_and_events() {
    let bench = Bench::new("#3 conflict; #4 lost-answer; #5 lost-request");
    bench.kube("GET", SECRETS).await.unwrap();
    bench.kube("GET", &format!("{SECRETS}?watch=true")).await.unwrap();
    bench.kube("PATCH", STATUS).await.unwrap();
    assert!(bench.kube("POST", SECRETS).await.is_err());
    assert!(bench.s3("PUT", BUCKET).await.is_err());
    let before = bench.effects.trace().effects();
    let event = "/apis/events.k8s.io/v1/namespaces/team-a/events";
    bench.kube("POST", event).await.unwrap();
    bench.kube("GET", SECRET).await.unwrap();
    bench.s3("PUT", BUCKET).await.unwrap();
    let expected = Counters {
        kubernetes_writes: 2,
        event_writes: 1,
        kubernetes_requests: 3,
        kubernetes_lists: 1,
        kubernetes_watches: 1,
        s3_calls: 1,
    };
    let trace = bench.effects.trace();
    assert_eq!(trace.counters(), expected);
    assert_eq!(trace.counters_after(before).kubernetes_requests, 2);
    assert_eq!(trace.counters_after(before).kubernetes_lists, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_poll_still_has_its_number() {
    let bench = Bench::new("");
    let layer = bench.effects.kube_layer(&bench.instance);
    let mut client = bench.client(&layer);
    let future = tower::Service::call(&mut client, request("GET", SECRET));
    assert!(bench.line(1).contains("-> pending"));
    drop(future);
    assert!(bench.line(1).contains("-> dropped"));
    assert!(bench.kube("GET", SECRET).now_or_never().is_none());
    assert!(bench.line(2).contains("-> dropped"));
}
