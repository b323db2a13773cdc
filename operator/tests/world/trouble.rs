//! Permanent refusals, undecodable objects, and secrets in logs.

use std::time::Duration;

use stowage_operator::api;
use stowage_world::effects::{Fault, Outage, S3Fault, S3Operation};
use stowage_world::{ADMIN_SECRET_KEY, OPERATOR_NAMESPACE, World};

use crate::secrecy::secret_keys;
use crate::support::{Stage, claim, claim_with, data, message, ready, secrets};

// covers: 1.ready.BackendError, 3.5.permanent
#[test]
fn a_refusal_for_good_is_told_gives_no_access_and_is_not_asked_again_and_again() {
    for (fault, telling) in
        [("s3:CreateBucket access-denied", "CreateBucket"), ("s3:PutBucketTagging access-denied", "PutBucketTagging")]
    {
        Stage::run(fault, async |stage| {
            stage.apply(&claim("team-a", "photos")).await;
            stage.until_ready_is("team-a", "photos", "BackendError").await;
            assert!(message(&stage.world, "team-a", "photos").contains(telling));
            let before = stage.world.effects.trace().effects();
            stage.world.pass(Duration::from_secs(3600)).await;
            let calls = stage.world.effects.trace().counters_after(before);
            // For a bucket without tags, a pass makes two calls to look at it, two for its content,
            // and two for its owner, and then the refused one.
            assert!(calls.s3_calls <= 7 * 8, "an hour holds seven resyncs at most, not {} calls", calls.s3_calls);
            assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
            assert_eq!(ready(&stage.world, "team-a", "photos"), "BackendError");
        });
    }
}

// covers: 3.5.undecodable
#[test]
fn an_object_that_can_not_be_decoded_stops_nobody_else() {
    Stage::run("", async |stage| {
        for mut crd in api::crds() {
            let exact = crd.clone();
            for version in &mut crd.spec.versions {
                let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()).unwrap();
                schema.x_kubernetes_validations = None;
                schema.properties.as_mut().unwrap().remove("spec");
                schema.properties.as_mut().unwrap().remove("status");
                schema.required = None;
                schema.x_kubernetes_preserve_unknown_fields = Some(true);
            }
            stage.world.cluster.install_crd(&crd).expect("the loose definition is valid");
            let kind = exact.spec.names.kind.as_str();
            let namespace = if kind == "BucketClaim" { "namespace: team-a" } else { "" };
            let bad = format!(
                "{{apiVersion: broker.stowage.io/v1alpha1, kind: {kind}, metadata: {{name: a-bad-one, {namespace}}}, \
                 spec: {{backendRef: 7, endpoint: [1]}}}}"
            );
            stage.apply(&bad).await;
            stage.world.cluster.install_crd(&exact).expect("the project's own CRDs are valid");
        }
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}

// covers: 3.4.terminating
#[test]
fn a_namespace_that_is_going_away_is_not_asked_again() {
    // The third Secret that is created is the tenant's.
    Stage::run("kube:create secrets@3 namespace-terminating", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        let refused = |world: &World| !world.effects.trace().lines().iter().all(|line| line.fault.is_none());
        stage.until("the Secret is refused", refused).await;
        let before = stage.world.effects.trace().effects();
        // Long enough for the first retries of a backoff, too short for a drift check, which would
        // retry as well.
        stage.world.pass(Duration::from_secs(5)).await;
        let counters = stage.world.effects.trace().counters_after(before);
        assert_eq!((counters.kubernetes_requests, counters.s3_calls), (0, 0), "{}", stage.trace());
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
    });
}

// covers: 3.live.conflict
#[test]
fn a_name_that_is_taken_is_looked_at_once() {
    Stage::run("", async |stage| {
        stage
            .apply("{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a}, stringData: {a: b}}")
            .await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        let trace = stage.world.effects.trace();
        let lines = trace.lines().iter().map(|line| line.call.to_string());
        let of_secret: Vec<String> = lines.filter(|call| call.contains("secrets team-a/")).collect();
        assert_eq!(of_secret, ["kube:create secrets team-a/", "kube:get secrets team-a/photos-s3"]);
    });
}

