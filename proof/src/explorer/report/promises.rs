//! Promises that a schedule puts to the test.

use stowage_world::effects::Fault;
use stowage_world::history::{Event, Stored, What};

use crate::explorer::others;
use crate::explorer::outcome::Outcome;
use crate::explorer::schedule::{FIRST_SEED, Schedule};
use crate::oracles::Promise;

/// Condition under which a promise is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// In every schedule, on all events.
    Always,
    /// After a run has come to rest.
    AtRest,
    /// If only faults of network and services met a call, and the end was compared with that of the
    /// fault-free run.
    AtEnd,
    /// If a user's actions came in another order than with the first seed, and the end was compared
    /// with that one's.
    InOrders,
    /// If a claim was deleted.
    InDeletions,
    /// If someone sent a request to a gateway.
    InRequests,
    /// Like `InRequests`, without a fault.
    InCalm,
    /// If operators elect a leader.
    InElections,
    /// If a step has a deadline that applies even while other claims are in trouble, and no fault
    /// met a call.
    InHaste,
}

/// Returns true if a promise was judged in a run.
pub(super) fn is_judged(promise: Promise, schedule: &Schedule, outcome: &Outcome) -> bool {
    match judged(promise) {
        Judged::Always => true,
        Judged::AtRest => outcome.history.at_rest().is_some(),
        Judged::AtEnd => is_compared(promise, outcome) && is_with_faults(schedule) && !outcome.faults.is_empty(),
        Judged::InOrders => {
            let other = schedule.scenario.has_orders() && schedule.seed != FIRST_SEED;
            is_compared(promise, outcome) && !is_with_faults(schedule) && other
        }
        Judged::InDeletions => outcome.history.events.iter().any(deletes_a_claim),
        Judged::InRequests => outcome.history.events.iter().any(is_request),
        Judged::InCalm => is_undisturbed(schedule) && outcome.history.events.iter().any(is_request),
        Judged::InElections => (schedule.scenario.world)().elects,
        Judged::InHaste => schedule.scenario.has_haste() && outcome.faults.is_empty(),
    }
}

/// Returns true if the end of a run was compared with that of another.
///
/// A run is compared if it reached what the user wanted, no other actor changed anything, and no
/// other promise was broken.
fn is_compared(promise: Promise, outcome: &Outcome) -> bool {
    let somebodys = |fault: &Fault| others::is_somebodys_doing(*fault);
    outcome.reached
        && outcome.gateway.fired.is_empty()
        && !outcome.faults.iter().any(somebodys)
        && outcome.violations.iter().all(|violation| violation.promise == promise)
}

/// Returns true if the end is compared with that of the fault-free run.
fn is_with_faults(schedule: &Schedule) -> bool {
    !schedule.plan.is_empty() && schedule.scenario.ends_alike
}

fn is_undisturbed(schedule: &Schedule) -> bool {
    schedule.plan.is_empty() && schedule.gateway.is_empty()
}

fn is_request(event: &Event) -> bool {
    matches!(event.what, What::Exchanged(_))
}

fn deletes_a_claim(event: &Event) -> bool {
    matches!(&event.what, What::Stored(Stored { plural, new: Some(new), .. })
        if plural == "bucketclaims" && !new["metadata"]["deletionTimestamp"].is_null())
}

fn judged(promise: Promise) -> Judged {
    use Promise::{
        A1, A2, A3, A5, D1, D2, E1, E2, E3, G1, G2, G3, G4, G5, G6, G7, I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11,
        I12, I13, I14, I15, I16, I17, L1, L2, L3, L4, L5, L6,
    };
    match promise {
        A1 | A2 | A3 | I1 | I2 | I3 | I4 | I5 | I6 | I7 | I8 | I9 | I10 | I11 | I12 | I13 | I15 | E2 | E3 | L1 | L3
        | L4 | L6 => Judged::Always,
        G1 | G2 | G3 | G4 | G5 | G7 => Judged::InRequests,
        G6 => Judged::InCalm,
        A5 | I14 | I16 | E1 => Judged::AtRest,
        D1 => Judged::AtEnd,
        D2 => Judged::InOrders,
        L2 => Judged::InDeletions,
        I17 => Judged::InElections,
        L5 => Judged::InHaste,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::explorer::{run, scenarios};

    #[rstest]
    #[case::ends_alike("create 1 kube:create secrets@1 lost-answer", Promise::D1, true)]
    #[case::without_faults("create 1", Promise::D1, false)]
    #[case::ends_in_more_than_one_way("UNALIKE 1 kube:create secrets@1 lost-answer", Promise::D1, false)]
    #[case::another_order("any-order 2", Promise::D2, true)]
    #[case::the_first_order("any-order 1", Promise::D2, false)]
    #[case::no_fault_lasts("create 1", Promise::L6, true)]
    #[case::no_fault_lasts("create 1", Promise::E2, true)]
    #[case::no_rotation_at_rest("create 1", Promise::L3, true)]
    fn a_promise_is_judged_where_it_could_be_seen_broken(
        #[case] line: &str,
        #[case] promise: Promise,
        #[case] expected: bool,
    ) {
        let unalike = scenarios::ALL.iter().find(|it| !it.ends_alike).expect("there is one").name;
        let schedule: Schedule = line.replace("UNALIKE", unalike).parse().expect("a schedule");
        assert_eq!(is_judged(promise, &schedule, &run(&schedule)), expected);
    }
}
