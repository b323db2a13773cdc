//! Clocks that are off: each promise about time is judged by the clock of the process that has to
//! keep it.

use jiff::{SignedDuration, Timestamp};
use stowage_world::effects::Actor;

/// Maximum age of the clock reading behind an action of the operator: two deadlines of a call.
const OLDEST_READING: SignedDuration = SignedDuration::from_secs(60);

/// Known differences of clocks from the true time.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// Differences of the operator's clock, each from a moment on.
    operator: Vec<(Timestamp, SignedDuration)>,
    gateway: SignedDuration,
}

impl Clocks {
    /// Records that a clock is off from now on.
    pub(super) fn take_in(&mut self, at: Timestamp, actor: Actor, ahead: i64) {
        let ahead = SignedDuration::from_secs(ahead);
        match actor {
            Actor::Operator => self.operator.push((at, ahead)),
            Actor::Gateway => self.gateway = ahead,
            // No promise depends on the time of a store.
            Actor::Store => {}
        }
    }

    /// Returns the gateway's time.
    pub(super) fn of_gateway(&self, at: Timestamp) -> Timestamp {
        later(at, self.gateway)
    }

    /// Returns the latest time that the operator may have assumed for its present action.
    pub(super) fn latest_of_operator(&self, at: Timestamp) -> Timestamp {
        let since = at.checked_sub(OLDEST_READING).unwrap_or(at);
        later(at, self.of_operator(since).max().unwrap_or_default())
    }

    /// Returns the greatest time by which the operator's clock was behind since then; never
    /// negative.
    pub(super) fn most_behind(&self, since: Timestamp) -> SignedDuration {
        -self.of_operator(since).min().unwrap_or_default().min(SignedDuration::ZERO)
    }

    /// Returns by how much the operator's clock was ahead since then.
    fn of_operator(&self, since: Timestamp) -> impl Iterator<Item = SignedDuration> {
        let first = self.operator.iter().rposition(|(from, _)| *from < since);
        let before = std::iter::once(SignedDuration::ZERO).filter(move |_| first.is_none());
        before.chain(self.operator.iter().skip(first.unwrap_or_default()).map(|(_, ahead)| *ahead))
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}
