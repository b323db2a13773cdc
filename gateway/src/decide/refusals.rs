//! Refusals of what is not the caller's: none tells what is there.

use crate::refusal::{Code, Refusal};
use crate::registry::Unreachable;

/// Says why a store can't be reached, as far as the caller may know.
pub(super) fn of_unreachable(why: Unreachable) -> Refusal {
    match why {
        Unreachable::Held | Unreachable::Closed => denied(),
        Unreachable::NoBackend | Unreachable::Elsewhere => unknown_store(),
    }
}

/// The bucket is not the caller's: in the same words whether it exists or not.
#[must_use]
pub fn denied() -> Refusal {
    Refusal::new(Code::AccessDenied, "Access Denied")
}

/// The key is nobody's: in the same words whether it is expired, deleted, or never was.
#[must_use]
pub fn unknown_key() -> Refusal {
    Refusal::new(Code::InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
}

fn unknown_store() -> Refusal {
    let message = "The store of this bucket can't be told now. Please try again later.";
    Refusal::new(Code::ServiceUnavailable, message)
}
