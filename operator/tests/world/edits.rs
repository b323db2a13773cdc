//! Edits of a bound claim (spec §3.7).

use std::time::Duration;

use s3_sim::{Dialect, Versioning};
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Options, World};

use crate::support::{
    Stage, claim, claim_with, data, keys, message, object, published, ready, secrets, tenant_can_work,
};

const RESYNC: Duration = Duration::from_secs(660);

// covers: 1.status.boundSecretName, 3.7.rename
#[test]
fn a_renamed_consumer_secret_is_written_first_and_the_old_one_removed_then() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let before = stage.world.effects.trace().effects();
        let renamed = json!({"spec": {"writeConnectionSecretToRef": {"name": "photos-new"}}});
        stage.patch("bucketclaims", "team-a", "photos", renamed).await;
        stage
            .until("the new Secret stands alone", |world| secrets(world, "team-a", "consumer-secret") == ["photos-new"])
            .await;
        stage.until("the status follows", |world| status(world)["boundSecretName"] == "photos-new").await;
        let trace = stage.world.effects.trace();
        let lines = trace.lines().iter().filter(|line| line.number > before).map(ToString::to_string);
        let writes: Vec<String> = lines.filter(|line| line.contains("secrets team-a/")).collect();
        assert!(writes[0].contains("kube:create") && writes[1].contains("kube:delete"), "{writes:#?}");
        tenant_can_work(&stage.world, "team-a", "photos-new").await;
    });
}

// covers: 2.consumer.conflict, 3.7.rename.foreign
#[test]
fn a_rename_to_a_strangers_secret_is_a_conflict_and_the_old_one_stays() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage
            .apply(
                "{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: team-a}, stringData: {x: theirs}}",
            )
            .await;
        let renamed = json!({"spec": {"writeConnectionSecretToRef": {"name": "theirs"}}});
        stage.patch("bucketclaims", "team-a", "photos", renamed).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        assert_eq!(status(&stage.world)["boundSecretName"], "photos-s3");
        assert_eq!(data(&stage.world, "team-a", "theirs").len(), 1);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

/// Applies a claim with this spec until it is bound, and waits two minutes.
async fn bound(stage: &Stage, spec: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.world.pass(Duration::from_secs(120)).await;
}

async fn edit(stage: &Stage, spec: Value) {
    stage.patch("bucketclaims", "team-a", "photos", json!({ "spec": spec })).await;
}

async fn rotate(stage: &Stage) {
    let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
    stage.patch("bucketclaims", "team-a", "photos", request).await;
}

fn versioning(world: &World) -> Versioning {
    world.store.bucket("team-a-photos").unwrap().versioning
}

/// Returns the number of the operator's calls of this operation.
fn calls(world: &World, operation: &str) -> usize {
    let name = format!("s3:{operation} ");
    world.effects.trace().lines().iter().filter(|line| line.to_string().contains(&name)).count()
}

// covers: 3.7.versioning, 1.claim.versioning.unset
#[test]
fn versioning_is_set_once_for_each_edit_and_left_alone_when_it_is_taken_back() {
    Stage::run("", async |stage| {
        let world = &stage.world;
        bound(&stage, "").await;
        assert_eq!(calls(world, "GetBucketVersioning"), 0, "nothing is asked that nobody wants to know");
        edit(&stage, json!({"versioning": "Enabled"})).await;
        stage.soon("it is enabled", 10, |world| versioning(world) == Versioning::Enabled).await;
        edit(&stage, json!({"versioning": "Suspended"})).await;
        stage.soon("it is suspended", 10, |world| versioning(world) == Versioning::Suspended).await;
        let asked = calls(world, "GetBucketVersioning");
        edit(&stage, json!({"versioning": null})).await;
        world.pass(RESYNC).await;
        assert_eq!(versioning(world), Versioning::Suspended);
        assert_eq!((calls(world, "PutBucketVersioning"), calls(world, "GetBucketVersioning")), (2, asked));
        assert_eq!(ready(world, "team-a", "photos"), "Bound");
    });
}

