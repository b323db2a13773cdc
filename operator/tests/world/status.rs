//! The status of a claim (spec §1), and the times at which it is written.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, STORE_ENDPOINT, World};

use crate::support::{Stage, claim, claim_with, condition, data, internal_of, object, secrets, tenant_can_work};
use crate::troubles::Trouble;

const MINUTE: u64 = 60;

/// Every reason of every condition of a claim, by type and status (spec §1).
const REASONS: [(&str, &str, &[&str]); 6] = [
    ("Ready", "True", &["Bound"]),
    (
        "Ready",
        "False",
        &[
            "BackendNotReady",
            "BackendNotAllowed",
            "TemplateInvalid",
            "BucketNameConflict",
            "BucketExists",
            "BucketMissing",
            "SecretConflict",
            "CreationInconsistent",
            "ServedByAnother",
            "BackendError",
            "BucketNotEmpty",
            "Purging",
            "DeletionBlocked",
            "Paused",
        ],
    ),
    ("BucketCreated", "True", &["CreatedOnBackend", "Adopted"]),
    ("BucketCreated", "False", &["Creating", "BackendError", "BucketExists", "BucketNameConflict", "BucketMissing"]),
    ("CredentialsProvisioned", "True", &["SecretWritten"]),
    ("CredentialsProvisioned", "False", &["SecretConflict", "CreationInconsistent", "Revoked"]),
];

fn photos(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")
}

fn conditions(claim: &Value) -> Vec<Value> {
    claim["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the time at which the claim's condition last changed its status.
fn since(world: &World, type_: &str) -> String {
    let conditions = conditions(&photos(world));
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.map(|condition| text(&condition["lastTransitionTime"]).to_owned()).unwrap_or_default()
}

/// Asserts the invariants of every status.
fn assert_well_formed(claim: &Value) {
    let conditions = conditions(claim);
    let ready = condition(claim, "Ready");
    for condition in &conditions {
        let (type_, status, reason) =
            (text(&condition["type"]), text(&condition["status"]), text(&condition["reason"]));
        assert_eq!(condition["observedGeneration"], claim["metadata"]["generation"], "{condition}");
        let allowed = REASONS.iter().find(|(of, when, _)| (*of, *when) == (type_, status));
        match allowed {
            Some((_, _, reasons)) => assert!(reasons.contains(&reason), "{condition}"),
            None => assert_eq!((type_ == "Stalled" || type_ == "Reconciling", status, reason), (true, "True", &*ready)),
        }
    }
    let has = |type_: &str| conditions.iter().any(|condition| condition["type"] == type_);
    assert!(!(has("Stalled") && has("Reconciling")), "{conditions:#?}");
    assert_eq!(has("Stalled") || has("Reconciling"), !["Bound", "Paused"].contains(&&*ready), "{conditions:#?}");
    assert_eq!(claim["status"]["observedGeneration"], claim["metadata"]["generation"]);
}

// covers: 1.status.bucketName, 1.status.backend, 1.status.bucketOrigin, 1.status.proxyEndpoint
// covers: 1.status.boundSecretName, 1.status.accessKeyId, 1.status.rotationGeneration
// covers: 1.status.rotatedAt
// covers: 1.status.nextRotationAt, 1.status.observedGeneration, 1.condition.generation
// covers: 1.phase.Bound
// covers: 1.bucketCreated.CreatedOnBackend, 1.credentialsProvisioned.SecretWritten, 1.ready.Bound
#[test]
fn the_status_of_a_bound_claim_says_what_it_has() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let claim = photos(&stage.world);
        assert_well_formed(&claim);
        let mut status = claim["status"].clone();
        status.as_object_mut().unwrap().remove("conditions");
        let credential = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        let credential = object(&stage.world, "secrets", OPERATOR_NAMESPACE, &credential);
        let expected = json!({
            "observedGeneration": 1,
            "phase": "Bound",
            "bucketName": "team-a-photos",
            "backend": {"name": "main", "endpoint": STORE_ENDPOINT},
            "bucketOrigin": "Created",
            "proxyEndpoint": GATEWAY_ENDPOINT,
            "boundSecretName": "photos-s3",
            "binding": {"name": "photos-s3"},
            "accessKeyId": data(&stage.world, "team-a", "photos-s3")["AWS_ACCESS_KEY_ID"],
            "rotationGeneration": 1,
            "rotatedAt": credential["metadata"]["creationTimestamp"],
        });
        assert_eq!(status, expected);
        assert_eq!(condition(&claim, "BucketCreated"), "CreatedOnBackend");
        assert_eq!(condition(&claim, "CredentialsProvisioned"), "SecretWritten");
    });
}

// covers: 1.status.observedGeneration, 1.condition.generation, 1.status.atRest
#[test]
fn an_edit_is_acknowledged_in_every_condition_and_moves_no_transition_time() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let before = since(&stage.world, "Ready");
        stage.world.pass(Duration::from_secs(30)).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"quota": {"hard": "1Ki"}}})).await;
        stage.soon("it is acknowledged", 5, |world| photos(world)["status"]["observedGeneration"] == 2).await;
        assert_well_formed(&photos(&stage.world));
        assert_eq!(since(&stage.world, "Ready"), before);
    });
}

