//! Rules for known and justified differences.

use super::difference::{Exchange, Leaf};
use super::s3::Server;

/// Server that the simulator is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A Kubernetes API server.
    Kubernetes,
    /// An S3 store.
    S3(Server),
}

/// Consequence for a sequence in which a known difference occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Continue: both sides have the same state.
    GoesOn,
    /// End: the sides have different states now.
    Ends,
}

/// A justified difference.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Short name.
    pub name: &'static str,
    /// Systems for which the difference is justified. A difference of one system excuses no other.
    pub systems: &'static [System],
    /// Consequence for the sequence.
    pub then: Consequence,
    /// Cause of the difference, and why it is harmless.
    pub reason: &'static str,
    /// Returns true if a leaf is this difference.
    pub applies: fn(&Exchange, &Leaf) -> bool,
}
