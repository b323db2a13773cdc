//! Runs worlds, one after the other.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};
use stowage_operator::plan;

use super::checker::first_broken;
use super::promise::Promise;
use super::talks::{Planner, Planners};
use super::world::{Bounds, ModelWorld, Recipe};
use super::worlds::worlds;

/// What to explore, and how far.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of worlds; none = all.
    pub worlds: Vec<String>,
    /// Threads; `None` = one for each core.
    pub jobs: Option<NonZeroUsize>,
    /// When to stop, for all worlds together: each has its share of what the ones before it have
    /// left.
    pub time_limit: Option<Duration>,
    /// Most states of each world.
    pub max_states: Option<usize>,
    /// Set where somebody asks for the end: the world that is explored is cut short, and none is
    /// begun after it.
    pub asked: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct ModelReport {
    /// Of each world.
    pub worlds: Vec<WorldReport>,
    /// Threads.
    pub jobs: usize,
    /// Worlds that were to be explored, and were not begun, as the end was asked for.
    pub left: Vec<&'static str>,
}

/// What came of one world.
#[derive(Clone, Debug)]
pub struct WorldReport {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Different states.
    pub states: usize,
    /// Steps from one to the next, whether it was known or not.
    pub transitions: usize,
    /// Different views that the planner was shown.
    pub views: usize,
    /// Most steps from the first state.
    pub depth: usize,
    /// How long it took.
    pub seconds: f64,
    /// Every state was looked at.
    pub complete: bool,
    /// Steps that came upon what the contract lists as an honest limit.
    pub limits: u64,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
}

/// A broken promise, and how that comes about.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// What is wrong, where there is more to say.
    pub what: String,
    /// What happens, step by step.
    pub trace: Vec<String>,
}

impl ModelReport {
    /// Every broken promise, and in which world.
    pub fn violations(&self) -> impl Iterator<Item = (&'static str, &Violation)> {
        self.worlds.iter().flat_map(|world| world.violations.iter().map(|violation| (world.name, violation)))
    }

    /// Whether each world was explored, and all of it.
    pub fn complete(&self) -> bool {
        self.left.is_empty() && self.worlds.iter().all(|world| world.complete)
    }

    /// Names of the worlds of which nothing was explored: what they would have shown is not known.
    pub fn unexplored(&self) -> impl Iterator<Item = &'static str> {
        let begun = self.worlds.iter().filter(|world| !world.is_explored()).map(|world| world.name);
        begun.chain(self.left.iter().copied())
    }

    /// States of all worlds.
    pub fn states(&self) -> usize {
        self.worlds.iter().map(|world| world.states).sum()
    }

    /// Seconds of all worlds.
    pub fn seconds(&self) -> f64 {
        self.worlds.iter().map(|world| world.seconds).sum()
    }
}

impl WorldReport {
    /// Whether any of it was explored before the time was over.
    pub fn is_explored(&self) -> bool {
        self.states > 0 || !self.violations.is_empty()
    }
}

/// Every world's name.
pub fn world_names() -> impl Iterator<Item = &'static str> {
    worlds().map(|recipe| recipe.name)
}

/// Explores worlds and tells of each when it is done.
///
/// # Errors
/// When there is no world of one of the names.
pub fn run(options: &Options, mut done: impl FnMut(&WorldReport)) -> Result<ModelReport, String> {
    if let Some(unknown) = options.worlds.iter().find(|name| world_names().all(|world| world != name.as_str())) {
        let names: Vec<&str> = world_names().collect();
        return Err(format!("there is no world {unknown:?}; there are {}", names.join(", ")));
    }
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = options.jobs.map_or_else(cores, NonZeroUsize::get);
    // One that is beyond all time is none.
    let deadline = options.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let chosen = |recipe: &&Recipe| options.worlds.is_empty() || options.worlds.iter().any(|name| name == recipe.name);
    let recipes: Vec<&Recipe> = worlds().filter(chosen).collect();
    let mut worlds = Vec::new();
    let asked = || options.asked.load(Ordering::Relaxed);
    for (number, recipe) in recipes.iter().enumerate().take_while(|_| !asked()) {
        let until = deadline.map(|deadline| share(Instant::now(), deadline, recipes.len() - number));
        let bounds = Bounds { states: options.max_states, until, asked: Some(options.asked.clone()) };
        let report = explore((*recipe).clone(), plan::next, bounds, jobs);
        done(&report);
        worlds.push(report);
    }
    let left = recipes[worlds.len()..].iter().map(|recipe| recipe.name).collect();
    Ok(ModelReport { worlds, jobs, left })
}

