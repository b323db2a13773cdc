//! Connections of the operator to the store behind a backend, and the times of its probes (spec
//! §1).

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use bytes::Bytes;
use futures::future;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube_sim::ApiBody;
use rstest::rstest;
use s3_sim::InProcess;
use s3s::Body;
use serde_json::{Value, json};
use stowage_operator::api::{self, Backend, BucketName, S3Backend, Unlabelled};
use stowage_operator::mandate::Mandate;
use stowage_operator::upstream::{Access, AccessError, Connect, ConnectError, Limits, Trust, Upstreams};
use stowage_operator::{Clock, Metrics, Parts};
use stowage_world::determinism::run_seeded;
use stowage_world::effects::Plan;
use stowage_world::fixtures::opted_in;
use stowage_world::{BackendStore, OPERATOR_NAMESPACE, Options, STORE_ENDPOINT, World};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;
use tower::{ServiceExt, service_fn};

use crate::support::{BASE, OneStore, Stage, claim, condition, object};

const MINUTE: u64 = 60;

pub fn backend(spec: Value) -> Backend {
    let mut raw = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main", "uid": "b-1"},
        "spec": {"endpoint": "http://s3.example:9000",
                 "adminCredentialsSecretRef": {"name": "s3-admin", "namespace": OPERATOR_NAMESPACE}},
    });
    raw["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Backend::parse(&serde_json::from_value::<S3Backend>(raw).expect("a backend")).expect("a good one")
}

fn backend_ready(world: &World) -> String {
    condition(&object(world, "s3backends", "", "main"), "Ready")
}

fn probes(world: &World) -> Vec<u64> {
    let trace = world.effects.trace();
    let lines = trace.lines().iter().filter(|line| line.call.to_string().starts_with("s3:ListBuckets"));
    lines.map(|line| line.began_ms).collect()
}

/// A store that records requests and gives this answer to all of them, or none.
#[derive(Clone, Default)]
pub struct Noting {
    trusts: Arc<Mutex<Vec<Trust>>>,
    /// URI and signature of each request.
    pub requests: Arc<Mutex<Vec<(String, String)>>>,
    answer: Option<StatusCode>,
}

impl Noting {
    pub fn answering(code: StatusCode) -> Self {
        Self { answer: Some(code), ..Self::default() }
    }
}

impl Connect for Noting {
    fn connect(&self, trust: &Trust) -> Result<SharedHttpClient, ConnectError> {
        self.trusts.lock().unwrap().push(trust.clone());
        let noting = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let signature = request.headers()["authorization"].to_str().unwrap_or_default().to_owned();
            noting.requests.lock().unwrap().push((request.uri().to_string(), signature));
            let answer = noting.answer;
            async move {
                let Some(code) = answer else { return pending().await };
                let mut response = Response::new(Body::empty());
                *response.status_mut() = code;
                Ok::<_, std::io::Error>(response)
            }
        });
        Ok(SharedHttpClient::new(InProcess::new(service)))
    }
}

/// Returns a client of the world's API server that may not read the admin Secret while `forbidden`
/// is set.
fn without_the_right(world: &World, forbidden: &Arc<AtomicBool>) -> kube::Client {
    let (api, forbidden) = (world.cluster.service(), forbidden.clone());
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let refused = forbidden.load(Ordering::Relaxed) && request.uri().path().ends_with("/secrets/s3-admin");
        let api = api.clone();
        async move { if refused { Ok(refusal()) } else { api.oneshot(request).await } }
    });
    kube::Client::new(service, OPERATOR_NAMESPACE)
}

/// Returns the API server's answer to a forbidden request.
fn refusal() -> Response<ApiBody> {
    let message = "secrets \"s3-admin\" is forbidden: User \"operator\" cannot get resource \"secrets\"";
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": message, "details": {"name": "s3-admin", "kind": "secrets"},
    });
    let mut answer = Response::new(Full::<Bytes>::from(status.to_string()).boxed_unsync());
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
}

/// Returns the dependencies of an operator in this world, with these clients.
fn parts(world: &World, client: kube::Client, connect: impl Connect) -> Parts {
    let now = world.clock.clock();
    let clock = Clock::new(move || now());
    let uptime = world.uptime();
    Parts { client, connect: Arc::new(connect), clock, uptime, metrics: Metrics::new(), ready: None }
}

/// Asserts that the backend's `Ready` gets this reason within this many seconds. Returns its
/// message.
async fn soon(world: &World, reason: &str, seconds: u64) -> String {
    let start = Instant::now();
    let came = world.until(|world| backend_ready(world) == reason).await;
    let took = start.elapsed();
    assert!(came.is_ok() && took <= Duration::from_secs(seconds), "after {took:?} it is {}", backend_ready(world));
    let backend = object(world, "s3backends", "", "main");
    let ready = &backend["status"]["conditions"][0];
    assert_eq!(ready["type"], "Ready");
    ready["message"].as_str().unwrap_or_default().to_owned()
}

