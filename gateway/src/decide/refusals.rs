//! Refusals that don't reveal what exists.

use crate::refusal::{Code, Refusal};
use crate::registry::Unreachable;

/// Returns the refusal for an unreachable store. It says no more than the caller may know.
pub(super) fn of_unreachable(why: Unreachable) -> Refusal {
    match why {
        Unreachable::Held | Unreachable::Closed => denied(),
        Unreachable::NoBackend | Unreachable::Elsewhere => unknown_store(),
    }
}

/// Refuses a bucket that is not the caller's. The message doesn't reveal whether it exists.
#[must_use]
pub fn denied() -> Refusal {
    Refusal::new(Code::AccessDenied, "Access Denied")
}

/// Returns the refusal for an unknown key. The message is the same whether the key has expired, was
/// deleted or never existed.
#[must_use]
pub fn unknown_key() -> Refusal {
    Refusal::new(Code::InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
}

fn unknown_store() -> Refusal {
    let message = "The store of this bucket can't be told now. Please try again later.";
    Refusal::new(Code::ServiceUnavailable, message)
}
