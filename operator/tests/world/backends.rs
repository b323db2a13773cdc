//! S3Backends (spec §1): their status, and the objects that are reconciled when a backend changes.

use std::time::Duration;

use serde_json::{Value, json};
use stowage_world::fixtures::{self, opted_in};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, OPERATOR_NAMESPACE, STORE_ENDPOINT, World};

use crate::support::{Stage, claim, condition, object, ready, secrets, tenant_can_work};

const MINUTE: u64 = 60;

fn backend(world: &World) -> Value {
    object(world, "s3backends", "", "main")
}

fn backend_ready(world: &World) -> String {
    condition(&backend(world), "Ready")
}

/// Replaces the plan of faults. Its call numbers count from this moment.
fn plan(stage: &Stage, faults: &str) {
    stage.world.effects.set_plan(faults.parse().expect("the plan is well-formed"));
}

fn admin_secret(key: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: s3-admin, namespace: stowage-system, {}}}, stringData: \
         {{AWS_ACCESS_KEY_ID: {ADMIN_ACCESS_KEY}, AWS_SECRET_ACCESS_KEY: {key}}}}}",
        opted_in(STORE_ENDPOINT)
    )
}

// covers: 1.backend.status.observedGeneration, 1.backend.status.kstatus
// covers: 1.backend.reason.EndpointReachable
#[test]
fn a_ready_backend_says_so_and_is_not_written_again() {
    Stage::run("", async |stage| {
        let before = backend(&stage.world);
        assert_eq!(before["status"]["observedGeneration"], before["metadata"]["generation"]);
        assert_eq!(before["status"]["bucketCount"], 0);
        assert_eq!(before["status"]["conditions"].as_array().map(Vec::len), Some(1), "neither Reconciling nor Stalled");
        stage.world.pass(Duration::from_secs(3 * 3600)).await;
        assert_eq!(backend(&stage.world), before);
    });
}

// covers: 1.backend.status.kstatus, 1.backend.reason.EndpointUnreachable, 1.backend.probe.edit
// covers: 1.ready.BackendNotReady, 3.5.wake.backend
#[test]
fn an_endpoint_where_nobody_listens_is_unreachable_and_found_when_it_is_mended() {
    Stage::run("", async |stage| {
        let endpoint = |url: &str| json!({"spec": {"endpoint": url}});
        stage.patch("s3backends", "", "main", endpoint("http://nowhere.example")).await;
        stage.soon("it is unreachable", MINUTE, |world| backend_ready(world) == "EndpointUnreachable").await;
        assert_eq!(condition(&backend(&stage.world), "Reconciling"), "EndpointUnreachable");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").is_empty(), "nothing is held meanwhile");
        stage.patch("s3backends", "", "main", endpoint("http://s3.example:9000")).await;
        stage.soon("the claim is bound", MINUTE, |world| ready(world, "team-a", "photos") == "Bound").await;
    });
}

