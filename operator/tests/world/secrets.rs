//! Secrets in the format that apps need (spec §10).

use std::time::Duration;

use serde_json::{Value, json};
use stowage_operator::api::Publishing;
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::support::{Stage, access_with, claim_with, condition, data, object, ready, secrets};

/// A template for an app, used with the regular keys or without.
const CREDENTIALS: &str = "{{ .AccessKeyId }}:{{ .SecretAccessKey }}@{{ .Bucket }}";

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let publishing = Publishing { metadata_prefixes: vec!["example.com/".to_owned()], service_binding: false };
    Stage::run_with(Options { publishing, accesses: Accesses::Served, ..Options::default() }, test)
}

fn template(of: &Value) -> String {
    format!("rotationPolicy: {{overlapSeconds: 60}}, secretTemplate: {of}")
}

fn secret(world: &World) -> Value {
    object(world, "secrets", "team-a", "photos-s3")
}

fn keys(world: &World) -> usize {
    secrets(world, OPERATOR_NAMESPACE, "virtual-credential").len()
}

async fn bound(stage: &Stage, of: &Value) {
    stage.apply(&claim_with("team-a", "photos", &template(of))).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}

async fn edit(stage: &Stage, of: Value) {
    stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"secretTemplate": of}})).await;
    stage.world.pass(Duration::from_secs(5)).await;
}

async fn rotate(stage: &Stage, value: &str) {
    let asked = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}});
    stage.patch("bucketclaims", "team-a", "photos", asked).await;
}

// covers: 10.data, 10.rotation, 10.written, 10.kept, 10.binding
#[test]
fn what_a_template_asks_for_is_written_with_the_key_repaired_and_taken_back() {
    run(async |stage| {
        let world = &stage.world;
        let of = json!({"data": {"credentials": CREDENTIALS}, "labels": {"example.com/app": "gallery"}});
        bound(&stage, &of).await;
        let is_whole = |world: &World| {
            let held = data(world, "team-a", "photos-s3");
            let wanted = format!("{}:{}@team-a-photos", held["AWS_ACCESS_KEY_ID"], held["AWS_SECRET_ACCESS_KEY"]);
            held.get("credentials") == Some(&wanted)
        };
        assert!(is_whole(world) && secret(world)["metadata"]["labels"]["example.com/app"] == "gallery");
        let claim = object(world, "bucketclaims", "team-a", "photos");
        assert_eq!(claim["status"]["binding"], json!({"name": "photos-s3"}));
        let before = data(world, "team-a", "photos-s3")["AWS_ACCESS_KEY_ID"].clone();
        rotate(&stage, "now").await;
        stage
            .until("the next key is there", |world| {
                // In every state of the server, both values are of the same key.
                assert!(is_whole(world));
                data(world, "team-a", "photos-s3")["AWS_ACCESS_KEY_ID"] != before
            })
            .await;
        let edited = json!({"data": {"credentials": "ZWRpdGVk", "theirs": "eA=="}});
        stage.patch("secrets", "team-a", "photos-s3", edited).await;
        stage.until("it is repaired", is_whole).await;
        let effects = world.effects.trace().effects();
        world.pass(Duration::from_secs(3600)).await;
        let trace = world.effects.trace();
        let later = trace.lines().iter().filter(|line| line.number > effects).map(|line| line.call.to_string());
        let patched: Vec<String> = later.filter(|call| call.ends_with("photos-s3")).collect();
        assert_eq!(patched, [] as [String; 0]);
        edit(&stage, Value::Null).await;
        let held = data(world, "team-a", "photos-s3");
        assert!(!held.contains_key("credentials") && held["theirs"] == "x", "what others wrote stays");
        let metadata = &secret(world)["metadata"];
        assert!(
            metadata["labels"]["example.com/app"].is_null()
                && metadata["annotations"].get("broker.stowage.io/template").is_none()
        );
    });
}

