//! Rate limits per object: of writes, and of passes that call a store. They apply whatever goes
//! wrong and however often users change the object.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Rate limit of writes about an object.
///
/// Every pass is woken by a change, and most changes are made by a pass. Two writers that disagree
/// about an object, for example a second operator that works for an older cluster, would answer
/// each other as fast as the API server allows. The burst is several times what the busiest object
/// needs.
pub(super) type WritePace = Pace<30, 100>;

/// Rate limit of passes that call a store for a claim, or read the claims of an access.
///
/// A user who may write claims can wake a claim without a bucket as often as they like, and each of
/// its passes calls the store. A user who tries something out needs less than the burst. In the
/// long run the operator's own retries are all further apart.
pub(super) type AskPace = Pace<10, 20>;

/// Number of entries below which expired ones are not dropped.
const FEW: usize = 64;

/// A token bucket per object, by UID: one token per `EACH` seconds, and a burst of `BURST`.
#[derive(Default)]
pub(super) struct Pace<const EACH: u64, const BURST: u32>(Mutex<Paid>);

#[derive(Default)]
struct Paid {
    /// Time at which all tokens of an object are back.
    until: BTreeMap<String, Instant>,
    /// Number of entries left after expired ones were last dropped.
    left: usize,
}

impl<const EACH: u64, const BURST: u32> Pace<EACH, BURST> {
    const EACH: Duration = Duration::from_secs(EACH);

    /// Takes a token, even if none is left.
    pub(super) fn did(&self, uid: &str, now: Instant) {
        let Paid { until: paid, left } = &mut *self.0.lock();
        let until = paid.get(uid).copied().unwrap_or(now).max(now) + Self::EACH;
        paid.insert(uid.to_owned(), until);
        if paid.len() > FEW.max(2 * *left) {
            paid.retain(|_, until| *until > now);
            *left = paid.len();
        }
    }

    /// Returns the time until the object has a token; `None` if it has one now.
    pub(super) fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let ahead = self.0.lock().until.get(uid)?.saturating_duration_since(now);
        ahead.checked_sub(Self::EACH * BURST).filter(|wait| !wait.is_zero())
    }

    /// Takes a token; returns the time to wait if none is left.
    pub(super) fn take(&self, uid: &str, now: Instant) -> Option<Duration> {
        let wait = self.wait(uid, now);
        if wait.is_none() {
            self.did(uid, now);
        }
        wait
    }

    /// Forgets an object that is deleted or has made progress.
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