// covers: 1.backend.status.kstatus, 1.backend.reason.CredentialsInvalid
// covers: 1.backend.probe.adminSecret
// covers: 3.5.wake.adminSecret
#[test]
fn an_admin_secret_that_is_missing_or_wrong_is_told_and_its_change_wakes_backend_and_claims() {
    Stage::run("", async |stage| {
        stage.delete("secrets", OPERATOR_NAMESPACE, "s3-admin").await;
        stage.soon("the Secret is missed", MINUTE, |world| backend_ready(world) == "CredentialsInvalid").await;
        assert_eq!(condition(&backend(&stage.world), "Stalled"), "CredentialsInvalid");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        stage.apply(&admin_secret("wrong")).await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert_eq!(backend_ready(&stage.world), "CredentialsInvalid");
        stage.apply(&admin_secret(ADMIN_SECRET_KEY)).await;
        stage.soon("the claim is bound", 10, |world| ready(world, "team-a", "photos") == "Bound").await;
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 1.backend.probe.adminSecret
#[test]
fn a_changed_admin_secret_that_can_not_be_read_at_once_is_read_again() {
    Stage::run("", async |stage| {
        plan(&stage, "kube:get secrets@1 lost-answer; kube:get secrets@2 lost-answer");
        stage.world.store.add_account(ADMIN_ACCOUNT, ADMIN_ACCESS_KEY, "rotated");
        stage.apply(&admin_secret("rotated")).await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert!(stage.world.effects.unfired().is_empty(), "{}", stage.trace());
        stage.apply(&claim("team-a", "photos")).await;
        stage.soon("the claim is bound", 10, |world| ready(world, "team-a", "photos") == "Bound").await;
    });
}

// covers: 1.backend.credentials.namespace
#[test]
fn an_admin_secret_in_a_namespace_that_is_not_trusted_is_not_read() {
    Stage::run("", async |stage| {
        stage.apply(&admin_secret(ADMIN_SECRET_KEY).replace("stowage-system", "team-a")).await;
        let reference = json!({"spec": {"adminCredentialsSecretRef": {"namespace": "team-a"}}});
        let before = stage.world.effects.trace().effects();
        stage.patch("s3backends", "", "main", reference).await;
        stage.soon("it is refused", MINUTE, |world| backend_ready(world) == "CredentialsInvalid").await;
        let reads = |line: &&stowage_world::effects::Line| {
            line.number > before && line.call.to_string().starts_with("kube:get secrets")
        };
        assert_eq!(stage.world.effects.trace().lines().iter().filter(reads).count(), 0, "{}", stage.trace());
    });
}

// covers: 1.backend.reason.BackendError, 1.backend.probe, 1.backend.probe.hysteresis, 1.phase.Bound
// covers: 1.bound.impaired
#[test]
fn one_failed_periodic_probe_is_tolerated_and_a_run_of_them_is_not() {
    Stage::run("s3:ListBuckets@2 internal-error", async |stage| {
        let before = backend(&stage.world);
        stage.world.pass(Duration::from_secs(3600)).await;
        assert!(stage.world.effects.unfired().is_empty());
        assert_eq!(backend(&stage.world), before);
    });
    let run: Vec<String> = (2..=6).map(|n| format!("s3:ListBuckets@{n} internal-error")).collect();
    Stage::run(&run.join("; "), async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until("the backend is not Ready", |world| backend_ready(world) == "BackendError").await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        assert_eq!(object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["phase"], "Bound");
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        stage.soon("all is well again", 5 * MINUTE, |world| ready(world, "team-a", "photos") == "Bound").await;
    });
}

// covers: 1.backend.probe.hysteresis
#[test]
fn one_failed_periodic_probe_is_tolerated_also_when_the_admin_secret_could_not_be_read_before() {
    Stage::run("", async |stage| {
        let before = backend(&stage.world);
        plan(&stage, "kube:get secrets@1 lost-answer; s3:ListBuckets@1 internal-error");
        stage.world.pass(Duration::from_secs(3600)).await;
        assert!(stage.world.effects.unfired().is_empty(), "{}", stage.trace());
        assert_eq!(backend(&stage.world), before);
    });
}

/// Replaces the operator by another one, whose calls meet these faults.
async fn start_again(stage: &mut Stage, faults: &str) {
    stage.operator.stop();
    stage.world.pass(Duration::from_secs(60)).await;
    plan(stage, faults);
    let _operator = stage.world.start_operator();
}

// covers: 1.backend.probe.hysteresis
#[test]
fn the_first_probe_after_a_start_is_one_of_many_to_a_backend_that_is_ready() {
    Stage::run("", async |mut stage| {
        let before = backend(&stage.world);
        start_again(&mut stage, "s3:ListBuckets@1 unreachable").await;
        stage.world.pass(Duration::from_secs(3600)).await;
        assert!(stage.world.effects.unfired().is_empty(), "{}", stage.trace());
        assert_eq!(backend(&stage.world), before);
    });
    Stage::run("", async |mut stage| {
        start_again(&mut stage, "s3:ListBuckets unreachable").await;
        stage.soon("a run of them counts", 30, |world| backend_ready(world) == "EndpointUnreachable").await;
    });
}

// covers: 1.backend.probe.hysteresis, 1.backend.probe.edit
#[test]
fn the_first_probe_after_a_start_counts_if_it_is_the_first_of_its_generation() {
    Stage::run("", async |mut stage| {
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        stage.patch("s3backends", "", "main", json!({"spec": {"adoptionPolicy": "Any"}})).await;
        start_again(&mut stage, "s3:ListBuckets@1 unreachable").await;
        stage.soon("it is told", 5, |world| backend_ready(world) == "EndpointUnreachable").await;
        stage.soon("it is well", MINUTE, |world| backend_ready(world) == "EndpointReachable").await;
    });
}

// covers: 1.backend.allowed.or, 1.backend.allowed.empty, 1.ready.BackendNotAllowed
// covers: 1.bound.impaired, 3.5.wake.labels
#[test]
fn an_allow_list_lets_in_by_name_or_label_and_a_change_of_labels_wakes_the_claims() {
    Stage::run("", async |stage| {
        let allowed = json!({"spec": {"allowedNamespaces": {"names": ["team-a"], "selector": {"matchLabels": {"tier": "gold"}}}}});
        stage.patch("s3backends", "", "main", allowed).await;
        stage.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team-c}}").await;
        let tier = |tier: Value| json!({"metadata": {"labels": {"tier": tier}}});
        stage.patch("namespaces", "", "team-b", tier(json!("gold"))).await;
        for namespace in ["team-a", "team-b", "team-c"] {
            stage.apply(&claim(namespace, "photos")).await;
        }
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until_ready_is("team-b", "photos", "Bound").await;
        stage.until_ready_is("team-c", "photos", "BackendNotAllowed").await;
        assert_eq!(object(&stage.world, "bucketclaims", "team-c", "photos")["status"]["phase"], "Failed");
        stage.patch("namespaces", "", "team-c", tier(json!("gold"))).await;
        stage.soon("the claim is bound", 10, |world| ready(world, "team-c", "photos") == "Bound").await;
        // Access granted before is not withdrawn.
        stage.patch("namespaces", "", "team-b", tier(Value::Null)).await;
        stage.soon("it is told", 10, |world| ready(world, "team-b", "photos") == "BackendNotAllowed").await;
        assert_eq!(object(&stage.world, "bucketclaims", "team-b", "photos")["status"]["phase"], "Bound");
        tenant_can_work(&stage.world, "team-b", "photos-s3").await;
        stage
            .patch("s3backends", "", "main", json!({"spec": {"allowedNamespaces": {"names": null, "selector": null}}}))
            .await;
        stage
            .soon("present and empty is none", 10, |world| ready(world, "team-a", "photos") == "BackendNotAllowed")
            .await;
    });
}

