//! Clocks that are off: promises about times are judged by the clock of whoever has to keep them.

use jiff::{SignedDuration, Timestamp};
use stowage_world::effects::Actor;

/// How long ago the operator may have read its clock for what it does now: two deadlines of a call.
const OLDEST_READING: SignedDuration = SignedDuration::from_secs(60);

/// How far clocks are off true time, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The operator's, each from a moment on.
    operator: Vec<(Timestamp, SignedDuration)>,
    gateway: SignedDuration,
}

impl Clocks {
    /// Takes in that a clock is off from now on.
    pub(super) fn take_in(&mut self, at: Timestamp, actor: Actor, ahead: i64) {
        let ahead = SignedDuration::from_secs(ahead);
        match actor {
            Actor::Operator => self.operator.push((at, ahead)),
            Actor::Gateway => self.gateway = ahead,
            // No promise is about the time that a store has.
            Actor::Store => {}
        }
    }

    /// The gateway's time.
    pub(super) fn of_gateway(&self, at: Timestamp) -> Timestamp {
        later(at, self.gateway)
    }

    /// The latest time that the operator may have taken it to be for what it does now.
    pub(super) fn latest_of_operator(&self, at: Timestamp) -> Timestamp {
        let since = at.checked_sub(OLDEST_READING).unwrap_or(at);
        later(at, self.of_operator(since).max().unwrap_or_default())
    }

    /// How far the operator's clock was behind at most since then; never less than nothing.
    pub(super) fn most_behind(&self, since: Timestamp) -> SignedDuration {
        -self.of_operator(since).min().unwrap_or_default().min(SignedDuration::ZERO)
    }

    /// How far ahead the operator's clock has been since then.
    fn of_operator(&self, since: Timestamp) -> impl Iterator<Item = SignedDuration> {
        let first = self.operator.iter().rposition(|(from, _)| *from < since);
        let before = std::iter::once(SignedDuration::ZERO).filter(move |_| first.is_none());
        before.chain(self.operator.iter().skip(first.unwrap_or_default()).map(|(_, ahead)| *ahead))
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}
