//! The state before the last write, for stale responses.

use super::disturbance::Disturbance;
use super::state::State;

/// The state before the last write.
#[derive(Default)]
pub(super) enum Past {
    /// The state is not kept.
    #[default]
    NotKept,
    /// The state is kept, from the next write on.
    Kept(Option<Box<State>>),
}

impl Past {
    /// Keeps the state from now on.
    pub(super) fn remember(&mut self) {
        if matches!(self, Self::NotKept) {
            *self = Self::Kept(None);
        }
    }

    /// Returns a copy of the state before a write, if it is to be kept.
    pub(super) fn of(&self, state: &State) -> Option<Box<State>> {
        match self {
            Self::Kept(_) => Some(Box::new(state.clone())),
            Self::NotKept => None,
        }
    }

    /// Keeps the state before a write that was executed.
    pub(super) fn keep(&mut self, before: Option<Box<State>>) {
        if let (Self::Kept(past), Some(before)) = (self, before) {
            *past = Some(before);
        }
    }

    /// Returns the state from which a read is answered, if it is not the current one.
    pub(super) fn read(&self, disturbance: Option<Disturbance>) -> Option<State> {
        match self {
            Self::Kept(Some(past)) if disturbance == Some(Disturbance::Stale) => Some((**past).clone()),
            Self::Kept(_) | Self::NotKept => None,
        }
    }
}
