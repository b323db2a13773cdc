//! Tests of clocks that are off: operator and gateway keep a promise by their own clocks, and a
//! tenant's loss counts as a limit.

use rstest::rstest;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::Actor;
use stowage_world::history::What;

use super::super::Promise;
use super::story::{By, Story, key_name};

/// Returns a story in which key 1 was replaced a moment ago.
fn replaced() -> Story {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.ask_for_rotation();
    story.mint(2);
    story.publish(2);
    story
}

fn off(story: &mut Story, actor: Actor, ahead: i64) {
    story.note(What::ClockOff { actor, ahead });
}

/// The overlap is a minute.
#[rstest]
#[case::in_step(&[], 60, None)]
#[case::too_early(&[], 59, Some(false))]
#[case::behind(&[-45], 15, Some(true))]
#[case::behind_and_too_early(&[-45], 14, Some(false))]
#[case::no_longer_behind(&[-45, 0], 15, Some(true))]
#[case::ahead(&[45], 105, None)]
#[case::ahead_since_the_clock_was_read(&[45], 60, None)]
#[case::ahead_and_too_early(&[45], 59, Some(false))]
fn an_end_is_judged_by_the_operators_clock(#[case] off_by: &[i64], #[case] end: i64, #[case] short: Option<bool>) {
    let mut story = replaced();
    off_by.iter().for_each(|ahead| off(&mut story, Actor::Operator, *ahead));
    story.stamp(1, end);
    match short {
        None => story.assert_kept(),
        Some(true) => story.assert_limit(Promise::I8),
        Some(false) => story.assert_broken(Promise::I8, "sooner than 60 s after"),
    }
}

#[test]
fn what_the_clock_was_before_the_switch_counts_no_more() {
    let mut story = Story::bound("Retain");
    off(&mut story, Actor::Operator, -45);
    story.wait(300);
    off(&mut story, Actor::Operator, 0);
    story.wait(300);
    story.ask_for_rotation();
    story.mint(2);
    story.publish(2);
    story.stamp(1, 15);
    story.assert_broken(Promise::I8, "sooner than 60 s after");
}

/// Key 1 ends in two minutes. By the operator's clock that time, and the minute of grace, are over.
#[rstest]
#[case::in_step(0, 180, None)]
#[case::within_the_grace(60, 120, None)]
#[case::beyond_it(61, 119, Some(true))]
#[case::not_yet_by_its_own_clock(60, 119, Some(false))]
fn a_key_is_revoked_by_the_operators_clock(#[case] ahead: i64, #[case] after: i64, #[case] short: Option<bool>) {
    let mut story = replaced();
    story.stamp(1, 120);
    off(&mut story, Actor::Operator, ahead);
    story.wait(after);
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    match short {
        None => story.assert_kept(),
        Some(true) => story.assert_limit(Promise::I6),
        Some(false) => story.assert_broken(Promise::I6, "is revoked while its claim lives"),
    }
}

/// Key 1 ends in two minutes by true time.
#[rstest]
#[case::sooner_as_the_gateway_has_it(45, 75, false, Some((Promise::I6, true)))]
#[case::sooner_than_that(45, 74, false, Some((Promise::I6, false)))]
#[case::not_as_the_gateway_has_it(45, 75, true, Some((Promise::I7, false)))]
#[case::later_as_the_gateway_has_it(-45, 164, true, Some((Promise::I7, true)))]
#[case::later_than_that(-45, 165, true, Some((Promise::I7, false)))]
#[case::long_before(-45, 119, true, None)]
fn the_gateway_ends_a_key_by_its_own_clock(
    #[case] ahead: i64,
    #[case] after: i64,
    #[case] allowed: bool,
    #[case] found: Option<(Promise, bool)>,
) {
    let mut story = replaced();
    off(&mut story, Actor::Gateway, ahead);
    story.stamp(1, 120);
    story.wait(after);
    story.used(1, allowed);
    match found {
        None => story.assert_kept(),
        Some((promise, true)) => story.assert_limit(promise),
        Some((promise, false)) => story.assert_broken(promise, ""),
    }
}
