//! Plays once what many schedules have in common: the run without faults. For each schedule a process branches off where
//! its first fault is, and goes on alone.
//!
//! A run is a thread with a paused clock and seeded randomness, so a copy of its process at some call is that run at that
//! call: what comes of a schedule is the same as when it is played whole, to the hash of its trace.
//!
//! ```text
//! explorer ── jobs × trunk: the run without faults, with a share of the schedules each
//!                └── one branch at a time: the rest of the run under one plan; tells its verdict, and ends
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde::{Deserialize, Serialize};

use crate::determinism::run_seeded;
use crate::effects::{Branches, EffectPattern, Place, Plan};
use crate::processes::{self, Branch, Branched};

use super::playing::Judge;
use super::reference::undisturbed_end;
use super::report::Verdict;
use super::run::{Faults, Outcome, judge_end, play};
use super::scenario::Scenario;
use super::schedule::Schedule;
use super::workers::Done;

/// Fewest schedules of a trunk: it is played besides them.
const FEWEST: usize = 4;

/// Schedules of one scenario with one seed, each with its place among those that were asked for.
struct Bundle {
    scenario: &'static Scenario,
    seed: u64,
    branches: BTreeMap<Place, Vec<Planned>>,
}

/// A schedule's place among those that were asked for, and its plan.
#[derive(Debug)]
struct Planned {
    index: usize,
    plan: Plan,
}

/// Where a run under this plan begins to differ from the one without faults; `None` where only the run itself can tell.
fn first_place(plan: &Plan) -> Option<Place> {
    let place = |effect: &EffectPattern| match effect {
        EffectPattern::Number(number) => Some(Place::Call(number.get())),
        EffectPattern::Call { occurrence: None, .. } => Some(Place::Begin),
        EffectPattern::Call { .. } => None,
    };
    let places: Option<Vec<Place>> = plan.entries.iter().map(|entry| place(&entry.effect)).collect();
    let places = places?;
    // Which call is the first after faults may begin is for the run to tell too.
    let mixed = places.contains(&Place::Begin) && places.iter().any(|place| *place != Place::Begin);
    if mixed { None } else { places.into_iter().min() }
}

/// Sorts schedules into bundles; leaves out those that have to be played whole.
fn bundle(schedules: &[Schedule]) -> Vec<Bundle> {
    let mut bundles: BTreeMap<(&str, u64), Bundle> = BTreeMap::new();
    for (index, schedule) in schedules.iter().enumerate() {
        let Some(place) = first_place(&schedule.plan) else { continue };
        let Schedule { scenario, seed, ref plan } = *schedule;
        let empty = || Bundle { scenario, seed, branches: BTreeMap::new() };
        let bundle = bundles.entry((scenario.name, seed)).or_insert_with(empty);
        bundle.branches.entry(place).or_default().push(Planned { index, plan: plan.clone() });
    }
    bundles.into_values().filter(|bundle| bundle.branches.values().flatten().count() >= FEWEST).collect()
}

impl Bundle {
    /// Parts of about the same size, with something of every place in each.
    fn shares(self, count: usize) -> Vec<Self> {
        let Self { scenario, seed, branches } = self;
        let planned: Vec<(Place, Planned)> =
            branches.into_iter().flat_map(|(place, here)| here.into_iter().map(move |it| (place, it))).collect();
        let mut shares: Vec<Self> =
            (0..count.clamp(1, planned.len().max(1))).map(|_| Self { scenario, seed, branches: BTreeMap::new() }).collect();
        let parts = shares.len();
        for (turn, (place, it)) in planned.into_iter().enumerate() {
            if let Some(share) = shares.get_mut(turn % parts) {
                share.branches.entry(place).or_default().push(it);
            }
        }
        shares
    }

    /// Everything that any of its plans says.
    fn everything(&self) -> Plan {
        let plans = self.branches.values().flatten();
        Plan { entries: plans.flat_map(|planned| planned.plan.entries.iter().cloned()).collect() }
    }
}

