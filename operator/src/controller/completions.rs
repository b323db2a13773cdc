//! Limits how fast Secrets written by an older version are completed after an upgrade.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time between two claims: after an upgrade each claim has incomplete Secrets, and ten thousand
/// claims take a quarter of an hour.
const EACH: Duration = Duration::from_millis(100);

/// Hands out turns, one for each claim, by UID.
#[derive(Default)]
pub(super) struct Completions(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    /// Turn of each claim that waits.
    due: BTreeMap<String, Instant>,
    /// Next free turn.
    next: Option<Instant>,
}

impl Completions {
    /// Returns the time until the claim's turn. `None` means now, and uses the turn up.
    pub(super) fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let mut turns = self.0.lock();
        let turn = turns.due.get(uid).copied().unwrap_or_else(|| turns.next.unwrap_or(now).max(now));
        if !turns.due.contains_key(uid) {
            turns.next = Some(turn + EACH);
        }
        if turn <= now {
            turns.due.remove(uid);
            return None;
        }
        turns.due.insert(uid.to_owned(), turn);
        Some(turn - now)
    }

    /// Forgets a claim that is deleted.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().due.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_take_turns() {
        let (completions, now) = (Completions::default(), Instant::now());
        assert_eq!(completions.wait("a", now), None);
        assert_eq!(completions.wait("b", now), Some(EACH));
        assert_eq!(completions.wait("c", now), Some(2 * EACH));
        assert_eq!(completions.wait("b", now), Some(EACH), "who asks again keeps its turn");
        assert_eq!(completions.wait("b", now + EACH), None);
        assert_eq!(completions.wait("a", now + EACH), Some(2 * EACH), "who was there begins anew");
        completions.forget("c");
        assert_eq!(completions.wait("c", now + EACH), Some(3 * EACH));
        let later = now + 100 * EACH;
        assert_eq!(completions.wait("d", later), None, "turns that nobody took are over");
    }
}
