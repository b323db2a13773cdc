//! The scenarios.

mod basic;
mod names;
mod recovery;
mod removal;
mod rotation;
mod words;

use super::scenario::Scenario;

/// All scenarios, in the order in which they are explored.
pub static ALL: &[&Scenario] = &[
    &basic::CREATE,
    &names::CONFLICT,
    &names::RACE,
    &basic::ADOPT,
    &names::ADOPT_OWNED,
    &names::ADOPT_NEVER,
    &basic::ROTATE,
    &rotation::BY_TIME,
    &rotation::SPAMMED,
    &rotation::ANONYMOUS,
    &names::ANY_ORDER,
    &basic::QUOTA,
    &basic::RENAME,
    &removal::DELETE,
    &removal::DELETE_EMPTY,
    &removal::DELETE_FORCED,
    &removal::DELETE_FULL,
    &removal::DELETE_LOCKED,
    &removal::WITHOUT_TAGGING,
    &recovery::BACKEND_FIRST,
    &recovery::NAMESPACE_GONE,
    &recovery::RESTORE,
    &recovery::BURST,
    &recovery::TWO_OPERATORS,
    &recovery::OLDER_VERSION,
    &recovery::NOT_ALLOWED,
    &recovery::SECRET_TAKEN,
    &recovery::BUCKET_LOST,
    &recovery::PAUSED,
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// The names of all scenarios.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name).collect()
}
