//! Makes a plan that breaks a promise as small as it can be.

use super::run::run;
use super::schedule::Schedule;

/// The smallest schedule found that breaks the same promise still, the first of those that the whole one breaks: faults are
/// left out one by one until none can be any more. `None` where no fault can be left out.
pub fn shrink(line: &str) -> Option<String> {
    let whole: Schedule = line.parse().ok()?;
    let promise = run(&whole).violations.first()?.promise;
    let mut smallest = whole.clone();
    let mut index = 0;
    while index < smallest.plan.entries.len() {
        let mut without = smallest.clone();
        without.plan.entries.remove(index);
        if run(&without).violations.iter().any(|broken| broken.promise == promise) {
            smallest = without;
            index = 0;
        } else {
            index += 1;
        }
    }
    (smallest.plan != whole.plan).then(|| smallest.to_string())
}