/// Creates a world with admin Secrets in the operator's namespace, in the trusted namespace
/// `vault`, and in `elsewhere`; and the clients of an operator there.
pub async fn clients(store: &Noting) -> (World, Upstreams) {
    clients_that(store, Unlabelled::Refused).await
}

/// Like [`clients`], with a policy for Secrets whose owner has not opted in.
pub async fn clients_that(store: &Noting, unlabelled: Unlabelled) -> (World, Upstreams) {
    let world = World::new(Options { seed: 1, ..Options::default() });
    world.apply(&world.kube(), BASE).await;
    for namespace in ["vault", "elsewhere"] {
        let secrets = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n---\n\
             {{apiVersion: v1, kind: Secret, metadata: {{name: admin, namespace: {namespace}, {}}}, stringData: \
             {{AWS_ACCESS_KEY_ID: a, AWS_SECRET_ACCESS_KEY: b, ca.crt: default-key, other: another-key}}}}",
            opted_in(STORE_ENDPOINT)
        );
        world.apply(&world.kube(), &secrets).await;
    }
    let upstreams = Upstreams::new(Access {
        client: world.kube(),
        connect: Arc::new(store.clone()),
        limits: Limits { calls: 2, timeout: Duration::from_secs(5) },
        mandate: Mandate::Always,
        namespaces: vec![OPERATOR_NAMESPACE.to_owned(), "vault".to_owned()],
        unlabelled,
        recoveries: unbounded_channel().0,
        metrics: Metrics::new(),
    });
    (world, upstreams)
}

fn photos() -> BucketName {
    BucketName::parse("photos").expect("a good name")
}

// covers: 1.backend.addressingStyle.used, 1.backend.region.used
#[rstest]
#[case::path("path", "http://s3.example:9000/photos")]
#[case::virtual_host("virtual", "http://photos.s3.example:9000")]
fn calls_name_the_bucket_and_the_region_as_the_backend_says(#[case] style: &str, #[case] uri: &str) {
    let store = Noting::answering(StatusCode::NO_CONTENT);
    run_seeded(1, || async {
        let (_world, upstreams) = clients(&store).await;
        let upstream = upstreams.get(&backend(json!({"addressingStyle": style, "region": "eu-central-1"}))).await;
        upstream.expect("a client").delete(&photos()).await.expect("the answer is good");
    });
    let requests = store.requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    let (asked, signature) = &requests[0];
    assert_eq!(asked.split('?').next().unwrap().trim_end_matches('/'), uri);
    assert!(signature.contains("Credential=STOWAGEADMIN/") && signature.contains("/eu-central-1/s3/"), "{signature}");
}

// covers: 3.5.noSdkRetries
#[test]
fn a_call_that_fails_is_made_once() {
    let store = Noting::answering(StatusCode::SERVICE_UNAVAILABLE);
    run_seeded(1, || async {
        let (_world, upstreams) = clients(&store).await;
        let upstream = upstreams.get(&backend(json!({}))).await.expect("a client");
        upstream.delete(&photos()).await.expect_err("the store is unavailable");
    });
    assert_eq!(store.requests.lock().unwrap().len(), 1);
}

// covers: 3.5.deadline, 3.5.bound
#[test]
fn a_store_that_says_nothing_is_given_up_and_asked_no_more_than_so_much_at_once() {
    let store = Noting::default();
    run_seeded(1, || async {
        let (_world, upstreams) = clients(&store).await;
        let upstream = upstreams.get(&backend(json!({}))).await.expect("a client");
        let bucket = photos();
        let asked = || store.requests.lock().unwrap().len();
        let began = Instant::now();
        let calls = future::join3(upstream.delete(&bucket), upstream.create(&bucket), upstream.look(&bucket));
        let watch = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            assert_eq!(asked(), 2, "the third stands in line");
        };
        let ((deleted, created, looked), ()) = future::join(calls, watch).await;
        assert!(deleted.is_err() && created.is_err() && looked.is_err());
        assert_eq!((asked(), began.elapsed().as_secs()), (3, 10), "five seconds for the two, five for the third");
    });
}

// covers: 3.5.bound
#[test]
fn a_probe_waits_behind_no_call() {
    let store = Noting::default();
    run_seeded(1, || async {
        let (_world, upstreams) = clients(&store).await;
        let upstream = upstreams.get(&backend(json!({}))).await.expect("a client");
        let bucket = photos();
        let calls = future::join3(upstream.delete(&bucket), upstream.create(&bucket), upstream.look(&bucket));
        let probe = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let began = Instant::now();
            upstream.probe().await.expect_err("the store says nothing");
            assert_eq!(began.elapsed().as_secs(), 5, "the deadline of the probe itself");
        };
        let ((deleted, created, looked), ()) = future::join(calls, probe).await;
        assert!(deleted.is_err() && created.is_err() && looked.is_err());
    });
}