/// Until when the next of so many worlds may take.
fn share(now: Instant, deadline: Instant, worlds: usize) -> Instant {
    let left = deadline.saturating_duration_since(now);
    now + left / u32::try_from(worlds.max(1)).unwrap_or(u32::MAX)
}

/// Explores a world with a planner of claims.
pub(super) fn explore(recipe: Recipe, planner: Planner, bounds: Bounds, jobs: usize) -> WorldReport {
    explore_with(recipe, Planners { claims: planner, ..Planners::PRODUCTION }, bounds, jobs)
}

/// Explores a world with these planners.
pub(super) fn explore_with(recipe: Recipe, planners: Planners, bounds: Bounds, jobs: usize) -> WorldReport {
    let (name, about) = (recipe.name, recipe.about);
    let began = Instant::now();
    let world = ModelWorld::new(recipe, planners, bounds);
    let checker = world.checker().threads(jobs).finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let seconds = began.elapsed().as_secs_f64();
    let world = checker.model();
    let violations = checker.discoveries().into_values().map(|path| {
        let path = path.into_vec();
        let trace = path.iter().filter_map(|(state, action)| action.map(|action| world.describe(state, action)));
        let trace = trace.collect();
        let last = path.last().map(|(state, _)| state);
        let broken = last.and_then(|state| first_broken(world, state));
        let (promise, what) = broken.unwrap_or((Promise::L4, String::new()));
        Violation { promise, what, trace }
    });
    let violations: Vec<Violation> = violations.collect();
    WorldReport {
        name,
        about,
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        views: world.talks.views(),
        depth: checker.max_depth(),
        seconds,
        complete: violations.is_empty() && !world.cut.load(Ordering::Relaxed),
        limits: world.limits.load(Ordering::Relaxed),
        violations,
    }
}

#[cfg(test)]
mod tests {
    use super::super::worlds::WORLDS;
    use super::*;

    #[test]
    fn each_world_has_its_share_of_the_time_that_is_left() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(share(now, after(30), 3), after(10));
        assert_eq!(share(after(2), after(30), 2), after(16), "what the first did not need is the others'");
        assert_eq!(share(after(16), after(30), 1), after(30));
        assert_eq!(share(after(31), after(30), 2), after(31), "there is none left");
    }

    #[test]
    fn a_world_that_had_no_time_is_not_explored() {
        let bounds = Bounds { until: Some(Instant::now()), ..Bounds::default() };
        let world = explore(WORLDS[0].clone(), plan::next, bounds, 1);
        assert!(!world.is_explored() && !world.complete);
        let mut row = Vec::new();
        crate::model::write_world(&mut row, &world).expect("a vector takes everything");
        assert!(String::from_utf8_lossy(&row).contains("not explored"));
        let report = ModelReport { worlds: vec![world], jobs: 1, left: Vec::new() };
        assert_eq!(report.unexplored().collect::<Vec<_>>(), [WORLDS[0].name]);
    }

    #[test]
    fn whoever_asks_for_the_end_is_told_of_what_was_explored_until_then() {
        let names = [WORLDS[0].name, WORLDS[1].name, WORLDS[2].name];
        let worlds = names.map(str::to_owned).to_vec();
        let options = Options { worlds, jobs: NonZeroUsize::new(1), max_states: Some(200), ..Options::default() };
        let report = run(&options, |_| options.asked.store(true, Ordering::Relaxed)).expect("there are such worlds");
        assert_eq!(report.worlds.len(), 1, "the one that was under way is told");
        assert!(!report.complete());
        assert_eq!(report.unexplored().collect::<Vec<_>>(), names[1..]);
    }

    #[test]
    fn a_world_is_cut_short_where_its_end_is_asked_for() {
        let bounds = Bounds { asked: Some(Arc::new(AtomicBool::new(true))), ..Bounds::default() };
        let world = explore(WORLDS[0].clone(), plan::next, bounds, 1);
        assert!(!world.complete && world.states < 100, "{} states", world.states);
    }
}
