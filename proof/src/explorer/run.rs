//! Runs one schedule, and judges it.

use std::any::Any;
use std::time::Duration;

use explore::plans::Undisturbed;
use seeded::panics;
use stowage_world::determinism::seeded_run;
use stowage_world::effects::{Call, Fault, GatewayCalls, Line, OfGateway, StowageFault};
use stowage_world::history::{Facts, History, What};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, OPERATOR_NAMESPACE, Operator, World};

use super::ending::{change_of_mind, nothing_is_due, rests, settle, until_end};
use super::log::Log;
use super::others;
use super::reference::undisturbed_end;
use super::schedule::Schedule;
use super::stage::{PATIENCE, Stage};
use crate::oracles::{Case, Judgement, Promise, Setting, Shown, Violation, canonical, judge};

/// How long a run goes on at rest where it shows what the operator does of itself: everything is
/// looked at once in ten minutes, jitter included, so two looks at it are seen.
const LONG_REST: Duration = Duration::from_secs(1500);
/// How long a third party's touch of all claims is given to have consequences.
const TOUCH: Duration = Duration::from_secs(3);
/// How far the gateway of the simulated world may be behind the Secrets.
const GATEWAY_LAG: Duration = Duration::from_secs(5);

/// How much later a gateway may hear of a change where its own watch met a fault: kube's longest
/// wait before it tries again, and what a late watch is late.
const TOLD_LATE: Duration = Duration::from_secs(40);

/// Most calls in a run: one that makes more goes round and round. The longest there is makes some
/// thousands.
const MOST_CALLS: u64 = 20_000;

/// The seed that the ends of others are compared with, where only the order of acts differs.
pub(super) const FIRST_SEED: u64 = 1;

/// What came of a schedule.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Effects before faults could happen.
    pub before: u64,
    /// Effects until it had come to its end.
    pub until: u64,
    /// Effects until it was at rest; those that are later show that it is.
    pub rested: u64,
    /// Everything that happened.
    pub history: History,
    /// How all stood in the end.
    pub end: Facts,
    /// Faults of the plan that met a call.
    pub faults: Vec<Fault>,
    /// What the gateways called, where their calls are numbered.
    pub gateway: GatewayCalls,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// What looks like a broken promise and is one of the limits that the contract states (spec
    /// §3.2).
    pub limits: Vec<Violation>,
    /// Virtual time from the start of the world to its rest.
    pub took: Duration,
    /// Whether it came to what the user wanted, rather than to what others' hands may make of it.
    pub reached: bool,
}

impl Outcome {
    /// Whether the plan could have met a call of this number.
    pub fn could_meet(&self, number: u64) -> bool {
        number > self.before && number <= self.until
    }

    /// The run as one in which nothing went wrong, to read plans off.
    pub(super) fn undisturbed(&self) -> Undisturbed<'_, StowageFault> {
        Undisturbed { lines: self.history.trace.lines(), before: self.before, until: self.until }
    }

    /// The calls until it was at rest.
    pub fn lines(&self) -> &[Line] {
        let lines = self.history.trace.lines();
        lines.get(..usize::try_from(self.rested).unwrap_or(lines.len())).unwrap_or(lines)
    }

    /// The calls that the plan could have met, with their numbers: those from when faults could
    /// begin to the end.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &Call)> {
        let lines = self.history.trace.lines().iter();
        lines.filter(|line| self.could_meet(line.number)).map(|line| (line.number, &line.call))
    }
}

/// Runs a schedule in a world of its own, on a thread of its own, and judges it; its end too. A
/// panic breaks a promise.
pub fn run(schedule: &Schedule) -> Outcome {
    run_and(schedule, |outcome| outcome)
}

/// As [`run`], of which only what `tell` makes of it leaves the thread.
pub(super) fn run_and<R: Send>(schedule: &Schedule, tell: impl FnOnce(Outcome) -> R + Send) -> R {
    played(schedule, schedule.rests_long(), |mut outcome| {
        judge_end(schedule, &mut outcome);
        tell(outcome)
    })
}

/// Judges how a schedule ended: as a run without faults if nobody but the network and the services
/// has done anything (D1), and as that of the first seed if only the order of a user's acts differs
/// (D2).
fn judge_end(schedule: &Schedule, outcome: &mut Outcome) {
    let nobody = !outcome.faults.iter().any(|fault| others::is_somebodys_doing(*fault));
    // Under a fault of a gateway's call its client has stored something else.
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

/// Runs a schedule by itself, without a look at how others end or at how it rests.
pub(super) fn play_apart(schedule: &Schedule) -> Outcome {
    played(schedule, false, |outcome| outcome)
}

/// Plays a schedule on a thread of its own, if so with a long rest, and has what came of it told
/// there.
fn played<R: Send>(schedule: &Schedule, rests_long: bool, tell: impl FnOnce(Outcome) -> R + Send) -> R {
    let scenario = || play(schedule, rests_long, MOST_CALLS);
    seeded_run(schedule.seed)
        .run_and(scenario, |ended| tell(ended.unwrap_or_else(|panic| Outcome::of_panic(panic.as_ref()))))
}

impl Outcome {
    /// What comes of a run that ends in a panic.
    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("a panic: {}", text.unwrap_or("without words"));
        Self {
            before: 0,
            until: 0,
            rested: 0,
            history: History::default(),
            end: Facts::default(),
            faults: Vec::new(),
            gateway: GatewayCalls::default(),
            violations: vec![Violation { promise: Promise::L1, message, event: None }],
            limits: Vec::new(),
            took: Duration::ZERO,
            reached: false,
        }
    }
}

