//! An operator that serves some namespaces (spec §3.9): it requests nothing outside of them, and
//! objects there count neither as deleted nor as orphans.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_operator::api::wire::SERVED_BY;
use stowage_operator::plan::Reach;
use stowage_operator::{Clock, Config, Metrics, Parts, StartError};
use stowage_world::determinism::run_seeded;
use stowage_world::effects::{KubeCall, KubeVerb};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::service_fn;

use crate::support::{BASE, OneStore, access_with, claim_with, condition, data, object, ready, secrets, works};

/// Requests of an operator for which it has no right, by its roles in `kind-config/namespaced` and
/// the chart.
type Refused = Arc<Mutex<Vec<String>>>;

/// A running operator; ends when dropped.
struct Running {
    task: JoinHandle<Result<(), StartError>>,
    refused: Refused,
    is_ready: watch::Receiver<bool>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn within(namespaces: &[&str]) -> Reach {
    Reach::Namespaces(namespaces.iter().map(|it| (*it).to_owned()).collect())
}

/// Returns true if an operator with this reach may send such a request, in a cluster with these
/// namespaces. A missing namespace has no RoleBinding either.
fn may(reach: &Reach, there: impl Fn(&str) -> bool, request: &Request<Body>) -> bool {
    let call = KubeCall::read(request.method(), request.uri());
    let resource = call.resource.as_str();
    match call.namespace.as_deref() {
        _ if reach.is_whole() => true,
        None if resource == "namespaces" => {
            let query = request.uri().query().unwrap_or_default();
            let selected = query.split('&').find_map(|it| it.strip_prefix("fieldSelector=metadata.name%3D"));
            let reads = matches!(call.verb, KubeVerb::Get | KubeVerb::List | KubeVerb::Watch);
            reads && call.name.as_deref().or(selected).is_some_and(|name| reach.has(name))
        }
        None => resource == "s3backends",
        Some(OPERATOR_NAMESPACE) => ["secrets", "configmaps", "leases"].contains(&resource),
        Some("default") => resource == "events",
        Some(namespace) => {
            let is_granted = ["bucketclaims", "bucketaccesses", "secrets", "events"].contains(&resource);
            is_granted && reach.has(namespace) && there(namespace)
        }
    }
}

fn start(world: &World, config: Config) -> Running {
    let rights = config.reach.clone();
    start_with(world, config, rights)
}

/// Starts an operator with this configuration, and the rights of an operator with this reach.
fn start_with(world: &World, config: Config, reach: Reach) -> Running {
    let (refused, cluster) = (Refused::default(), world.cluster.clone());
    let (noted, client) = (refused.clone(), world.kube());
    let service = service_fn(move |request: Request<Body>| {
        let there = |name: &str| cluster.object("namespaces", "", name).is_some();
        let allowed = may(&reach, there, &request);
        if !allowed {
            noted.lock().push(format!("{} {}", request.method(), request.uri()));
        }
        let client = client.clone();
        async move {
            if allowed {
                return client.send(request).await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                "message": "that is forbidden", "code": 403});
            let answer = http::Response::builder().status(403).body(Body::from(status.to_string().into_bytes()));
            Ok(answer.expect("an answer"))
        }
    });
    let now = world.clock.clock();
    let (ready, is_ready) = watch::channel(false);
    let parts = Parts {
        client: kube::Client::new(service, OPERATOR_NAMESPACE),
        connect: Arc::new(OneStore(world.store.clone())),
        clock: Clock::new(move || now()),
        uptime: world.uptime(),
        metrics: Metrics::new(),
        ready: Some(ready),
    };
    let task = tokio::spawn(stowage_operator::run(config, parts, std::future::pending()));
    Running { task, refused, is_ready }
}

async fn world() -> World {
    let world = World::new(Options { seed: 1, accesses: Accesses::Served, ..Options::default() });
    world.apply(&world.kube(), BASE).await;
    world
}

async fn apply(world: &World, yaml: &str) {
    world.apply(&world.kube(), yaml).await;
}

async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) {
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
}

/// Returns every Secret of a namespace, as stored.
fn held(world: &World, namespace: &str) -> Vec<Value> {
    let all = world.cluster.objects().into_iter();
    let own = all.filter(|it| it.plural == "secrets" && it.namespace == namespace);
    own.map(|it| it.object.as_ref().clone()).collect()
}

/// Returns the internal Secrets of the claims and accesses of a namespace.
fn internal_of(world: &World, namespace: &str) -> Vec<Value> {
    let is_of = |secret: &Value| {
        let labels = &secret["metadata"]["labels"];
        ["broker.stowage.io/claim-namespace", "broker.stowage.io/access-namespace"]
            .iter()
            .any(|label| labels[*label] == namespace)
    };
    held(world, OPERATOR_NAMESPACE).into_iter().filter(is_of).collect()
}

