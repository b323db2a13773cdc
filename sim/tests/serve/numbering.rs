//! Tests that the production operator makes the same calls over sockets as in the simulated world,
//! with the same numbers.

use std::sync::Arc;
use std::time::Duration;

use stowage_operator::upstream::RustlsConnect;
use stowage_operator::{Clock, Metrics, Uptime};
use stowage_world::effects::Trace;
use stowage_world::{Options, World};

use crate::parts::{ACCESS_KEY, Parts, SECRET_KEY, soon};

/// Returns the manifests to apply before the claim, with a store at this URL.
fn setting(endpoint: &str, access_key: &str, secret_key: &str) -> String {
    format!(
        "apiVersion: v1
kind: Secret
metadata:
  name: admin
  namespace: stowage-system
  labels: {{broker.stowage.io/backend-credentials: 'true'}}
  annotations: {{broker.stowage.io/endpoints: '{endpoint}'}}
stringData: {{AWS_ACCESS_KEY_ID: {access_key}, AWS_SECRET_ACCESS_KEY: {secret_key}}}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {{name: main}}
spec:
  endpoint: {endpoint}
  adminCredentialsSecretRef: {{name: admin, namespace: stowage-system}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: team-a}}
"
    )
}

const CLAIM: &str = "apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: team-a}
spec: {backendRef: {name: main}}
";

/// Returns the calls from the first write of the claim to its Event, without those that differ
/// between runs.
fn pass(trace: &Trace) -> Vec<String> {
    let calls = trace.lines().iter().map(|line| (line.call.to_string(), line.answer));
    let of_claim = calls.skip_while(|(call, _)| !call.starts_with("kube:patch bucketclaims "));
    let mut pass = Vec::new();
    for (call, answer) in of_claim {
        let last = call.starts_with("kube:create events");
        // Watches, calls of the other controller, and reads of the admin Secret right after its
        // watch began occur at varying times.
        let claims_own = ["bucketclaims", "secrets stowage-system", "secrets team-a", "s3:", "events"];
        let others = call.starts_with("kube:watch") || call.contains("stowage-system/admin");
        if claims_own.iter().any(|part| call.contains(part)) && !others {
            pass.push(format!("{call} -> {answer}"));
        }
        if last {
            break;
        }
    }
    pass.into_iter().map(|line| nameless(&line)).collect()
}

/// Replaces names with a UID or a random part, which differ between two worlds.
fn nameless(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.rsplit_once('/') {
        Some((namespace, name)) if name.starts_with("br-") || name.starts_with("vc-") => format!("{namespace}/…"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

async fn simulated() -> Trace {
    let mut world = World::new(Options::default());
    let backend = Options::default().backends[0].clone();
    let (access_key, secret_key) = backend.keys.expect("it has keys");
    world.apply(&world.kube(), &setting(backend.endpoint.as_str(), &access_key, &secret_key)).await;
    let operator = world.start_operator();
    operator.ready().await;
    world.pass(Duration::from_secs(5)).await;
    world.apply(&world.kube(), CLAIM).await;
    world.until(told).await.expect("the claim is bound");
    world.effects.trace()
}

fn told(world: &World) -> bool {
    world.effects.trace().to_string().contains("kube:create events team-a/ -> 201")
}

async fn on_sockets() -> Trace {
    let parts = Parts::new("").await;
    for crd in stowage_operator::api::crds() {
        parts.cluster.install_crd(&crd).expect("the project's own CRDs are valid");
    }
    let people = parts.cluster.client("default");
    let apply = async |yaml: &str| {
        for document in stowage_world::parse("test", yaml).expect("it is YAML") {
            stowage_world::apply(&people, &document).await.expect("it is good");
        }
    };
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: stowage-system}}").await;
    apply(&setting(&parts.s3.url(), ACCESS_KEY, SECRET_KEY)).await;
    let world = World::new(Options::default());
    let (ready, mut readiness) = tokio::sync::watch::channel(false);
    let operator = tokio::spawn(stowage_operator::run(
        world.config(),
        stowage_operator::Parts {
            client: parts.kube(),
            connect: Arc::new(RustlsConnect),
            clock: Clock::system(),
            uptime: Uptime::system(),
            metrics: Metrics::new(),
            ready: Some(ready),
        },
        std::future::pending(),
    ));
    soon(readiness.wait_for(|ready| *ready)).await.expect("it lives");
    let effects = parts.proxy.effects();
    let until = async |fact: &str| {
        soon(async {
            while !effects.trace().to_string().contains(fact) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    };
    until("kube:patch s3backends/status").await;
    apply(CLAIM).await;
    until("kube:create events team-a/ -> 201").await;
    operator.abort();
    effects.trace()
}

#[test]
fn a_claim_is_bound_by_the_same_calls_as_in_the_simulator() {
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let simulated = pass(&paused.block_on(simulated()));
    let real = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let on_sockets = pass(&real.block_on(on_sockets()));
    assert_eq!(simulated.len(), 10, "{simulated:#?}");
    assert_eq!(on_sockets, simulated);
}