// covers: 1.backend.region.used
#[test]
fn buckets_are_made_in_the_region_of_the_backend() {
    let eu = BackendStore { region: "eu-central-1".to_owned(), ..BackendStore::main() };
    run_seeded(1, || async {
        let mut world = World::new(Options { seed: 1, backends: vec![eu], ..Options::default() });
        world.apply(&world.kube(), &BASE.replace("spec:\n", "spec:\n  region: eu-central-1\n")).await;
        let _operator = world.start_operator();
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        let bound = |world: &World| condition(&object(world, "bucketclaims", "team-a", "photos"), "Ready") == "Bound";
        assert!(world.until(bound).await.is_ok(), "{}", world.effects.trace());
        assert_eq!(world.store.bucket("team-a-photos").unwrap().region, "eu-central-1");
    });
}

/// Returns the trust of the client of a backend with this spec.
fn trust(spec: Value) -> Result<Trust, AccessError> {
    let store = Noting::default();
    run_seeded(1, || async {
        let (_world, upstreams) = clients(&store).await;
        let backend = backend(spec);
        let first = upstreams.get(&backend).await?;
        // Probes use `refresh`, calls for claims use `get`: both return the same client.
        assert!(Arc::ptr_eq(&first, &upstreams.refresh(&backend).await?));
        assert!(Arc::ptr_eq(&first, &upstreams.get(&backend).await?));
        let made = store.trusts.lock().unwrap().clone();
        assert_eq!(made.len(), 1);
        Ok(made[0].clone())
    })
}

fn admin(namespace: &str) -> Value {
    json!({"name": "admin", "namespace": namespace})
}

// covers: 1.backend.credentials.trusted, 1.backend.credentials.namespace
// covers: 1.backend.credentials.caNamespace
#[test]
fn secrets_are_read_from_trusted_namespaces_only() {
    assert_eq!(trust(json!({"adminCredentialsSecretRef": admin("vault")})), Ok(Trust::System));
    let untrusted = Err(AccessError::Untrusted("elsewhere".to_owned(), "admin".to_owned()));
    assert_eq!(trust(json!({"adminCredentialsSecretRef": admin("elsewhere")})), untrusted);
    assert_eq!(trust(json!({"tls": {"caBundleSecretRef": admin("elsewhere")}})), untrusted);
}

// covers: 1.backend.tls.caBundle, 1.backend.tls.caBundle.everyClient
// covers: 1.backend.tls.insecureSkipVerify
// covers: 3.5.oneClient
#[test]
fn the_one_client_of_a_backend_believes_its_bundle() {
    let bundle = |text: &str| Ok(Trust::Bundle(text.as_bytes().to_vec()));
    assert_eq!(trust(json!({"tls": {"caBundleSecretRef": admin("vault")}})), bundle("default-key"));
    let mut named = admin("vault");
    named["key"] = json!("other");
    assert_eq!(trust(json!({"tls": {"caBundleSecretRef": named}})), bundle("another-key"));
    assert_eq!(trust(json!({"tls": {"insecureSkipVerify": true}})), Ok(Trust::Anything));
    assert_eq!(trust(json!({})), Ok(Trust::System));
}

// covers: 1.backend.probe.caSecret, 1.backend.reason.CredentialsInvalid
#[test]
fn a_change_of_the_ca_secret_is_probed_at_once() {
    let ca = |text: &str| {
        format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: ca, namespace: {OPERATOR_NAMESPACE}}}, stringData: {{ca.crt: {text}}}}}"
        )
    };
    Stage::run("", async |stage| {
        let bundle = json!({"spec": {"tls": {"caBundleSecretRef": {"name": "ca", "namespace": OPERATOR_NAMESPACE}}}});
        stage.patch("s3backends", "", "main", bundle).await;
        stage.soon("the Secret is missed", 5, |world| backend_ready(world) == "CredentialsInvalid").await;
        stage.apply(&ca("one")).await;
        stage.soon("it is found", 5, |world| backend_ready(world) == "EndpointReachable").await;
        stage.world.pass(Duration::from_secs(5)).await;
        let before = probes(&stage.world).len();
        stage.apply(&ca("two")).await;
        stage.soon("it is probed", 2, |world| probes(world).len() == before + 1).await;
        stage.patch("secrets", OPERATOR_NAMESPACE, "ca", json!({"data": {"ca.crt": null}})).await;
        stage.soon("it is told", 5, |world| backend_ready(world) == "CredentialsInvalid").await;
    });
}

