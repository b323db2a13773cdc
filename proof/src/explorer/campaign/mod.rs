//! A campaign: many schedules on several threads, and their report.

mod pairs;
pub(super) mod scope;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use explore::workers::{Done, at_once};
use stowage_world::effects::{EffectPattern, Fault, GatewayPlan, Plan, ProcessFault};

use super::corpus;
use super::outcome::Outcome;
use super::plans::{Singles, gateway_singles, lasting, preemptions, singles, triples, untagged};
use super::play::play_apart;
use super::quick::Quick;
use super::report::{CampaignReport, Failure, ScenarioCoverage, Slow, Verdict};
use super::run::run_and;
use super::scenario::Scenario;
use super::schedule::Schedule;
use super::shrink::shrink;

pub use scope::{Campaign, Order, Profile};

/// Progress of a campaign, reported after each schedule.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Number of finished schedules.
    pub done: usize,
    /// Number of all schedules, as far as it can be foreseen.
    pub total: usize,
    /// True if there may be more: the number of pairs can't be foreseen.
    pub more: bool,
    /// The failure of the schedule that finished last.
    pub broken: Option<&'a Failure>,
    /// Number of failures so far.
    pub failures: usize,
    /// Number of pairs of fault and phase met so far.
    pub cells: usize,
    /// Number of possible pairs of fault and phase.
    pub cells_total: usize,
}

/// Number of seeds to try for a scenario in which the seed decides the order of a user's actions.
const ORDERS: u64 = 24;
/// Number of random triples made at a time; bounds memory.
const CHUNK: usize = 10_000;
/// Number of failures that are shrunk; further ones most likely have the same causes.
const MOST_SHRUNK: usize = 10;
/// Minimum time for shrinking: a campaign that has used up its time limit may have failures too.
const SHRINKING: Duration = Duration::from_secs(60);

