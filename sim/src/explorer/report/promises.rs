//! Which promises a schedule puts to the test.

use crate::explorer::others;
use crate::explorer::run::{FIRST_SEED, Outcome};
use crate::explorer::schedule::Schedule;
use crate::history::{Event, Stored, What};
use crate::oracles::Promise;

/// When a promise is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// In every schedule, on all that happens.
    Always,
    /// Once a run has come to rest.
    AtRest,
    /// Once a run in which nobody but network and services did anything has come to what the user wanted.
    AtEnd,
    /// Where a fault has lasted.
    AfterLasting,
    /// Where a user's acts came in another order than that of the first seed.
    InOrders,
    /// Where a claim was deleted.
    InDeletions,
    /// Where somebody's wish must come soon, whatever ails others, and no fault met a call.
    InHaste,
}

/// Whether a promise was judged in a run.
pub(super) fn is_judged(promise: Promise, schedule: &Schedule, outcome: &Outcome) -> bool {
    match judged(promise) {
        Judged::Always => true,
        Judged::AtRest => outcome.history.at_rest().is_some(),
        Judged::AtEnd => {
            outcome.reached
                && !outcome.faults.is_empty()
                && !outcome.faults.iter().any(|fault| others::is_somebodys_doing(*fault))
        }
        Judged::AfterLasting => !schedule.plan.clone().lasting_and_once().0.is_empty() && !outcome.faults.is_empty(),
        Judged::InOrders => {
            outcome.reached && schedule.plan.is_empty() && schedule.scenario.has_orders() && schedule.seed != FIRST_SEED
        }
        Judged::InDeletions => outcome.history.events.iter().any(deletes_a_claim),
        Judged::InHaste => schedule.scenario.has_haste() && outcome.faults.is_empty(),
    }
}

fn deletes_a_claim(event: &Event) -> bool {
    matches!(&event.what, What::Stored(Stored { plural, new: Some(new), .. })
        if plural == "bucketclaims" && !new["metadata"]["deletionTimestamp"].is_null())
}

fn judged(promise: Promise) -> Judged {
    use Promise::{
        D1, D2, E1, E2, E3, I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, L1, L2, L3, L4, L5,
        L6,
    };
    match promise {
        I1 | I2 | I3 | I4 | I5 | I6 | I7 | I8 | I9 | I10 | I11 | I12 | I13 | I15 | E3 | L1 | L4 => Judged::Always,
        I14 | I16 | E1 | L3 => Judged::AtRest,
        D1 => Judged::AtEnd,
        L6 | E2 => Judged::AfterLasting,
        D2 => Judged::InOrders,
        L2 => Judged::InDeletions,
        L5 => Judged::InHaste,
    }
}
