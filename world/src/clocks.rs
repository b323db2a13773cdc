//! Wall clocks of a world: true time, and the offset of each actor's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::SignedDuration;
use seeded::WallClock;

use crate::effects::Actor;

/// Offsets of the clocks from true time. Clones share the same clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks(Arc<Ahead>);

/// Offset of each clock in seconds; positive if it is ahead.
#[derive(Debug, Default)]
struct Ahead {
    operator: AtomicI64,
    gateway: AtomicI64,
    store: AtomicI64,
}

impl Clocks {
    /// Moves a clock by this many seconds. Returns its new offset.
    pub(super) fn step(&self, actor: Actor, seconds: i32) -> i64 {
        let seconds = i64::from(seconds);
        self.ahead(actor).fetch_add(seconds, Ordering::Relaxed).saturating_add(seconds)
    }

    /// Returns the clock of an actor as a function.
    pub fn of(&self, actor: Actor, true_time: WallClock) -> WallClock {
        let clocks = self.clone();
        Arc::new(move || {
            let ahead = SignedDuration::from_secs(clocks.ahead(actor).load(Ordering::Relaxed));
            let now = true_time();
            now.checked_add(ahead).unwrap_or(now)
        })
    }

    fn ahead(&self, actor: Actor) -> &AtomicI64 {
        match actor {
            Actor::Operator => &self.0.operator,
            Actor::Gateway => &self.0.gateway,
            Actor::Store => &self.0.store,
        }
    }
}
