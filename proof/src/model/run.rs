//! Explores the worlds one after the other.

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

/// Worlds to explore, and bounds of the exploration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of worlds; empty = all.
    pub worlds: Vec<String>,
    /// Number of threads; `None` = one per core.
    pub jobs: Option<NonZeroUsize>,
    /// Time limit for all worlds together. Each world gets an equal share of the time that is left.
    pub time_limit: Option<Duration>,
    /// Maximum number of states of each world.
    pub max_states: Option<usize>,
    /// Set when the user requests an end: the current world is cut short and no further world
    /// begins.
    pub asked: Arc<AtomicBool>,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct ModelReport {
    /// Results per world.
    pub worlds: Vec<WorldReport>,
    /// Number of threads.
    pub jobs: usize,
    /// Names of worlds that were not begun because an end was requested.
    pub left: Vec<&'static str>,
}

/// Results of one world.
#[derive(Clone, Debug)]
pub struct WorldReport {
    /// Name of the world.
    pub name: &'static str,
    /// Description of the world.
    pub about: &'static str,
    /// Number of distinct states.
    pub states: usize,
    /// Number of transitions, including those to known states.
    pub transitions: usize,
    /// Number of distinct views that the planner was called with.
    pub views: usize,
    /// Length of the longest path from the first state.
    pub depth: usize,
    /// Duration in seconds.
    pub seconds: f64,
    /// True if every state was explored.
    pub complete: bool,
    /// Number of steps that met a limit which the contract documents.
    pub limits: u64,
    /// Broken promises.
    pub violations: Vec<Violation>,
}

/// A broken promise and the path to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// Details; empty if the promise says it all.
    pub what: String,
    /// Steps of the path in order.
    pub trace: Vec<String>,
}

impl ModelReport {
    /// Returns every broken promise with the name of its world.
    pub fn violations(&self) -> impl Iterator<Item = (&'static str, &Violation)> {
        self.worlds.iter().flat_map(|world| world.violations.iter().map(|violation| (world.name, violation)))
    }

    /// Returns true if every world was explored completely.
    pub fn complete(&self) -> bool {
        self.left.is_empty() && self.worlds.iter().all(|world| world.complete)
    }

    /// Returns the names of the worlds of which no state was explored, so that their results are
    /// unknown.
    pub fn unexplored(&self) -> impl Iterator<Item = &'static str> {
        let begun = self.worlds.iter().filter(|world| !world.is_explored()).map(|world| world.name);
        begun.chain(self.left.iter().copied())
    }

    /// Returns the number of states of all worlds.
    pub fn states(&self) -> usize {
        self.worlds.iter().map(|world| world.states).sum()
    }

    /// Returns the duration of all worlds in seconds.
    pub fn seconds(&self) -> f64 {
        self.worlds.iter().map(|world| world.seconds).sum()
    }
}

impl WorldReport {
    /// Returns true if a part of the world was explored before the time was over.
    pub fn is_explored(&self) -> bool {
        self.states > 0 || !self.violations.is_empty()
    }
}

/// Returns the name of every world.
pub fn world_names() -> impl Iterator<Item = &'static str> {
    worlds().map(|recipe| recipe.name)
}

/// Explores worlds and calls `done` with the report of each.
///
/// # Errors
/// Returns an error if a name in `options` is unknown.
pub fn run(options: &Options, mut done: impl FnMut(&WorldReport)) -> Result<ModelReport, String> {
    if let Some(unknown) = options.worlds.iter().find(|name| world_names().all(|world| world != name.as_str())) {
        let names: Vec<&str> = world_names().collect();
        return Err(format!("there is no world {unknown:?}; there are {}", names.join(", ")));
    }
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = options.jobs.map_or_else(cores, NonZeroUsize::get);
    // A deadline too far away to represent is no deadline.
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

/// Returns the deadline of the next world if this many worlds are left.
fn share(now: Instant, deadline: Instant, worlds: usize) -> Instant {
    let left = deadline.saturating_duration_since(now);
    now + left / u32::try_from(worlds.max(1)).unwrap_or(u32::MAX)
}

/// Explores a world with another planner of claims.
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
