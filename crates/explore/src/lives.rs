//! The successive lives of a process, and what happens while one of them stands still.

use std::convert::Infallible;
use std::time::Duration;

use faults::{Effects, Instance, LifeEnd, Stop, Vocabulary, run_until_crash};
use tokio::time::Instant;

/// A twin has done what there was to do when it has made no call for this long.
const TWIN_RESTS: Duration = Duration::from_secs(10);
/// Longest that a twin's turn takes.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// One life, which stands still where the plan says so; `twin` is the life of a second process of
/// its kind, which has its turn meanwhile where the plan has one.
pub async fn one_life<V, F, G, Fut>(effects: &Effects<V>, instance: &Instance, life: F, twin: G) -> LifeEnd<F::Output>
where
    V: Vocabulary,
    F: Future,
    G: Fn(Instance) -> Fut,
    Fut: Future<Output = ()>,
{
    tokio::select! {
        biased;
        outcome = run_until_crash(instance, life) => outcome,
        never = see_to_stops(effects, instance, twin) => match never {},
    }
}

/// Has a life go on again whenever it was long enough that it stood still.
async fn see_to_stops<V, G, Fut>(effects: &Effects<V>, instance: &Instance, twin: G) -> Infallible
where
    V: Vocabulary,
    G: Fn(Instance) -> Fut,
    Fut: Future<Output = ()>,
{
    loop {
        match instance.stops().await {
            Stop::For(time) => tokio::time::sleep(time).await,
            Stop::Twin => give_turn(effects, &twin).await,
        }
        instance.go_on();
    }
}

/// A twin starts, does what there is to do, and is killed when it rests.
async fn give_turn<V, G, Fut>(effects: &Effects<V>, twin: &G)
where
    V: Vocabulary,
    G: Fn(Instance) -> Fut,
    Fut: Future<Output = ()>,
{
    let instance = effects.twin();
    tokio::select! {
        biased;
        _ = run_until_crash(&instance, twin(instance.clone())) => {}
        () = rests(effects, &instance) => instance.kill(),
    }
}

/// Comes to an end when this life makes no more calls.
async fn rests<V: Vocabulary>(effects: &Effects<V>, instance: &Instance) {
    let (end, mut calls) = (Instant::now() + LONGEST_TURN, 0);
    while Instant::now() < end {
        tokio::time::sleep(TWIN_RESTS).await;
        let before = std::mem::replace(&mut calls, effects.count_of(instance));
        if calls == before {
            return;
        }
    }
}
