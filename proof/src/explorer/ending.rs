//! The end of a run, and its judgement.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stowage_operator::api::wire::{self, Role};
use stowage_world::history::Facts;
use stowage_world::history::facts::label;
use stowage_world::scenes::Stage as _;

use super::others;
use super::outlast::outlast;
use super::scenario::{Scenario, ScenarioStep, WorldStep};
use super::stage::{NeverCame, PATIENCE, Stage};
use crate::oracles::{Promise, Violation};

/// Time in which later passes show a partial failure.
const AFTERMATH: Duration = Duration::from_secs(100);
/// Longer than the backoff of an operation that has failed for long, jitter included; and shorter
/// than the probe interval, because a probe would retry it too.
const LAST_TRY: Duration = Duration::from_secs(400);
/// Longer than the intervals of drift checks, resyncs and sweeps, jitter included, for effects of
/// faults that only one of those shows.
const RESYNC: Duration = Duration::from_secs(900);

/// The end that a run reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The end that the user wanted.
    Wanted,
    /// An end that changes by other actors may lead to.
    Otherwise,
}

/// Takes the scenario's steps and waits for its goal. Lasting faults of the plan end before that.
pub(super) async fn until_end(scenario: &Scenario, stage: &mut Stage) -> Result<End, Violation> {
    let mut outlasted = false;
    for step in (scenario.script)() {
        let mut taken = stage.take(&step).await;
        if taken.is_err() && stage.has_lasting() && !outlasted {
            // A step that failed under a lasting fault is retried once the fault is over.
            outlast(stage).await?;
            outlasted = true;
            taken = stage.take(&step).await;
        }
        let goal = match (taken, step) {
            (Err(NeverCame), ScenarioStep::Until(goal)) => goal,
            (Err(NeverCame), ScenarioStep::More(WorldStep::Soon(goal, _)))
                if stage.world.effects.fired().is_empty() =>
            {
                return Err(never(Promise::L5, goal.what, stage));
            }
            // The fault may have met a watch that was opened earlier, so the goal may come later.
            (Err(NeverCame), ScenarioStep::More(WorldStep::Soon(goal, _)))
                if stage.take(&ScenarioStep::Until(goal)).await.is_err() =>
            {
                goal
            }
            (Ok(()), _) | (Err(NeverCame), ScenarioStep::More(WorldStep::Soon(..))) => continue,
            (Err(NeverCame), step) => return Err(never(stage.unreached(), &step.to_string(), stage)),
        };
        if others::may_rest(scenario, &stage.world.facts(), &stage.world.effects.fired()) {
            return Ok(End::Otherwise);
        }
        return Err(never(stage.unreached(), goal.what, stage));
    }
    if stage.has_lasting() && !outlasted {
        outlast(stage).await?;
    }
    let goal = scenario.goal;
    match stage.until(PATIENCE, |facts| rests(scenario, stage, facts)).await {
        Err(NeverCame) => Err(never(stage.unreached(), goal.what, stage)),
        Ok(()) if (goal.holds)(&stage.world.facts()) => Ok(End::Wanted),
        Ok(()) => Ok(End::Otherwise),
    }
}

/// Returns true if the goal is reached, or the state is one that other actors' changes may lead to.
pub(super) fn rests(scenario: &Scenario, stage: &Stage, facts: &Facts) -> bool {
    (scenario.goal.holds)(facts) || others::may_rest(scenario, facts, &stage.world.effects.fired())
}

fn never(promise: Promise, what: &str, stage: &Stage) -> Violation {
    let facts = stage.world.facts();
    let message = format!("it never came to be that {what}; {}", facts.claims());
    Violation { promise, message, event: None }
}

