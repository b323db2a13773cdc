//! Where a run can go on in more than one way.

use std::fmt;

use super::plan::Plan;

/// A place in a run at which the ways that it can take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Before the call of this number is given its fault.
    Call(u64),
    /// From here on, what lasts goes on.
    Begin,
}

/// Somebody who has a run go on in several ways from a place on, each with a plan of its own.
pub trait Branches: fmt::Debug + Send + Sync {
    /// What else goes wrong from here on, in the way that whoever asks goes on; `None` if nothing does.
    fn at(&self, place: Place) -> Option<Plan>;
}