/// Plays a scenario to its rest, and judges all but how it ended.
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
        // What a look at everything still has to put right is put right by the first.
        touch(&stage, 1).await;
        stage.pass(others::told_late(&stage.world.effects.fired())).await;
        // A move, once what was in its way is gone, ends with the last key to the bucket before.
        let _came_right = stage.until(PATIENCE, |facts| rests(scenario, &stage, facts)).await;
        stage.world.note(What::AtRest);
        touch(&stage, 2).await;
        touch(&stage, 3).await;
        violations.extend(end.and_then(|end| change_of_mind(scenario, &stage, end)));
        rested = stage.world.effects.count();
        if rests_long && nothing_is_due(&stage.world.facts(), LONG_REST) {
            stage.world.pass(LONG_REST).await;
        }
        // Beyond its last call an operator is mute, which is no rest.
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
    // The first look at everything may have put it right in another way.
    let reached = reached && (scenario.goal.holds)(&end);
    Outcome { before: stage.before, until, rested, history, end, faults, gateway, violations, limits, took, reached }
}

/// An operator that made more calls than a run may have, at rest too.
pub(super) fn goes_round(stage: &Stage) -> Option<Violation> {
    let effects = &stage.world.effects;
    let message = || format!("the operator goes round and round: {} calls, and no end", effects.count());
    effects.exhausted().then(|| Violation { promise: stage.unbounded(), message: message(), event: None })
}

/// An operator that is no more does nothing wrong. One that panicked, or ended though nobody
/// stopped it, comes back only by a restart.
pub(super) fn untimely_ends(stage: &Stage) -> Vec<Violation> {
    let broken = |message| Violation { promise: Promise::L6, message, event: None };
    let gave_up = stage.operators.iter().chain(&stage.stopped).any(Operator::gave_up);
    let ended = gave_up.then(|| broken("the operator ended, and nobody had stopped it".to_owned()));
    panics().into_iter().map(|panic| broken(format!("the operator {panic}"))).chain(ended).collect()
}

pub(super) fn setting(stage: &Stage, faults: &[Fault], of_gateways: &[OfGateway]) -> Setting {
    // A watch that was cut comes back; one that is told late catches up.
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

/// What no tenant may read.
fn hidden(world: &World) -> Vec<String> {
    let own = [ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, OPERATOR_NAMESPACE].map(str::to_owned);
    own.into_iter().chain(world.hosts()).collect()
}

/// What people and machines could read.
pub(super) fn shown(stage: &Stage, log: &Log) -> Vec<Shown> {
    let metrics = stage.operators.iter().chain(&stage.stopped);
    let metrics = metrics.map(|it| Shown { place: "the metrics".to_owned(), text: it.metrics() });
    [Shown { place: "the log".to_owned(), text: log.text() }].into_iter().chain(metrics).collect()
}

/// A third party touches every claim, and the operator looks at all of them.
pub(super) async fn touch(stage: &Stage, time: u32) {
    stage.touch_claims(&stage.world.facts(), time);
    stage.world.pass(TOUCH).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use stowage_world::Options;
    use stowage_world::determinism::run_seeded;
    use stowage_world::effects::{GatewayPlan, Plan};

    use super::super::scenario::{Goal, Scenario, ScenarioPhase};
    use super::super::scenarios;
    use super::*;

    /// When its bucket is looked at next is farther ahead than time goes: the pass that reckons it
    /// panics.
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

    /// All is as it is wanted, and nobody is left to keep it so.
    #[test]
    fn an_operator_that_ended_of_itself_is_not_at_rest() {
        let outcome =
            run(&Schedule { scenario: &ENDING, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let first = outcome.violations.first().expect("a promise is broken");
        let words = "the operator ended, and nobody had stopped it";
        assert!(first.promise == Promise::L6 && first.message == words, "{first}");
    }

    /// Looks at everything every half minute, as long as it lives.
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

    /// What another end would be: one object less.
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

    #[test]
    fn a_run_of_too_many_calls_goes_round_and_round() {
        let create = scenarios::named("create").expect("there is one");
        let schedule = Schedule { scenario: create, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() };
        let within = |most| run_seeded(1, || play(&schedule, false, most));
        let calls = within(MOST_CALLS);
        assert_eq!(calls.violations, []);
        let enough = calls.history.trace.effects();
        assert_eq!(within(enough).violations, []);
        // The last one is made at rest, when somebody has touched the claim.
        for most in [20, enough - 1] {
            let broken = within(most).violations;
            assert_eq!(broken[0].promise, Promise::L4);
            assert_eq!(broken[0].message, format!("the operator goes round and round: {most} calls, and no end"));
        }
    }
}
