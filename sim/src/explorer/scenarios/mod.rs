//! The scenarios.

mod basic;
mod removal;
mod words;

use super::scenario::Scenario;

/// All scenarios, in the order in which they are explored.
pub static ALL: &[&Scenario] = &[
    &basic::CREATE,
    &basic::ADOPT,
    &basic::ROTATE,
    &basic::QUOTA,
    &basic::RENAME,
    &removal::DELETE,
    &removal::DELETE_EMPTY,
    &removal::DELETE_FORCED,
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// The names of all scenarios.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name).collect()
}