fn reason(world: &World, namespace: &str) -> String {
    condition(&object(world, "bucketaccesses", namespace, "reader"), "Ready")
}

fn map(world: &World) -> Value {
    let records = secrets(world, OPERATOR_NAMESPACE, "bucket-record").into_iter();
    let maps = records.filter_map(|name| data(world, OPERATOR_NAMESPACE, &name).remove("accesses"));
    maps.map(|text| serde_json::from_str::<Value>(&text).expect("JSON")).next().unwrap_or_default()
}

fn reader(namespace: &str) -> String {
    let entry = "buckets: [{claimRef: {name: photos, namespace: team-a}, mode: ReadOnly}]";
    access_with(namespace, "reader", &format!("{entry}, rotationPolicy: {{overlapSeconds: 60}}"))
}

/// Binds `team-a/photos` with this spec, and `team-b/films`, by an operator that serves all
/// namespaces.
async fn bound_by_another(world: &World, spec: &str) {
    let first = start(world, world.config());
    apply(world, &claim_with("team-a", "photos", spec)).await;
    apply(world, &claim_with("team-b", "films", "")).await;
    for (namespace, name) in [("team-a", "photos"), ("team-b", "films")] {
        until(world, "it is bound", |world| ready(world, namespace, name) == "Bound").await;
        world.store.put_object(&format!("{namespace}-{name}"), "data", "x");
    }
    drop(first);
    world.pass(Duration::from_secs(10)).await;
}

const HOUR: Duration = Duration::from_secs(3600);
const SHARED: &str = "sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]";

/// Returns true if no operator has worked on an object: its status is the API server's default.
fn is_untouched(object: &Value) -> bool {
    object["status"] == json!({"observedGeneration": -1}) && object["metadata"]["finalizers"].is_null()
}