// covers: 4.span, 4.pass
#[test]
fn a_pass_is_a_line_that_names_claim_generation_and_what_it_did() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let log = stage.secrecy.log();
        let span = "claim{namespace=\"team-a\" name=\"photos\" generation=1}";
        let told: Vec<&str> = log.lines().filter(|line| line.contains("INFO") && line.contains(span)).collect();
        let [pass] = told.as_slice() else { panic!("not one line: {log}") };
        let acts = ["add the finalizer", "create record", "create bucket team-a-photos", "create Secret photos-s3"];
        assert!(acts.iter().all(|act| pass.contains(act)) && pass.contains("seconds="), "{pass}");
    });
}

// covers: 4.secrecy
#[test]
fn no_secret_key_is_in_logs_events_or_status() {
    let plan = "kube:create secrets@3 server-error(applied); kube:create secrets@4 lost-answer; \
        s3:CreateBucket@1 internal-error; kube:patch secrets@2 conflict";
    Stage::run(plan, async |stage| {
        stage.apply(&claim_with("team-a", "photos", "quota: {hard: 1Ki}")).await;
        stage.apply(&claim_with("team-b", "photos", "bucketName: team-a-photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let mut minted = vec![ADMIN_SECRET_KEY.to_owned()];
        for _ in 0..2 {
            let credential = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
            minted.push(data(&stage.world, OPERATOR_NAMESPACE, &credential)["secret_access_key"].clone());
            let tampered = serde_json::json!({"stringData": {"AWS_SECRET_ACCESS_KEY": "tampered"}});
            stage.patch("secrets", "team-a", "photos-s3", tampered).await;
            stage.world.pass(Duration::from_secs(30)).await;
            stage.delete("secrets", OPERATOR_NAMESPACE, &credential).await;
            stage.world.pass(Duration::from_secs(30)).await;
        }
        let damage = serde_json::json!({"stringData": {"access_key_id": "AKIAFORGED"}});
        let credential = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        minted.push(data(&stage.world, OPERATOR_NAMESPACE, &credential)["secret_access_key"].clone());
        stage.patch("secrets", OPERATOR_NAMESPACE, &credential, damage).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.world.pass(Duration::from_secs(30)).await;
        minted.sort();
        minted.dedup();
        assert_eq!(minted.len(), 4);
        assert!(stage.secrecy.log().contains("create a credential"), "the log is not captured");
        // The stage asserts when it is dropped that none of them is shown, as in every test.
        let known = secret_keys(&stage.world);
        assert!(minted.iter().all(|key| known.contains(key)), "also those of Secrets that are gone");
    });
}

// covers: 3.5.backoff.short
#[test]
fn four_short_answers_that_a_store_is_busy_cost_a_claim_less_than_three_seconds() {
    let plan = (1..=4).map(|call| format!("s3:CreateBucket@{call} slow-down")).collect::<Vec<_>>().join("; ");
    Stage::run(&plan, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.soon("the claim is bound", 3, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert_eq!(stage.trace().matches("s3:CreateBucket").count(), 5, "{}", stage.trace());
    });
}

/// Enough calls fail that the circuit of the operation opens.
// covers: 3.5.backoff.short
#[test]
fn a_second_of_trouble_costs_many_claims_seconds_as_well() {
    Stage::run("", async |stage| {
        const STORE: &str = "s3.example:9000";
        let busy = Outage {
            host: STORE.to_owned(),
            operation: S3Operation::named("CreateBucket"),
            fault: Fault::S3(S3Fault::SlowDown),
        };
        stage.world.effects.begin_outage(busy);
        let names: Vec<String> = (0..8).map(|number| format!("claim-{number}")).collect();
        let all: Vec<String> = names.iter().map(|name| claim("team-a", name)).collect();
        stage.apply(&all.join("\n---\n")).await;
        stage.world.pass(Duration::from_secs(1)).await;
        stage.world.effects.end_outages(STORE);
        assert!(stage.trace().matches("s3:CreateBucket").count() >= 5, "it is given no rest: {}", stage.trace());
        let all_bound = |world: &World| names.iter().all(|name| ready(world, "team-a", name) == "Bound");
        stage.soon("all are bound", 4, all_bound).await;
    });
}
