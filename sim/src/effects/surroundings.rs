//! The seam to the world behind the calls, for faults that happen there.

use std::fmt;

use http::request::Parts;

use super::call::Call;
use super::fault::Fault;
use super::plan::Plan;

/// The world as faults see it: what else happens in it, and how its services can be made to answer.
///
/// Effects know no more of the world than this; who puts the world together implements it.
pub trait Surroundings: fmt::Debug + Send + Sync {
    /// Told of a plan before it begins: some faults need to be prepared for.
    fn expect(&self, plan: &Plan);

    /// Lets a fault happen right before its call is carried out: changes the world, or marks the request with what its
    /// service is to do to it. Called once for a call, and only for faults for which [`Fault::needs_surroundings`] holds.
    fn befall(&self, fault: Fault, call: &Call, request: &mut Parts);

    /// A call is about to be carried out, with or without a fault: the world may mark it with its number.
    fn arrives(&self, effect: u64, call: &Call, request: &mut Parts);

    /// A call was carried out, or refused, by the service at `host`, with this status.
    fn carried_out(&self, effect: u64, call: &Call, host: &str, status: u16);
}

impl Fault {
    /// Whether the operator's process stands still, which is for whoever runs it to see to ([`super::Instance::stops`]).
    pub fn stops_process(self) -> bool {
        matches!(self, Self::Pause { .. } | Self::Twin)
    }

    /// Whether it is for the [`Surroundings`] to let it happen.
    pub fn needs_surroundings(self) -> bool {
        match self {
            Self::Step { .. }
            | Self::Skew { .. }
            | Self::Lag { .. }
            | Self::AlreadyExists(_)
            | Self::Stale { .. }
            | Self::Rewind
            | Self::Collapse
            | Self::WatchCut
            | Self::WatchGone
            | Self::WatchSilent
            | Self::WatchDuplicate
            | Self::Shuffle
            | Self::GcLate
            | Self::Recreate
            | Self::Tamper(_)
            | Self::Edit(_)
            | Self::AlreadyOwned
            | Self::BucketExists
            | Self::OkOnExisting
            | Self::PartialDelete
            | Self::Locked
            | Self::LateWrite
            | Self::Vanish
            | Self::Usurp { .. }
            | Self::StaleRead
            | Self::Truncated => true,
            Self::LostRequest
            | Self::LostAnswer
            | Self::Hang
            | Self::Slow { .. }
            | Self::Crash(_)
            | Self::Pause { .. }
            | Self::Twin
            | Self::Conflict
            | Self::ServerError(_)
            | Self::Throttle { .. }
            | Self::Forbidden
            | Self::Denied
            | Self::WebhookTimeout
            | Self::QuotaExceeded
            | Self::NamespaceTerminating
            | Self::ExpiredContinue
            | Self::Unreachable
            | Self::InternalError
            | Self::SlowDown
            | Self::AccessDenied
            | Self::Head(_)
            | Self::VerbDown(_)
            | Self::CredentialsRevoked
            | Self::ClockSkew
            | Self::ErrorIn200
            | Self::NotImplemented(_) => false,
        }
    }
}
