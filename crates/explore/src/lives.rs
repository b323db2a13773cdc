//! The successive lives of a process, and its pauses.

use std::convert::Infallible;
use std::time::Duration;

use faults::{Effects, Instance, LifeEnd, Stop, Vocabulary, run_until_crash};
use tokio::time::Instant;

/// A twin counts as idle once it has made no call for this long.
const TWIN_RESTS: Duration = Duration::from_secs(10);
/// Maximum time that a twin runs.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// Runs one life of a process, pausing it where the plan has a pause.
///
/// `twin` is the life of a second process of the same kind. It runs during a pause where the plan
/// has one.
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

/// Ends each pause of a life when its time is over, or when the twin has had its turn.
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

/// Starts a twin, lets it work until it is idle, and kills it.
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

/// Waits until this life makes no more calls, at most for [`LONGEST_TURN`].
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