// covers: 10.omitDefaults, 10.rotation
#[test]
fn without_the_usual_keys_a_rotation_comes_to_its_end_as_well() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, &json!({})).await;
        edit(&stage, json!({"omitDefaults": true, "data": {"credentials": CREDENTIALS}})).await;
        let held = data(world, "team-a", "photos-s3");
        assert_eq!(held.keys().collect::<Vec<_>>(), ["credentials"]);
        rotate(&stage, "now").await;
        stage.until("there are two keys", |world| keys(world) == 2).await;
        stage.until("one is left", |world| keys(world) == 1).await;
        let now = data(world, "team-a", "photos-s3");
        assert!(now != held && now.len() == 1, "{now:?}");
        let [key] = secrets(world, OPERATOR_NAMESPACE, "virtual-credential").try_into().expect("there is one");
        let id = data(world, OPERATOR_NAMESPACE, &key)["access_key_id"].clone();
        assert!(now["credentials"].starts_with(&format!("{id}:")), "the key that is left is the one that is read");
        edit(&stage, Value::Null).await;
        assert_eq!(data(world, "team-a", "photos-s3")["AWS_ACCESS_KEY_ID"], id);
    });
}

// covers: 10.size.rotation, 10.labels, 1.credentialsProvisioned.TemplateInvalid
#[test]
fn what_can_not_be_written_is_told_and_leaves_the_key_that_tenants_read() {
    run(async |stage| {
        let world = &stage.world;
        let bucket = format!("bucketName: {}, {}", "b".repeat(63), template(&json!({})));
        stage.apply(&claim_with("team-a", "photos", &bucket)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let large = "{{ .Bucket }}".repeat(200);
        let many: serde_json::Map<String, Value> = (0..32).map(|at| (format!("k-{at}"), json!(large))).collect();
        // The spec of the last case can't be parsed, so the condition about the Secret stays as it
        // was.
        for (of, word, credentials) in [
            (json!({"data": many}), "262144 are the most", "TemplateInvalid"),
            (json!({"labels": {"other.example/app": "x"}}), "--secret-metadata-prefix", "TemplateInvalid"),
            (json!({"data": {"a": "{{ .Nothing }}"}}), "spec.secretTemplate.data: a:", "SecretWritten"),
        ] {
            // The rotation requested in the round before happens now.
            edit(&stage, Value::Null).await;
            world.pass(Duration::from_secs(300)).await;
            let held = data(world, "team-a", "photos-s3");
            edit(&stage, of).await;
            rotate(&stage, word).await;
            world.pass(Duration::from_secs(120)).await;
            assert_eq!(ready(world, "team-a", "photos"), "TemplateInvalid", "{word}");
            let claim = object(world, "bucketclaims", "team-a", "photos");
            assert!(claim["status"]["conditions"].to_string().contains(word), "{claim:#}");
            assert_eq!(condition(&claim, "CredentialsProvisioned"), credentials, "{word}");
            assert_eq!((data(world, "team-a", "photos-s3"), keys(world)), (held, 1), "{word}");
        }
        let held = data(world, "team-a", "photos-s3");
        edit(&stage, Value::Null).await;
        stage.until("the rotation that was asked for comes", |world| data(world, "team-a", "photos-s3") != held).await;
    });
}

// covers: 10.data, 10.binding
#[test]
fn an_access_has_a_template_too() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, &json!({})).await;
        let of = json!({"omitDefaults": true, "data": {"key": "{{ .AccessKeyId }}", "all": "{{ .Buckets }}"}});
        stage
            .apply(&access_with(
                "team-a",
                "reader",
                &format!("buckets: [{{claimRef: {{name: photos}}}}], {}", template(&of)),
            ))
            .await;
        let ready = |world: &World, reason: &str| {
            let access = object(world, "bucketaccesses", "team-a", "reader");
            condition(&access, "Ready") == reason
        };
        stage.until("the access is open", |world| ready(world, "Open")).await;
        let held = data(world, "team-a", "reader-key");
        assert_eq!((held.len(), held["all"].as_str()), (2, "team-a-photos"));
        let status = object(world, "bucketaccesses", "team-a", "reader")["status"].clone();
        assert_eq!((&status["binding"]["name"], &status["accessKeyId"]), (&json!("reader-key"), &json!(held["key"])));
        let of = json!({"spec": {"secretTemplate": {"labels": {"other.example/a": "b"}}}});
        stage.patch("bucketaccesses", "team-a", "reader", of).await;
        stage.until("it is told", |world| ready(world, "SpecInvalid")).await;
    });
}
