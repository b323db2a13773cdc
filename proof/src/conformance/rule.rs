//! A rule: a difference that is known and justified.

use super::difference::{Exchange, Leaf};
use super::s3::Server;

/// What the simulator is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A Kubernetes API server.
    Kubernetes,
    /// An S3 store.
    S3(Server),
}

/// What becomes of a sequence in which a known difference has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It goes on: both sides hold the same.
    GoesOn,
    /// It ends there: both sides hold different things now.
    Ends,
}

/// A difference that may be there.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A few words.
    pub name: &'static str,
    /// With which systems. What one of them does excuses no other.
    pub systems: &'static [System],
    /// What becomes of the sequence.
    pub then: Consequence,
    /// Why it is there, and why it does no harm.
    pub reason: &'static str,
    /// Whether it is this difference.
    pub applies: fn(&Exchange, &Leaf) -> bool,
}
