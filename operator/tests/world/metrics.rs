//! The output of a scrape after an event (spec §4): every series, with the expected values.

use std::collections::BTreeMap;
use std::time::Duration;

use s3_sim::Versioning;
use serde_json::json;
use stowage_world::fixtures::access_with;
use stowage_world::{Accesses, Foreign, OPERATOR_NAMESPACE, Options};

use crate::support::{Stage, claim, claim_with, condition, object, secrets};

/// Returns the samples of a scrape: series (name and labels, as printed) and value.
fn scrape(stage: &Stage) -> BTreeMap<String, f64> {
    let page = stage.operator.metrics();
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a sample is a series and a value");
            (series.to_owned(), value.parse().expect("a value is a number"))
        })
        .collect()
}

/// Returns the value of a series, or 0 if it doesn't exist, like a query.
fn value(samples: &BTreeMap<String, f64>, series: &str) -> f64 {
    samples.get(series).copied().unwrap_or_default()
}

/// Returns the value of a series that must exist.
fn present(samples: &BTreeMap<String, f64>, series: &str) -> f64 {
    *samples.get(series).unwrap_or_else(|| panic!("no series {series} among {samples:#?}"))
}

// covers: 4.metric.stowage_claims, 1.phase.Deleting
#[test]
fn a_claim_that_goes_and_is_another_operators_counts_as_deleting() {
    Stage::run("", async |stage| {
        let metadata = "{name: photos, namespace: team-a, annotations: {broker.stowage.io/served-by: nobody/nothing}, \
                        finalizers: [broker.stowage.io/bucketclaim-protection]}";
        let kind = "apiVersion: broker.stowage.io/v1alpha1, kind: BucketClaim";
        stage.apply(&format!("{{{kind}, metadata: {metadata}, spec: {{backendRef: {{name: main}}}}}}")).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.world.pass(Duration::from_secs(10)).await;
        assert_eq!(present(&scrape(&stage), r#"stowage_claims{phase="Deleting"}"#), 1.0);
    });
}

// covers: 4.metric.stowage_claims, 4.metric.stowage_backend_ready
// covers: 4.metric.stowage_upstream_request_duration_seconds
// covers: 4.metric.stowage_credential_age_seconds_max, 4.metric.controller_runtime_reconcile_total
// covers: 4.metric.controller_runtime_reconcile_time_seconds
// covers: 4.metric.controller_runtime_active_workers
// covers: 4.metric.controller_runtime_max_concurrent_reconciles, 4.metric.workqueue_depth
// covers: 4.metric.workqueue_adds_total
#[test]
fn a_bound_a_waiting_and_a_failing_claim_show_in_every_family() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.apply(&claim("team-b", "nowhere").replace("name: main", "name: missing")).await;
        stage.apply(&claim_with("team-b", "rival", "bucketName: team-a-photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until_ready_is("team-b", "rival", "BucketNameConflict").await;
        stage.until_ready_is("team-b", "nowhere", "BackendNotReady").await;
        stage.world.pass(Duration::from_secs(100)).await;
        let samples = scrape(&stage);

        assert_eq!(present(&samples, r#"stowage_claims{phase="Bound"}"#), 1.0);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Pending"}"#), 1.0);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Failed"}"#), 1.0);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Creating"}"#), 0.0);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Deleting"}"#), 0.0);
        assert_eq!(present(&samples, r#"stowage_backend_ready{backend="main"}"#), 1.0);
        let age = present(&samples, r#"stowage_credential_age_seconds_max{backend="main"}"#);
        assert!((100.0..110.0).contains(&age), "{age}");
        let call = |operation: &str, result: &str| {
            let labels = format!(r#"{{backend="main",operation="{operation}",result="{result}"}}"#);
            present(&samples, &format!("stowage_upstream_request_duration_seconds_count{labels}"))
        };
        assert_eq!(call("CreateBucket", "success"), 1.0);
        assert_eq!(call("PutBucketTagging", "success"), 1.0);
        assert_eq!(call("GetBucketTagging", "not_found"), 1.0);
        assert!(call("ListBuckets", "success") >= 1.0);

        for controller in ["bucketclaim", "s3backend"] {
            let of = |name: &str| present(&samples, &format!(r#"{name}{{controller="{controller}"}}"#));
            assert_eq!(of("controller_runtime_active_workers"), 0.0);
            assert_eq!(of("controller_runtime_max_concurrent_reconciles"), 16.0);
            let success =
                format!(r#"controller_runtime_reconcile_total{{controller="{controller}",result="success"}}"#);
            let passes = of("controller_runtime_reconcile_time_seconds_count");
            assert!(passes >= 1.0 && present(&samples, &success) == passes, "nothing failed");
            assert_eq!(present(&samples, &format!(r#"workqueue_depth{{name="{controller}"}}"#)), 0.0);
            assert_eq!(present(&samples, &format!(r#"workqueue_adds_total{{name="{controller}"}}"#)), passes);
            assert_eq!(present(&samples, &format!(r#"workqueue_retries_total{{name="{controller}"}}"#)), 0.0);
        }
    });
}

// covers: 4.metric.stowage_accesses, 4.metric.stowage_objectbucketclaims
// covers: 4.metric.stowage_left_alone
#[test]
fn accesses_object_bucket_claims_and_what_is_left_to_another_operator_show() {
    let options = Options { accesses: Accesses::Served, foreign: Some(Foreign::Own), ..Options::default() };
    Stage::run_with(options, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let photos = "buckets: [{claimRef: {namespace: team-a, name: photos}, mode: ReadOnly}]";
        stage.apply(&access_with("team-b", "reader", photos)).await;
        let another = "metadata: {annotations: {broker.stowage.io/served-by: another/cluster}, ";
        stage.apply(&claim("team-a", "films").replace("metadata: {", another)).await;
        stage.apply(&claim("team-b", "own")).await;
        stage.until_ready_is("team-b", "own", "Bound").await;
        let own = "buckets: [{claimRef: {name: own}, mode: ReadOnly}]";
        stage.apply(&access_with("team-b", "films", own).replace("metadata: {", another)).await;
        stage
            .apply(
                "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: buckets}, \
                 provisioner: broker.stowage.io/bucket, reclaimPolicy: Delete, parameters: {backend: main}}",
            )
            .await;
        stage.world.pass(Duration::from_secs(1)).await;
        let obc = |name: &str, class: &str, more: &str| {
            format!(
                "{{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, metadata: {{name: {name}, \
                 namespace: team-b}}, spec: {{storageClassName: {class}, generateBucketName: {name}, {more}}}}}"
            )
        };
        stage.apply(&obc("charts", "buckets", "")).await;
        stage.apply(&obc("unserved", "buckets", "additionalConfig: {maxObjects: \"5\"}")).await;
        stage.apply(&obc("theirs", "another-class", "")).await;
        stage.world.pass(Duration::from_secs(100)).await;
        let samples = scrape(&stage);
        let of = |series: &str| present(&samples, series);
        assert_eq!(of(r#"stowage_accesses{reason="NotShared"}"#), 1.0);
        assert_eq!(of(r#"stowage_accesses{reason="ServedByAnother"}"#), 1.0, "of a bucket that is served here");
        assert_eq!(of(r#"stowage_accesses{reason="Open"}"#), 0.0);
        assert_eq!(of(r#"stowage_objectbucketclaims{phase="Bound"}"#), 1.0);
        assert_eq!(of(r#"stowage_objectbucketclaims{phase="Failed"}"#), 1.0);
        assert_eq!(of(r#"stowage_objectbucketclaims{phase="Pending"}"#), 0.0, "another provisioner's don't count");
        assert_eq!(of(r#"stowage_left_alone{kind="bucketclaim",deleting="false"}"#), 1.0);
        assert_eq!(of(r#"stowage_left_alone{kind="bucketaccess",deleting="false"}"#), 1.0);
        assert_eq!(of(r#"stowage_left_alone{kind="s3backend",deleting="false"}"#), 0.0);
        assert_eq!(of(r#"stowage_left_alone{kind="bucketclaim",deleting="true"}"#), 0.0);
    });
}

// covers: 4.metric.controller_runtime_reconcile_errors_total
// covers: 4.metric.controller_runtime_reconcile_total
// covers: 4.metric.workqueue_retries_total, 4.metric.stowage_upstream_request_duration_seconds
#[test]
fn passes_that_fail_are_counted_as_errors_and_retries() {
    Stage::run("s3:CreateBucket internal-error", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.world.pass(Duration::from_secs(60)).await;
        let samples = scrape(&stage);
        let errors = present(&samples, r#"controller_runtime_reconcile_errors_total{controller="bucketclaim"}"#);
        assert!(errors >= 2.0);
        let results = r#"controller_runtime_reconcile_total{controller="bucketclaim",result="error"}"#;
        assert_eq!(present(&samples, results), errors);
        assert_eq!(present(&samples, r#"workqueue_retries_total{name="bucketclaim"}"#), errors);
        let failed = r#"{backend="main",operation="CreateBucket",result="failed"}"#;
        assert_eq!(present(&samples, &format!("stowage_upstream_request_duration_seconds_count{failed}")), errors);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Creating"}"#), 1.0);
    });
}

// covers: 4.metric.controller_runtime_active_workers
#[test]
fn a_pass_that_waits_for_its_store_is_active() {
    Stage::run("s3:CreateBucket hang", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.world.pass(Duration::from_secs(5)).await;
        let samples = scrape(&stage);
        assert_eq!(present(&samples, r#"controller_runtime_active_workers{controller="bucketclaim"}"#), 1.0);
        stage.world.pass(Duration::from_secs(60)).await;
        let slowest = r#"_bucket{le="10.0",backend="main",operation="CreateBucket",result="no_answer"}"#;
        let samples = scrape(&stage);
        assert_eq!(present(&samples, &format!("stowage_upstream_request_duration_seconds{slowest}")), 0.0);
    });
}

// covers: 4.metric.stowage_rotations_total, 4.metric.stowage_credential_age_seconds_max
#[test]
fn rotations_are_counted_by_what_asked_for_them() {
    Stage::run_for_weeks(async |stage| {
        let timed = "rotationPolicy: {mode: TimeBased, intervalDays: 7, overlapSeconds: 60}";
        stage.apply(&claim_with("team-a", "photos", timed)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(100)).await;
        let ask = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "please"}}});
        stage.patch("bucketclaims", "team-a", "photos", ask).await;
        stage.world.pass(Duration::from_secs(1000)).await;
        stage.world.pass(Duration::from_secs(8 * 24 * 3600)).await;
        let current = object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["accessKeyId"].clone();
        let name = format!("vc-{}", current.as_str().expect("it has one").to_lowercase());
        stage.delete("secrets", OPERATOR_NAMESPACE, &name).await;
        stage.world.pass(Duration::from_secs(1000)).await;
        let samples = scrape(&stage);
        for trigger in ["request", "interval", "repair"] {
            assert_eq!(present(&samples, &format!(r#"stowage_rotations_total{{trigger="{trigger}"}}"#)), 1.0);
        }
        let age = present(&samples, r#"stowage_credential_age_seconds_max{backend="main"}"#);
        assert!((990.0..1010.0).contains(&age), "the one that is left: {age}");
    });
}

// covers: 4.metric.stowage_rotations_total, 4.metric.stowage_access_credential_age_seconds_max
#[test]
fn keys_of_accesses_age_and_their_rotations_are_counted() {
    let resync_interval = Duration::from_secs(86_400);
    let options = Options { accesses: Accesses::Served, resync_interval, ..Options::default() };
    Stage::run_with(options, async |stage| {
        const AGE: &str = "stowage_access_credential_age_seconds_max";
        assert_eq!(present(&scrape(&stage), AGE), 0.0);
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let spec = "buckets: [{claimRef: {name: photos}}], rotationPolicy: {overlapSeconds: 60}";
        stage.apply(&access_with("team-a", "reader", spec)).await;
        let reader = |world: &stowage_world::World| object(world, "bucketaccesses", "team-a", "reader");
        stage.until("it is open", |world| condition(&reader(world), "Ready") == "Open").await;
        stage.world.pass(Duration::from_secs(500)).await;
        let age = present(&scrape(&stage), AGE);
        assert!((490.0..530.0).contains(&age), "{age}");
        let ask = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "please"}}});
        stage.patch("bucketaccesses", "team-a", "reader", ask).await;
        stage.until("there is another", |world| reader(world)["status"]["rotationGeneration"] == 2).await;
        stage.world.pass(Duration::from_secs(30)).await;
        let samples = scrape(&stage);
        assert_eq!(present(&samples, r#"stowage_rotations_total{trigger="request"}"#), 1.0);
        let age = present(&samples, AGE);
        assert!(age < 60.0, "the one before is on its way out: {age}");
    });
}

// covers: 4.metric.stowage_purged_objects_total, 4.metric.stowage_finalizer_duration_seconds
#[test]
fn deletions_are_timed_by_policy_and_objects_counted() {
    Stage::run_with(Options { purge_slice: 1000, ..Options::default() }, async |stage| {
        stage.apply(&claim("team-a", "kept")).await;
        stage.apply(&claim_with("team-a", "photos", "deletionPolicy: Delete, forceDelete: true")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until_ready_is("team-a", "kept", "Bound").await;
        stage.world.store.set_versioning("team-a-photos", Versioning::Enabled);
        for key in 0..1500 {
            stage.world.store.put_object("team-a-photos", &format!("key-{key}"), "x");
        }
        for name in ["photos", "kept"] {
            stage.delete("bucketclaims", "team-a", name).await;
            stage.until_gone("team-a", name).await;
        }
        let samples = scrape(&stage);
        assert_eq!(present(&samples, r#"stowage_purged_objects_total{backend="main"}"#), 1500.0);
        assert_eq!(present(&samples, r#"stowage_finalizer_duration_seconds_count{policy="Delete"}"#), 1.0);
        assert_eq!(present(&samples, r#"stowage_finalizer_duration_seconds_count{policy="Retain"}"#), 1.0);
        assert_eq!(present(&samples, r#"stowage_claims{phase="Bound"}"#), 0.0);
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
        assert_eq!(value(&samples, r#"stowage_credential_age_seconds_max{backend="main"}"#), 0.0);
    });
}

// covers: 4.metric.closed
#[test]
fn the_series_of_a_backend_go_with_it_and_no_label_names_a_claim_or_a_bucket() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let page = stage.operator.metrics();
        assert!(page.contains(r#"backend="main""#));
        for word in ["photos", "team-a", "AKIA"] {
            assert!(!page.contains(word), "{word} in {page}");
        }
        stage.delete("s3backends", "", "main").await;
        stage.world.pass(Duration::from_secs(5)).await;
        let page = stage.operator.metrics();
        let left: Vec<&str> = page.lines().filter(|line| line.contains(r#"backend="main""#)).collect();
        // The credential still exists, so its age is still reported.
        assert!(left.iter().all(|line| line.starts_with("stowage_credential_age_seconds_max")), "{left:?}");
    });
}

// covers: 4.metric.help, 4.metric.stowage_build_info
#[test]
fn every_family_has_a_help_text_and_the_name_that_the_contract_gives_it() {
    Stage::run("", async |stage| {
        let page = stage.operator.metrics();
        let families = [
            "stowage_build",
            "controller_runtime_reconcile",
            "controller_runtime_reconcile_errors",
            "controller_runtime_reconcile_time_seconds",
            "controller_runtime_active_workers",
            "controller_runtime_max_concurrent_reconciles",
            "workqueue_depth",
            "workqueue_adds",
            "workqueue_retries",
            "stowage_claims",
            "stowage_left_alone",
            "stowage_backend_ready",
            "stowage_upstream_request_duration_seconds",
            "stowage_finalizer_duration_seconds",
            "stowage_purged_objects",
            "stowage_rotations",
            "stowage_credential_age_seconds_max",
            "stowage_secrets_without_endpoint",
        ];
        for family in families {
            assert!(page.lines().any(|line| line.starts_with(&format!("# HELP {family} "))), "{family} in {page}");
        }
        let described = page.lines().filter(|line| line.starts_with("# HELP ")).count();
        assert!(page.contains(&format!("stowage_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))), "{page}");
        assert_eq!(described, families.len(), "no family that the contract does not know: {page}");
    });
}