/// Runs a campaign, and reports its progress on the caller's thread.
///
/// If `progress` returns [`ControlFlow::Break`], no further schedule is started.
pub fn explore(campaign: &Campaign, progress: impl FnMut(Progress<'_>) -> ControlFlow<()>) -> CampaignReport {
    let start = Instant::now();
    let report = CampaignReport::new(campaign);
    // A limit too large for an `Instant` is no limit.
    let deadline = campaign.time_limit.and_then(|limit| start.checked_add(limit));
    let mut work = Work {
        campaign,
        report,
        deadline,
        progress,
        foreseen: 0,
        planned: 0,
        done: 0,
        numbered: 0,
        quick: Quick::new(campaign.seed),
        failures: BTreeMap::new(),
        cut_short: false,
    };
    work.report.complete = work.all();
    work.report.numbered = work.numbered;
    work.report.seconds = start.elapsed().as_secs_f64();
    work.report.job_seconds = work.report.seconds * work.report.jobs as f64;
    work.shrink();
    CampaignReport { failures: work.failures.into_values().collect(), ..work.report }
}

/// A scenario and the outcome of its fault-free run.
type Undisturbed = (&'static Scenario, Outcome);

/// A campaign in progress.
struct Work<'a, P> {
    campaign: &'a Campaign,
    report: CampaignReport,
    deadline: Option<Instant>,
    progress: P,
    /// Number of schedules that this shard has to run, counted before the first one; incomplete for
    /// a profile with pairs.
    foreseen: usize,
    /// Number of schedules that this shard has to run, as far as they are known.
    planned: usize,
    /// Number of schedules that have run.
    done: usize,
    /// Number of schedules of all shards together, as far as they are known.
    numbered: usize,
    quick: Quick,
    /// Schedules that broke a promise, by their index among those of this shard.
    failures: BTreeMap<usize, Failure>,
    /// True if the caller has cut the campaign short.
    cut_short: bool,
}

impl<P: FnMut(Progress<'_>) -> ControlFlow<()>> Work<'_, P> {
    /// Runs everything in order: the corpus, each scenario, random plans, pairs. Returns false if
    /// something was left out.
    fn all(&mut self) -> bool {
        let undisturbed = self.undisturbed();
        if undisturbed.len() < self.campaign.scenarios.len() {
            return false;
        }
        for (scenario, outcome) in &undisturbed {
            let Singles { crashes_expected, limits, .. } = singles(outcome);
            let row = ScenarioCoverage::new(scenario, outcome, crashes_expected, limits);
            self.report.scenarios.insert(scenario.name.to_owned(), row);
        }
        // No faults are added to a scenario that breaks a promise without them: it may have made
        // any number of calls.
        let (sound, broken): (Vec<_>, Vec<_>) = undisturbed.into_iter().partition(|(_, it)| it.violations.is_empty());
        let chosen = |schedule: &Schedule| sound.iter().any(|(scenario, _)| scenario.name == schedule.scenario.name);
        let corpus: Vec<Schedule> = corpus::schedules().into_iter().filter(chosen).collect();
        let broken: Vec<Schedule> =
            broken.iter().map(|(scenario, _)| self.schedule(scenario, Plan::default())).collect();
        self.foreseen = self.foresee(broken.len() + corpus.len(), &sound);
        self.run_mine(broken)
            && self.run_mine(corpus)
            && (self.campaign.order == Order::Listed || self.singles_shuffled(&sound))
            && sound.iter().all(|(scenario, outcome)| self.scenario(scenario, outcome))
            && self.random(&sound)
            && (self.campaign.profile != Profile::Deep || self.pairs(&sound))
    }

    /// Returns the number of schedules of this shard, without pairs. `first` schedules come before
    /// those of the scenarios. Quick plans are not counted, because they are few and depend on each
    /// other.
    fn foresee(&self, first: usize, undisturbed: &[Undisturbed]) -> usize {
        if self.campaign.profile == Profile::Quick {
            return 0;
        }
        let of_scenario = |(scenario, outcome): &Undisturbed| {
            let orders = if scenario.has_orders() { ORDERS as usize } else { 0 };
            let singles = 1 + singles(outcome).plans.len() + gateway_singles(outcome).len();
            if self.campaign.profile == Profile::Singles {
                return singles;
            }
            singles + orders + lasting(outcome).len() + untagged(outcome).len() + preemptions(outcome).len()
        };
        let all = first + undisturbed.iter().map(of_scenario).sum::<usize>();
        all.saturating_add(self.random_plans()).div_ceil(self.campaign.shard.of)
    }

    /// Returns the number of random plans of all shards together.
    fn random_plans(&self) -> usize {
        let each = match self.campaign.profile {
            Profile::Quick | Profile::Singles => 0,
            Profile::Default => 100,
            Profile::Deep => 5_000,
        };
        self.campaign.random.unwrap_or(each * self.campaign.scenarios.len())
    }

    /// Runs every scenario without faults, then the single faults of all of them in random order.
    fn singles_shuffled(&mut self, undisturbed: &[Undisturbed]) -> bool {
        let first: Vec<Schedule> =
            undisturbed.iter().map(|(scenario, _)| self.schedule(scenario, Plan::default())).collect();
        let single = |(scenario, outcome): &Undisturbed| {
            let plans = singles(outcome).plans.into_iter().chain(lasting(outcome));
            let at_gateways = gateway_singles(outcome).into_iter().map(|plan| self.at_gateways(scenario, plan));
            plans.map(|plan| self.schedule(scenario, plan)).chain(at_gateways).collect::<Vec<_>>()
        };
        let mut rest: Vec<Schedule> = undisturbed.iter().flat_map(single).collect();
        fastrand::Rng::with_seed(self.campaign.seed).shuffle(&mut rest);
        self.run_singles(first.into_iter().chain(rest).collect())
    }

    /// Returns the fault-free runs of all scenarios; fewer if the time is over.
    fn undisturbed(&self) -> Vec<Undisturbed> {
        let all: Vec<Schedule> =
            self.campaign.scenarios.iter().map(|scenario| self.schedule(scenario, Plan::default())).collect();
        let mut outcomes = BTreeMap::new();
        at_once(self.campaign.jobs, &all, self.deadline, play_apart, |done| {
            outcomes.insert(done.index, done.result);
            true
        });
        self.campaign.scenarios.iter().copied().zip(outcomes.into_values()).collect()
    }

    /// Runs one scenario as the profile demands, except for random plans and pairs.
    fn scenario(&mut self, scenario: &'static Scenario, undisturbed: &Outcome) -> bool {
        let mut plans = vec![Plan::default()];
        let singles = singles(undisturbed).plans;
        let untagged = untagged(undisturbed);
        let mut at_gateways = gateway_singles(undisturbed);
        match self.campaign.profile {
            Profile::Quick => {
                plans.extend(self.quick.choose([singles, untagged].concat(), scenario.phase));
                at_gateways = one_of_each(at_gateways);
            }
            Profile::Singles => plans.extend(singles),
            Profile::Default | Profile::Deep => {
                if self.campaign.order == Order::Listed {
                    plans.extend(singles);
                    plans.extend(lasting(undisturbed));
                } else {
                    at_gateways.clear();
                }
                plans.extend(untagged);
                plans.extend(preemptions(undisturbed));
            }
        }
        let mut schedules: Vec<Schedule> = plans.into_iter().map(|plan| self.schedule(scenario, plan)).collect();
        schedules.extend(at_gateways.into_iter().map(|plan| self.at_gateways(scenario, plan)));
        if scenario.has_orders() && matches!(self.campaign.profile, Profile::Default | Profile::Deep) {
            let seeds = (1..=ORDERS).map(|more| self.campaign.seed.wrapping_add(more));
            schedules.extend(seeds.map(|seed| Schedule {
                scenario,
                seed,
                plan: Plan::default(),
                gateway: GatewayPlan::default(),
            }));
        }
        self.run_singles(schedules)
    }

    /// Runs random triples in chunks, for all scenarios in turn; fewer for long scenarios, see
    /// [`shares`].
    fn random(&mut self, undisturbed: &[Undisturbed]) -> bool {
        let mut left = self.random_plans();
        let mut random = fastrand::Rng::with_seed(self.campaign.seed);
        let calls: Vec<usize> = undisturbed.iter().map(|(_, outcome)| outcome.lines().len()).collect();
        while left > 0 {
            let chunk = left.min(CHUNK);
            let mut schedules = Vec::new();
            for ((scenario, outcome), share) in undisturbed.iter().zip(shares(&calls, chunk)) {
                let plans = triples(outcome, &mut random, share);
                schedules.extend(plans.into_iter().map(|plan| self.schedule(scenario, plan)));
            }
            if !self.run_mine(schedules) {
                return false;
            }
            left -= chunk;
        }
        true
    }

    fn schedule(&self, scenario: &'static Scenario, plan: Plan) -> Schedule {
        Schedule { scenario, seed: self.campaign.seed, plan, gateway: GatewayPlan::default() }
    }

    fn at_gateways(&self, scenario: &'static Scenario, gateway: GatewayPlan) -> Schedule {
        Schedule { scenario, seed: self.campaign.seed, plan: Plan::default(), gateway }
    }

    /// Selects this shard's part of schedules that all shards enumerate.
    fn mine(&mut self, schedules: Vec<Schedule>) -> Vec<Schedule> {
        let from = self.numbered;
        self.numbered += schedules.len();
        let mine = schedules.into_iter().enumerate().filter(|(index, _)| self.campaign.shard.has(from + index));
        mine.map(|(_, schedule)| schedule).collect()
    }

    /// Runs this shard's part of schedules that all shards enumerate. Returns false if not all were
    /// run.
    fn run_mine(&mut self, schedules: Vec<Schedule>) -> bool {
        let mine = self.mine(schedules);
        self.run_all(mine)
    }

    /// Runs this shard's part of schedules that include the crash points of their scenarios.
    ///
    /// Counts the crashes that met their calls, and the single faults that met none. Repetitions in
    /// the corpus or among random plans don't count for either.
    fn run_singles(&mut self, schedules: Vec<Schedule>) -> bool {
        let mine = self.mine(schedules);
        let mut counted: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let complete = self.run_and_see(mine, |schedule, verdict| {
            let (crashes, unmet) = counted.entry(schedule.scenario.name).or_default();
            let met = !verdict.faults.is_empty() || verdict.met_gateway;
            *crashes += usize::from(met && is_crash(&schedule.plan));
            let is_planned = is_one_numbered(&schedule.plan) || !schedule.gateway.is_empty();
            *unmet += usize::from(!met && is_planned);
        });
        for (name, (crashes, unmet)) in counted {
            if let Some(row) = self.report.scenarios.get_mut(name) {
                row.crash_points += crashes;
                row.unmet += unmet;
            }
        }
        complete
    }

    /// Runs schedules and records their verdicts. Returns false if not all were run.
    fn run_all(&mut self, schedules: Vec<Schedule>) -> bool {
        self.run_and_see(schedules, |_, _| {})
    }

    /// Like [`Work::run_all`]; also passes each verdict to `see` as schedules finish.
    fn run_and_see(&mut self, schedules: Vec<Schedule>, mut see: impl FnMut(&Schedule, &Verdict)) -> bool {
        let first = self.planned;
        self.planned += schedules.len();
        let (campaign, deadline) = (self.campaign, self.deadline);
        let play = |schedule: &Schedule| {
            run_and(schedule, |outcome| {
                let hash = campaign.hashes.map(|detail| outcome.hash(detail));
                Verdict { hash, ..Verdict::of(schedule, &outcome) }
            })
        };
        at_once(campaign.jobs, &schedules, deadline, play, |done| {
            if let Some(schedule) = schedules.get(done.index) {
                see(schedule, &done.result);
                self.take_down(first + done.index, schedule, &done);
            }
            !self.cut_short && (!campaign.fail_fast || self.failures.is_empty())
        })
    }

    /// Adds a finished schedule to the report, and reports the progress.
    fn take_down(&mut self, place: usize, schedule: &Schedule, done: &Done<Verdict>) {
        self.done += 1;
        let (report, name) = (&mut self.report, schedule.scenario.name);
        if let Some(hash) = &done.result.hash {
            report.hashes.insert(place, format!("{hash} {}", self.campaign.schedule_line(schedule)));
        }
        report.note(name, &done.result);
        if let Some(row) = report.scenarios.get_mut(name) {
            Slow::keep(&mut row.slowest, done.took, || schedule.to_string());
            Slow::keep(&mut row.longest, done.result.took, || schedule.to_string());
        }
        let failure = done.result.broken.as_ref().map(|broken| Failure::of(schedule, broken));
        self.failures.extend(failure.clone().map(|failure| (place, failure)));
        self.tell(failure.as_ref());
    }

    /// Reports the progress, with the last failure.
    fn tell(&mut self, broken: Option<&Failure>) {
        let (cells, cells_total) = self.report.coverage();
        let total = self.planned.max(self.foreseen);
        let more = matches!(self.campaign.profile, Profile::Quick | Profile::Deep);
        let (done, failures) = (self.done, self.failures.len());
        let progress = Progress { done, total, more, broken, failures, cells, cells_total };
        self.cut_short |= (self.progress)(progress).is_break();
    }

    /// Shrinks the first failures, until the caller stops it.
    fn shrink(&mut self) {
        let now = Instant::now();
        let until = self.deadline.map(|deadline| deadline.max(now + SHRINKING));
        let places: Vec<usize> = self.failures.keys().copied().take(MOST_SHRUNK).collect();
        for place in places {
            if self.cut_short || until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            if let Some(failure) = self.failures.get_mut(&place) {
                failure.shrunk = shrink(&failure.line);
            }
            self.tell(None);
        }
    }
}

/// Divides `plans` plans among scenarios, by the calls of their fault-free runs.
///
/// A scenario with more calls than the median gets proportionally fewer plans, as each takes
/// longer: ten years of rotation would otherwise take a quarter of the time.
fn shares(calls: &[usize], plans: usize) -> Vec<usize> {
    let mut sorted = calls.to_vec();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len() / 2).map_or(1, |&middle| middle.max(1));
    // In millionths of the share of a median scenario.
    let upto = calls.iter().scan(0, |sum, &calls| {
        *sum += middle * 1_000_000 / calls.max(middle);
        Some(*sum)
    });
    let upto: Vec<usize> = upto.collect();
    let all = upto.last().map_or(1, |&all| all);
    let ends: Vec<usize> = upto.into_iter().map(|sum| sum * plans / all).collect();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(begins).map(|(end, begin)| end - begin).collect()
}

/// Returns the first plan of each fault.
fn one_of_each(plans: Vec<GatewayPlan>) -> Vec<GatewayPlan> {
    let mut seen = BTreeSet::new();
    let fault = |plan: &GatewayPlan| plan.entries.first().map(|entry| entry.fault.to_string());
    plans.into_iter().filter(|plan| seen.insert(fault(plan))).collect()
}

/// Returns true for a counted crash point: one crash at one call.
fn is_crash(plan: &Plan) -> bool {
    is_one_numbered(plan)
        && plan.entries.iter().all(|entry| matches!(entry.fault, Fault::Process(ProcessFault::Crash(_))))
}

/// Returns true for one fault at one call, which is given by its number.
fn is_one_numbered(plan: &Plan) -> bool {
    matches!(plan.entries.as_slice(), [entry] if matches!(entry.effect, EffectPattern::Number(_)))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use explore::Shard;
    use stowage_world::Options;
    use stowage_world::scenes::Goal;

    use super::super::scenario::{Scenario, ScenarioPhase};
    use super::super::scenarios;
    use super::{Campaign, Order, Profile, explore, shares};

    static NEVER: Scenario = Scenario {
        name: "never",
        about: "what the user wants does not come",
        phase: ScenarioPhase::Create,
        world: Options::default,
        script: || (scenarios::named("create").expect("there is one").script)(),
        goal: Goal::new("something comes", |_| false),
        otherwise: |_, _| false,
        ends_alike: false,
        check: |_, _| Ok(()),
    };

    /// Returns a small campaign of these scenarios.
    pub(super) fn campaign(scenarios: Vec<&'static Scenario>) -> Campaign {
        Campaign {
            scenarios,
            profile: Profile::Quick,
            seed: 1,
            jobs: 1,
            time_limit: None,
            shard: Shard::WHOLE,
            fail_fast: false,
            order: Order::Listed,
            random: Some(0),
            hashes: None,
        }
    }

    #[test]
    fn no_fault_is_put_on_what_breaks_a_promise_by_itself() {
        let scenarios = vec![&NEVER, scenarios::named("quota").expect("there is one")];
        // A part of the single faults is enough.
        let shard = "0/20".parse().expect("a shard");
        let campaign = Campaign { order: Order::Shuffled, random: Some(100), shard, ..campaign(scenarios) };
        let report = explore(&campaign, |_| ControlFlow::Continue(()));
        let broken: Vec<&str> = report.failures.iter().map(|failure| failure.line.as_str()).collect();
        assert_eq!(broken, ["never 1"]);
        assert_eq!(report.scenarios["never"].schedules, 1);
        assert!(report.scenarios["quota"].schedules > 10 && report.complete, "the others are explored");
    }

    #[test]
    fn shares_are_of_all_plans_and_of_long_scenarios_fewer() {
        assert_eq!(shares(&[50, 70, 90], 100), [36, 36, 28], "as the last is longer by 9 to 7");
        assert_eq!(shares(&[80, 80, 800], 2100), [1000, 1000, 100]);
        assert_eq!(shares(&[80, 80], 1), [0, 1], "fewer plans than scenarios");
        assert_eq!(shares(&[0], 7), [7], "a scenario without a call");
        assert!(shares(&[], 7).is_empty());
        let many = shares(&[45, 3000, 71, 12, 88, 100, 46], 10_000);
        assert_eq!(many.iter().sum::<usize>(), 10_000, "{many:?}");
    }
}
