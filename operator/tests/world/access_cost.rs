//! The cost of consent and of a key: the number of requests depends on the buckets that open, not
//! on other tenants' accesses or on claims that an access names in vain (spec §8).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{Accesses, Options, World};

use crate::support::{Stage, access_with, claim_with, condition, object};

const MINUTE: u64 = 60;

fn run<T: Send>(plan: &str, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let plan = plan.parse().expect("the plan is well-formed");
    Stage::run_with(Options { accesses: Accesses::Served, plan, ..Options::default() }, test)
}

/// Applies the claim `team-a/photos`, shared with `team-b`, and `strangers` accesses of `team-c`,
/// with which it isn't shared. Each names it and other claims.
async fn shared(stage: &Stage, strangers: usize) {
    stage.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team-c}}").await;
    for number in 0..strangers {
        let others: String =
            (0..8).map(|other| format!(", {{claimRef: {{name: c{other}, namespace: team-a}}}}")).collect();
        let entries = format!("buckets: [{{claimRef: {{name: photos, namespace: team-a}}}}{others}]");
        stage.apply(&access_with("team-c", &format!("stranger-{number}"), &entries)).await;
    }
    let sharing = "sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]";
    stage.apply(&claim_with("team-a", "photos", sharing)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.world.pass(Duration::from_secs(2 * MINUTE)).await;
}

/// Applies an access of `team-b` to the claim, and to `in_vain` others that aren't shared.
async fn reader(stage: &Stage, in_vain: usize) {
    let others: String =
        (0..in_vain).map(|other| format!(", {{claimRef: {{name: other-{other}, namespace: team-a}}}}")).collect();
    let entries = format!("buckets: [{{claimRef: {{name: photos, namespace: team-a}}}}{others}]");
    stage.apply(&access_with("team-b", "reader", &entries)).await;
    stage.until("it has a key", |world| !key(world).is_null()).await;
    stage.world.pass(Duration::from_secs(2 * MINUTE)).await;
}

fn key(world: &World) -> Value {
    object(world, "bucketaccesses", "team-b", "reader")["status"]["accessKeyId"].clone()
}

async fn revoke(stage: &Stage, request: &str) {
    let request = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": request}}});
    stage.patch("bucketaccesses", "team-b", "reader", request).await;
}

