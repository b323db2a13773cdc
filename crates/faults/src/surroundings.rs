//! Interface to the world behind the calls, for faults that the world has to apply.

use std::fmt;

use http::request::Parts;

use super::call::Call;
use super::fault::Fault;
use super::plan::Plan;
use super::row::{Nobody, Vocabulary};

/// The world as faults see it: events beside the calls, and services that can be made to answer in
/// a certain way.
///
/// Effects know the world only by this trait. The code that builds the world implements it.
pub trait Surroundings<V: Vocabulary = Nobody>: fmt::Debug + Send + Sync {
    /// Called with a plan before it begins, because some faults have to be prepared.
    fn expect(&self, plan: &Plan<V>);

    /// Applies a fault just before its call is carried out: changes the world, or marks the request
    /// for its service. Called once per call, and only for faults with
    /// [`Application::needs_world`](crate::Application::needs_world).
    fn befall(&self, fault: Fault<V>, call: &Call, request: &mut Parts);

    /// Called before a call is carried out, with or without a fault. The world may mark the request
    /// with its number.
    fn arrives(&self, effect: u64, call: &Call, request: &mut Parts);

    /// Called after the service at `host` carried out or refused a call with this status.
    fn carried_out(&self, effect: u64, call: &Call, host: &str, status: u16);
}
