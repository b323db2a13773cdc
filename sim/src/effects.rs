//! Stowage's faults: those of [`faults`], and what users and third parties do to a claim, its
//! Secrets and its bucket.

mod project;
#[cfg(test)]
mod replay_tests;

pub use faults::{
    Applied, Call, CallFault, CallKind, CallOutcome, CallPattern, ClockFault, Counters, CrashPoint, EffectPattern,
    Feature, Gate, HeadStatus, Instance, KubeCall, KubeFault, KubeVerb, Lasts, LifeEnd, PlanError, ProcessFault, Rival,
    S3Call, S3Fault, S3Operation, Stop, run_until_crash,
};
pub use project::{Actor, Edit, StowageFault, Tampering};

/// A fault of any family.
pub type Fault = faults::Fault<StowageFault>;
/// Which fault at which effect.
pub type Plan = faults::Plan<StowageFault>;
/// One fault at one effect.
pub type Entry = faults::Entry<StowageFault>;
/// The effects of one run.
pub type Effects = faults::Effects<StowageFault>;
/// The layer between a client of the operator and the service behind it.
pub type EffectLayer = faults::EffectLayer<StowageFault>;
/// A fault of every S3 call to a host.
pub type Outage = faults::Outage<StowageFault>;
/// All effects of a run, by number.
pub type Trace = faults::Trace<StowageFault>;
/// One effect.
pub type Line = faults::Line<StowageFault>;
