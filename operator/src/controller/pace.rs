//! How fast a claim or a backend may be written about, and a store be asked about a claim: bounded,
//! whatever goes wrong, and whoever touches the claim.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Writes about an object.
///
/// Every pass is woken by a change, and most changes are some pass's own. Two writers who disagree
/// about an object, such as a second operator that sees an older cluster, would answer each other
/// as fast as the API server lets them. The burst is several times what the busiest needs.
pub(super) type WritePace = Pace<30, 100>;

/// Passes that ask a store about a claim, or read the claims that an access names.
///
/// Whoever may write claims can wake one that has no bucket yet as often as they like, and each of
/// its passes looks at the store. The burst is more than who tries something out needs, and in the
/// long run none of the operator's own waits is as short.
pub(super) type AskPace = Pace<10, 20>;

/// Entries that are kept of objects that have paid for everything, until the first are dropped.
const FEW: usize = 64;

/// Counts what is done about each object, by UID: in the long run once in so many seconds, and so
/// much at once.
#[derive(Default)]
pub(super) struct Pace<const EACH: u64, const BURST: u32>(Mutex<Paid>);

#[derive(Default)]
struct Paid {
    /// Until when each has paid.
    until: BTreeMap<String, Instant>,
    /// How many were left when those that have paid for everything were last dropped.
    left: usize,
}

impl<const EACH: u64, const BURST: u32> Pace<EACH, BURST> {
    const EACH: Duration = Duration::from_secs(EACH);

    /// Counts something that is done about the object.
    pub(super) fn did(&self, uid: &str, now: Instant) {
        let Paid { until: paid, left } = &mut *self.0.lock();
        let until = paid.get(uid).copied().unwrap_or(now).max(now) + Self::EACH;
        paid.insert(uid.to_owned(), until);
        if paid.len() > FEW.max(2 * *left) {
            paid.retain(|_, until| *until > now);
            *left = paid.len();
        }
    }

    /// How long the object has to wait for the next; `None` if it need not.
    pub(super) fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let ahead = self.0.lock().until.get(uid)?.saturating_duration_since(now);
        ahead.checked_sub(Self::EACH * BURST).filter(|wait| !wait.is_zero())
    }

    /// Counts something that is about to be done about the object, unless it has to wait: how long.
    pub(super) fn take(&self, uid: &str, now: Instant) -> Option<Duration> {
        let wait = self.wait(uid, now);
        if wait.is_none() {
            self.did(uid, now);
        }
        wait
    }

    /// Forgets an object that is gone, or got on.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().until.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Duration = Duration::from_secs(30);
    const BURST: u32 = 100;

    #[test]
    fn a_burst_is_let_through_and_the_rest_comes_slowly() {
        let (pace, now) = (WritePace::default(), Instant::now());
        for _ in 0..=BURST {
            assert_eq!(pace.wait("u", now), None);
            pace.did("u", now);
        }
        assert_eq!(pace.wait("u", now), Some(EACH));
        assert_eq!(pace.wait("other", now), None);
        assert_eq!(pace.wait("u", now + EACH), None);
        let later = now + 2 * EACH * BURST;
        pace.did("u", later);
        assert_eq!(pace.wait("u", later), None, "what was long ago does not count");
    }

    #[test]
    fn nothing_is_kept_of_who_has_waited_long_enough() {
        let (pace, now) = (WritePace::default(), Instant::now());
        for number in 0..10 * FEW {
            pace.did(&number.to_string(), now);
        }
        assert_eq!(pace.0.lock().until.len(), 10 * FEW, "they have paid for none");
        let later = now + EACH;
        for number in 0..=10 * FEW {
            pace.did(&format!("later-{number}"), later);
        }
        assert!(pace.0.lock().until.len() <= 11 * FEW, "those from before are gone");
    }
}