/// Returns verb and resource of every call to the API server since `before`, in order.
fn requests(stage: &Stage, before: u64) -> Vec<String> {
    let trace = stage.world.effects.trace();
    let calls = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
    let kube = calls.filter(|call| call.starts_with("kube:")).inspect(|call| println!("{call}"));
    kube.map(|call| call.trim_start_matches("kube:").split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn so_far(stage: &Stage) -> u64 {
    stage.world.effects.trace().effects()
}

/// Returns the requests for consent and the first key, and those for a revocation.
fn costs(strangers: usize) -> [Vec<String>; 2] {
    run("", async |stage| {
        shared(&stage, strangers).await;
        let before = so_far(&stage);
        reader(&stage, 0).await;
        let opened = requests(&stage, before);
        let before = so_far(&stage);
        let old = key(&stage.world);
        revoke(&stage, "leaked").await;
        stage.until("the key is another", |world| !key(world).is_null() && key(world) != old).await;
        stage.world.pass(Duration::from_secs(2 * MINUTE)).await;
        [opened, requests(&stage, before)]
    })
}

// covers: 8.map.cost, 8.key.cost
#[test]
fn consent_and_a_key_cost_the_same_beside_strangers() {
    let [alone, beside] = [0, 20].map(costs);
    assert_eq!(alone, beside);
    let count = |of: &[String], request: &str| of.iter().filter(|it| *it == request).count();
    let [opened, revoked] = &alone;
    assert!(opened.iter().chain(revoked).all(|request| !request.starts_with("list bucket")), "{opened:?} {revoked:?}");
    assert_eq!(
        count(opened, "get bucketaccesses"),
        1 + 2,
        "one by the claim, which is asked; the others by its own pass"
    );
    assert_eq!(count(opened, "list secrets"), 2, "of the claim, and of the access");
    assert_eq!((count(revoked, "get bucketclaims"), count(revoked, "list secrets")), (1, 0));
}

/// Returns the number of reads of keys by name from a revocation to the next key.
async fn reads_of_revocation(stage: &Stage, (plural, namespace, name): (&str, &str, &str), number: usize) -> usize {
    stage.world.pass(Duration::from_secs(3 * MINUTE)).await;
    let key = |world: &World| object(world, plural, namespace, name)["status"]["accessKeyId"].clone();
    let (before, old) = (so_far(stage), key(&stage.world));
    let request = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": format!("leaked-{number}")}}});
    stage.patch(plural, namespace, name, request).await;
    stage.until("the key is another", |world| !key(world).is_null() && key(world) != old).await;
    let trace = stage.world.effects.trace();
    let calls = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
    let of_key = |call: &String| call.contains("/vc-") || call.contains("/va-");
    calls.filter(|call| call.starts_with("kube:get secrets")).filter(of_key).count()
}

// covers: 3.3.revoke.cost
#[rstest]
#[case::of_a_claim(("bucketclaims", "team-a", "photos"))]
#[case::of_an_access(("bucketaccesses", "team-b", "reader"))]
fn each_revocation_costs_as_much_as_the_last(#[case] of: (&str, &str, &str)) {
    run("", async |stage| {
        shared(&stage, 0).await;
        reader(&stage, 0).await;
        let mut reads = Vec::new();
        for number in 0..6 {
            reads.push(reads_of_revocation(&stage, of, number).await);
        }
        assert!(reads[1..].windows(2).all(|pair| pair[0] == pair[1]), "{reads:?}");
    });
}

// covers: 8.key.cost
#[test]
fn a_claim_that_nobody_shares_is_not_read_for_a_key() {
    run("", async |stage| {
        shared(&stage, 0).await;
        reader(&stage, 63).await;
        let (before, old) = (so_far(&stage), key(&stage.world));
        revoke(&stage, "leaked").await;
        stage.until("the key is another", |world| !key(world).is_null() && key(world) != old).await;
        let read = requests(&stage, before).iter().filter(|it| *it == "get bucketclaims").count();
        assert_eq!(read, 1, "the one that opens");
    });
}

/// A namespace loses its access only after a live read.
// covers: 8.map.nobody
#[test]
fn an_access_that_the_watch_does_not_show_any_more_is_read_before_its_namespace_is_shut_out() {
    run("", async |stage| {
        shared(&stage, 0).await;
        reader(&stage, 0).await;
        let before = so_far(&stage);
        stage.delete("bucketaccesses", "team-b", "reader").await;
        let is_open =
            |world: &World| object(world, "bucketclaims", "team-a", "photos")["status"]["accesses"].is_object();
        stage.until("it is closed", |world| !is_open(world)).await;
        let requests = requests(&stage, before);
        assert!(!requests.iter().any(|request| request == "list bucketaccesses"), "{requests:?}");
    });
}

// covers: 8.asked
#[test]
fn claims_are_read_for_an_access_at_a_pace() {
    // Six Secrets are created until the access has its first key; further creations fail.
    let plan: Vec<String> = (7..200).map(|number| format!("kube:create secrets@{number} forbidden")).collect();
    run(&plan.join("; "), async |stage| {
        shared(&stage, 0).await;
        reader(&stage, 0).await;
        let before = so_far(&stage);
        revoke(&stage, "leaked").await;
        for touch in 0..40 {
            let touched = json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": touch.to_string()}}});
            stage.patch("bucketaccesses", "team-b", "reader", touched).await;
            stage.world.pass(Duration::from_secs(1)).await;
        }
        let read = requests(&stage, before).iter().filter(|it| *it == "get bucketclaims").count();
        assert!((15..=26).contains(&read), "{read} passes have read the claim");
        assert_ne!(condition(&object(&stage.world, "bucketaccesses", "team-b", "reader"), "Ready"), "Open");
    });
}
