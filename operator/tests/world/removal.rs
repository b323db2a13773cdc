//! Deletion with `Delete` and `forceDelete` (spec §3.4): a bucket that is proved ours is deleted,
//! with its content if requested. Everything else stays, and a claim reports what it waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use s3_sim::{Dialect, Versioning};
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Options, World};

use crate::support::{Stage, claim, claim_with, events, internal_of, message, object, ready, secrets};

pub const BUCKET: &str = "team-a-photos";
const RESYNC: Duration = Duration::from_secs(700);
pub const DELETE: &str = "deletionPolicy: Delete";
pub const FORCE: &str = "deletionPolicy: Delete, forceDelete: true";

pub async fn bind(stage: &Stage, spec: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}

pub async fn delete(stage: &Stage) {
    stage.delete("bucketclaims", "team-a", "photos").await;
}

pub async fn edit(stage: &Stage, spec: Value) {
    stage.patch("bucketclaims", "team-a", "photos", json!({ "spec": spec })).await;
}

pub fn nudge() -> Value {
    json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": "now"}}})
}

fn paused(on: Value) -> Value {
    json!({"metadata": {"annotations": {"broker.stowage.io/paused": on}}})
}

pub fn bucket_exists(stage: &Stage) -> bool {
    stage.world.store.bucket(BUCKET).is_some()
}

/// Returns true if the claim has an event with this reason, of either type.
pub fn told(stage: &Stage, reason: &str) -> bool {
    events(&stage.world, "photos").iter().any(|(_, told)| told == reason)
}

/// Returns the note of the last event with this reason.
fn note(stage: &Stage, reason: &str) -> String {
    let objects = stage.world.cluster.objects();
    let mut of_reason = objects.iter().filter(|o| o.plural == "events" && o.object["reason"] == reason);
    of_reason.next_back().and_then(|event| event.object["note"].as_str()).unwrap_or_default().to_owned()
}

pub fn access_is_revoked(world: &World) -> bool {
    secrets(world, OPERATOR_NAMESPACE, "virtual-credential").is_empty()
        && secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").is_empty()
}

/// Returns the number of calls of an S3 operation so far.
fn calls(stage: &Stage, operation: &str) -> usize {
    let name = format!("s3:{operation} ");
    stage.world.effects.trace().lines().iter().filter(|line| line.call.to_string().starts_with(&name)).count()
}

/// Returns the number of calls that could destroy data.
fn destructive_calls(stage: &Stage) -> usize {
    ["DeleteObjects", "DeleteObject", "AbortMultipartUpload", "DeleteBucket"]
        .iter()
        .map(|name| calls(stage, name))
        .sum()
}

/// Waits until the claim is deleted, and asserts that none of our objects remain in the cluster.
pub async fn goes(stage: &Stage) {
    stage.until_gone("team-a", "photos").await;
    stage.until("the garbage is collected", |world| secrets(world, "team-a", "consumer-secret").is_empty()).await;
    assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new(), "{}", stage.trace());
}

/// Stores versions, delete markers and an unfinished upload.
pub fn fill(stage: &Stage, keys: usize) {
    let store = &stage.world.store;
    store.set_versioning(BUCKET, Versioning::Enabled);
    for key in 0..keys {
        store.put_object(BUCKET, &format!("key-{key}"), "one");
        store.put_object(BUCKET, &format!("key-{key}"), "two");
    }
    store.start_upload(BUCKET, "unfinished");
}

// covers: 3.4.delete, 4.event.BucketDeleted
#[test]
fn an_empty_bucket_goes_with_its_claim_and_an_event_says_so() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
        assert_eq!(note(&stage, "BucketDeleted"), "bucket team-a-photos is deleted");
        assert!(!told(&stage, "BucketRetained"));
    });
}

