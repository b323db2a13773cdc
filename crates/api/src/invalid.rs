//! Specs that are invalid, and the reason.

use super::word::Word;

/// An invalid spec that the schema should have rejected. An older version stored it, or a server
/// without the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct InvalidSpec {
    /// Path of the field.
    pub field: &'static str,
    /// Description of the error.
    pub why: String,
}

impl InvalidSpec {
    pub(crate) fn of(field: &'static str, why: &dyn std::fmt::Display) -> Self {
        Self { field, why: why.to_string() }
    }
}

/// Message for a value that this version does not know.
const NEWER: &str = "this version of the operator does not know what stands there; it is of a newer one";

/// Returns the value, or an error if this version does not know it.
pub(crate) fn word<T>(field: &'static str, word: Word<T>) -> Result<T, InvalidSpec> {
    word.known().ok_or_else(|| InvalidSpec::of(field, &NEWER))
}
