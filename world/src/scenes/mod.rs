//! Scenes: what people do around one claim, written once and played on two stages.
//!
//! A simulated world takes the steps under every fault. A real API server and store take the same
//! steps without any, in names of their own, and are asked for the same goals.

pub mod names;
pub mod removal;
mod step;
mod target;
mod told;
pub mod words;

use std::convert::Infallible;

pub use step::{Goal, Step, StoreStep};
pub use target::{Target, TargetKind};

use crate::effects::Fault;
use crate::history::Facts;

/// The namespace of the claim that every scene is about.
pub const NAMESPACE: &str = "team-a";
/// Its name.
pub const CLAIM: &str = "photos";
/// The bucket that it comes to.
pub const BUCKET: &str = "team-a-photos";

/// Takes the steps of scenes.
pub trait Stage {
    /// Steps that no other stage can take.
    type More;
    /// Reason why a step was not taken.
    type Failed;

    /// Takes a step.
    fn take(&mut self, step: &Step<Self::More>) -> impl Future<Output = Result<(), Self::Failed>>;
}

/// Steps around one claim and the goal that they lead to; an operator is at work before the first.
pub struct Scene<More = Infallible> {
    /// Summary, in one line.
    pub about: &'static str,
    /// Manifests of what is there besides the backend and the namespaces of the tenants.
    pub further: &'static str,
    /// Steps, in order.
    pub script: fn() -> Vec<Step<More>>,
    /// Goal that they lead to.
    pub goal: Goal,
    /// Further conditions once the goal is reached, in spite of these faults; an error says in one
    /// sentence what does not hold.
    pub check: fn(&Facts, &[Fault]) -> Result<(), String>,
}
