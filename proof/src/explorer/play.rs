//! Plays one schedule until it is at rest, and judges everything but its end state.

use std::time::Duration;

use seeded::panics;
use stowage_world::determinism::seeded_run;
use stowage_world::effects::{Fault, OfGateway};
use stowage_world::history::What;
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, OPERATOR_NAMESPACE, Operator, World};

use super::ending::{change_of_mind, nothing_is_due, rests, settle, until_end};
use super::log::Log;
use super::others;
use super::outcome::Outcome;
use super::schedule::Schedule;
use super::stage::{PATIENCE, Stage};
use crate::oracles::{Case, Judgement, Promise, Setting, Shown, Violation, judge};

/// Time that a run goes on at rest to show what the operator does without a cause. Everything is
/// checked once in ten minutes, jitter included, so two checks are seen.
const LONG_REST: Duration = Duration::from_secs(1500);
/// Time for a third party's touch of all claims to have consequences.
const TOUCH: Duration = Duration::from_secs(3);
/// Time that the gateway of the simulated world may be behind the Secrets.
const GATEWAY_LAG: Duration = Duration::from_secs(5);

/// Additional lag of a gateway whose own watch met a fault: kube's longest backoff, and the delay
/// of a late watch.
const TOLD_LATE: Duration = Duration::from_secs(40);

/// Maximum number of calls in a run; an operator that makes more is assumed to loop. The longest
/// regular run makes some thousands.
const MOST_CALLS: u64 = 20_000;

/// Plays a schedule alone, without a comparison with other ends and without the long rest.
pub(super) fn play_apart(schedule: &Schedule) -> Outcome {
    played(schedule, false, |outcome| outcome)
}

/// Plays a schedule on a new thread, with a long rest if `rests_long`, and passes its outcome to
/// `tell` there.
pub(super) fn played<R: Send>(schedule: &Schedule, rests_long: bool, tell: impl FnOnce(Outcome) -> R + Send) -> R {
    let scenario = || play(schedule, rests_long, MOST_CALLS);
    seeded_run(schedule.seed)
        .run_and(scenario, |ended| tell(ended.unwrap_or_else(|panic| Outcome::of_panic(panic.as_ref()))))
}

/// Plays a scenario until it is at rest, and judges everything but its end state.
async fn play(schedule: &Schedule, rests_long: bool, most_calls: u64) -> Outcome {
    let (scenario, start) = (schedule.scenario, tokio::time::Instant::now());
    let log = Log::keep();
    let plans = (schedule.plan.clone(), schedule.gateway.clone());
    let mut stage = Stage::new(scenario, schedule.seed, plans, most_calls);
    let mut violations = Vec::new();
    let ended = until_end(scenario, &mut stage).await;
    stage.world.effects.calm();
    stage.world.gateway_effects.calm();
    stage.world.note(What::Quiet);
    let until = stage.world.effects.count();
    let gateways_until = stage.world.gateway_effects.count();
    let (end, reached) = match ended {
        Ok(end) => (Some(end), settle(scenario, &stage, end, &mut violations).await),
        Err(violation) => {
            violations.push(violation);
            (None, false)
        }
    };
    violations.splice(..0, goes_round(&stage));
    let took = start.elapsed();
    let mut rested = stage.world.effects.count();
    if violations.is_empty() {
        // The first pass over everything may still repair something.
        touch(&stage, 1).await;
        stage.pass(others::told_late(&stage.world.effects.fired())).await;
        // A move that was blocked ends with the last key to the former bucket.
        let _came_right = stage.until(PATIENCE, |facts| rests(scenario, &stage, facts)).await;
        stage.world.note(What::AtRest);
        touch(&stage, 2).await;
        touch(&stage, 3).await;
        violations.extend(end.and_then(|end| change_of_mind(scenario, &stage, end)));
        rested = stage.world.effects.count();
        if rests_long && nothing_is_due(&stage.world.facts(), LONG_REST) {
            stage.world.pass(LONG_REST).await;
        }
        // An operator beyond its last allowed call makes none, which must not pass for rest.
        violations.splice(..0, goes_round(&stage));
    }
    violations.splice(..0, untimely_ends(&stage));
    let (end, faults) = (stage.world.facts(), stage.world.effects.fired());
    let gateway = stage.take_gateway_calls(gateways_until);
    let setting = Setting {
        is_undisturbed: schedule.plan.is_empty() && schedule.gateway.is_empty(),
        ..setting(&stage, &faults, &gateway.fired)
    };
    let shown = shown(&stage, &log);
    let history = stage.world.take_history();
    let Judgement { violations: judged, limits } =
        judge(&Case { history: &history, end: &end, setting: &setting, shown: &shown });
    violations.extend(judged);
    // The first pass over everything may have led to another end.
    let reached = reached && (scenario.goal.holds)(&end);
    Outcome { before: stage.before, until, rested, history, end, faults, gateway, violations, limits, took, reached }
}

