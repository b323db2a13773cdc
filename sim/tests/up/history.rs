//! Tests of `stowage-sim history`: from the actions in a simulator to a command that replays them.

use std::path::Path;
use std::process::Output;
use std::time::Instant;

use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::BucketClaim;
use tokio::process::Command;

use super::{Bench, PATIENCE};

const GUIDE: &str = include_str!("../../../docs/guide/simulator.md");

/// Returns the guide's one line with this beginning.
fn of_guide(beginning: &str) -> &'static str {
    let mut lines = GUIDE.lines().filter_map(|line| line.strip_prefix("    ")).filter(|it| it.starts_with(beginning));
    let line = lines.next().unwrap_or_else(|| panic!("the guide has no line {beginning}"));
    assert_eq!(lines.next(), None, "the guide has two");
    line
}

impl Bench {
    /// Runs a command of the guide in a shell.
    async fn shell(&self, command: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_stowage-sim")).parent().expect("it is in a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("/bin/sh");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STOWAGE_")) {
            shell.env_remove(name);
        }
        shell.args(["-c", command]).current_dir(self.folder.path());
        shell.env("PATH", format!("{}:{path}", program.display())).env("STOWAGE_SIM", &self.up.served().admin);
        shell.output().await.expect("there is a shell")
    }

    /// Returns the output of a command that succeeds.
    async fn printed(&self, command: &str) -> String {
        let output = self.shell(command).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), told.as_ref()), (Some(0), ""), "{command}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    async fn history(&self) -> Value {
        let (code, told) = self.admin(Method::GET, "/history", None).await;
        assert_eq!(code, 200, "{told}");
        told
    }

    async fn arm(&self, plan: &str) {
        let (code, answer) = self.admin(Method::POST, "/faults", Some(json!({"plan": plan}))).await;
        assert_eq!(code, 200, "{answer}");
    }
}

/// Returns the steps of a history: the action and the path of each.
fn deeds(history: &Value) -> Vec<String> {
    let words = ["create", "replace", "apply", "mergePatch", "jsonPatch", "strategicPatch", "delete", "operator"];
    let steps = history["history"]["steps"].as_array().expect("a list");
    let told = |step: &Value| {
        let word = words.iter().find(|word| step[**word].is_string()).unwrap_or(&"advance");
        let place = step[*word].as_str().expect("a text").split('?').next().expect("a path").to_owned();
        format!("{word} {}", place.rsplit_once("v1alpha1/").map_or(place.as_str(), |(_, object)| object))
    };
    steps.iter().map(told).collect()
}

/// Returns the calls of a replay that met a fault, each with the fault.
fn faults(replayed: &Value) -> Vec<(&str, &str)> {
    let events = replayed["events"].as_array().expect("a list").iter();
    events.filter_map(|event| Some((event["operator"].as_str()?, event["fault"].as_str()?))).collect()
}

#[tokio::test]
async fn a_fault_that_was_seen_meets_the_same_call_again_by_the_line_that_the_guide_has() {
    let bench = Bench::new().await;
    bench.arm("s3:CreateBucket@1 lost-answer").await;
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    bench.connection("photos").await;
    let secrets: Api<Secret> = Api::default_namespaced(bench.kube().await);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app"},
        "stringData": {"password": "tiger"}});
    secrets.patch("app", &PatchParams::apply("kubectl"), &Patch::Apply(&secret)).await.expect("it is applied");

    let line = bench.printed(of_guide("stowage-sim history ")).await;
    assert_eq!(line.trim_end(), of_guide("stowage-proof replay --history "));
    let written = std::fs::read_to_string(bench.folder.path().join("seen.yaml")).expect("it was written");
    assert!(written.contains("name: app") && written.contains("redacted-"), "{written}");
    for hidden in ["tiger", "dGlnZXI", "STOWAGEADMIN", "stowage-admin-secret-key"] {
        assert!(!written.contains(hidden), "{hidden} stands in {written}");
    }

    let again = format!("{} -o json", line.trim_end());
    let (one, other) = (bench.printed(&again).await, bench.printed(&again).await);
    assert_eq!(one, other, "the same line gives the same");
    let replayed: Value = serde_json::from_str(&one).expect("one document");
    let met = faults(&replayed);
    assert!(matches!(met[..], [(call, "lost-answer")] if call.contains("CreateBucket default-photos")), "{met:?}");
    let bound = json!([{"resource": "bucketclaims", "name": "default/photos", "phase": "Bound"}]);
    for (field, expected) in [
        ("ended", bound),
        ("violations", json!([])),
        ("refused", json!([])),
        ("unmet", json!([])),
        ("elsewhere", json!([])),
        ("rested", true.into()),
    ] {
        assert_eq!(replayed[field], expected, "{field}");
    }
    let text = bench.printed(line.trim_end()).await;
    assert!(text.contains("⚡lost-answer: ") && text.contains("no promise was broken"), "{text}");
    assert!(text.ends_with("bucketclaims default/photos: Bound\n"), "{text}");
}