// covers: 1.phase.Deleting, 1.ready.BucketNotEmpty, 3.4.notEmpty
#[rstest]
#[case::object(|stage: &Stage| { stage.world.store.put_object(BUCKET, "a", "x"); })]
#[case::upload(|stage: &Stage| { stage.world.store.start_upload(BUCKET, "a"); })]
#[case::old_version(|stage: &Stage| {
    stage.world.store.set_versioning(BUCKET, Versioning::Enabled);
    stage.world.store.put_object(BUCKET, "a", "x");
})]
fn a_bucket_that_is_not_empty_keeps_its_claim_which_says_how_to_go_on(#[case] fill: fn(&Stage)) {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        fill(&stage);
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "BucketNotEmpty").await;
        let way_out = message(&stage.world, "team-a", "photos");
        for words in ["forceDelete: true", "forceDelete: false", "deletionPolicy: Retain", "one patch"] {
            assert!(way_out.contains(words), "{way_out}");
        }
        assert!(access_is_revoked(&stage.world));
        assert_eq!(object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["phase"], "Deleting");
        let before = stage.world.effects.trace().effects();
        stage.world.pass(RESYNC).await;
        assert_eq!(stage.world.effects.trace().counters_after(before).kubernetes_writes, 0);
        assert_eq!(destructive_calls(&stage), 0);
    });
}

// covers: 1.claim.forceDelete.deleting, 3.4.notEmpty.forced, 3.4.emptying
#[test]
fn a_bucket_that_is_not_empty_goes_once_forced() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        fill(&stage, 3);
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "BucketNotEmpty").await;
        edit(&stage, json!({"forceDelete": true})).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
        assert_eq!(note(&stage, "BucketDeleted"), "bucket team-a-photos is deleted with its 7 objects");
    });
}

// covers: 1.annotation.reconcile
#[test]
fn a_bucket_emptied_by_hand_goes() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        stage.world.store.put_object(BUCKET, "a", "x");
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "BucketNotEmpty").await;
        stage.world.store.remove_object(BUCKET, "a");
        stage.patch("bucketclaims", "team-a", "photos", nudge()).await;
        stage.soon("the claim is gone", 5, |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        assert!(!bucket_exists(&stage));
    });
}

// covers: 1.status.purge, 1.ready.Purging, 3.4.emptying.slices, 3.4.emptying.parallel
// covers: 4.event.transitions
#[test]
fn a_big_bucket_is_emptied_in_slices_that_show_progress_and_let_others_work() {
    let plan = "s3:DeleteObjects slow(100)".parse().expect("a plan");
    let options = Options { purge_slice: 2_000, plan, ..Options::default() };
    Stage::run_with(options, async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 5_000);
        delete(&stage).await;
        let mut progress = Vec::new();
        stage.apply(&claim("team-b", "other")).await;
        while bucket_exists(&stage) {
            let status = object(&stage.world, "bucketclaims", "team-a", "photos")["status"].clone();
            if let Some(deleted) = status["purge"]["objectsDeleted"].as_i64() {
                assert_eq!(ready(&stage.world, "team-a", "photos"), "Purging");
                progress.push((deleted, status["purge"]["startedAt"].as_str().map(str::to_owned)));
            }
            stage.world.pass(Duration::from_millis(1)).await;
        }
        goes(&stage).await;
        progress.dedup();
        println!("progress: {progress:?}; DeleteObjects: {}", calls(&stage, "DeleteObjects"));
        assert!(progress.len() >= 3 && progress.is_sorted());
        assert!(progress.iter().all(|(_, started)| *started == progress[0].1), "one start");
        assert_eq!(note(&stage, "BucketDeleted"), "bucket team-a-photos is deleted with its 10001 objects");
        assert!(calls(&stage, "DeleteObjects") <= 11, "a thousand per request");
        let purging = events(&stage.world, "photos").iter().filter(|(_, reason)| reason == "Purging").count();
        assert_eq!(purging, 1, "one event per transition");
        stage.until_ready_is("team-b", "other", "Bound").await;
    });
}

