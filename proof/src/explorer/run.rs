//! Runs and judges one schedule. Its final state is also compared with that of other runs.

use super::others;
use super::outcome::Outcome;
use super::play::played;
use super::reference::undisturbed_end;
use super::schedule::{FIRST_SEED, Schedule};
use crate::oracles::{Promise, Violation, canonical};

/// Runs a schedule in a new world, on a new thread, and judges it and its end. A panic breaks a
/// promise.
pub fn run(schedule: &Schedule) -> Outcome {
    run_and(schedule, |outcome| outcome)
}

/// Runs a schedule like [`run`], but returns only the result of `tell` from its thread.
pub(super) fn run_and<R: Send>(schedule: &Schedule, tell: impl FnOnce(Outcome) -> R + Send) -> R {
    played(schedule, schedule.rests_long(), |mut outcome| {
        judge_end(schedule, &mut outcome);
        tell(outcome)
    })
}

/// Judges the end of a schedule.
///
/// It must be that of a fault-free run if only the network and the services misbehaved (D1), and
/// that of the first seed if only the order of a user's actions differs (D2).
fn judge_end(schedule: &Schedule, outcome: &mut Outcome) {
    let nobody = !outcome.faults.iter().any(|fault| others::is_somebodys_doing(*fault));
    // Under a fault of a gateway's call its client has stored other data.
    if !outcome.reached || !outcome.violations.is_empty() || !nobody || !schedule.gateway.is_empty() {
        return;
    }
    let end = canonical(&outcome.end);
    let mut compare = |promise, seed: u64, than: &str| {
        if let Some(difference) = undisturbed_end(schedule.scenario, seed).difference(&end) {
            let message = format!("the end is another than {than}:\n{difference}");
            outcome.violations.push(Violation { promise, message, event: None });
        }
    };
    if !schedule.plan.is_empty() && schedule.scenario.ends_alike {
        compare(Promise::D1, schedule.seed, "without faults");
    } else if schedule.scenario.has_orders() && schedule.seed != FIRST_SEED {
        compare(Promise::D2, FIRST_SEED, "in another order");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rstest::rstest;
    use stowage_world::Options;
    use stowage_world::effects::{GatewayPlan, Plan};
    use stowage_world::scenes::Goal;

    use super::super::play::play_apart;
    use super::super::scenario::{Scenario, ScenarioPhase};
    use super::super::scenarios;
    use super::*;

    /// A scenario in which the next bucket check is due after the largest possible time: the pass
    /// that computes it panics.
    static PANICKING: Scenario = Scenario {
        name: "panicking",
        about: "an operator is to look at buckets again in more time than there is",
        phase: ScenarioPhase::Create,
        world: || Options { resync_interval: Duration::MAX, ..Options::default() },
        script: || (scenarios::named("create").expect("there is one").script)(),
        goal: Goal::new("anything", |_| true),
        otherwise: |_, _| true,
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    #[test]
    fn an_operator_that_panicked_is_not_at_rest() {
        let outcome =
            run(&Schedule { scenario: &PANICKING, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        assert!(first.promise == Promise::L6 && first.message.starts_with("the operator panicked at "), "{first}");
    }

    static ENDING: Scenario = Scenario {
        name: "ending",
        about: "an operator comes to its end though nobody stops it",
        world: || Options { operator_ends_after: Some(Duration::from_secs(60)), ..Options::default() },
        ..PANICKING
    };

    /// The end is as wanted, but no operator is left to keep it so.
    #[test]
    fn an_operator_that_ended_of_itself_is_not_at_rest() {
        let outcome =
            run(&Schedule { scenario: &ENDING, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        let words = "the operator ended, and nobody had stopped it";
        assert!(first.promise == Promise::L6 && first.message == words, "{first}");
    }

    /// A scenario in which an operator checks everything every half minute.
    static RESTLESS: Scenario = Scenario {
        name: "restless",
        about: "an operator looks at buckets again and again",
        phase: ScenarioPhase::Create,
        world: || Options { resync_interval: Duration::from_secs(30), ..Options::default() },
        script: || (scenarios::named("create").expect("there is one").script)(),
        goal: Goal::new("the claim is bound", |facts| facts.is_bound("team-a", "photos")),
        otherwise: |_, _| false,
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    #[test]
    fn an_operator_that_looks_again_and_again_is_not_at_rest() {
        let outcome =
            run(&Schedule { scenario: &RESTLESS, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let broken: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
        assert!(broken.iter().all(|it| it.starts_with("E1: ")), "{broken:?}");
        for what in ["GetBucketTagging team-a-photos is called", "get secrets stowage-system/s3-admin is asked for"] {
            assert!(broken.iter().any(|it| it.contains(what)), "{what}: {broken:?}");
        }
    }

    /// Returns an outcome with another end: one object less.
    fn altered(mut outcome: Outcome) -> Outcome {
        let claim = ("bucketclaims".to_owned(), "team-a".to_owned(), "photos".to_owned());
        Arc::make_mut(&mut outcome.end.objects).remove(&claim).expect("it ends with a claim");
        outcome
    }

    #[rstest]
    #[case("create 1 kube:create secrets@1 lost-answer", Promise::D1, "the end is another than without faults:")]
    #[case("any-order 2", Promise::D2, "the end is another than in another order:")]
    fn another_end_is_a_broken_promise(#[case] line: &str, #[case] promise: Promise, #[case] message: &str) {
        let schedule: Schedule = line.parse().expect("a schedule");
        let mut as_it_is = play_apart(&schedule);
        let mut other = altered(as_it_is.clone());
        judge_end(&schedule, &mut as_it_is);
        assert_eq!(as_it_is.violations, []);
        judge_end(&schedule, &mut other);
        let first = other.violations.first().expect("a promise is broken");
        assert!(first.promise == promise && first.message.starts_with(message), "{first}");
    }
}
