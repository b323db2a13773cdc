//! Deletion with the bucket, in slices so small that there are several: a crash at every effect, and single faults.

use std::time::Duration;

use rstest::rstest;
use stowage_sim::determinism::run_seeded;
use stowage_sim::effects::{Call, CrashPoint, EffectPattern, Fault, Plan};
use stowage_sim::world::Options;

use crate::removal::{DELETE, FORCE, bind, bucket_exists, delete, fill, goes};
use crate::support::Stage;

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
            crashes += deletion(case, single(*number, Fault::Crash(point))).crashes;
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