/// The life of the claim includes edits, a crash, a jump of the clock by weeks, and the deletion.
#[tokio::test]
async fn a_life_of_a_claim_is_played_again_step_by_step() {
    let bench = Bench::new().await;
    let policy = json!({"mode": "TimeBased", "intervalDays": 90, "overlapSeconds": 3600});
    bench.arm("kube:create secrets@1 crash(after-effect)").await;
    bench.claim("photos", json!({"backendRef": {"name": "main"}, "deletionPolicy": "Delete"})).await;
    let first = bench.connection("photos").await;
    let claims: Api<BucketClaim> = Api::default_namespaced(bench.kube().await);
    let edit = json!({"spec": {"rotationPolicy": policy}});
    claims.patch("photos", &PatchParams::default(), &Patch::Merge(&edit)).await.expect("it may be edited");
    let (code, _) = bench.admin(Method::POST, "/clock", Some(json!({"advanceSeconds": 91 * 24 * 3600}))).await;
    assert_eq!(code, 200);
    let begun = Instant::now();
    while bench.connection("photos").await["AWS_ACCESS_KEY_ID"] == first["AWS_ACCESS_KEY_ID"] {
        assert!(begun.elapsed() < PATIENCE, "the key doesn't rotate");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    claims.delete("photos", &DeleteParams::default()).await.expect("it may go");
    while claims.get_opt("photos").await.expect("an answer").is_some() {
        assert!(begun.elapsed() < PATIENCE, "it doesn't go");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let told = deeds(&bench.history().await);
    let place = "namespaces/default/bucketclaims";
    let expected = [
        "operator starts".to_owned(),
        format!("create {place}"),
        format!("mergePatch {place}/photos"),
        "operator stops".to_owned(),
        "advance 2184h".to_owned(),
        "operator starts".to_owned(),
        format!("delete {place}/photos"),
    ];
    assert!(told.ends_with(&expected), "{told:#?}");
    let line = bench.printed("stowage-sim history life.yaml").await;
    let replayed: Value =
        serde_json::from_str(&bench.printed(&format!("{} -o json", line.trim_end())).await).expect("one document");
    assert_eq!((&replayed["ended"], &replayed["violations"]), (&json!([]), &json!([])), "{line}");
    assert_eq!(faults(&replayed).len(), 1, "{line}");
}

#[tokio::test]
async fn a_reset_begins_a_history_anew_and_what_is_refused_or_only_tried_is_not_in_it() {
    let bench = Bench::new().await;
    bench.arm("s3:CreateBucket@1 lost-answer").await;
    bench.claim("photos", json!({"backendRef": {"name": "main"}})).await;
    bench.connection("photos").await;
    let before = bench.history().await;
    assert_eq!(before["plan"], "s3:CreateBucket@1 lost-answer");
    let (code, answer) = bench.admin(Method::POST, "/reset", Some(json!({}))).await;
    assert_eq!(code, 204, "{answer}");
    let secrets: Api<Secret> = Api::default_namespaced(bench.kube().await);
    let named = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).expect("a Secret");
    let tried = PostParams { dry_run: true, ..PostParams::default() };
    secrets.create(&tried, &named("tried")).await.expect("it would be made");
    secrets.create(&PostParams::default(), &named("No_Name")).await.expect_err("it is refused");
    let after = bench.history().await;
    assert_eq!((&after["plan"], &after["caveats"]), (&json!(""), &json!([])));
    let (before, after) = (deeds(&before), deeds(&after));
    assert_eq!(after.last().map(String::as_str), Some("operator starts"), "{after:#?}");
    assert!(before.starts_with(&after) && before.len() == after.len() + 1, "{before:#?} {after:#?}");
}

#[tokio::test]
async fn what_is_not_in_a_history_is_said() {
    let bench = Bench::with(|options| options.operator = false).await;
    let output = bench.shell("stowage-sim history seen.yaml").await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "stowage-sim: no operator of the simulator's own was at work\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stowage-proof replay --history seen.yaml\n");
}