// covers: 1.status.atRest, 1.phase.Pending, 1.condition.absent, 1.condition.kstatus
#[test]
fn a_transition_time_moves_with_the_status_of_a_condition_and_not_with_its_reason() {
    Stage::run("", async |stage| {
        stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": "http://nowhere.example"}})).await;
        stage.world.pass(Duration::from_secs(60)).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        let claim = photos(&stage.world);
        assert_well_formed(&claim);
        assert_eq!(claim["status"]["phase"], "Pending");
        let types: Vec<String> = conditions(&claim).iter().map(|c| text(&c["type"]).to_owned()).collect();
        assert_eq!(types, ["Ready", "Reconciling"], "nothing else was tried");
        let first = since(&stage.world, "Ready");
        stage.world.pass(Duration::from_secs(60)).await;
        let refuse = json!({"spec": {"endpoint": STORE_ENDPOINT, "allowedNamespaces": {}}});
        stage.patch("s3backends", "", "main", refuse).await;
        stage.until_ready_is("team-a", "photos", "BackendNotAllowed").await;
        assert_well_formed(&photos(&stage.world));
        assert_eq!(since(&stage.world, "Ready"), first);
        stage.world.pass(Duration::from_secs(60)).await;
        stage.patch("s3backends", "", "main", json!({"spec": {"allowedNamespaces": null}})).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_well_formed(&photos(&stage.world));
        assert!(since(&stage.world, "Ready") > first);
    });
}

/// The other fields of a claim in trouble besides `Ready`: bucket, credentials, `Stalled`, phase.
type Shown = (&'static str, &'static str, &'static str, &'static str);

// covers: 1.ready.BackendNotReady, 1.ready.BackendNotAllowed, 1.ready.TemplateInvalid
// covers: 1.ready.BucketNameConflict
// covers: 1.ready.BucketExists, 1.ready.BucketMissing, 1.ready.SecretConflict
// covers: 1.ready.CreationInconsistent, 1.ready.ServedByAnother
// covers: 1.ready.BackendError, 1.ready.BucketNotEmpty, 1.ready.DeletionBlocked
// covers: 1.bucketCreated.BucketNameConflict, 1.bucketCreated.BucketExists
// covers: 1.bucketCreated.BucketMissing
// covers: 1.bucketCreated.BackendError, 1.credentialsProvisioned.SecretConflict
// covers: 1.credentialsProvisioned.CreationInconsistent, 1.credentialsProvisioned.Revoked
// covers: 1.condition.kstatus, 1.condition.stalled, 1.condition.absent, 1.condition.generation
// covers: 1.phase.Pending, 1.phase.Failed, 1.phase.Creating, 1.phase.Deleting
// covers: 1.claim.bucketName.rendered
#[rstest]
#[case(Trouble::BackendNotReady, ("", "", "Reconciling", "Pending"))]
#[case(Trouble::BackendNotAllowed, ("", "", "Stalled", "Failed"))]
#[case(Trouble::TemplateInvalid, ("", "", "Stalled", "Failed"))]
#[case(Trouble::BucketNameConflict, ("BucketNameConflict", "", "Stalled", "Failed"))]
#[case(Trouble::BucketExists, ("BucketExists", "", "Stalled", "Failed"))]
#[case(Trouble::BucketMissing, ("BucketMissing", "SecretWritten", "Stalled", "Failed"))]
#[case(Trouble::SecretConflict, ("CreatedOnBackend", "SecretConflict", "Stalled", "Failed"))]
#[case(Trouble::CreationInconsistent, ("CreatedOnBackend", "CreationInconsistent", "Stalled", "Failed"))]
#[case(Trouble::ServedByAnother, ("CreatedOnBackend", "SecretWritten", "Stalled", "Bound"))]
#[case(Trouble::BackendError, ("BackendError", "", "Reconciling", "Creating"))]
#[case(Trouble::BucketNotEmpty, ("CreatedOnBackend", "Revoked", "Stalled", "Deleting"))]
#[case(Trouble::DeletionBlocked, ("CreatedOnBackend", "Revoked", "Stalled", "Deleting"))]
fn trouble_shows_in_the_conditions_that_it_concerns(#[case] trouble: Trouble, #[case] shown: Shown) {
    Stage::run("", async |stage| {
        trouble.make(&stage).await;
        let claim = photos(&stage.world);
        assert_well_formed(&claim);
        let (bucket, credentials, kstatus, phase) = shown;
        assert_eq!(condition(&claim, "BucketCreated"), bucket);
        assert_eq!(condition(&claim, "CredentialsProvisioned"), credentials);
        assert_eq!(condition(&claim, kstatus), trouble.reason());
        assert_eq!(claim["status"]["phase"], phase);
    });
}