#[test]
fn versioning_that_somebody_else_changed_is_put_right_by_the_drift_check_and_nothing_is_asked_in_between() {
    Stage::run("", async |stage| {
        bound(&stage, "versioning: Enabled").await;
        stage.world.store.set_versioning("team-a-photos", Versioning::Suspended);
        stage.soon("it is put right", 720, |world| versioning(world) == Versioning::Enabled).await;
        stage.world.pass(Duration::from_secs(3600)).await;
        let (asked, looked) = (calls(&stage.world, "GetBucketVersioning"), calls(&stage.world, "GetBucketTagging"));
        assert!(asked < looked, "{asked} questions, {looked} looks");
        assert_eq!(calls(&stage.world, "PutBucketVersioning"), 2);
    });
}

// covers: 3.7.versioning
#[test]
fn an_edit_of_versioning_outlives_every_failure_of_the_store() {
    for fault in ["lost-answer", "internal-error", "lost-request", "crash(before)", "crash(after-effect)"] {
        for operation in ["GetBucketVersioning", "PutBucketVersioning"] {
            Stage::run(&format!("s3:{operation}@1 {fault}"), async |stage| {
                bound(&stage, "").await;
                edit(&stage, json!({"versioning": "Enabled"})).await;
                stage.until("it is enabled", |world| versioning(world) == Versioning::Enabled).await;
                stage.until_ready_is("team-a", "photos", "Bound").await;
                assert!(stage.world.effects.unfired().is_empty());
                assert!(calls(&stage.world, "PutBucketVersioning") <= 2);
            });
        }
    }
}

// covers: 1.claim.versioning.adopted
#[test]
fn versioning_is_never_set_on_a_bucket_that_was_taken_over() {
    Stage::run("", async |stage| {
        stage.set_adoption("Any").await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        bound(&stage, "").await;
        edit(&stage, json!({"versioning": "Enabled"})).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(calls(&stage.world, "PutBucketVersioning"), 0);
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
    });
}

#[test]
fn versioning_that_the_store_does_not_have_is_told_without_a_loop_and_costs_nobody_a_key() {
    let dialect = Dialect { versioning: false, ..Dialect::default() };
    Stage::run_with(Options { dialect, ..Options::default() }, async |stage| {
        let world = &stage.world;
        bound(&stage, "rotationPolicy: {overlapSeconds: 0}").await;
        edit(&stage, json!({"versioning": "Enabled"})).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(message(world, "team-a", "photos").contains("versioning"));
        assert_eq!(status(world)["phase"], "Bound");
        let before = calls(world, "GetBucketVersioning");
        world.pass(Duration::from_secs(3600)).await;
        let asked = calls(world, "GetBucketVersioning") - before;
        assert!(asked <= 16, "seven resyncs and drift checks an hour, not {asked} calls");
        let old = published(world);
        rotate(&stage).await;
        stage.soon("rotation goes on", 10, |world| published(world) != old).await;
        edit(&stage, json!({"versioning": null})).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}

// covers: 3.7.quota, 3.3.stamp.fixed
#[test]
fn a_quota_edited_in_mid_rotation_reaches_both_keys_and_moves_no_stamp() {
    Stage::run("", async |stage| {
        let world = &stage.world;
        bound(&stage, "quota: {hard: 1Ki}").await;
        let old = published(world);
        rotate(&stage).await;
        stage.until("the old key is stamped", |world| keys(world).get(&old).is_some_and(Option::is_some)).await;
        let stamped = keys(world);
        let rotation = json!({"overlapSeconds": 10});
        edit(&stage, json!({"quota": {"soft": "1Ki", "hard": "2Ki"}, "rotationPolicy": rotation})).await;
        let quotas = |world: &World| {
            let names = secrets(world, OPERATOR_NAMESPACE, "virtual-credential");
            let quota = |name: &String| data(world, OPERATOR_NAMESPACE, name).remove("quota_hard_bytes");
            names.iter().map(quota).collect::<Vec<_>>()
        };
        stage
            .soon("both keys have it", 10, |world| quotas(world) == [Some("2048".to_owned()), Some("2048".to_owned())])
            .await;
        stage
            .soon("the tenant sees it", 10, |world| data(world, "team-a", "photos-s3")["QUOTA_SOFT_BYTES"] == "1024")
            .await;
        assert_eq!(keys(world), stamped, "a stamp never moves");
    });
}

#[test]
fn a_strangers_secret_in_the_place_of_the_binding_is_not_written_to() {
    Stage::run("kube:create secrets@4 already-exists(foreign)", async |stage| {
        bound(&stage, "").await;
        edit(&stage, json!({"anonymousAccess": {"mode": "ReadOnly"}})).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        let uid = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        let name = format!("ab-{}", uid.as_str().unwrap());
        let theirs = object(&stage.world, "secrets", OPERATOR_NAMESPACE, &name);
        assert_eq!(theirs["data"], json!({"stranger": "eA=="}));
        assert!(message(&stage.world, "team-a", "photos").contains(&name));
        stage.delete("secrets", OPERATOR_NAMESPACE, &name).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "anonymous-binding"), [name]);
    });
}