/// Waits until partial failures have shown, then judges the state. Returns true if it is what the
/// user wanted.
///
/// The state must then be the wanted one or one that other actors' changes may lead to, no matter
/// which of the two the run had reached before.
pub(super) async fn settle(scenario: &Scenario, stage: &Stage, end: End, violations: &mut Vec<Violation>) -> bool {
    let fired = stage.world.effects.fired();
    let shows = match () {
        () if others::show_late(&stage.world.effects) => RESYNC,
        () if stage.has_lasting() => LAST_TRY,
        () => AFTERMATH,
    };
    let still: Duration = fired.into_iter().map(|fault| others::stands_still(fault) + others::is_behind(fault)).sum();
    stage.pass(still + shows).await;
    // Another actor may have changed something that late; the checks below judge the result.
    let _came_right = stage.until(PATIENCE, |facts| rests(scenario, stage, facts)).await;
    // A claim that was recreated starts later than everything else, and rotates later.
    let _in_trouble_for_good = stage.until(RESYNC, |facts| nothing_is_due(facts, RESYNC)).await;
    let (facts, faults) = (stage.world.facts(), &stage.world.effects.fired());
    let reached = (scenario.goal.holds)(&facts);
    if reached && let Err(message) = (scenario.check)(&facts, faults) {
        violations.push(Violation { promise: Promise::L1, message, event: None });
    }
    violations.extend(change_of_mind(scenario, stage, end));
    // The gateway may not know the last key before its lag has passed.
    stage.pass(others::gateway_lag(&stage.world.effects.fired())).await;
    for message in stage.probe(&stage.world.facts()).await {
        violations.push(Violation { promise: Promise::I16, message, event: None });
    }
    for message in stage.probe_accesses(&stage.world.facts()).await {
        violations.push(Violation { promise: Promise::A5, message, event: None });
    }
    reached
}

/// Returns the violation of a run whose state is no longer one of the accepted ends.
pub(super) fn change_of_mind(scenario: &Scenario, stage: &Stage, end: End) -> Option<Violation> {
    let what = scenario.goal.what;
    let message = match end {
        _ if rests(scenario, stage, &stage.world.facts()) => return None,
        End::Wanted => format!("it did not stay so that {what}"),
        End::Otherwise => format!("it did not stay as others' hands may leave it, and it is not so that {what}"),
    };
    Some(Violation { promise: Promise::L1, message, event: None })
}

