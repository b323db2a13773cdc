//! Interface between the planner of each kind and the driver that carries its steps out.

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

/// Delay with which an answer arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In time. Everything known before still counts.
    Prompt,
    /// Slow. Another operator may have changed the keys meanwhile; the rest still counts.
    Slow,
    /// Late. Everything known before must be read again.
    Late,
}

/// Bound of a reconciliation, so that a store or API server that contradicts itself can't keep it
/// running forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Steps of every kind except reads by name.
    Steps,
    /// Reads of one internal Secret by name. There can be one for each generation of a credential.
    ReadsByName,
}

/// A reconciliation that advances one step at a time.
///
/// It names a step, the driver carries the step out, and it records the answer, until it ends.
/// Every decision is based on what is known at that moment, so an interrupted reconciliation simply
/// starts over.
pub trait Reconciliation {
    /// A query or an effect.
    type Step;
    /// Result of a step, together with the step.
    type Answer;
    /// End of the reconciliation.
    type End;

    /// Returns the maximum number of steps that count towards a bound.
    fn most(bound: Bound) -> usize;

    /// Returns the bound that a step counts towards.
    fn bound(step: &Self::Step) -> Bound;

    /// Returns the next step, or the end. Returns the same again if no answer is recorded in
    /// between.
    fn next(&self, now: Timestamp) -> ControlFlow<Self::End, Self::Step>;

    /// Records an answer.
    fn learn(&mut self, answer: Self::Answer, arrival: Arrival);

    /// Returns the end of a reconciliation that reached a bound.
    fn cut_short(&self, bound: Bound) -> Self::End;
}
