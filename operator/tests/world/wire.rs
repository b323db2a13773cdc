//! The Secrets as the wire contract with gateway and tenants (spec §2): their content, and its
//! repair.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, STORE_ENDPOINT};

use crate::support::{
    Stage, claim, claim_with, condition, data, internal_of, object, ready, secrets, tenant, tenant_can_work,
};

const RESYNC: Duration = Duration::from_secs(1400);
const MINUTE: u64 = 60;

fn internal(stage: &Stage, role: &str) -> String {
    let names = secrets(&stage.world, OPERATOR_NAMESPACE, role);
    assert_eq!(names.len(), 1, "{role}: {names:?}");
    names[0].clone()
}

fn keys(data: &BTreeMap<String, String>) -> Vec<&str> {
    data.keys().map(String::as_str).collect()
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let map = value.as_object().cloned().unwrap_or_default();
    map.into_iter().map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned())).collect()
}

async fn bind(stage: &Stage, spec: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}

/// Returns the parts that must be unchanged: data, labels and annotations.
fn ours(stage: &Stage, namespace: &str, name: &str) -> (Value, Value, Value) {
    let secret = object(&stage.world, "secrets", namespace, name);
    (secret["data"].clone(), secret["metadata"]["labels"].clone(), secret["metadata"]["annotations"].clone())
}

