//! The seam to the world behind the calls, for faults that happen there.

use std::fmt;

use http::request::Parts;

use super::call::Call;
use super::fault::Fault;
use super::plan::Plan;
use super::row::{Nobody, Vocabulary};

/// The world as faults see it: what else happens in it, and how its services can be made to answer.
///
/// Effects know no more of the world than this; who puts the world together implements it.
pub trait Surroundings<V: Vocabulary = Nobody>: fmt::Debug + Send + Sync {
    /// Told of a plan before it begins: some faults need to be prepared for.
    fn expect(&self, plan: &Plan<V>);

    /// Lets a fault happen right before its call is carried out: changes the world, or marks the
    /// request with what its service is to do to it. Called once for a call, and only for faults
    /// for which [`Application::needs_world`](crate::Application::needs_world) holds.
    fn befall(&self, fault: Fault<V>, call: &Call, request: &mut Parts);

    /// A call is about to be carried out, with or without a fault: the world may mark it with its
    /// number.
    fn arrives(&self, effect: u64, call: &Call, request: &mut Parts);

    /// A call was carried out, or refused, by the service at `host`, with this status.
    fn carried_out(&self, effect: u64, call: &Call, host: &str, status: u16);
}
