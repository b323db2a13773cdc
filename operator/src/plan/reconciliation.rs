//! The form that every kind's plan has: a reconciliation between what decides and what carries out.

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

/// How an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// What was known before still counts.
    Prompt,
    /// But for the keys, which another operator may have been at.
    Slow,
    /// What was known before is to be asked for again.
    Late,
}

/// Bounds of a reconciliation, so that a store or API server that contradicts itself can't keep it
/// going for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Steps of every kind but the next.
    Steps,
    /// Reads of one internal Secret by name: there can be one for each generation of a credential.
    ReadsByName,
}

/// A reconciliation: it names a step, the step is carried out, it learns the answer; and so on to
/// its end. Every decision is made on what is known at that moment, and one that was cut
/// short anywhere is simply begun again.
pub trait Reconciliation {
    /// What is to be found out or done.
    type Step;
    /// What came of a step, together with what was asked or done.
    type Answer;
    /// How it ends.
    type End;

    /// Most steps of each bound.
    fn most(bound: Bound) -> usize;

    /// Which bound a step counts towards.
    fn bound(step: &Self::Step) -> Bound;

    /// The next step, or the end. Asked again without an answer in between, it says the same again.
    fn next(&self, now: Timestamp) -> ControlFlow<Self::End, Self::Step>;

    /// Takes in an answer.
    fn learn(&mut self, answer: Self::Answer, arrival: Arrival);

    /// The end of one that reached a bound.
    fn cut_short(&self, bound: Bound) -> Self::End;
}
