//! Makes a schedule that breaks a promise as small as it can be.

use stowage_world::effects::Plan;

use super::run::run;
use super::schedule::Schedule;

/// The smallest schedule found that breaks the same promise still, the first of those that the
/// whole one breaks. `None` where no fault can be left out.
pub fn shrink(line: &str) -> Option<String> {
    let whole: Schedule = line.parse().ok()?;
    let promise = run(&whole).violations.first()?.promise;
    let with = |plan: &Plan| Schedule { plan: plan.clone(), ..whole.clone() };
    let broken = |plan: &Plan| run(&with(plan)).violations.iter().any(|broken| broken.promise == promise);
    let smallest = explore::shrink(&whole.plan, broken);
    (smallest != whole.plan).then(|| with(&smallest).to_string())
}
