//! Tests of the proxy in front of minimal servers: refused plans, changed answers, numbering.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::{Application, Calls, Fault, KubeFault, Row};

const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Access key id of a client whose calls are not numbered.
const NEIGHBOUR: &str = "AKIANEIGHBOUR";

/// Time limit for everything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A project's own family: an action of people on its objects, and a fault of one of its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Visits,
    HangsUp,
}

impl Vocabulary for Neighbour {
    fn all() -> Vec<Self> {
        vec![Self::Visits, Self::HangsUp]
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Visits => Row::new("visits", Calls::ANY, Application::World),
            Self::HangsUp => Row::new("hangs-up", Calls::ANY, Application::RequestLost),
        }
    }
}

fn plan<V: Vocabulary>(text: &str) -> Plan<V> {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[rstest]
#[case("#1 visits", Fault::Project(Neighbour::Visits))]
#[case("#1 hang; kube:list secrets rewind", Fault::Kube(KubeFault::Rewind))]
#[case("#1 hangs-up; #2 pause(5)", Fault::Process(crate::ProcessFault::Pause { seconds: 5 }))]
fn what_needs_more_than_a_proxy_is_refused_by_name(#[case] text: &str, #[case] culprit: Fault<Neighbour>) {
    let refused = Proxy::new(plan(text)).map(|_| ()).expect_err("it is refused");
    assert_eq!(refused, Unplayable(culprit));
    let said = format!("{} can't be made to happen between real servers, only in the simulator", culprit.name());
    assert_eq!(refused.to_string(), said);
}

#[test]
fn a_plan_that_is_refused_changes_nothing() {
    let proxy = Proxy::new(plan::<Neighbour>("#7 hangs-up")).expect("a proxy can do that");
    assert!(proxy.set_plan(plan("#8 hang; #9 visits")).is_err());
    assert!(proxy.begin(plan("#9 visits")).is_err());
    assert_eq!(proxy.effects().unfired().to_string(), "#7 hangs-up");
    assert_eq!(proxy.next_life(), 2, "the first life goes on until somebody ends it");
}

/// A minimal API server and store behind a proxy.
struct Bench {
    proxy: Proxy,
    kube: Server,
    s3: Server,
    /// Bodies that have reached the server behind.
    seen: Arc<Mutex<Vec<String>>>,
    /// Server behind the proxy, which serves until it is dropped.
    _behind: Server,
}

impl Bench {
    async fn new(faults: &str, answer: &'static str) -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = seen.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let log = log.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                log.lock().push(String::from_utf8_lossy(&body).into_owned());
                Ok::<_, BoxError>(Response::new(Body::from(answer.as_bytes().to_vec())))
            }
        });
        let behind = Server::start(ANYWHERE, service).await.unwrap();
        let url: http::Uri = behind.url().parse().unwrap();
        let proxy = Proxy::new(plan(faults)).unwrap();
        let upstream = Upstream::kube(&kube::Config::new(url.clone())).unwrap();
        let kube = proxy.serve_kube(ANYWHERE, upstream).await.unwrap();
        let store = Upstream::s3(&url).unwrap().unnumbered([NEIGHBOUR.to_owned()]);
        let s3 = proxy.serve_s3(ANYWHERE, store).await.unwrap();
        Self { proxy, kube, s3, seen, _behind: behind }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// Returns the calls so far, one line each, without their times.
    fn calls(&self) -> Vec<String> {
        let trace = self.proxy.effects().trace();
        trace.lines().iter().map(|line| format!("{} {} {}", line.number, line.call, line.answer)).collect()
    }
}

/// Returns the text of a server's answer, or `None` for a broken connection.
async fn ask(server: &Server, method: &str, path: &str, body: &str) -> Option<String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let request = Request::builder().method(method).uri(format!("{}{path}", server.url()));
    let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
    let answer = async {
        let answer = client.request(request).await.ok()?;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        Some(String::from_utf8_lossy(&body).into_owned())
    };
    tokio::time::timeout(PATIENCE, answer).await.expect("it comes in time")
}

