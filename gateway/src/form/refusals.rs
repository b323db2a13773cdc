//! Refusals of a form that can't be read.

use crate::refusal::{Code, Refusal};

/// Says that a form has ended too early.
pub(super) fn incomplete() -> Refusal {
    Refusal::new(Code::IncompleteBody, "The form ended before its last delimiter.")
}

/// Says what of a form can't be read.
pub(super) fn malformed(message: &'static str) -> Refusal {
    Refusal::new(Code::MalformedPOSTRequest, message)
}

/// Says that a part begins with the boundary: the line before it ends the part's head, and some
/// readers take it for the delimiter's, too, and the part for an empty one.
pub(super) fn two_readings() -> Refusal {
    malformed("A part of the form begins with its boundary.")
}

/// Says that there is more of a form than may be.
pub(super) fn too_large(message: &'static str) -> Refusal {
    Refusal::new(Code::EntityTooLarge, message)
}
