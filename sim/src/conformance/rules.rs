//! The differences that are known and justified: one table, of which `docs/fidelity.md` is made.

use super::difference::{Exchange, Leaf};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The Kubernetes API.
    Kubernetes,
    /// The S3 API.
    S3,
}

/// A difference that may be there.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A few words.
    pub name: &'static str,
    /// Of which of the two.
    pub system: System,
    /// Why it is there, and why it does no harm.
    pub reason: &'static str,
    /// Whether it is this difference.
    pub applies: fn(&Exchange, &Leaf) -> bool,
}

/// Every known difference.
pub const RULES: &[Rule] = &[];

/// Splits the places in which two answers differ into the names of rules that explain them, each once, and the rest.
pub fn sort(system: System, exchange: &Exchange, leaves: Vec<Leaf>) -> (Vec<&'static str>, Vec<Leaf>) {
    let mut names = Vec::new();
    let mut rest = Vec::new();
    for leaf in leaves {
        match RULES.iter().find(|rule| rule.system == system && (rule.applies)(exchange, &leaf)) {
            Some(rule) if names.contains(&rule.name) => {}
            Some(rule) => names.push(rule.name),
            None => rest.push(leaf),
        }
    }
    (names, rest)
}
