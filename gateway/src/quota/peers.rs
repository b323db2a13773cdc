//! Which replicas live, and how fresh this one's view of them is: pure, by the signs of life that
//! the watch of Leases tells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// How often a replica gives a sign of life.
pub const RENEWAL: Duration = Duration::from_secs(10);
/// How old a view may be: three signs of life.
pub const FRESH: Duration = Duration::from_secs(30);
/// A replica that gave no sign for so long is gone.
pub const GONE: Duration = Duration::from_secs(40);

/// The replicas. This one's own sign of life comes back by the same watch: so its view is as old as
/// the last sign that came back, whatever any clock says.
#[derive(Debug)]
pub struct Peers {
    me: String,
    seen: BTreeMap<String, Sign>,
    sent: BTreeMap<u64, Instant>,
    back: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Sign {
    number: u64,
    at: Instant,
}

impl Peers {
    /// None but this one, which was not heard of yet.
    #[must_use]
    pub fn new(me: String) -> Self {
        Self { me, seen: BTreeMap::new(), sent: BTreeMap::new(), back: None }
    }

    /// This replica.
    #[must_use]
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Takes in that this replica gives its sign of life of this number.
    pub fn sending(&mut self, number: u64, now: Instant) {
        self.sent.insert(number, now);
        while self.sent.len() > 8 {
            self.sent.pop_first();
        }
    }

    /// Whether this replica ever tried to give a sign of life.
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Takes in what the watch tells of a replica.
    pub fn saw(&mut self, replica: &str, number: u64, now: Instant) {
        if replica == self.me {
            let sent = self.sent.get(&number).copied();
            self.back = self.back.max(sent);
        }
        let known = self.seen.get(replica).is_some_and(|sign| sign.number == number);
        if !known {
            self.seen.insert(replica.to_owned(), Sign { number, at: now });
        }
    }

    /// Takes in that the Lease of a replica is gone.
    pub fn left(&mut self, replica: &str) {
        self.seen.remove(replica);
    }

    /// Whether what is known of the others is fresh enough to go by.
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.back.is_some_and(|sent| now.saturating_duration_since(sent) <= FRESH)
    }

    /// How old the view is; `None` = nothing came back yet.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.back.map(|sent| now.saturating_duration_since(sent))
    }

    /// The replicas that live, this one among them. While the view is not fresh nobody is taken for
    /// gone.
    #[must_use]
    pub fn alive(&self, now: Instant) -> BTreeSet<String> {
        let is_fresh = self.is_fresh(now);
        let lives = |sign: &Sign| !is_fresh || now.saturating_duration_since(sign.at) <= GONE;
        let others = self.seen.iter().filter(|(_, sign)| lives(sign)).map(|(replica, _)| replica.clone());
        others.chain([self.me.clone()]).collect()
    }

    /// Replicas with a Lease that are gone, and how long each has been silent.
    pub fn gone(&self, now: Instant) -> impl Iterator<Item = (&str, Duration)> {
        let silence = move |sign: &Sign| now.saturating_duration_since(sign.at);
        let is_fresh = self.is_fresh(now);
        let others = self.seen.iter().filter(move |(replica, _)| is_fresh && **replica != self.me);
        others.map(move |(replica, sign)| (replica.as_str(), silence(sign))).filter(|(_, silence)| *silence > GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_as_old_as_the_last_own_sign_that_came_back() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let mut peers = Peers::new("me".to_owned());
        peers.saw("other", 1, at(0));
        assert!(!peers.is_fresh(at(0)), "nothing came back yet");
        peers.sending(1, at(1));
        peers.saw("me", 1, at(20));
        assert!(peers.is_fresh(at(31)) && !peers.is_fresh(at(32)), "it counts from when it was sent");
        assert_eq!(peers.alive(at(60)).len(), 2, "whoever sees nothing buries nobody");
        peers.sending(2, at(60));
        peers.saw("me", 2, at(60));
        assert_eq!(peers.alive(at(60)).len(), 1);
        assert_eq!(peers.gone(at(60)).map(|(replica, _)| replica).collect::<Vec<_>>(), ["other"]);
        peers.saw("other", 1, at(60));
        assert_eq!(peers.alive(at(60)).len(), 1, "an old sign is none");
        peers.saw("other", 2, at(60));
        assert_eq!(peers.alive(at(60)).len(), 2);
    }
}
