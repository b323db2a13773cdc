//! How fast a claim or a backend may be written about: bounded, whatever goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One write in so long, in the long run.
const EACH: Duration = Duration::from_secs(30);
/// How many may come at once: several times what the busiest needs.
const BURST: u32 = 100;

/// Counts what is written about each object, by UID.
///
/// Every pass is woken by a change, and most changes are some pass's own. Two writers who disagree
/// about an object, such as a second operator that sees an older cluster, would answer each other
/// as fast as the API server lets them.
#[derive(Default)]
pub(super) struct Pace(Mutex<BTreeMap<String, Instant>>);

impl Pace {
    /// Counts a write about the object.
    pub(super) fn wrote(&self, uid: &str, now: Instant) {
        let mut paid = self.0.lock();
        let until = paid.get(uid).copied().unwrap_or(now).max(now) + EACH;
        paid.insert(uid.to_owned(), until);
    }

    /// How long the object's next pass has to wait; `None` if it need not.
    pub(super) fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let ahead = self.0.lock().get(uid)?.saturating_duration_since(now);
        ahead.checked_sub(EACH * BURST).filter(|wait| !wait.is_zero())
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_let_through_and_the_rest_comes_slowly() {
        let (pace, now) = (Pace::default(), Instant::now());
        for _ in 0..=BURST {
            assert_eq!(pace.wait("u", now), None);
            pace.wrote("u", now);
        }
        assert_eq!(pace.wait("u", now), Some(EACH));
        assert_eq!(pace.wait("other", now), None);
        assert_eq!(pace.wait("u", now + EACH), None);
        let later = now + 2 * EACH * BURST;
        pace.wrote("u", later);
        assert_eq!(pace.wait("u", later), None, "what was long ago does not count");
    }
}