// covers: 1.claim.secretName, 1.claim.quota.fraction, 1.status.accessKeyId, 2.labels, 2.record
// covers: 2.credential
// covers: 2.credential.id, 2.credential.secretKey, 2.binding, 2.consumer, 2.consumer.owner
#[test]
fn each_secret_has_exactly_the_fields_of_the_contract() {
    Stage::run("", async |stage| {
        bind(&stage, "quota: {soft: '1.5', hard: 1Ki}, anonymousAccess: {mode: ReadOnly, perSourceIPRPS: 7}").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        let uid = claim["metadata"]["uid"].as_str().unwrap();
        let id = claim["status"]["accessKeyId"].as_str().unwrap();
        assert_eq!(id.len(), 20);
        assert!(
            id.starts_with("AKIA") && id.chars().all(|c| c.is_ascii_uppercase() || ('2'..='7').contains(&c)),
            "{id}"
        );

        let record = data(&stage.world, OPERATOR_NAMESPACE, &internal(&stage, "bucket-record"));
        assert_eq!((record["claim_namespace"].as_str(), record["claim_name"].as_str()), ("team-a", "photos"));
        assert_eq!((record["claim_uid"].as_str(), record["absence"].as_str()), (uid, "true"));
        assert_eq!((record["generation"].as_str(), record["bucket_name"].as_str()), ("1", "team-a-photos"));

        let credential_name = format!("vc-{}", id.to_lowercase());
        assert_eq!(internal(&stage, "virtual-credential"), credential_name);
        let credential = data(&stage.world, OPERATOR_NAMESPACE, &credential_name);
        let expected = [
            "access_key_id",
            "backend",
            "bucket_name",
            "bucket_scopes",
            "claim_uid",
            "endpoint",
            "quota_hard_bytes",
            "quota_soft_bytes",
            "secret_access_key",
        ];
        assert_eq!(keys(&credential), expected);
        assert_eq!((credential["endpoint"].as_str(), &credential["endpoint"]), (STORE_ENDPOINT, &record["endpoint"]));
        assert_eq!(credential["secret_access_key"].len(), 40);
        assert_eq!((credential["quota_soft_bytes"].as_str(), credential["quota_hard_bytes"].as_str()), ("2", "1024"));
        let scopes: Value = serde_json::from_str(&credential["bucket_scopes"]).unwrap();
        assert_eq!(scopes, json!([{"bucket": "team-a-photos", "backend": "main"}]));

        let binding = internal(&stage, "anonymous-binding");
        assert!(binding.contains(uid));
        let binding = data(&stage.world, OPERATOR_NAMESPACE, &binding);
        assert_eq!(
            keys(&binding),
            ["anonymous_mode", "anonymous_per_source_ip_rps", "backend", "bucket_name", "claim_uid", "endpoint"]
        );
        assert_eq!(
            (binding["anonymous_mode"].as_str(), binding["anonymous_per_source_ip_rps"].as_str()),
            ("ReadOnly", "7")
        );

        let consumer = data(&stage.world, "team-a", "photos-s3");
        let expected = [
            "AWS_ACCESS_KEY_ID",
            "AWS_DEFAULT_REGION",
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AWS_REGION",
            "AWS_SECRET_ACCESS_KEY",
            "BUCKET_NAME",
            "QUOTA_HARD_BYTES",
            "QUOTA_SOFT_BYTES",
            "S3_ADDRESSING_STYLE",
        ];
        assert_eq!(keys(&consumer), expected);
        assert_eq!(
            (consumer["AWS_ENDPOINT_URL"].as_str(), consumer["S3_ADDRESSING_STYLE"].as_str()),
            (GATEWAY_ENDPOINT, "path")
        );
        let secret = object(&stage.world, "secrets", "team-a", "photos-s3");
        let owners = secret["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), 1);
        assert_eq!((owners[0]["uid"].as_str(), &owners[0]["controller"]), (Some(uid), &json!(true)));
        let labels = texts(&secret["metadata"]["labels"]);
        for (key, value) in [
            ("role", "consumer-secret"),
            ("claim-namespace", "team-a"),
            ("claim-name", "photos"),
            ("claim-uid", uid),
            ("backend", "main"),
            ("bucket", "team-a-photos"),
            ("access-key-id", id),
            ("rotation-generation", "1"),
        ] {
            assert_eq!(labels[&format!("broker.stowage.io/{key}")], value);
        }
    });
}

// covers: 2.labels
#[test]
fn each_secret_of_ours_says_what_it_is_and_for_whom() {
    Stage::run("", async |stage| {
        bind(&stage, "anonymousAccess: {mode: ReadOnly}").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        for role in ["bucket-record", "virtual-credential", "anonymous-binding", "consumer-secret"] {
            let namespace = if role == "consumer-secret" { "team-a" } else { OPERATOR_NAMESPACE };
            let name = secrets(&stage.world, namespace, role).remove(0);
            let labels = object(&stage.world, "secrets", namespace, &name)["metadata"]["labels"].clone();
            let mut expected = json!({
                "broker.stowage.io/role": role,
                "broker.stowage.io/claim-namespace": "team-a",
                "broker.stowage.io/claim-name": "photos",
                "broker.stowage.io/claim-uid": claim["metadata"]["uid"],
                "broker.stowage.io/backend": "main",
                "broker.stowage.io/bucket": "team-a-photos",
            });
            if ["virtual-credential", "consumer-secret"].contains(&role) {
                expected["broker.stowage.io/access-key-id"] = claim["status"]["accessKeyId"].clone();
                expected["broker.stowage.io/rotation-generation"] = json!("1");
            }
            assert_eq!(labels, expected, "{role}");
        }
    });
}

// covers: 2.labels.long
#[test]
fn values_too_long_for_a_label_stand_whole_in_an_annotation() {
    Stage::run("", async |stage| {
        let long = format!("c{}", "x".repeat(200));
        stage.apply(&claim_with("team-a", &long, "bucketName: photos")).await;
        stage.until_ready_is("team-a", &long, "Bound").await;
        for secret in [
            object(&stage.world, "secrets", OPERATOR_NAMESPACE, &internal(&stage, "virtual-credential")),
            object(&stage.world, "secrets", "team-a", &format!("{long}-s3")),
        ] {
            let label = secret["metadata"]["labels"]["broker.stowage.io/claim-name"].as_str().unwrap().to_owned();
            assert!(label.len() <= 63 && label != long);
            assert_eq!(secret["metadata"]["annotations"]["broker.stowage.io/claim-name"], long.as_str());
        }
        // The objects that depend on the name are still found.
        stage.delete("secrets", "team-a", &format!("{long}-s3")).await;
        stage
            .soon("it is repaired", MINUTE, |world| {
                !object(world, "secrets", "team-a", &format!("{long}-s3")).is_null()
            })
            .await;
        stage.delete("bucketclaims", "team-a", &long).await;
        stage.until_gone("team-a", &long).await;
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
    });
}

// covers: 2.internal.repaired, 3.5.wake.secret
#[rstest]
#[case("bucket-record", json!({"metadata": {"labels": {"broker.stowage.io/claim-uid": "forged", "broker.stowage.io/bucket": null}}}))]
#[case("bucket-record", json!({"metadata": {"labels": {"broker.stowage.io/role": null}}}))]
#[case("virtual-credential", json!({"metadata": {"labels": {"broker.stowage.io/claim-uid": "forged"}}}))]
#[case("virtual-credential", json!({"metadata": {"labels": {"broker.stowage.io/role": null}}}))]
#[case("virtual-credential", json!({"stringData": {"bucket_scopes": "[]", "bucket_name": "other", "quota_hard_bytes": "1"}}))]
#[case("anonymous-binding", json!({"stringData": {"bucket_name": "other", "anonymous_mode": "ReadWrite"}}))]
#[case("anonymous-binding", json!({"metadata": {"labels": {"broker.stowage.io/role": "consumer-secret"}}}))]
#[case("consumer-secret", json!({"stringData": {"AWS_SECRET_ACCESS_KEY": "forged", "BUCKET_NAME": "other"}}))]
#[case("consumer-secret", json!({"metadata": {"labels": {"broker.stowage.io/role": "virtual-credential"}}}))]
#[case("consumer-secret", json!({"metadata": {"labels": {"broker.stowage.io/rotation-generation": "999"}}}))]
#[case("consumer-secret", json!({"metadata": {"labels": null}, "data": null}))]
fn what_somebody_changed_in_a_secret_of_ours_is_repaired(#[case] role: &str, #[case] change: Value) {
    Stage::run("", async |stage| {
        bind(&stage, "anonymousAccess: {mode: ReadOnly}").await;
        let namespace = if role == "consumer-secret" { "team-a" } else { OPERATOR_NAMESPACE };
        let name = if role == "consumer-secret" { "photos-s3".to_owned() } else { internal(&stage, role) };
        let before = ours(&stage, namespace, &name);
        stage.patch("secrets", namespace, &name, change).await;
        stage.soon("it is repaired", 1, |_| ours(&stage, namespace, &name) == before).await;
        stage.world.pass(Duration::from_secs(10)).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 2.consumer.patch
#[test]
fn keys_and_labels_of_others_survive_a_repair() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        let theirs = json!({
            "metadata": {"labels": {"theirs": "l"}, "annotations": {"theirs": "a"}},
            "stringData": {"THEIRS": "d", "BUCKET_NAME": "tampered"},
        });
        stage.patch("secrets", "team-a", "photos-s3", theirs).await;
        stage
            .soon("it is repaired", MINUTE, |world| {
                data(world, "team-a", "photos-s3")["BUCKET_NAME"] == "team-a-photos"
            })
            .await;
        let secret = object(&stage.world, "secrets", "team-a", "photos-s3");
        assert_eq!(data(&stage.world, "team-a", "photos-s3")["THEIRS"], "d");
        assert_eq!(
            (&secret["metadata"]["labels"]["theirs"], &secret["metadata"]["annotations"]["theirs"]),
            (&json!("l"), &json!("a"))
        );
    });
}

// covers: 2.consumer.patch.removed
#[test]
fn a_quota_that_is_taken_back_takes_its_keys_along() {
    Stage::run("", async |stage| {
        bind(&stage, "quota: {soft: 1Ki, hard: 2Ki}").await;
        let credential = internal(&stage, "virtual-credential");
        let edit = json!({"spec": {"quota": {"soft": null}}});
        stage.patch("bucketclaims", "team-a", "photos", edit).await;
        stage
            .soon("the keys are gone", MINUTE, |world| {
                !data(world, "team-a", "photos-s3").contains_key("QUOTA_SOFT_BYTES")
                    && !data(world, OPERATOR_NAMESPACE, &credential).contains_key("quota_soft_bytes")
            })
            .await;
        assert_eq!(data(&stage.world, "team-a", "photos-s3")["QUOTA_HARD_BYTES"], "2048");
    });
}

// covers: 1.phase.Failed, 1.ready.SecretConflict, 1.credentialsProvisioned.SecretConflict
// covers: 2.labels.noProof
// covers: 2.consumer.conflict
#[test]
fn a_strangers_secret_is_left_alone_and_taken_over_by_nobody() {
    Stage::run("", async |stage| {
        let theirs = "{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a, labels: \
            {broker.stowage.io/role: consumer-secret, broker.stowage.io/claim-name: photos}}, stringData: {a: b}}";
        stage.apply(theirs).await;
        let before = object(&stage.world, "secrets", "team-a", "photos-s3");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        assert_eq!(condition(&claim, "CredentialsProvisioned"), "SecretConflict");
        assert_eq!(
            (&claim["status"]["phase"], condition(&claim, "Stalled").as_str()),
            (&json!("Failed"), "SecretConflict")
        );
        stage.world.pass(RESYNC).await;
        assert_eq!(object(&stage.world, "secrets", "team-a", "photos-s3"), before);
        stage.delete("secrets", "team-a", "photos-s3").await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 2.consumer.unusable
#[test]
fn a_secret_of_ours_that_is_immutable_or_of_another_type_is_a_conflict() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        stage.patch("secrets", "team-a", "photos-s3", json!({"immutable": true})).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        stage.delete("secrets", "team-a", "photos-s3").await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 2.consumer.unusable
#[test]
fn a_secret_of_ours_that_somebody_made_anew_with_another_type_is_a_conflict() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        let paused = |on: Value| json!({"metadata": {"annotations": {"broker.stowage.io/paused": on}}});
        stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        let owners = object(&stage.world, "secrets", "team-a", "photos-s3")["metadata"]["ownerReferences"].clone();
        stage.delete("secrets", "team-a", "photos-s3").await;
        let typed = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "example.org/typed", "data": {"a": "Yg=="},
            "metadata": {"name": "photos-s3", "namespace": "team-a", "ownerReferences": owners},
        });
        stage.apply(&typed.to_string()).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        stage.world.pass(RESYNC).await;
        assert_eq!(object(&stage.world, "secrets", "team-a", "photos-s3")["data"], json!({"a": "Yg=="}));
    });
}

