//! Oracles: what the operator promises (I1 … E3 of the promises below), judged from a history and
//! an end.
//!
//! Pure functions over plain data. An oracle knows the contract and nothing of how the operator
//! keeps it, so that it can be wrong neither in the same way nor for the same reason. Names, labels
//! and what a text becomes in them are the operator's own, `api::wire`: that they are those of the
//! contract is for tests against it.
//!
//! The history is gone through once. `state` keeps what is known at each moment, read by `views` in
//! the words of the contract; each oracle is shown every step before the state takes it in, and has
//! a memory of its own. What only the end can show is judged from the end, and only of a run that
//! came to rest ([`What::AtRest`]).
//!
//! What others did is told from the history: a change that no call of the operator made is somebody
//! else's, and some promises end where others' hands begin.
//!
//! [`What::AtRest`]: stowage_world::history::What::AtRest

mod accesses;
mod adoption;
mod buckets;
mod canonical;
mod case;
mod clocks;
mod exchanges;
mod findings;
mod ground;
mod holders;
mod keys;
mod leading;
mod leftovers;
mod order;
mod pace;
mod places;
mod policy;
mod preconditions;
mod promise;
mod public;
mod reading;
mod rest;
mod revocation;
mod rotation;
mod secrecy;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod uses;
mod views;

pub use canonical::{Canonical, canonical};
pub use case::{Case, Setting, Shown};
use findings::Findings;
pub use findings::{Judgement, Violation};
pub use promise::Promise;
use state::State;

/// Judges a run by every oracle, in the order of their promises.
pub fn judge(case: &Case<'_>) -> Judgement {
    let mut findings = Findings::default();
    let mut state = State::new(case);
    let mut buckets = buckets::Buckets::default();
    let mut holders = holders::Holders::default();
    let mut adoption = adoption::Adoption::new(case);
    let mut keys = keys::Keys::default();
    let mut uses = uses::Uses::default();
    let mut leading = leading::Leading::default();
    let mut order = order::Order::default();
    let mut rest = rest::Quiescence::default();
    let mut pace = pace::Pace::default();
    let mut rotation = rotation::Rotation::default();
    let mut accesses = accesses::Accesses::new(case);
    for (index, event) in case.history.events.iter().enumerate() {
        let step = state.read(index, event);
        buckets.see(&state, &step, &mut findings);
        holders.see(&state, &step, &buckets, &mut findings);
        adoption.see(&state, &step, &buckets, &holders, &mut findings);
        keys.see(&state, &step, &mut findings);
        uses.see(&state, &step, &mut findings);
        exchanges::see(&state, &step, &mut findings);
        leading.see(&state, &step, &mut findings);
        order.see(&state, &step, &mut findings);
        public::see(&state, &step, &mut findings);
        preconditions::see(&state, &step, &mut findings);
        status::see(&state, &step, &mut findings);
        rest.see(&state, &step, &mut findings);
        pace.see(case, &step, &mut findings);
        rotation.see(&state, &step, &mut findings);
        accesses.see(case, event, &step, &mut findings);
        state.take_in(step);
    }
    secrecy::judge(case, &mut findings);
    if case.history.at_rest().is_some() {
        leftovers::judge(case, &state, &buckets, &mut findings);
        public::judge(&state, &mut findings);
        status::judge(case, &state, &mut findings);
        rotation::judge(case, &state, &mut findings);
        rest::judge_reads(case, &state, &mut findings);
        accesses.judge_end(case, &mut findings);
    }
    findings.judgement()
}
