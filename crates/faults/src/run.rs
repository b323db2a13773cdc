//! State of one run: its remaining plan, its numbering and its trace.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::armed::{Armed, of_run};
use super::call::Call;
use super::fault::Fault;
use super::lasting::Lasting;
use super::outage::Outage;
use super::plan::Plan;
use super::row::Vocabulary;
use super::surroundings::Surroundings;
use super::trace::{CallOutcome, Line, Trace};

/// A run. Clones are the same run.
#[derive(Debug)]
pub(super) struct Run<V> {
    start: Instant,
    pub(super) surroundings: Option<Arc<dyn Surroundings<V>>>,
    state: Arc<Mutex<State<V>>>,
}

#[derive(Debug)]
pub(super) struct State<V> {
    pub(super) plan: Vec<Armed<V>>,
    pub(super) outages: Vec<Outage<V>>,
    pub(super) lasting: Vec<Lasting<V>>,
    /// Faults that have met a call.
    pub(super) fired: Vec<Fault<V>>,
    pub(super) trace: Trace<V>,
    pub(super) instances: u32,
    /// Minimum number of calls that the trace keeps; `None` for all.
    pub(super) kept: Option<usize>,
    /// Maximum number of calls that may begin.
    pub(super) most: u64,
    /// True if a further call was attempted.
    pub(super) exhausted: bool,
}

impl<V> Clone for Run<V> {
    fn clone(&self) -> Self {
        Self { start: self.start, surroundings: self.surroundings.clone(), state: Arc::clone(&self.state) }
    }
}

impl<V: Vocabulary> Run<V> {
    /// Starts a run now, by tokio's clock.
    pub(super) fn new(plan: Plan<V>, surroundings: Option<Arc<dyn Surroundings<V>>>) -> Self {
        if let Some(surroundings) = &surroundings {
            surroundings.expect(&plan);
        }
        Self {
            start: Instant::now(),
            surroundings,
            state: Arc::new(Mutex::new(State {
                fired: of_run(&plan),
                plan: plan.entries.into_iter().map(Armed::new).collect(),
                outages: Vec::new(),
                lasting: Vec::new(),
                trace: Trace::default(),
                instances: 0,
                kept: None,
                most: u64::MAX,
                exhausted: false,
            })),
        }
    }

    /// Replaces the plan.
    pub(super) fn plan(&self, plan: Plan<V>) {
        self.expect(&plan);
        let mut state = self.state();
        state.fired.extend(of_run(&plan));
        state.plan = plan.entries.into_iter().map(Armed::new).collect();
    }

    /// Adds to the plan.
    pub(super) fn arm(&self, more: Plan<V>) {
        self.expect(&more);
        let mut state = self.state();
        state.fired.extend(of_run(&more));
        state.plan.extend(more.entries.into_iter().map(Armed::new));
    }

    /// Announces a plan to the world.
    fn expect(&self, plan: &Plan<V>) {
        if let Some(surroundings) = &self.surroundings {
            surroundings.expect(plan);
        }
    }

    /// Returns the milliseconds of its clock since its start.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Gives a call its number, its fault and its line in the trace. Returns `None` if the limit of
    /// calls is exceeded.
    pub(super) fn begin(&self, instance: u32, host: &str, call: &Call) -> Option<(u64, Option<Fault<V>>)> {
        let mut state = self.state();
        let number = state.trace.effects() + 1;
        if number > state.most {
            state.exhausted = true;
            return None;
        }
        let fault = state.fault_for(number, call).or_else(|| state.outage_of(host, call));
        if let Some(kept) = state.kept {
            state.trace.keep(kept);
        }
        state.trace.push(Line {
            number,
            instance,
            call: call.clone(),
            fault,
            world: None,
            answer: CallOutcome::Pending,
            began_ms: self.elapsed_ms(),
        });
        Some((number, fault))
    }

    pub(super) fn amend(&self, number: u64, change: impl FnOnce(&mut Line<V>)) {
        if let Some(line) = self.state().trace.line_mut(number) {
            change(line);
        }
    }

    /// Locks the state. No code that could panic runs between two related changes, so a panic
    /// elsewhere leaves it consistent.
    pub(super) fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock()
    }
}

impl<V: Vocabulary> State<V> {
    /// Returns the first fault planned for the call that can apply to it, or else a lasting one.
    /// All entries count the call.
    fn fault_for(&mut self, number: u64, call: &Call) -> Option<Fault<V>> {
        let mut fault = None;
        for armed in &mut self.plan {
            let met = armed.meets(number, call);
            if met && fault.is_none() && armed.entry.fault.check(call.kind()).is_ok() {
                if !std::mem::replace(&mut armed.fired, true) {
                    self.fired.push(armed.entry.fault);
                }
                fault = Some(armed.entry.fault);
            }
        }
        self.lasting.extend(fault.and_then(Lasting::of));
        fault.or_else(|| self.lasting.iter().find_map(|lasting| lasting.met_by(call)))
    }

    fn outage_of(&self, host: &str, call: &Call) -> Option<Fault<V>> {
        self.outages.iter().find(|outage| outage.meets(host, call)).map(|outage| outage.fault)
    }
}