// covers: 1.ready.CreationInconsistent, 2.internal.damaged, 2.internal.damaged.secretKey
#[rstest]
#[case(json!({"data": {"secret_access_key": null}}))]
#[case(json!({"stringData": {"secret_access_key": "typed-by-hand"}}))]
#[case(json!({"stringData": {"access_key_id": "AKIAFORGED"}}))]
fn a_damaged_credential_is_told_and_not_overwritten(#[case] damage: Value) {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        let credential = internal(&stage, "virtual-credential");
        stage.patch("secrets", OPERATOR_NAMESPACE, &credential, damage).await;
        let before = ours(&stage, OPERATOR_NAMESPACE, &credential);
        let published = data(&stage.world, "team-a", "photos-s3");
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ours(&stage, OPERATOR_NAMESPACE, &credential), before);
        assert_eq!(data(&stage.world, "team-a", "photos-s3"), published, "the tenant gets nothing of it");
        assert_eq!(internal_of(&stage.world, "photos").len(), 2);
    });
}

// covers: 2.credential.neverReused, 3.3.target.gone, 3.3.byHand
#[test]
fn an_internal_secret_deleted_by_hand_revokes_and_the_next_generation_follows_within_seconds() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        let (old, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        stage.delete("secrets", OPERATOR_NAMESPACE, &internal(&stage, "virtual-credential")).await;
        stage
            .soon("the next generation is published", 10, |world| {
                object(world, "secrets", "team-a", "photos-s3")["metadata"]["labels"]["broker.stowage.io/rotation-generation"] == "2"
            })
            .await;
        stage.world.pass(Duration::from_secs(2)).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        old.list_objects_v2().bucket(&bucket).send().await.expect_err("the old key is revoked");
    });
}

