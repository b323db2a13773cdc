//! An operator that is suspended during a call, and one that takes turns with another operator.

use std::time::Duration;

use serde_json::json;
use stowage_world::World;
use stowage_world::effects::{CallOutcome, Line};

use crate::support::{Stage, assert_bound_once, claim, object};

/// Returns the processes that made calls, in the order of their turns.
fn lives(world: &World) -> Vec<u32> {
    let mut lives: Vec<u32> = world.effects.trace().lines().iter().map(|line| line.instance).collect();
    lives.dedup();
    lives
}

fn line(world: &World, such: impl Fn(&Line) -> bool) -> Line {
    let trace = world.effects.trace();
    trace.lines().iter().find(|line| such(line)).unwrap_or_else(|| panic!("no such call:\n{trace}")).clone()
}

/// A process that exited instead would be restarted with growing delays.
#[test]
fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    Stage::run(
        "kube:get namespaces@1 lost-request; kube:get namespaces@2 hang; kube:get namespaces@3 lost-answer",
        async |stage| {
            stage.apply(&claim("team-a", "photos")).await;
            stage.until_ready_is("team-a", "photos", "Bound").await;
            assert!(stage.world.effects.unfired().is_empty());
            assert_eq!(lives(&stage.world), [1]);
        },
    );
}

/// Changes by users during the suspension are handled after it, and not before.
#[test]
fn a_paused_operator_does_nothing_until_it_goes_on() {
    Stage::run("kube:create secrets@1 pause(20)", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.world.pass(Duration::from_secs(5)).await;
        let calls = stage.world.effects.count();
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"quota": {"hard": "1Gi"}}})).await;
        stage.apply(&claim("team-a", "second")).await;
        stage.world.pass(Duration::from_secs(10)).await;
        assert_eq!(stage.world.effects.count(), calls, "{}", stage.trace());
        assert!(object(&stage.world, "bucketclaims", "team-a", "second")["metadata"]["finalizers"].is_null());
        let paused = line(&stage.world, |line| line.fault.is_some());
        assert_eq!((paused.world, paused.answer), (None, CallOutcome::Pending));

        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until_ready_is("team-a", "second", "Bound").await;
        let paused = line(&stage.world, |line| line.fault.is_some());
        assert_eq!((paused.world, paused.answer), (Some(201), CallOutcome::Status(201)), "no deadline has passed");
        assert_eq!(lives(&stage.world), [1]);
    });
}

/// A call whose deadline has passed has no effect, like one that hangs.
#[test]
fn a_call_is_taken_back_when_its_deadline_passes_in_a_pause() {
    Stage::run("kube:create secrets@1 pause(600)", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.world.pass(Duration::from_secs(590)).await;
        let paused = line(&stage.world, |line| line.fault.is_some());
        assert_eq!((paused.world, paused.answer), (None, CallOutcome::Dropped));
        let calls = stage.world.effects.count();
        assert_eq!(paused.number, calls, "nothing comes after it:\n{}", stage.trace());
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_bound_once(&stage).await;
    });
}

/// The twin binds the claim. The first operator, which was about to create the record, then finds
/// it.
#[test]
fn a_twin_takes_its_turn_within_a_call_and_is_gone_after_it() {
    Stage::run("kube:create secrets@1 twin", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(900)).await;
        assert_eq!(lives(&stage.world), [1, 2, 1], "{}", stage.trace());
        let record = line(&stage.world, |line| line.fault.is_some());
        assert_eq!(record.answer, CallOutcome::Status(409), "the twin has made it");
        assert_bound_once(&stage).await;
    });
}