// covers: 1.backend.status.bucketCount, 1.backend.noFinalizer, 1.bound.impaired
#[test]
fn buckets_are_counted_and_a_deleted_backend_takes_nothing_away() {
    Stage::run("", async |stage| {
        for name in ["one", "two"] {
            stage.apply(&claim("team-a", name)).await;
        }
        stage.soon("both are counted", MINUTE, |world| backend(world)["status"]["bucketCount"] == 2).await;
        stage.delete("bucketclaims", "team-a", "two").await;
        stage.soon("one is left", MINUTE, |world| backend(world)["status"]["bucketCount"] == 1).await;
        stage.delete("s3backends", "", "main").await;
        stage.soon("the claim tells", 10, |world| ready(world, "team-a", "one") == "BackendNotReady").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "one");
        assert_eq!(
            (&claim["status"]["phase"], condition(&claim, "Reconciling").as_str()),
            (&json!("Bound"), "BackendNotReady")
        );
        // The keys still exist. Until the backend is back, the gateway can't find the store.
        let secret = object(&stage.world, "secrets", "team-a", "one-s3");
        assert!(secret["data"]["AWS_ACCESS_KEY_ID"].is_string());
        stage.apply(&fixtures::backend("main", STORE_ENDPOINT, "")).await;
        stage.soon("the claim is well again", MINUTE, |world| ready(world, "team-a", "one") == "Bound").await;
        tenant_can_work(&stage.world, "team-a", "one-s3").await;
    });
}

/// Deletes the backend while a call to its store is under way, and waits until that call has ended.
/// Returns the metric series that name the backend.
async fn series_after_the_last_call(stage: &Stage) -> Vec<String> {
    stage.world.pass(Duration::from_secs(2)).await;
    stage.delete("s3backends", "", "main").await;
    stage.world.pass(Duration::from_secs(60)).await;
    assert!(stage.world.effects.unfired().is_empty(), "{}", stage.trace());
    let page = stage.operator.metrics();
    page.lines().filter(|line| line.contains(r#"backend="main""#)).map(str::to_owned).collect()
}

// covers: 4.metric.closed
#[test]
fn a_probe_that_outlives_its_backend_leaves_no_series_of_it() {
    Stage::run("s3:ListBuckets@2 slow(20000)", async |stage| {
        // An edit of the spec triggers a probe at once. That probe is the slow call.
        stage.patch("s3backends", "", "main", json!({"spec": {"adoptionPolicy": "Any"}})).await;
        assert_eq!(series_after_the_last_call(&stage).await, Vec::<String>::new());
    });
}

// covers: 4.metric.closed
#[test]
fn a_call_for_a_claim_that_outlives_the_backend_leaves_no_series_of_it() {
    Stage::run("s3:CreateBucket@1 slow(20000)", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        assert_eq!(series_after_the_last_call(&stage).await, Vec::<String>::new());
    });
}

// covers: 1.backend.credentials.gone
#[test]
fn an_admin_secret_that_is_replaced_turns_no_claim_over() {
    Stage::run("", async |stage| {
        for name in ["photos", "films", "notes"] {
            stage.apply(&claim("team-a", name)).await;
            stage.until_ready_is("team-a", name, "Bound").await;
        }
        stage.world.pass(Duration::from_secs(60)).await;
        let versions = || {
            ["photos", "films", "notes"].map(|name| {
                let claim = object(&stage.world, "bucketclaims", "team-a", name);
                claim["metadata"]["resourceVersion"].clone()
            })
        };
        let before = versions();
        let secret = stage.world.cluster.remove("secrets", OPERATOR_NAMESPACE, "s3-admin").expect("it is there");
        stage.world.pass(Duration::from_millis(1500)).await;
        let metadata = &secret["metadata"];
        let metadata = json!({
            "name": "s3-admin", "namespace": OPERATOR_NAMESPACE,
            "labels": metadata["labels"], "annotations": metadata["annotations"],
        });
        let again = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": secret["data"]});
        assert!(stage.world.cluster.create(again));
        stage.world.pass(Duration::from_secs(60)).await;
        assert_eq!(versions(), before);
        assert_eq!(backend_ready(&stage.world), "EndpointReachable");
    });
}
