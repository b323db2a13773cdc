//! Specs that can't be relied on, and why.

use super::word::Word;

/// A spec that the schema should have refused: stored by an older version, or by a server without
/// the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct InvalidSpec {
    /// Path of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl InvalidSpec {
    pub(crate) fn of(field: &'static str, why: &dyn std::fmt::Display) -> Self {
        Self { field, why: why.to_string() }
    }
}

/// What is said of a word that this version does not know.
const NEWER: &str = "this version of the operator does not know what stands there; it is of a newer one";

/// A word that this version knows.
pub(crate) fn word<T>(field: &'static str, word: Word<T>) -> Result<T, InvalidSpec> {
    word.known().ok_or_else(|| InvalidSpec::of(field, &NEWER))
}