/// Plays those schedules of which a part is played once, so many at once, and while this thread is the only one of the
/// process; hands each verdict to `receive`, until that says no or the deadline has come.
pub(super) fn play_branching(
    jobs: usize,
    schedules: &[Schedule],
    deadline: Option<Instant>,
    judge: Judge<'_>,
    mut receive: impl FnMut(Done<Verdict>) -> bool,
) {
    for bundle in bundle(schedules) {
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over || !play_bundle(jobs, bundle, deadline, judge, &mut receive) {
            return;
        }
    }
}

/// Plays the schedules of a bundle. `false` if no more are to be played.
fn play_bundle(
    jobs: usize,
    bundle: Bundle,
    deadline: Option<Instant>,
    judge: Judge<'_>,
    receive: &mut impl FnMut(Done<Verdict>) -> bool,
) -> bool {
    // The branches compare their ends with it, and each would have to find it out anew.
    undisturbed_end(bundle.scenario, bundle.seed);
    let mut trunks = Vec::new();
    for share in bundle.shares(jobs) {
        match processes::branch_off_alone() {
            Ok(Branched::Child(told)) => grow(share, told, deadline, judge),
            Ok(Branched::Parent(trunk)) => trunks.push(trunk),
            // In company, or without room for another process, its share is played whole.
            Err(_) => break,
        }
    }
    let (sender, verdicts) = mpsc::sync_channel(jobs.max(1));
    std::thread::scope(|scope| {
        for trunk in trunks {
            let sender = sender.clone();
            scope.spawn(move || listen(trunk, |done| sender.send(done).is_ok()));
        }
        drop(sender);
        verdicts.into_iter().all(receive)
    })
}

/// A verdict on its way from a trunk, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    index: usize,
    took: Duration,
    verdict: Verdict,
}

/// Hears a trunk out, or until nobody wants to know any more: then it finds that its pipe is broken, and ends.
fn listen(trunk: Branch, mut hand_on: impl FnMut(Done<Verdict>) -> bool) {
    for line in BufReader::new(&trunk.told).lines() {
        let told = line.ok().and_then(|line| serde_json::from_str::<Told>(&line).ok());
        let Some(Told { index, took, verdict }) = told else { break };
        if !hand_on(Done { index, result: verdict, took }) {
            break;
        }
    }
    trunk.forsake();
}

/// The process of a trunk: plays the run without faults, and has a branch go off for each plan.
fn grow(bundle: Bundle, told: io::PipeWriter, deadline: Option<Instant>, judge: Judge<'_>) -> ! {
    let (scenario, seed, all) = (bundle.scenario, bundle.seed, bundle.everything());
    let trunk = Arc::new(Trunk(Mutex::new(State { waiting: bundle.branches, told, deadline, way: Way::Trunk })));
    run_seeded(seed, || async {
        let played = AssertUnwindSafe(play(scenario, seed, Faults::Branches(trunk.clone(), all))).catch_unwind().await;
        trunk.finish(scenario, seed, played.unwrap_or_else(|panic| Outcome::of_panic(panic.as_ref())), judge);
    });
    processes::end()
}

/// Which way this process goes.
#[derive(Debug)]
enum Way {
    /// Without faults.
    Trunk,
    /// Under this plan; the verdict is told here.
    Branch(Planned, io::PipeWriter),
}

#[derive(Debug)]
struct Trunk(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Plans whose first fault is yet to come.
    waiting: BTreeMap<Place, Vec<Planned>>,
    /// Where verdicts are wanted.
    told: io::PipeWriter,
    deadline: Option<Instant>,
    way: Way,
}

impl Branches for Trunk {
    #[allow(unsafe_code)]
    fn at(&self, place: Place) -> Option<Plan> {
        let mut state = self.state();
        if matches!(state.way, Way::Branch(..)) {
            return None;
        }
        for planned in state.waiting.remove(&place).unwrap_or_default() {
            if state.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            let start = Instant::now();
            // SAFETY: the only other thread of this process waits for this one to end.
            match unsafe { processes::branch_off() } {
                Ok(Branched::Child(told)) => {
                    let plan = planned.plan.clone();
                    state.way = Way::Branch(planned, told);
                    return Some(plan);
                }
                Ok(Branched::Parent(branch)) => state.pass_on(planned.index, start, hear_out(branch)),
                Err(error) => {
                    state.pass_on(planned.index, start, Verdict::of_death(&format!("could not be started: {error}")));
                }
            }
        }
        None
    }
}