// covers: 2.namespaces
#[test]
fn a_claim_in_the_operators_namespace_is_refused() {
    Stage::run("", async |stage| {
        stage.apply(&claim(OPERATOR_NAMESPACE, "photos")).await;
        stage.until_ready_is(OPERATOR_NAMESPACE, "photos", "BackendNotAllowed").await;
        stage.world.pass(RESYNC).await;
        assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
        assert!(stage.world.store.buckets().is_empty());
        stage.delete("bucketclaims", OPERATOR_NAMESPACE, "photos").await;
        stage.until_gone(OPERATOR_NAMESPACE, "photos").await;
    });
}

async fn anonymous_status(stage: &Stage, method: http::Method) -> u16 {
    let uri = format!("{GATEWAY_ENDPOINT}/team-a-photos/page");
    let request = http::Request::builder().method(method).uri(uri).header("content-length", "0");
    stage.world.send_to_gateway(request.body(s3s::Body::empty()).unwrap()).await.as_u16()
}

// covers: 2.binding.exactlyWhile, 3.7.anonymous
#[test]
fn public_access_is_there_exactly_while_the_claim_is_bound_and_asks_for_it() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        stage.world.store.put_object("team-a-photos", "page", "x");
        assert_eq!(anonymous_status(&stage, http::Method::GET).await, 403);
        let mode = |mode: &str| json!({"spec": {"anonymousAccess": {"mode": mode}}});
        stage.patch("bucketclaims", "team-a", "photos", mode("ReadOnly")).await;
        stage
            .soon("the binding is there", 10, |world| {
                !secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").is_empty()
            })
            .await;
        stage.world.pass(Duration::from_secs(1)).await;
        assert_eq!(anonymous_status(&stage, http::Method::GET).await, 200);
        assert_eq!(anonymous_status(&stage, http::Method::PUT).await, 403);
        stage.patch("bucketclaims", "team-a", "photos", mode("None")).await;
        stage
            .soon("the binding is gone", 10, |world| secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").is_empty())
            .await;
        stage.world.pass(Duration::from_secs(1)).await;
        assert_eq!(anonymous_status(&stage, http::Method::GET).await, 403);
    });
}