/// Returns the violation of an operator that made more calls than a run may have, also at rest.
pub(super) fn goes_round(stage: &Stage) -> Option<Violation> {
    let effects = &stage.world.effects;
    let message = || format!("the operator goes round and round: {} calls, and no end", effects.count());
    effects.exhausted().then(|| Violation { promise: stage.unbounded(), message: message(), event: None })
}

/// Returns the violations of operators that panicked, or ended though nobody stopped them.
///
/// A dead operator makes no wrong calls, so nothing else would show it; and only a restart would
/// bring it back.
pub(super) fn untimely_ends(stage: &Stage) -> Vec<Violation> {
    let broken = |message| Violation { promise: Promise::L6, message, event: None };
    let gave_up = stage.operators.iter().chain(&stage.stopped).any(Operator::gave_up);
    let ended = gave_up.then(|| broken("the operator ended, and nobody had stopped it".to_owned()));
    panics().into_iter().map(|panic| broken(format!("the operator {panic}"))).chain(ended).collect()
}

pub(super) fn setting(stage: &Stage, faults: &[Fault], of_gateways: &[OfGateway]) -> Setting {
    // A watch that was cut is opened again; a late one catches up.
    let is_told_late = of_gateways.iter().any(|fault| matches!(fault, OfGateway::Kube(_) | OfGateway::Call(_)));
    let late = if is_told_late { TOLD_LATE } else { Duration::ZERO };
    Setting {
        operators: u32::try_from(stage.most_operators).unwrap_or(u32::MAX),
        elects: stage.elects,
        gateway_lag: GATEWAY_LAG + others::gateway_lag(faults) + late,
        further_lags: stage.further_lags.clone(),
        hidden: hidden(&stage.world),
        is_undisturbed: false,
        others_read: stage.world.config().obc.is_some(),
        serves_some: !stage.world.serves_all(),
        purge_slice: usize::try_from(stage.world.config().purge_slice).unwrap_or(usize::MAX),
    }
}

/// Returns texts that no tenant may read.
fn hidden(world: &World) -> Vec<String> {
    let own = [ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, OPERATOR_NAMESPACE].map(str::to_owned);
    own.into_iter().chain(world.hosts()).collect()
}

/// Returns the texts that people and machines could read: the log and the metrics.
pub(super) fn shown(stage: &Stage, log: &Log) -> Vec<Shown> {
    let metrics = stage.operators.iter().chain(&stage.stopped);
    let metrics = metrics.map(|it| Shown { place: "the metrics".to_owned(), text: it.metrics() });
    [Shown { place: "the log".to_owned(), text: log.text() }].into_iter().chain(metrics).collect()
}

/// Changes an annotation of every claim as a third party, so that the operator reconciles all of
/// them.
pub(super) async fn touch(stage: &Stage, time: u32) {
    stage.touch_claims(&stage.world.facts(), time);
    stage.world.pass(TOUCH).await;
}

#[cfg(test)]
mod tests {
    use stowage_world::determinism::run_seeded;
    use stowage_world::effects::{GatewayPlan, Plan};

    use super::super::scenarios;
    use super::*;

    #[test]
    fn a_run_of_too_many_calls_goes_round_and_round() {
        let create = scenarios::named("create").expect("there is one");
        let schedule = Schedule { scenario: create, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() };
        let within = |most| run_seeded(1, || play(&schedule, false, most));
        let calls = within(MOST_CALLS);
        assert_eq!(calls.violations, []);
        let enough = calls.history.trace.effects();
        assert_eq!(within(enough).violations, []);
        // The last call is made at rest, after the touch of the claim.
        for most in [20, enough - 1] {
            let broken = within(most).violations;
            assert_eq!(broken[0].promise, Promise::L4);
            assert_eq!(broken[0].message, format!("the operator goes round and round: {most} calls, and no end"));
        }
    }
}
