//! Shrinks a plan that breaks a promise.

use faults::{Plan, Vocabulary};

/// Returns the smallest plan found that is still `broken`, removing faults one by one until no more
/// can be removed.
///
/// `broken` returns true if a plan breaks the same promise. The plan that is passed in is assumed
/// to break it.
pub fn shrink<V: Vocabulary>(plan: &Plan<V>, broken: impl Fn(&Plan<V>) -> bool) -> Plan<V> {
    let mut smallest = plan.clone();
    let mut index = 0;
    while index < smallest.entries.len() {
        let mut without = smallest.clone();
        without.entries.remove(index);
        if broken(&without) {
            smallest = without;
            index = 0;
        } else {
            index += 1;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plan = super::Plan;

    #[test]
    fn what_makes_no_difference_is_left_out() {
        let plan: Plan = "#1 hang; #2 hang; #3 lost-answer; #4 hang".parse().expect("a plan");
        let needs = |of: &Plan| of.to_string().contains("#2") && of.to_string().contains("#4");
        assert_eq!(shrink(&plan, needs).to_string(), "#2 hang; #4 hang");
        assert_eq!(shrink(&plan, |_| true), Plan::default(), "it is broken without any");
    }
}
