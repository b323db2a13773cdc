//! Deletion with the bucket, in slices so small that there are several: a crash at every effect, and single faults.

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use stowage_sim::determinism::run_seeded;
use stowage_sim::effects::{Call, CrashPoint, EffectPattern, Fault, Line, Plan, ProcessFault};
use stowage_sim::world::Options;
use tokio::time::Instant;

use crate::removal::{DELETE, FORCE, bind, bucket_exists, delete, edit, fill, goes, told};
use crate::support::{Stage, claim_with};

/// What is deleted.
#[derive(Clone, Copy, Debug)]
enum Case {
    Empty,
    Forced,
}

struct Outcome {
    calls: Vec<(u64, Call)>,
    crashes: u32,
    unfired: Plan,
}

fn deletion(case: Case, plan: Plan) -> Outcome {
    run_seeded(1, || async move {
        let stage = Stage::new(Options { seed: 1, plan, purge_slice: 4, ..Options::default() }).await;
        bind(&stage, if matches!(case, Case::Empty) { DELETE } else { FORCE }).await;
        if matches!(case, Case::Forced) {
            fill(&stage, 4);
        }
        stage.world.pass(Duration::from_secs(10)).await;
        let before = stage.world.effects.trace().effects();
        delete(&stage).await;
        goes(&stage).await;
        stage.world.pass(Duration::from_secs(60)).await;
        assert!(!bucket_exists(&stage), "{}", stage.trace());
        let trace = stage.world.effects.trace();
        let is_watch = |call: &Call| call.to_string().starts_with("kube:watch");
        let calls = trace.lines().iter().filter(|line| line.number > before && !is_watch(&line.call));
        Outcome {
            calls: calls.map(|line| (line.number, line.call.clone())).collect(),
            crashes: stage.operator.crashes(),
            unfired: stage.world.effects.unfired(),
        }
    })
}

fn single(number: u64, fault: Fault) -> Plan {
    Plan::single(EffectPattern::Number(number.try_into().expect("effects are counted from 1")), fault)
}

// covers: 3.4.interrupted
#[rstest]
#[case(Case::Empty)]
#[case(Case::Forced)]
fn a_crash_at_every_effect_leaves_nothing(#[case] case: Case) {
    let calls = deletion(case, Plan::default()).calls;
    let mut crashes = 0;
    for (number, _) in &calls {
        for point in CrashPoint::ALL {
            crashes += deletion(case, single(*number, Fault::Process(ProcessFault::Crash(point)))).crashes;
        }
    }
    println!("{case:?}: {} effects, {crashes} crashes", calls.len());
    assert_eq!(crashes as usize, 3 * calls.len());
}

// covers: 3.4.interrupted
#[rstest]
#[case(Case::Empty)]
#[case(Case::Forced)]
fn no_fault_of_a_single_call_leaves_anything(#[case] case: Case) {
    let calls = deletion(case, Plan::default()).calls;
    let mut schedules = 0;
    for word in [
        "lost-answer",
        "conflict",
        "lost-request",
        "server-error(applied)",
        "forbidden",
        "throttle(3)",
        "unreachable",
        "internal-error",
        "slow-down",
        "access-denied",
        "hang",
        "slow(5000)",
    ] {
        let fault = format!("#1 {word}").parse::<Plan>().expect("a fault").entries.remove(0).fault;
        for (number, call) in calls.iter().filter(|(_, call)| fault.check(call.kind()).is_ok()) {
            assert!(deletion(case, single(*number, fault)).unfired.is_empty(), "#{number} {word} met no call: {call}");
            schedules += 1;
        }
    }
    println!("{case:?}: {} effects, {schedules} schedules", calls.len());
    assert!(schedules >= 100);
}

// covers: 4.event.BucketDeleted
#[test]
fn what_became_of_the_bucket_is_told_by_the_pass_that_lets_the_claim_go() {
    let plan = "kube:patch bucketclaims@2 conflict".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        goes(&stage).await;
        assert!(stage.world.effects.unfired().is_empty(), "the finalizer was taken off at once");
        assert!(told(&stage, "BucketDeleted") && !told(&stage, "BucketRetained"));
        assert!(told(&stage, "Revoked"), "by a pass that did not come to tell of it");
    });
}

// covers: 3.2.lateCall
#[test]
fn a_deletion_of_a_life_before_is_waited_for_whatever_the_policy_is_by_now() {
    let plan = "s3:DeleteBucket@1 crash(before)".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        stage.until("it has died", |_| stage.operator.crashes() == 1).await;
        edit(&stage, json!({"deletionPolicy": "Retain"})).await;
        let died = Instant::now();
        goes(&stage).await;
        assert!(died.elapsed() >= Duration::from_secs(25), "the call may land until its deadline");
    });
}

// covers: 3.live.claim
#[test]
fn a_claim_that_was_deleted_while_its_bucket_was_being_made_gets_no_key() {
    let plan = "s3:CreateBucket@1 slow(15000)".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        stage.apply(&claim_with("team-a", "photos", DELETE)).await;
        stage.world.pass(Duration::from_secs(5)).await;
        delete(&stage).await;
        goes(&stage).await;
        assert!(stage.world.effects.unfired().is_empty() && !bucket_exists(&stage));
        let made = |line: &&Line| line.call.to_string().starts_with("kube:create secrets");
        let made = stage.world.effects.trace().lines().iter().filter(made).count();
        assert_eq!(made, 1, "the record and nothing else\n{}", stage.trace());
    });
}