// covers: 3.9.serves, 3.9.rights
#[test]
fn claims_of_other_namespaces_are_left_as_they_are() {
    run_seeded(1, || async {
        let world = world().await;
        let operator = start(&world, world.config_within(within(&["team-a"])));
        apply(&world, &claim_with("team-a", "photos", "deletionPolicy: Delete")).await;
        apply(&world, &claim_with("team-b", "films", "")).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        world.pass(HOUR).await;
        let films = object(&world, "bucketclaims", "team-b", "films");
        assert!(is_untouched(&films), "{films}");
        assert!(internal_of(&world, "team-b").is_empty() && world.store.bucket("team-b-films").is_none());
        let uri = "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos";
        let request = Request::delete(uri).body(Vec::new()).expect("a request");
        world.kube().request::<Value>(request).await.expect("it is there");
        until(&world, "it is gone", |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        assert!(world.store.bucket("team-a-photos").is_none());
        assert_eq!(*operator.refused.lock(), [] as [String; 0], "it asks for nothing that it has no right to");
    });
}

// covers: 3.9.orphans, 3.9.switch
#[test]
fn what_another_namespaces_claim_has_stays_when_it_is_no_longer_served() {
    run_seeded(1, || async {
        let world = world().await;
        bound_by_another(&world, "").await;
        let (internal, own) = (internal_of(&world, "team-b"), held(&world, "team-b"));
        let before = (object(&world, "bucketclaims", "team-a", "photos"), internal_of(&world, "team-a"));
        let operator = start(&world, world.config_within(within(&["team-a"])));
        world.pass(2 * HOUR).await;
        assert_eq!((internal_of(&world, "team-b"), held(&world, "team-b")), (internal, own));
        let after = (object(&world, "bucketclaims", "team-a", "photos"), internal_of(&world, "team-a"));
        assert_eq!(after, before, "nor is anything of the one that is served written anew");
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
        let note = &object(&world, "s3backends", "", "main")["metadata"]["annotations"][SERVED_BY];
        assert_eq!(*note, world.operator().as_str(), "it is the same installation");
        // The same holds if the claim itself is deleted, because this operator can't see that.
        assert!(world.cluster.remove("bucketclaims", "team-b", "films").is_some());
        world.pass(2 * HOUR).await;
        assert_eq!(internal_of(&world, "team-b").len(), 2, "a record and a key");
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
        drop(operator);
        let _all = start(&world, world.config());
        until(&world, "it is swept", |world| internal_of(world, "team-b").is_empty()).await;
        assert!(world.store.bucket("team-b-films").is_some(), "a bucket is always retained");
    });
}

// covers: 3.9.orphans
#[rstest]
#[case::with_its_record(false)]
#[case::without(true)]
fn orphans_of_a_namespace_that_is_served_go_where_a_record_proves_whose_they_are(#[case] is_lost: bool) {
    run_seeded(1, move || async move {
        let world = world().await;
        bound_by_another(&world, "").await;
        assert!(world.cluster.remove("bucketclaims", "team-a", "photos").is_some());
        if is_lost {
            let all = internal_of(&world, "team-a");
            let mut names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
            let record = names.find(|name| name.starts_with("br-")).expect("there is a record");
            assert!(world.cluster.remove("secrets", OPERATOR_NAMESPACE, record).is_some());
        }
        let operator = start(&world, world.config_within(within(&["team-a"])));
        world.pass(2 * HOUR).await;
        assert_eq!(internal_of(&world, "team-a").len(), usize::from(is_lost), "labels prove nothing");
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
    });
}

// covers: 3.9.gone
#[test]
fn what_is_left_of_a_namespace_that_is_gone_goes_without_a_right_to_look_there() {
    run_seeded(1, || async {
        let world = world().await;
        bound_by_another(&world, "").await;
        // A user forced the deletion by removing the claim's finalizer.
        assert!(world.cluster.remove("bucketclaims", "team-a", "photos").is_some());
        assert!(world.cluster.remove("secrets", "team-a", "photos-s3").is_some());
        assert!(world.cluster.remove("namespaces", "", "team-a").is_some());
        let operator = start(&world, world.config_within(within(&["team-a"])));
        until(&world, "it is swept", |world| internal_of(world, "team-a").is_empty()).await;
        assert!(operator.refused.lock().iter().all(|it| it.contains("/namespaces/team-a/bucketclaims/photos")));
        assert_eq!(internal_of(&world, "team-b").len(), 2, "nobody spoke of that");
        assert!(world.store.bucket("team-a-photos").is_some());
    });
}

// covers: 3.9.absent
#[test]
fn a_namespace_that_is_not_there_is_waited_for_and_keeps_nobody_waiting() {
    run_seeded(1, || async {
        let world = world().await;
        let operator = start(&world, world.config_within(within(&["team-a", "team-c"])));
        apply(&world, &claim_with("team-a", "photos", "")).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        assert!(*operator.is_ready.borrow());
        world.pass(HOUR).await;
        assert_eq!(*operator.refused.lock(), [] as [String; 0], "nothing is asked for in it");
        apply(&world, "{apiVersion: v1, kind: Namespace, metadata: {name: team-c}}").await;
        apply(&world, &claim_with("team-c", "late", "")).await;
        until(&world, "it is bound", |world| ready(world, "team-c", "late") == "Bound").await;
    });
}

// covers: 3.9.ready
#[test]
fn an_operator_is_ready_once_each_watch_has_shown_all_of_its_namespace() {
    run_seeded(1, || async {
        let world = world().await;
        let operator = start(&world, world.config_within(within(&["team-a", "team-b"])));
        until(&world, "it is ready", |_| *operator.is_ready.borrow()).await;
        drop(operator);
        // Its RoleBinding is missing in one of the two.
        let short = start_with(&world, world.config_within(within(&["team-a", "team-b"])), within(&["team-a"]));
        world.pass(HOUR).await;
        assert!(!*short.is_ready.borrow(), "what is in the other isn't known");
        assert!(!short.refused.lock().is_empty());
    });
}

// covers: 3.9.consent
#[rstest]
#[case::still_shared(SHARED, true)]
#[case::by_labels_that_nobody_sees("sharing: [{namespaces: {selector: {}}, maxMode: ReadOnly}]", true)]
#[case::withdrawn("", false)]
#[case::for_others("sharing: [{namespaces: {names: [team-x]}, maxMode: ReadOnly}]", false)]
#[case::narrower("sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly, prefixes: [in/]}]", true)]
fn consent_for_a_namespace_that_is_not_served_stays_as_far_as_sharing_may_mean_it(
    #[case] spec: &'static str,
    #[case] stays: bool,
) {
    run_seeded(1, move || async move {
        let world = world().await;
        let first = start(&world, world.config());
        apply(&world, &claim_with("team-a", "photos", SHARED)).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        apply(&world, &reader("team-b")).await;
        until(&world, "it is open", |world| reason(world, "team-b") == "Open").await;
        drop(first);
        let operator = start(&world, world.config_within(within(&["team-a"])));
        world.pass(HOUR).await;
        let uid = object(&world, "namespaces", "", "team-b")["metadata"]["uid"].as_str().expect("a UID").to_owned();
        assert_eq!(map(&world)[&uid]["maxMode"], "ReadOnly", "nobody was asked");
        let held = data(&world, "team-b", "reader-key");
        let client = world.tenant(&held["AWS_ACCESS_KEY_ID"], &held["AWS_SECRET_ACCESS_KEY"], &held["AWS_REGION"]);
        assert!(works(&client, "team-a-photos").await);
        // An access in a served namespace: the write for it leaves the other one as it is.
        apply(&world, &reader("team-a")).await;
        until(&world, "its own is open", |world| reason(world, "team-a") == "Open").await;
        assert_eq!(map(&world).as_object().map(serde_json::Map::len), Some(2));
        apply(&world, &claim_with("team-a", "photos", spec)).await;
        let uri = "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos";
        if spec.is_empty() {
            let patch = json!({"spec": {"sharing": null}}).to_string().into_bytes();
            let request = Request::patch(uri).header("content-type", "application/merge-patch+json").body(patch);
            world.kube().request::<Value>(request.expect("a request")).await.expect("the patch is good");
        }
        world.pass(HOUR).await;
        assert_eq!(map(&world)[&uid].is_object(), stays, "{}", map(&world));
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
    });
}

// covers: 3.9.access, 3.9.access.known
#[test]
fn an_access_to_a_claim_that_is_not_served_keeps_what_it_has_and_says_that_nothing_is_known() {
    run_seeded(1, || async {
        let world = world().await;
        let first = start(&world, world.config());
        apply(&world, &claim_with("team-a", "photos", SHARED)).await;
        apply(&world, &claim_with("team-a", "films", SHARED)).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        apply(&world, &reader("team-b")).await;
        until(&world, "it is open", |world| reason(world, "team-b") == "Open").await;
        drop(first);
        let operator = start(&world, world.config_within(within(&["team-b"])));
        world.pass(HOUR).await;
        assert_eq!(reason(&world, "team-b"), "Open", "the record says so, which is what the gateway goes by");
        let generation = |world: &World| {
            object(world, "bucketaccesses", "team-b", "reader")["status"]["rotationGeneration"].as_i64()
        };
        let before = generation(&world);
        let uri = "/apis/broker.stowage.io/v1alpha1/namespaces/team-b/bucketaccesses/reader";
        let patch = |patch: Value| {
            let request = Request::patch(uri).header("content-type", "application/merge-patch+json");
            let (client, request) = (world.kube(), request.body(patch.to_string().into_bytes()).expect("a request"));
            async move { client.request::<Value>(request).await.expect("the patch is good") }
        };
        patch(json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}})).await;
        until(&world, "its key is replaced", |world| generation(world) > before).await;
        until(&world, "it is open again", |world| reason(world, "team-b") == "Open").await;
        let held = data(&world, "team-b", "reader-key");
        let client = world.tenant(&held["AWS_ACCESS_KEY_ID"], &held["AWS_SECRET_ACCESS_KEY"], &held["AWS_REGION"]);
        assert!(works(&client, "team-a-photos").await);
        let claims = ["photos", "films", "nobody"]
            .map(|name| json!({"claimRef": {"name": name, "namespace": "team-a"}, "mode": "ReadOnly"}));
        patch(json!({"spec": {"buckets": claims}})).await;
        until(&world, "it is told", |world| reason(world, "team-b") == "NotWatched").await;
        world.pass(HOUR).await;
        let told = object(&world, "bucketaccesses", "team-b", "reader")["status"]["buckets"].clone();
        assert_eq!(told[0]["state"], "Open", "{told}");
        for entry in [&told[1], &told[2]] {
            assert_eq!((&entry["state"], &entry["reason"]), (&json!("Closed"), &json!("NotWatched")), "{told}");
        }
        assert!(works(&client, "team-a-photos").await && !works(&client, "team-a-films").await);
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
    });
}

// covers: 3.9.access
#[test]
fn an_access_in_a_namespace_that_is_not_served_is_left_alone() {
    run_seeded(1, || async {
        let world = world().await;
        let operator = start(&world, world.config_within(within(&["team-a"])));
        apply(&world, &claim_with("team-a", "photos", SHARED)).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        apply(&world, &reader("team-b")).await;
        world.pass(HOUR).await;
        let access = object(&world, "bucketaccesses", "team-b", "reader");
        assert!(is_untouched(&access), "{access}");
        assert!(map(&world).is_null() && internal_of(&world, "team-b").is_empty());
        assert_eq!(*operator.refused.lock(), [] as [String; 0]);
    });
}

// covers: 3.9.flag
#[test]
fn object_bucket_claims_need_the_whole_cluster() {
    run_seeded(1, || async {
        let world = world().await;
        let config = Config { obc: Some("x/y".to_owned()), ..world.config_within(within(&["team-a"])) };
        let mut running = start(&world, config);
        let ended = (&mut running.task).await.expect("it doesn't panic");
        assert!(ended.is_err_and(|error| error.to_string().contains("--obc needs the whole cluster")));
    });
}