// covers: 3.4.emptying.parallel
#[test]
fn requests_of_one_slice_are_under_way_together() {
    // Every DeleteObjects takes a second to arrive: ten in sequence would take ten seconds.
    Stage::run("s3:DeleteObjects slow(1000)", async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 5_000);
        delete(&stage).await;
        stage.soon("the bucket is gone", 5, |world| world.store.bucket(BUCKET).is_none()).await;
        goes(&stage).await;
    });
}

// covers: 3.2.adoption.kept, 3.4.unproved
#[rstest]
#[case("Owned")]
#[case("Any")]
fn a_bucket_that_was_taken_over_is_never_emptied_nor_deleted(#[case] policy: &str) {
    Stage::run("", async |stage| {
        stage.set_adoption(policy).await;
        if policy == "Any" {
            stage.world.store.put_bucket(ADMIN_ACCOUNT, BUCKET);
        } else {
            bind(&stage, "").await;
            delete(&stage).await;
            goes(&stage).await;
        }
        stage.world.store.put_object(BUCKET, "a", "x");
        bind(&stage, FORCE).await;
        delete(&stage).await;
        goes(&stage).await;
        assert_eq!(stage.world.store.objects(BUCKET).len(), 1);
        assert_eq!(destructive_calls(&stage), 0);
        assert_eq!(note(&stage, "BucketRetained"), "bucket team-a-photos was taken over and is kept");
    });
}

fn another_claims() -> Option<BTreeMap<String, String>> {
    let tags = [("installation", "elsewhere"), ("claim", "team-x/photos"), ("claim-uid", "u-9")];
    Some(tags.map(|(key, value)| (format!("broker.stowage.io/{key}"), value.to_owned())).into())
}

// covers: 3.2.proof, 3.4.unproved
#[rstest]
#[case::taken_off(None)]
#[case::another_claims(another_claims())]
fn a_bucket_whose_tags_do_not_say_that_it_is_ours_is_kept(#[case] tags: Option<BTreeMap<String, String>>) {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        stage.world.store.put_object(BUCKET, "a", "x");
        stage.world.store.set_tags(BUCKET, tags);
        delete(&stage).await;
        goes(&stage).await;
        assert_eq!(stage.world.store.objects(BUCKET).len(), 1);
        assert_eq!(destructive_calls(&stage), 0);
        assert_eq!(note(&stage, "BucketRetained"), "bucket team-a-photos is not proved to be this claim's and is kept");
    });
}

// covers: 3.2.proof.untaggable
// covers: 2.record.settled
#[test]
fn without_tagging_a_bucket_goes_if_its_claim_was_bound() {
    let options = Options { dialect: Dialect { tagging: false, ..Dialect::default() }, ..Options::default() };
    Stage::run_with(options, async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 2);
        delete(&stage).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
        assert!(told(&stage, "BucketDeleted"));
    });
}

// covers: 3.2.proof
#[test]
fn a_claim_that_was_refused_a_strangers_bucket_does_not_touch_it() {
    for tagging in [true, false] {
        let options = Options { dialect: Dialect { tagging, ..Dialect::default() }, ..Options::default() };
        Stage::run_with(options, async |stage| {
            stage.world.store.put_bucket(ADMIN_ACCOUNT, BUCKET);
            stage.apply(&claim_with("team-a", "photos", FORCE)).await;
            stage.until_ready_is("team-a", "photos", "BucketExists").await;
            delete(&stage).await;
            goes(&stage).await;
            assert!(bucket_exists(&stage));
            assert_eq!(destructive_calls(&stage), 0);
        });
    }
}

// covers: 3.2.proof.unfinished
#[rstest]
#[case::empty(false)]
#[case::filled_by_somebody(true)]
fn a_bucket_made_but_never_tagged_goes_only_if_it_is_empty(#[case] filled: bool) {
    Stage::run("s3:PutBucketTagging access-denied", async |stage| {
        stage.apply(&claim_with("team-a", "photos", FORCE)).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(bucket_exists(&stage));
        if filled {
            stage.world.store.put_object(BUCKET, "a", "x");
        }
        delete(&stage).await;
        goes(&stage).await;
        assert_eq!(bucket_exists(&stage), filled);
        assert_eq!(calls(&stage, "DeleteObjects"), 0, "never emptied");
    });
}

