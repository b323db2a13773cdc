//! The state before the last write, for answers that are old.

use super::disturbance::Disturbance;
use super::state::State;

/// The state before the last write.
#[derive(Default)]
pub(super) enum Past {
    /// Nobody has asked for it to be kept.
    #[default]
    NotKept,
    /// It is kept from the next write on.
    Kept(Option<Box<State>>),
}

impl Past {
    /// From now on it is kept.
    pub(super) fn remember(&mut self) {
        if matches!(self, Self::NotKept) {
            *self = Self::Kept(None);
        }
    }

    /// The state as it will be the past after a write, if that is asked for.
    pub(super) fn of(&self, state: &State) -> Option<Box<State>> {
        match self {
            Self::Kept(_) => Some(Box::new(state.clone())),
            Self::NotKept => None,
        }
    }

    /// Keeps the state before a write that was carried out.
    pub(super) fn keep(&mut self, before: Option<Box<State>>) {
        if let (Self::Kept(past), Some(before)) = (self, before) {
            *past = Some(before);
        }
    }

    /// The state that a read is answered from, where it isn't the current one.
    pub(super) fn read(&self, disturbance: Option<Disturbance>) -> Option<State> {
        match self {
            Self::Kept(Some(past)) if disturbance == Some(Disturbance::Stale) => Some((**past).clone()),
            Self::Kept(_) | Self::NotKept => None,
        }
    }
}
