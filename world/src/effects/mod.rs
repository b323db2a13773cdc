//! Stowage's faults: those of [`faults`], and actions of users and third parties on a claim, its
//! Secrets and its bucket.

mod gateway;
mod project;
#[cfg(test)]
mod replay_tests;

pub use faults::{
    Applied, Call, CallFault, CallKind, CallOutcome, CallPattern, ClockFault, Counters, CrashPoint, EffectPattern,
    Feature, Gate, HeadStatus, Instance, KubeCall, KubeFault, KubeVerb, Lasts, LifeEnd, PlanError, ProcessFault, Rival,
    S3Call, S3Fault, S3Operation, Stop, run_until_crash,
};
pub use gateway::{GatewayCalls, GatewayFault, OfGateway, is_of_gateway};
pub use project::{Actor, Edit, StowageFault, Tampering};

/// A fault of any family.
pub type Fault = faults::Fault<StowageFault>;
/// A plan: faults, each at one or more effects.
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

/// A plan for the calls of the gateway.
pub type GatewayPlan = faults::Plan<GatewayFault>;
/// The calls of all gateways of one run.
pub type GatewayEffects = faults::Effects<GatewayFault>;
/// The layer between a client of a gateway and the service behind it.
pub type GatewayLayer = faults::EffectLayer<GatewayFault>;
/// All calls of the gateways in a run, by number.
pub type GatewayTrace = faults::Trace<GatewayFault>;