// covers: 1.bucketCreated.Creating, 1.phase.Creating, 3.1.creating
#[test]
fn a_path_that_stops_before_it_is_bound_shows_that_the_bucket_is_being_created() {
    // The second Secret that is created is the credential.
    Stage::run("kube:create secrets@2 quota-exceeded", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        let claim = photos(&stage.world);
        assert_well_formed(&claim);
        assert_eq!(
            (condition(&claim, "BucketCreated").as_str(), &claim["status"]["phase"]),
            ("Creating", &json!("Creating"))
        );
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}

// covers: 1.bucketCreated.Adopted
#[test]
fn a_bucket_that_was_taken_over_is_shown_as_such() {
    Stage::run("", async |stage| {
        stage.set_adoption("Any").await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let claim = photos(&stage.world);
        assert_well_formed(&claim);
        assert_eq!(
            (condition(&claim, "BucketCreated").as_str(), &claim["status"]["bucketOrigin"]),
            ("Adopted", &json!("Adopted"))
        );
    });
}

/// Returns a status with another bucket, another life, and trouble that never occurred.
fn stale() -> Value {
    let condition = |type_: &str, reason: &str| {
        json!({"type": type_, "status": "False", "reason": reason, "message": "old", "observedGeneration": 1,
               "lastTransitionTime": "2020-01-01T00:00:00Z"})
    };
    json!({
        "phase": "Failed", "bucketName": "another", "backend": {"name": "gone", "endpoint": "http://gone.example"},
        "bucketOrigin": "Adopted", "boundSecretName": "another", "accessKeyId": "AKIAANOTHER", "rotationGeneration": 7,
        "rotatedAt": "2020-01-01T00:00:00Z", "handledRotateRequest": "never", "observedGeneration": 1,
        "conditions": [condition("Ready", "BucketMissing"), condition("BucketCreated", "BucketMissing")],
    })
}

/// Returns an empty status, as after a restore without subresources.
fn lost() -> Value {
    let fields = [
        "phase",
        "bucketName",
        "backend",
        "bucketOrigin",
        "proxyEndpoint",
        "boundSecretName",
        "accessKeyId",
        "rotationGeneration",
        "rotatedAt",
        "conditions",
    ];
    let none: serde_json::Map<String, Value> = fields.iter().map(|field| ((*field).to_owned(), Value::Null)).collect();
    let mut none = Value::Object(none);
    none["observedGeneration"] = json!(-1);
    none
}

// covers: 1.status.notMemory
#[rstest]
#[case::lost(lost())]
#[case::stale(stale())]
fn a_claim_whose_status_was_lost_or_is_old_loses_nothing(#[case] status: Value) {
    Stage::run("", async |mut stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let without_times = |world: &World| {
            let mut claim = photos(world);
            for condition in claim["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
            }
            claim["status"].clone()
        };
        let before = without_times(&stage.world);
        let held = internal_of(&stage.world, "photos");
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        let api = stage.api("bucketclaims", "team-a");
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status("photos", &PatchParams::default(), &patch).await.expect("the status is valid");
        stage.operator = stage.world.start_operator();
        stage.soon("the status is whole again", MINUTE, |world| without_times(world) == before).await;
        assert_eq!(internal_of(&stage.world, "photos"), held);
        assert_eq!(stage.world.store.buckets().keys().collect::<Vec<_>>(), ["team-a-photos"]);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 1.condition.foreign
#[test]
fn conditions_of_others_are_kept() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let mut all = conditions(&photos(&stage.world));
        let theirs = json!({"type": "example.org/Checked", "status": "True", "reason": "Fine", "message": "",
                            "lastTransitionTime": "2030-01-01T00:00:00Z"});
        all.push(theirs.clone());
        let api = stage.api("bucketclaims", "team-a");
        let patch = Patch::Merge(json!({"status": {"conditions": all}}));
        api.patch_status("photos", &PatchParams::default(), &patch).await.expect("the status is valid");
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"quota": {"hard": "1Ki"}}})).await;
        stage.soon("the edit is acknowledged", 5, |world| photos(world)["status"]["observedGeneration"] == 2).await;
        assert!(conditions(&photos(&stage.world)).contains(&theirs));
    });
}

// covers: 1.status.handledRotateRequest
#[test]
fn a_long_rotate_request_is_acknowledged_by_its_hash_and_handled_once() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "rotationPolicy: {overlapSeconds: 0}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(120)).await;
        let long = "x".repeat(64);
        let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": long}}});
        stage.patch("bucketclaims", "team-a", "photos", request).await;
        stage.soon("it is handled", 5, |world| photos(world)["status"]["rotationGeneration"] == 2).await;
        // printf %064d 0 | tr 0 x | sha256sum
        let hash = "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c";
        assert_eq!(photos(&stage.world)["status"]["handledRotateRequest"], hash);
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        assert!(data(&stage.world, OPERATOR_NAMESPACE, &record).values().any(|value| value == hash));
        stage.world.pass(Duration::from_secs(7200)).await;
        assert_eq!(photos(&stage.world)["status"]["rotationGeneration"], 2);
    });
}
