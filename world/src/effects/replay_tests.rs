//! Determinism of traces: equal seeds and plans give equal traces, with a real `kube::Client` and
//! `Controller`, and with the real AWS SDK and its jittered retries, in one process and in two.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_s3::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_s3::config::{Config, Credentials, Region};
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use futures::StreamExt;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, ServiceExt};

use super::*;
use crate::determinism::run_seeded;

/// Number of patches of each object.
type Patches = Arc<Mutex<BTreeMap<String, u64>>>;

const OBJECTS: usize = 12;
const PLAN: &str = "#40 crash(after-effect); kube:patch configmaps@12 crash(after-answer); \
    kube:patch configmaps@3 conflict; kube:patch configmaps@5 lost-answer; s3:CreateBucket@2 lost-answer; \
    s3:CreateBucket@6 slow(700); s3:PutBucketTagging slow-down";

/// Answers like a Kubernetes API whose ConfigMaps count their patches.
async fn kubernetes(patches: Patches, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let call = KubeCall::read(request.method(), request.uri());
    let object = |name: &str| -> Value { json!({"metadata": {"name": name, "namespace": "team-a"}}) };
    let answer = match call.verb {
        KubeVerb::List => {
            let names = (0..OBJECTS).map(|i| object(&format!("claim-{i}")));
            json!({"metadata": {"resourceVersion": "1"}, "items": names.collect::<Vec<_>>()})
        }
        KubeVerb::Patch => {
            let name = call.name.unwrap_or_default();
            *patches.lock().unwrap().entry(name.clone()).or_default() += 1;
            object(&name)
        }
        _ => std::future::pending().await,
    };
    Ok(Response::new(Body::from(answer.to_string().into_bytes())))
}

type Store = BoxCloneSyncService<Request<s3s::Body>, Response<s3s::Body>, BoxError>;

#[derive(Clone, Debug)]
struct Connector(Store);

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let store = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().expect("the SDK's requests are valid");
            let request = request.map(|_| s3s::Body::empty());
            let answer = store.oneshot(request).await.map_err(ConnectorError::io)?;
            Ok(HttpResponse::new(answer.status().into(), SdkBody::empty()))
        })
    }
}

fn s3(effects: &Effects, instance: &Instance) -> aws_sdk_s3::Client {
    let store =
        tower::service_fn(|_: Request<s3s::Body>| async { Ok::<_, BoxError>(Response::new(s3s::Body::empty())) });
    let connector = Connector(Store::new(effects.s3_layer(instance).layer(store)));
    let config = Config::builder()
        .behavior_version_latest()
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url("http://s3.local")
        .force_path_style(true)
        .retry_config(RetryConfig::standard().with_max_attempts(3))
        // The default partition has one budget per process, which one run would use up for the
        // next.
        .retry_partition(RetryPartition::custom("run").build())
        .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
        .http_client(http_client_fn(move |_, _| SharedHttpConnector::new(connector.clone())))
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

async fn reconcile(claims: Api<ConfigMap>, s3: aws_sdk_s3::Client, name: String) -> Result<(), BoxError> {
    // Draws from each source of randomness, so that a difference in any of them shows in the trace.
    let nap = fastrand::u64(1..50);
    tokio::time::sleep(Duration::from_millis(nap)).await;
    s3.create_bucket().bucket(&name).send().await?;
    s3.put_bucket_tagging()
        .bucket(&name)
        .tagging(aws_sdk_s3::types::Tagging::builder().set_tag_set(Some(vec![])).build()?)
        .send()
        .await
        .ok();
    let patch = Patch::Merge(json!({"data": {}}));
    claims.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// An operator with one reconciler: it creates a bucket, tags it, then patches the object, and
/// retries every failure later.
async fn operator(effects: Effects, instance: Instance, patches: Patches) {
    let api = tower::service_fn(move |request| kubernetes(Arc::clone(&patches), request));
    let client = kube::Client::new(effects.kube_layer(&instance).layer(api), "team-a");
    let claims: Api<ConfigMap> = Api::namespaced(client, "team-a");
    let context = Arc::new((claims.clone(), s3(&effects, &instance)));
    Controller::new(claims, kube::runtime::watcher::Config::default())
        .with_config(kube::runtime::controller::Config::default().concurrency(4))
        .run(
            |object, context| async move {
                let (claims, s3) = context.as_ref().clone();
                let done = reconcile(claims, s3, object.name_any()).await;
                done.map(|()| Action::await_change()).map_err(std::io::Error::other)
            },
            |_, _, _| Action::requeue(Duration::from_secs(2)),
            context,
        )
        .for_each(|_| std::future::ready(()))
        .await;
}

/// Runs the operator for a minute and restarts it after each crash.
async fn minute() -> Trace {
    let effects = Effects::new(PLAN.parse().expect("a good plan"));
    let patches = Patches::default();
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let instance = effects.instance();
        let life = operator(effects.clone(), instance.clone(), Arc::clone(&patches));
        let outcome = tokio::time::timeout_at(end, run_until_crash(&instance, life)).await;
        if outcome.is_err() {
            break;
        }
    }
    assert!(effects.unfired().is_empty(), "left over: {}", effects.unfired());
    let every = (0..OBJECTS).all(|i| patches.lock().unwrap().contains_key(&format!("claim-{i}")));
    assert!(every, "each object has been patched");
    effects.trace()
}

#[test]
fn a_seed_decides_the_trace() {
    let first = run_seeded(1, minute);
    let second = run_seeded(1, minute);
    let other = run_seeded(2, minute);
    assert_eq!(first.to_string(), second.to_string());
    assert_eq!(first.hash(), second.hash());
    assert_ne!(first.hash(), other.hash());
    assert_eq!(first.lines().last().map(|line| line.instance), Some(3), "{first}");
}

/// Environment variable with which the test below runs itself in a child process, to print its
/// hashes.
const CHILD: &str = "STOWAGE_TEST_PRINT_TRACE_HASH";
const TEST: &str = "two_processes_agree_from_their_first_run_on";
const MARK: &str = "trace hashes: ";

fn hashes_of_a_fresh_process() -> Vec<String> {
    let (_crate, module) = module_path!().split_once("::").expect("it is a module of a crate");
    let output = Command::new(std::env::current_exe().expect("the test binary"))
        .args(["--exact", &format!("{module}::{TEST}"), "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the test binary runs again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, hashes) = text.split_once(MARK).expect("hashes are printed");
    let line = hashes.lines().next().unwrap_or_default();
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn two_processes_agree_from_their_first_run_on() {
    let mine = [1, 2, 1].map(|seed| run_seeded(seed, minute).hash());
    assert_eq!(mine[0], mine[2], "the first run of a process is like the third");
    assert_ne!(mine[0], mine[1], "another seed is another run");
    if std::env::var_os(CHILD).is_some() {
        #[expect(clippy::print_stdout, reason = "the parent process reads it")]
        {
            println!("{MARK}{}", mine.join(" "));
        }
        return;
    }
    for _ in 0..2 {
        assert_eq!(hashes_of_a_fresh_process(), mine);
    }
}