impl Trunk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the run: of a branch it is the end of the process too.
    fn finish(&self, scenario: &'static Scenario, seed: u64, mut outcome: Outcome, judge: Judge<'_>) {
        let mut state = self.state();
        let Way::Branch(planned, told) = &mut state.way else { return };
        let schedule = Schedule { scenario, seed, plan: planned.plan.clone() };
        judge_end(&schedule, &mut outcome);
        let verdict = judge(&schedule, &outcome);
        // A trunk that can't be told has ended.
        let _ = serde_json::to_vec(&verdict).map(|bytes| told.write_all(&bytes));
        processes::end()
    }
}

impl State {
    /// Hands a verdict on to whoever began all this; ends with them.
    fn pass_on(&mut self, index: usize, start: Instant, verdict: Verdict) {
        let told = Told { index, took: start.elapsed(), verdict };
        let line = serde_json::to_vec(&told).map(|mut line| {
            line.push(b'\n');
            line
        });
        let passed = line.map_err(io::Error::from).and_then(|line| self.told.write_all(&line));
        if passed.is_err() {
            processes::end();
        }
    }
}

/// The verdict of a branch, once it has ended.
fn hear_out(mut branch: Branch) -> Verdict {
    let mut told = Vec::new();
    let heard = branch.told.read_to_end(&mut told);
    let ended = branch.wait();
    match serde_json::from_slice(&told) {
        Ok(verdict) => verdict,
        Err(_) => Verdict::of_death(&match (heard, ended) {
            (Ok(_), Ok(status)) => format!("ended without a verdict: {status}"),
            (Err(error), _) | (_, Err(error)) => format!("was not heard out: {error}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn plan(text: &str) -> Plan {
        text.parse().expect("it is a plan")
    }

    #[rstest]
    #[case("", None)]
    #[case("#17 hang; #9 crash(before)", Some(Place::Call(9)))]
    #[case("s3:CreateBucket lost-answer", Some(Place::Begin))]
    #[case("s3:CreateBucket@1 lost-answer", None)]
    #[case("#9 hang; s3:CreateBucket lost-answer", None)]
    fn a_run_parts_where_its_first_fault_is(#[case] text: &str, #[case] expected: Option<Place>) {
        assert_eq!(first_place(&plan(text)), expected);
    }

    #[test]
    fn every_schedule_is_in_one_share() {
        let scenario = crate::explorer::scenarios::named("create").expect("it exists");
        let numbered = (1..=7).map(|number| Schedule { scenario, seed: 1, plan: plan(&format!("#{number} hang")) });
        let whole = Schedule { scenario, seed: 1, plan: Plan::default() };
        let few = Schedule { scenario, seed: 2, plan: plan("#1 hang") };
        let schedules: Vec<Schedule> = numbered.chain([whole, few]).collect();
        let mut bundles = bundle(&schedules);
        assert_eq!(bundles.len(), 1, "one schedule is not worth a trunk");
        let shares = bundles.remove(0).shares(3);
        let indices = |share: &Bundle| share.branches.values().flatten().map(|it| it.index).collect::<Vec<_>>();
        assert_eq!(shares.iter().map(indices).collect::<Vec<_>>(), [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    /// A branch that a signal ends tells nothing, and that is told.
    #[test]
    #[allow(unsafe_code)]
    fn a_branch_without_a_verdict_has_broken_a_promise() {
        // SAFETY: the new process asks for no lock: it ends at once.
        match unsafe { processes::branch_off() }.expect("there is room for a process") {
            Branched::Child(_) => processes::end(),
            Branched::Parent(branch) => {
                let broken = hear_out(branch).broken.expect("it is no good end");
                assert_eq!((broken.promise.as_str(), broken.message.contains("without a verdict")), ("L1", true));
            }
        }
    }
}
