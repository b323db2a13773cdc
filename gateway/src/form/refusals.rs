//! Refusals of forms that can't be parsed.

use crate::refusal::{Code, Refusal};

/// Refuses a form that ended early.
pub(super) fn incomplete() -> Refusal {
    Refusal::new(Code::IncompleteBody, "The form ended before its last delimiter.")
}

/// Refuses a malformed form; `message` says in what way.
pub(super) fn malformed(message: &'static str) -> Refusal {
    Refusal::new(Code::MalformedPOSTRequest, message)
}

/// Returns the refusal of a part that begins with the boundary. The line end before it ends the
/// part's head. Some readers also take it as the beginning of a delimiter, and so the part as
/// empty.
pub(super) fn two_readings() -> Refusal {
    malformed("A part of the form begins with its boundary.")
}

/// Refuses a form that exceeds a limit.
pub(super) fn too_large(message: &'static str) -> Refusal {
    Refusal::new(Code::EntityTooLarge, message)
}
