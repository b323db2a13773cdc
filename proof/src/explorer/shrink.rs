//! Shrinks a schedule that breaks a promise.

use stowage_world::effects::Plan;

use super::run::run;
use super::schedule::Schedule;

/// Returns the smallest schedule found that still breaks the same promise: the first one that the
/// whole schedule breaks. `None` if no fault can be removed.
pub fn shrink(line: &str) -> Option<String> {
    let whole: Schedule = line.parse().ok()?;
    let promise = run(&whole).violations.first()?.promise;
    let with = |plan: &Plan| Schedule { plan: plan.clone(), ..whole.clone() };
    let broken = |plan: &Plan| run(&with(plan)).violations.iter().any(|broken| broken.promise == promise);
    let smallest = explore::shrink(&whole.plan, broken);
    (smallest != whole.plan).then(|| with(&smallest).to_string())
}