/// Returns true if nothing is due soon: no key waits to be retired, and no Ready claim has an open
/// rotate or revoke request or rotates on its own within this time.
pub(super) fn nothing_is_due(facts: &Facts, within: Duration) -> bool {
    let within = SignedDuration::try_from(within).unwrap_or(SignedDuration::MAX);
    let mut claims = BTreeSet::new();
    let mut ending = facts.secrets(Role::VirtualCredential).filter(|(_, _, key)| {
        let is_second = !claims.insert(label(key, wire::CLAIM_UID));
        is_second || !key["metadata"]["annotations"][wire::EXPIRES_AT].is_null()
    });
    let expires = |key: &serde_json::Value| !key["metadata"]["annotations"][wire::EXPIRES_AT].is_null();
    let mut accesses = BTreeSet::new();
    let mut ending_of_accesses = facts.secrets(Role::AccessCredential).filter(|(_, _, key)| {
        let is_second = !accesses.insert(label(key, wire::ACCESS_UID));
        is_second || expires(key)
    });
    let requests = [(wire::ROTATE, "handledRotateRequest"), (wire::REVOKE, "handledRevokeRequest")];
    let mut asking = facts.all("bucketclaims").filter(|(namespace, name, claim)| {
        let is_open = |(asks, handled): (&str, &str)| {
            let request = claim["metadata"]["annotations"][asks].as_str().map(wire::receipt);
            request.is_some_and(|request| claim["status"][handled] != *request)
        };
        facts.ready(namespace, name) == "Bound" && requests.into_iter().any(is_open)
    });
    let mut aging = facts.all("bucketclaims").filter(|(namespace, name, claim)| {
        let next = claim["status"]["nextRotationAt"].as_str().and_then(|next| next.parse::<Timestamp>().ok());
        let is_soon = |next: Timestamp| next.duration_since(facts.at) <= within;
        facts.ready(namespace, name) == "Bound" && next.is_some_and(is_soon)
    });
    ending.next().is_none() && ending_of_accesses.next().is_none() && asking.next().is_none() && aging.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stowage_operator::api::FINALIZER;
    use stowage_world::Options;
    use stowage_world::effects::{CallFault, Fault, GatewayPlan, Outage, Plan};
    use stowage_world::scenes::{Goal, Target, TargetKind};

    use super::super::run::run;
    use super::super::scenario::ScenarioPhase;
    use super::super::scenarios;
    use super::super::schedule::Schedule;
    use super::*;

    /// A scenario in which a claim waits in vain for a store that never answers.
    static STARVED: Scenario = Scenario {
        name: "starved",
        about: "a claim is to be bound soon at a store that hangs",
        phase: ScenarioPhase::Create,
        world: Options::default,
        script: || {
            let hangs =
                Outage { host: "s3.example:9000".to_owned(), operation: None, fault: Fault::Call(CallFault::Hang) };
            let create = (scenarios::named("create").expect("there is one").script)();
            let soon = WorldStep::Soon(Goal::new("the claim is bound", |_| false), Duration::from_secs(30));
            [WorldStep::Outage(hangs).into()].into_iter().chain(create).chain([soon.into()]).collect()
        },
        goal: Goal::new("anything", |_| true),
        otherwise: |_, _| false,
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    #[test]
    fn who_is_not_served_in_time_is_starved() {
        let outcome =
            run(&Schedule { scenario: &STARVED, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        assert_eq!(first.promise, Promise::L5, "{first}");
        assert!(first.message.starts_with("it never came to be that the claim is bound; team-a/photos is "), "{first}");
    }

    /// A fault that met a call may itself be the cause of the wait.
    #[test]
    fn under_a_fault_nobody_counts_as_starved() {
        let plan = "kube:list secrets@1 slow(10)".parse().expect("a plan");
        let outcome = run(&Schedule { scenario: &STARVED, seed: 1, plan, gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        assert_eq!((first.promise, outcome.faults.len()), (Promise::L1, 1), "{first}");
    }

    /// A scenario whose alternative end is reached for a moment only.
    static PASSING: Scenario = Scenario {
        name: "passing",
        about: "a claim may rest without a word, and is bound",
        phase: ScenarioPhase::Create,
        world: Options::default,
        script: || (scenarios::named("create").expect("there is one").script)(),
        goal: Goal::new("there is no claim", |facts| facts.claim("team-a", "photos").is_null()),
        otherwise: |facts, _| facts.ready("team-a", "photos").is_empty(),
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    #[test]
    fn what_hands_may_leave_is_judged_again_at_the_end() {
        let outcome =
            run(&Schedule { scenario: &PASSING, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        let message = "it did not stay as others' hands may leave it, and it is not so that there is no claim";
        assert_eq!((first.promise, first.message.as_str()), (Promise::L1, message));
    }

    /// A scenario in which a foreign finalizer blocks a deletion for good, and no condition names
    /// it.
    static HELD: Scenario = Scenario {
        name: "held",
        about: "a claim with a finalizer of somebody else's is to be gone",
        phase: ScenarioPhase::Delete,
        script: || {
            let claim = Target { kind: TargetKind::Claim, namespace: "team-a", name: "photos" };
            let hold = json!({ "metadata": { "finalizers": ["example.com/held", FINALIZER] } });
            let create = (scenarios::named("create").expect("there is one").script)();
            create.into_iter().chain([ScenarioStep::Patch(claim, hold), ScenarioStep::Delete(claim)]).collect()
        },
        goal: Goal::new("the claim is gone", |facts| facts.claim("team-a", "photos").is_null()),
        world: Options::default,
        otherwise: |_, _| false,
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    #[test]
    fn what_never_comes_breaks_the_promise_that_is_about_it() {
        let broken = |plan: &str| {
            let outcome = run(&Schedule {
                scenario: &HELD,
                seed: 1,
                plan: plan.parse().expect("a plan"),
                gateway: GatewayPlan::default(),
            });
            let first = outcome.violations.first().expect("a promise is broken");
            assert!(first.message.starts_with("it never came to be that the claim is gone; "), "{first}");
            first.promise
        };
        assert_eq!(broken(""), Promise::L2, "a deletion without an end");
        assert_eq!(broken("kube:list secrets slow(10)"), Promise::L6, "after a fault that lasted");
    }
}