#[tokio::test]
async fn calls_to_both_servers_are_numbered_together_and_meet_their_faults() {
    let bench = Bench::new("s3:CreateBucket@1 lost-answer; #3 lost-request", "done").await;
    let done = Some("done".to_owned());
    assert_eq!(ask(&bench.kube, "GET", "/api/v1/namespaces/a/configmaps/b", "one").await, done);
    assert_eq!(ask(&bench.s3, "PUT", "/photos", "two").await, None);
    assert_eq!(ask(&bench.kube, "GET", "/api/v1/namespaces/a/configmaps/b", "three").await, None);
    assert_eq!(ask(&bench.s3, "PUT", "/photos", "four").await, done);
    assert_eq!(bench.seen(), ["one", "two", "four"], "a lost answer is one to a request that was carried out");
    assert_eq!(
        bench.calls(),
        [
            "1 kube:get configmaps a/b 200",
            "2 s3:CreateBucket photos broken",
            "3 kube:get configmaps a/b broken",
            "4 s3:CreateBucket photos 200"
        ]
    );
}

#[rstest]
#[case("watch-cut", Some(""))]
#[case("watch-duplicate", Some("one\none\ntwo\ntwo\n"))]
#[case("lost-answer", None)]
#[tokio::test]
async fn a_watch_is_disturbed_as_planned(#[case] fault: &str, #[case] told: Option<&str>) {
    let bench = Bench::new(&format!("kube:watch configmaps@1 {fault}"), "one\ntwo\n").await;
    let watch = "/api/v1/configmaps?watch=true";
    assert_eq!(ask(&bench.kube, "GET", watch, "").await.as_deref(), told);
    assert_eq!(ask(&bench.kube, "GET", watch, "").await.as_deref(), Some("one\ntwo\n"), "the next one is whole");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_told_so() {
    let bench = Bench::new("#1 watch-gone", "one\n").await;
    let told = ask(&bench.kube, "GET", "/api/v1/configmaps?watch=true", "").await.expect("an answer");
    let event: Value = serde_json::from_str(&told).expect("one event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn half_of_a_truncated_document_is_missing() {
    let bench = Bench::new("#1 truncated", "<document/>").await;
    assert_eq!(ask(&bench.s3, "GET", "/", "").await.as_deref(), Some("<docu"));
}

#[rstest]
#[case("own", json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "stringData": {"key": "value"}}))]
#[case("foreign", json!({"metadata": {"name": "x"}, "data": {"stranger": "eA=="}}))]
#[tokio::test]
async fn a_rival_asks_for_the_name_a_moment_before(#[case] rival: &str, #[case] expected: Value) {
    let bench = Bench::new(&format!("#1 already-exists({rival})"), "done").await;
    let own = json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "stringData": {"key": "value"}}).to_string();
    ask(&bench.kube, "POST", "/api/v1/namespaces/a/secrets", &own).await.expect("an answer");
    let seen = bench.seen();
    let [before, after] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(serde_json::from_str::<Value>(before).expect("an object"), expected);
    assert_eq!(*after, own, "the create itself is as it was");
}

#[tokio::test]
async fn from_a_crash_on_nothing_passes_until_the_next_life() {
    let bench = Bench::new("s3:CreateBucket@1 crash(before)", "done").await;
    let waits = tokio::time::timeout(Duration::from_millis(100), ask(&bench.s3, "PUT", "/photos", "lost"));
    assert!(waits.await.is_err(), "nobody answers");
    assert_eq!(bench.proxy.crash().await, Crash { life: 1, effect: Some(1) });
    assert_eq!(bench.proxy.next_life(), 2);
    assert!(ask(&bench.s3, "PUT", "/photos", "kept").await.is_some());
    assert_eq!(bench.seen(), ["kept"]);
}

#[rstest]
#[case(NEIGHBOUR, true)]
#[case("AKIANEIGHBOURS", false)]
#[case("AKIANEIGHBOU", false)]
#[tokio::test]
async fn a_neighbours_calls_have_no_number_and_meet_no_fault(#[case] key: &str, #[case] passes: bool) {
    let bench = Bench::new("#1 lost-request", "done").await;
    let path = format!("/photos?X-Amz-Credential={key}%2F20260101%2Fus-east-1");
    assert_eq!(ask(&bench.s3, "PUT", &path, "theirs").await.is_some(), passes);
    assert_eq!(bench.calls().is_empty(), passes, "{:?}", bench.calls());
    bench.proxy.end_life();
    if passes {
        assert!(ask(&bench.s3, "PUT", &path, "theirs").await.is_some(), "the controller's death is not theirs");
    }
}