// covers: 2.binding.exactlyWhile
#[rstest]
#[case("stranger")]
#[case("damaged")]
fn public_access_is_withdrawn_even_where_the_credential_is_in_trouble(#[case] trouble: &str) {
    Stage::run("", async |stage| {
        bind(&stage, "anonymousAccess: {mode: ReadOnly}").await;
        if trouble == "stranger" {
            stage.patch("secrets", "team-a", "photos-s3", json!({"immutable": true})).await;
            stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        } else {
            let damage = json!({"data": {"secret_access_key": null}});
            stage.patch("secrets", OPERATOR_NAMESPACE, &internal(&stage, "virtual-credential"), damage).await;
            stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        }
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"anonymousAccess": {"mode": "None"}}})).await;
        stage
            .soon("the binding is gone", 10, |world| secrets(world, OPERATOR_NAMESPACE, "anonymous-binding").is_empty())
            .await;
    });
}

// covers: 3.2.gateway
#[test]
fn a_consumers_key_opens_its_own_bucket_and_nothing_else() {
    Stage::run("", async |stage| {
        bind(&stage, "").await;
        stage.apply(&claim("team-b", "neighbour")).await;
        stage.until_ready_is("team-b", "neighbour", "Bound").await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "unclaimed");
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        for other in ["team-b-neighbour", "unclaimed"] {
            client.list_objects_v2().bucket(other).send().await.expect_err("a neighbour's bucket is refused");
            let copy = client.copy_object().bucket(&bucket).key("stolen").copy_source(format!("{other}/x"));
            copy.send().await.expect_err("nor can it be copied from");
        }
        client.create_bucket().bucket("fresh").send().await.expect_err("tenants make no buckets");
        client.delete_bucket().bucket(&bucket).send().await.expect_err("nor do they delete them");
        assert!(stage.world.store.bucket(&bucket).is_some() && stage.world.store.bucket("fresh").is_none());
    });
}