// covers: 3.4.live.slice
#[rstest]
#[case::retain(json!({"forceDelete": false, "deletionPolicy": "Retain"}))]
#[case::no_force(json!({"forceDelete": false}))]
fn an_edit_is_seen_before_the_next_slice(#[case] spec: Value) {
    let plan = "s3:DeleteObjects slow(100)".parse().expect("a plan");
    let options = Options { purge_slice: 1_000, plan, ..Options::default() };
    Stage::run_with(options, async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 3_000);
        delete(&stage).await;
        stage.until("a slice is gone", |world| ready(world, "team-a", "photos") == "Purging").await;
        edit(&stage, spec).await;
        let slices = calls(&stage, "DeleteObjects");
        stage.world.pass(RESYNC).await;
        assert!(calls(&stage, "DeleteObjects") <= slices + 1, "beyond the slice in flight");
        assert!(bucket_exists(&stage));
        assert!(!stage.world.store.versions(BUCKET).is_empty());
    });
}

// covers: 3.4.gone
#[test]
fn a_bucket_gone_already_counts_as_done() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        stage.world.store.remove_bucket(BUCKET);
        delete(&stage).await;
        goes(&stage).await;
        assert_eq!(destructive_calls(&stage), 0);
    });
}

// covers: 3.2.proof
#[test]
fn a_bucket_made_again_by_another_is_kept() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, BUCKET);
        stage.world.store.put_object(BUCKET, "theirs", "x");
        delete(&stage).await;
        goes(&stage).await;
        assert_eq!(stage.world.store.objects(BUCKET).len(), 1);
        assert_eq!(destructive_calls(&stage), 0);
    });
}

// covers: 3.2.lateCall
#[test]
fn after_a_deletion_without_an_answer_the_record_stays_a_deadline_longer() {
    Stage::run("s3:DeleteBucket@1 lost-answer", async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        stage.until("the bucket is gone", |world| world.store.bucket(BUCKET).is_none()).await;
        stage.world.pass(Duration::from_secs(20)).await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1, "the call may still land");
        goes(&stage).await;
        assert!(told(&stage, "BucketDeleted"));
    });
}

// covers: 1.annotation.paused.deleted
#[test]
fn a_paused_claim_loses_its_access_and_keeps_its_bucket_until_it_goes_on() {
    Stage::run("", async |stage| {
        bind(&stage, &format!("{FORCE}, anonymousAccess: {{mode: ReadOnly}}")).await;
        fill(&stage, 1);
        stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        delete(&stage).await;
        stage.until("access is revoked", access_is_revoked).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(destructive_calls(&stage), 0);
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
    });
}

// covers: 3.4.policyEdit
#[rstest]
#[case::proved_by_its_tags(true)]
#[case::not_provable(false)]
fn the_policy_can_be_changed_to_delete_while_deleting(#[case] tagging: bool) {
    let options = Options { dialect: Dialect { tagging, ..Dialect::default() }, ..Options::default() };
    Stage::run_with(options, async |stage| {
        bind(&stage, "").await;
        if !tagging {
            stage.world.store.put_object(BUCKET, "a", "x");
        }
        stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
        delete(&stage).await;
        stage.until("access is revoked", access_is_revoked).await;
        edit(&stage, json!({"deletionPolicy": "Delete"})).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        goes(&stage).await;
        assert_eq!(bucket_exists(&stage), !tagging, "revoked under Retain, nothing but tags proves it ours");
    });
}

// covers: 3.4.namespace
#[test]
fn a_namespace_with_buckets_to_delete_ends() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 3);
        stage.delete("namespaces", "", "team-a").await;
        stage.until("the namespace is gone", |world| object(world, "namespaces", "", "team-a").is_null()).await;
        assert!(!bucket_exists(&stage));
        assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
    });
}
