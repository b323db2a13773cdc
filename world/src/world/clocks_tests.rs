//! Clocks that a plan moves: the right clock, from the right moment on, with an event in the
//! history.

use std::time::Duration;

use rstest::rstest;

use super::tests::Bench;
use super::*;

/// Returns the offset of each clock from true time in seconds: the operator's, the gateway's, the
/// store's.
fn ahead(world: &World) -> [i64; 3] {
    Actor::ALL.map(|actor| {
        let clock = world.clocks.of(actor, world.clock.clock());
        clock().duration_since(world.clock.now()).as_secs()
    })
}

#[rstest]
#[case("#1 skew(operator,-45)", [-45, 0, 0])]
#[case("#1 skew(gateway,+45)", [0, 45, 0])]
#[case("#1 skew(store,+3600); #2 skew(store,-600)", [0, 0, 3000])]
#[tokio::test(start_paused = true)]
async fn a_skew_is_there_from_the_beginning(#[case] plan: &str, #[case] expected: [i64; 3]) {
    let bench = Bench::new(plan).await;
    assert_eq!(bench.world.effects.count(), 0);
    assert_eq!(ahead(&bench.world), expected);
    assert!(bench.world.effects.unfired().is_empty());
    bench.world.pass(Duration::from_secs(1000)).await;
    assert_eq!(ahead(&bench.world), expected);
}

#[tokio::test(start_paused = true)]
async fn a_step_moves_the_operators_clock_at_its_call() {
    let bench = Bench::new("#1 step(-45); #2 step(+3600)").await;
    assert_eq!(ahead(&bench.world), [0, 0, 0]);
    bench.secrets().get_opt("one").await.expect("an answer");
    assert_eq!(ahead(&bench.world), [-45, 0, 0]);
    bench.secrets().get_opt("one").await.expect("an answer");
    assert_eq!(ahead(&bench.world), [3555, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_history_tells_of_clocks() {
    let plan = "#1 step(+45); #2 skew(gateway,-45)".parse().expect("a plan");
    let world = World::new(Options { plan, history: true, ..Options::default() });
    let told = |world: &World| {
        let events = world.history().events;
        let off = events.iter().filter_map(|event| match event.what {
            What::ClockOff { actor, ahead } => Some((actor, ahead)),
            _ => None,
        });
        off.collect::<Vec<_>>()
    };
    assert_eq!(told(&world), [(Actor::Gateway, -45)]);
}
