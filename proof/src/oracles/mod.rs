//! Oracles: judge the operator's promises (I1 … E3 of the promises below) from a history and an
//! end.
//!
//! They are pure functions over plain data. An oracle knows the contract, and nothing of how the
//! operator keeps it, so that both can't be wrong in the same way or for the same reason. Names,
//! labels and their encoding are the operator's own, from `api::wire`; other tests compare those
//! with the contract.
//!
//! The history is read once. `state` keeps the knowledge at each moment, parsed by `views` into the
//! contract's terms. Each oracle sees every step before the state is updated, and has its own
//! memory. Conditions that only the end can show are judged at the end, and only for a run that
//! came to rest ([`What::AtRest`]).
//!
//! Changes by other actors are recognized in the history: a change that no call of the operator
//! made is another actor's, and some promises don't hold after such changes.
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
