//! Faults that last: from the call that they are planned for on, they meet every call that they concern.

use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, CallKind};
use super::fault::Fault;

/// How long a fault lasts that has an end.
const END: Duration = Duration::from_secs(60);

/// A fault that lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lasting {
    fault: Fault,
    /// Its end; `None` for the end of the run.
    until: Option<Instant>,
}

impl Lasting {
    /// What begins with this fault, if it is one that lasts.
    pub(super) fn of(fault: Fault) -> Option<Self> {
        match fault {
            Fault::VerbDown(_) | Fault::CredentialsRevoked => Some(Self { fault, until: Some(Instant::now() + END) }),
            Fault::NotImplemented(_) => Some(Self { fault, until: None }),
            _ => None,
        }
    }

    /// The fault, if it meets this call now.
    pub(super) fn met_by(&self, call: &Call) -> Option<Fault> {
        let lasts = self.until.is_none_or(|until| Instant::now() < until);
        Some(self.fault).filter(|fault| lasts && fault.concerns(call))
    }
}

impl Fault {
    /// Whether the call itself is met, and not only later ones: a verb may go down at a call of another.
    pub(super) fn concerns(self, call: &Call) -> bool {
        match (self, call.kind()) {
            (Self::VerbDown(down), CallKind::S3(operation)) => operation == down,
            (Self::NotImplemented(feature), CallKind::S3(operation)) => feature.has(operation),
            (Self::VerbDown(_) | Self::CredentialsRevoked | Self::NotImplemented(_), CallKind::Kube(_)) => false,
            _ => true,
        }
    }
}
