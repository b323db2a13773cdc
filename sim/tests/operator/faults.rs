//! No fault at any effect of the create path leaves anything but one bucket, one credential, one consumer Secret and
//! a Bound claim.

use std::time::Duration;

use stowage_sim::determinism::run_seeded;
use stowage_sim::effects::{Call, CrashPoint, EffectPattern, Fault, Plan, ProcessFault};
use stowage_sim::world::{Options, World};

use crate::support::{BASE, Stage, assert_bound_once, claim};

/// The create path from the operator's start on, with a plan of faults.
fn create(plan: Plan) -> Outcome {
    let text = plan.to_string();
    run_seeded(1, || async move {
        let mut world = World::new(Options { seed: 1, plan, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        let operator = world.start_operator();
        let stage = Stage::of(world, operator);
        println!("{text}");
        stage.until_ready_is("team-a", "photos", "Bound").await;
        // What has gone wrong by halves shows later: the next passes must change nothing.
        stage.world.pass(Duration::from_secs(60)).await;
        assert_bound_once(&stage).await;
        let trace = stage.world.effects.trace();
        Outcome {
            effects: trace.effects(),
            calls: calls(&stage),
            crashes: stage.operator.crashes(),
            unfired: stage.world.effects.unfired(),
        }
    })
}

struct Outcome {
    effects: u64,
    calls: Vec<(u64, Call)>,
    crashes: u32,
    unfired: Plan,
}

/// The calls of the undisturbed path up to Bound.
fn calls(stage: &Stage) -> Vec<(u64, Call)> {
    stage.world.effects.trace().lines().iter().map(|line| (line.number, line.call.clone())).collect()
}

fn at(number: u64, fault: Fault) -> Plan {
    let number = number.try_into().expect("effects are counted from 1");
    Plan::single(EffectPattern::Number(number), fault)
}

// covers: 3.1.interrupted
#[test]
fn a_crash_at_every_effect_leaves_one_of_everything() {
    let effects = create(Plan::default()).effects;
    let mut crashes = 0;
    for number in 1..=effects {
        for point in CrashPoint::ALL {
            let outcome = create(at(number, Fault::Process(ProcessFault::Crash(point))));
            crashes += u64::from(outcome.crashes);
        }
    }
    println!("{crashes} crashes at {effects} effects");
    assert_eq!(crashes, 3 * effects);
}

// covers: 3.1.interrupted
#[test]
fn a_lost_answer_or_a_conflict_at_every_write_leaves_one_of_everything() {
    single_faults(&["lost-answer", "conflict"]);
}

// covers: 3.1.interrupted
#[test]
fn every_other_fault_of_a_single_call_at_every_effect_leaves_one_of_everything() {
    single_faults(&[
        "lost-request",
        "hang",
        "slow(2000)",
        "server-error(applied)",
        "server-error(not)",
        "throttle(3)",
        "unreachable",
        "internal-error",
        "slow-down",
    ]);
}

/// Every one of these faults at every effect that it applies to.
fn single_faults(words: &[&str]) {
    let undisturbed = create(Plan::default());
    let mut schedules = 0;
    for word in words {
        let fault = format!("#1 {word}").parse::<Plan>().expect("a fault").entries.remove(0).fault;
        for (number, call) in &undisturbed.calls {
            if fault.check(call.kind()).is_ok() {
                let outcome = create(at(*number, fault));
                assert!(outcome.unfired.is_empty(), "#{number} {word} met no call");
                schedules += 1;
            }
        }
    }
    println!("{schedules} schedules");
    assert!(schedules > words.len() as u64, "no fault applied to anything");
}