// covers: 1.backend.probe.periodic, 1.backend.probe
#[test]
fn probes_come_at_a_jittered_interval() {
    Stage::run("", async |stage| {
        stage.world.pass(Duration::from_secs(6 * 3600)).await;
        let times = probes(&stage.world);
        let distances: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        assert!(distances.len() >= 30, "{distances:?}");
        // Ten minutes, ± 10 %.
        assert!(distances.iter().all(|seconds| (539..=661).contains(seconds)), "{distances:?}");
        assert!(distances.iter().collect::<BTreeSet<_>>().len() > 20, "{distances:?}");
    });
}

// covers: 1.backend.probe.periodic
#[test]
fn a_store_that_is_out_is_probed_every_few_minutes_and_soon_found_to_be_back() {
    Stage::run("", async |stage| {
        stage.world.effects.set_plan("s3:ListBuckets unreachable".parse().expect("the plan is well-formed"));
        stage.world.pass(Duration::from_secs(3 * 3600)).await;
        assert_eq!(backend_ready(&stage.world), "EndpointUnreachable");
        let times = probes(&stage.world);
        let distances: Vec<u64> = times.windows(2).rev().take(20).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        // Four minutes, ± 10 %.
        assert!(distances.iter().all(|seconds| (215..=265).contains(seconds)), "{distances:?}");
        stage.world.effects.set_plan(Plan::default());
        stage.soon("it is back", 5 * MINUTE, |world| backend_ready(world) == "EndpointReachable").await;
    });
}

// covers: 1.backend.reason.CredentialsInvalid, 1.backend.status.kstatus
#[test]
fn an_admin_secret_that_may_not_be_read_is_told_and_read_again_until_it_may() {
    run_seeded(1, || async {
        let world = World::new(Options { seed: 1, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let forbidden = Arc::new(AtomicBool::new(true));
        let parts = parts(&world, without_the_right(&world, &forbidden), OneStore(world.store.clone()));
        let operator = tokio::spawn(stowage_operator::run(world.config(), parts, pending()));
        // A backend that was never Ready reports it at once.
        let message = soon(&world, "CredentialsInvalid", 5).await;
        assert!(message.starts_with("Secret stowage-system/s3-admin: the operator may not read it"), "{message}");
        assert_eq!(condition(&object(&world, "s3backends", "", "main"), "Stalled"), "CredentialsInvalid");
        world.pass(Duration::from_secs(3600)).await;
        // No change of the Secret shows that it may be read now.
        forbidden.store(false, Ordering::Relaxed);
        soon(&world, "EndpointReachable", 5 * MINUTE).await;
        // For a Ready backend, the next probes notice it.
        forbidden.store(true, Ordering::Relaxed);
        soon(&world, "CredentialsInvalid", 12 * MINUTE).await;
        operator.abort();
    });
}

#[test]
fn nothing_is_kept_of_a_backend_that_is_gone() {
    let store = Noting::answering(StatusCode::FORBIDDEN);
    run_seeded(1, || async {
        let world = World::new(Options { seed: 1, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let parts = parts(&world, world.kube(), store.clone());
        let operator = tokio::spawn(stowage_operator::run(world.config(), parts, pending()));
        soon(&world, "BackendError", 5).await;
        // Each HTTP client holds a reference to the requests, and so do this test and the
        // operator's factory.
        let clients = || Arc::strong_count(&store.requests) - 2;
        assert!(clients() > 0);
        assert!(world.cluster.remove("s3backends", "", "main").is_some());
        // Its next probe would have been due by then.
        world.pass(Duration::from_secs(12 * MINUTE)).await;
        assert_eq!(clients(), 0);
        operator.abort();
    });
}

// covers: 1.backend.reason.TemplateInvalid, 1.ready.BackendNotReady
#[test]
fn a_template_that_an_older_definition_let_through_is_told() {
    Stage::run("", async |stage| {
        let [_, exact, _] = api::crds();
        let mut loose = serde_json::to_value(&exact).unwrap();
        let template = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/bucketNameTemplate";
        let rules = loose.pointer_mut(template).and_then(Value::as_object_mut).expect("the template's schema");
        assert!(rules.remove("x-kubernetes-validations").is_some());
        stage.world.cluster.install_crd(&serde_json::from_value(loose).unwrap()).expect("it is valid");
        let piped = json!({"spec": {"bucketNameTemplate": "{{ .Name | upper }}"}});
        stage.patch("s3backends", "", "main", piped).await;
        stage.soon("it is told", MINUTE, |world| backend_ready(world) == "TemplateInvalid").await;
        assert_eq!(condition(&object(&stage.world, "s3backends", "", "main"), "Stalled"), "TemplateInvalid");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        let good = json!({"spec": {"bucketNameTemplate": "{{ .Name }}"}});
        stage.patch("s3backends", "", "main", good).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}
