//! Effects: every outgoing call of the operator has a number and can be given a fault.
//!
//! The room holds one piece of code that stands between the operator's clients and the services behind them:
//!
//! - [`call`]: what a request *is* ([`Call`]), read from its method and URI alone;
//! - [`fault`] and [`plan`]: what can be done to it, and the text form in which that is written down;
//! - [`Outage`]: a fault that befalls a host for as long as the harness wants;
//! - [`layer`]: the tower layer that numbers calls, applies the plan and records the [`trace`];
//! - [`surroundings`]: how faults reach the world behind the services, where the world lets them;
//! - [`instance`]: one life of the operator, and how it ends; how it stands still meanwhile ([`Gate`]).
//!
//! It knows nothing of the simulated services it wraps, and nothing of the operator.
//! One [`Effects`] belongs to one run; the operator's successive lives share it, so numbers go on counting over a crash.

mod answers;
pub mod call;
mod catalogue;
mod effect;
pub mod fault;
pub mod instance;
mod kube_call;
mod lasting;
pub mod layer;
mod outage;
mod parse;
pub mod plan;
mod s3_call;
mod s3_routes;
mod standstill;
pub mod surroundings;
pub mod trace;
mod words;

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod standstill_tests;
#[cfg(test)]
mod tests;

pub use call::{Call, KubeCall, KubeVerb, S3Call, S3Operation};
pub use fault::{Actor, Applied, CrashPoint, Edit, Fault, Feature, HeadStatus, Rival, Tampering};
pub use instance::{Instance, Outcome, run_until_crash};
pub use layer::{EffectLayer, EffectService, Effects};
pub use outage::Outage;
pub use plan::{CallPattern, EffectPattern, Entry, Plan, PlanError};
pub use standstill::{Gate, Stop};
pub use surroundings::Surroundings;
pub use trace::{Answer, Counters, Line, Trace};
