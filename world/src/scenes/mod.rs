//! Scenes: actions of people around one claim, written once and played on two stages.
//!
//! A simulated world plays the steps under every fault. A real API server and store play the same
//! steps without faults, under other names, and must reach the same goals.

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
/// Name of the claim.
pub const CLAIM: &str = "photos";
/// Name of the claim's bucket.
pub const BUCKET: &str = "team-a-photos";

/// A stage that performs the steps of scenes.
pub trait Stage {
    /// Steps that only this stage can perform.
    type More;
    /// Reason why a step was not performed.
    type Failed;

    /// Performs a step.
    fn take(&mut self, step: &Step<Self::More>) -> impl Future<Output = Result<(), Self::Failed>>;
}

/// Steps around one claim and the goal that they lead to. The operator is running before the first
/// step.
pub struct Scene<More = Infallible> {
    /// Summary, in one line.
    pub about: &'static str,
    /// Manifests of further objects besides the backend and the tenants' namespaces.
    pub further: &'static str,
    /// Steps, in order.
    pub script: fn() -> Vec<Step<More>>,
    /// Goal that they lead to.
    pub goal: Goal,
    /// Checks further conditions once the goal is reached in spite of these faults. Returns an
    /// error sentence if one is violated.
    pub check: fn(&Facts, &[Fault]) -> Result<(), String>,
}