// covers: 3.7.anonymous
#[test]
fn the_rate_of_anonymous_access_follows_the_spec() {
    Stage::run("", async |stage| {
        bound(&stage, "anonymousAccess: {mode: ReadOnly}").await;
        let rate = |world: &World| {
            let binding = secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").remove(0);
            data(world, OPERATOR_NAMESPACE, &binding)["anonymous_per_source_ip_rps"].clone()
        };
        assert_eq!(rate(&stage.world), "0");
        edit(&stage, json!({"anonymousAccess": {"mode": "ReadOnly", "perSourceIPRPS": 7}})).await;
        stage.soon("the binding has it", 10, |world| rate(world) == "7").await;
    });
}

// covers: 3.7.rotationPolicy, 1.status.nextRotationAt, 3.3.due.time
#[test]
fn a_rotation_policy_edited_counts_for_the_key_that_is_there() {
    Stage::run_for_weeks(async |stage| {
        let world = &stage.world;
        bound(&stage, "").await;
        let old = published(world);
        world.pass(Duration::from_secs(8 * 86_400)).await;
        assert_eq!((published(world), &status(world)["nextRotationAt"]), (old.clone(), &Value::Null));
        edit(&stage, json!({"rotationPolicy": {"mode": "TimeBased", "intervalDays": 30}})).await;
        stage.soon("the next rotation is told", 10, |world| status(world)["nextRotationAt"].is_string()).await;
        assert_eq!(published(world), old, "it is not yet old enough");
        edit(&stage, json!({"rotationPolicy": {"mode": "TimeBased", "intervalDays": 7}})).await;
        stage.soon("it is old enough now", 10, |world| published(world) != old).await;
    });
}

// covers: 1.annotation.paused
#[test]
fn edits_of_a_paused_claim_take_effect_when_the_pause_ends() {
    Stage::run("", async |stage| {
        let world = &stage.world;
        let pause = |value: Value| json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}});
        bound(&stage, "").await;
        let old = published(world);
        stage.patch("bucketclaims", "team-a", "photos", pause(json!("true"))).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        let before = world.effects.trace().effects();
        rotate(&stage).await;
        let spec = json!({"versioning": "Enabled", "quota": {"hard": "2Ki"}, "anonymousAccess": {"mode": "ReadOnly"}});
        edit(&stage, spec).await;
        world.pass(Duration::from_secs(60)).await;
        assert_eq!((published(world), versioning(world)), (old.clone(), Versioning::Unversioned));
        let counters = world.effects.trace().counters_after(before);
        assert_eq!((counters.kubernetes_writes, counters.s3_calls), (1, 0), "the status alone is written");
        stage.patch("bucketclaims", "team-a", "photos", pause(Value::Null)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.soon("versioning is set", 10, |world| versioning(world) == Versioning::Enabled).await;
        stage.soon("the request is handled", 10, |world| published(world) != old).await;
        assert_eq!(data(world, "team-a", "photos-s3")["QUOTA_HARD_BYTES"], "2048");
        assert_eq!(secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").len(), 1);
    });
}

fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}
