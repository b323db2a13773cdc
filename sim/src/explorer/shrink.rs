//! Makes a plan that breaks a promise as small as it can be.

use super::run::run;
use super::schedule::Schedule;

/// The smallest schedule found that breaks a promise still: faults are left out one by one. `None` where no fault can
/// be left out.
pub fn shrink(line: &str) -> Option<String> {
    let whole: Schedule = line.parse().ok()?;
    let mut smallest = whole.clone();
    let mut index = 0;
    while index < smallest.plan.entries.len() {
        let mut without = smallest.clone();
        without.plan.entries.remove(index);
        if run(&without).violations.is_empty() {
            index += 1;
        } else {
            smallest = without;
        }
    }
    (smallest.plan != whole.plan).then(|| smallest.to_string())
}
