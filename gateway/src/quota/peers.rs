//! The live replicas, and the age of this one's view of them. Pure: based on the signs of life in
//! Leases, which a watch delivers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Interval between a replica's signs of life.
pub const RENEWAL: Duration = Duration::from_secs(10);
/// Maximum age of a fresh view: three signs of life.
pub const FRESH: Duration = Duration::from_secs(30);
/// Silence after which a replica is gone.
pub const GONE: Duration = Duration::from_secs(40);
/// Maximum number of remembered replicas. Forged Leases beyond it don't make shares smaller.
pub const MOST: usize = 1000;

/// The replicas. This one's own signs of life come back by the same watch, so its view is as old as
/// the last sign that came back, independent of any clock.
#[derive(Debug)]
pub struct Peers {
    me: String,
    seen: BTreeMap<String, Sign>,
    /// Names in the list that is being received.
    listing: Option<BTreeSet<String>>,
    sent: BTreeMap<u64, Instant>,
    back: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Sign {
    number: u64,
    at: Instant,
}

impl Peers {
    /// Creates a set with only this replica, which has not come back yet.
    #[must_use]
    pub fn new(me: String) -> Self {
        Self { me, seen: BTreeMap::new(), listing: None, sent: BTreeMap::new(), back: None }
    }

    /// Returns this replica's name.
    #[must_use]
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Records that this replica is sending its sign of life with this number.
    pub fn sending(&mut self, number: u64, now: Instant) {
        self.sent.insert(number, now);
        while self.sent.len() > 8 {
            self.sent.pop_first();
        }
    }

    /// Returns true if this replica has ever tried to send a sign of life.
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Begins a list, which contains every replica with a Lease.
    pub fn begin_list(&mut self) {
        self.listing = Some(BTreeSet::new());
    }

    /// Ends the list. Removes replicas that are not in it: their Leases were deleted during a gap
    /// in the watch.
    pub fn end_list(&mut self) {
        if let Some(listed) = self.listing.take() {
            self.seen.retain(|replica, _| listed.contains(replica));
        }
    }

    /// Records a replica's sign of life from the watch.
    pub fn saw(&mut self, replica: &str, number: u64, now: Instant) {
        if replica == self.me {
            let sent = self.sent.get(&number).copied();
            self.back = self.back.max(sent);
        }
        let known = self.seen.get(replica).is_some_and(|sign| sign.number == number);
        if !known {
            self.seen.insert(replica.to_owned(), Sign { number, at: now });
        }
        if self.seen.len() > MOST {
            self.forget_the_most_silent(replica);
        }
        if let Some(listing) = self.listing.as_mut().filter(|_| self.seen.contains_key(replica)) {
            listing.insert(replica.to_owned());
            if listing.len() > MOST {
                listing.retain(|listed| self.seen.contains_key(listed));
            }
        }
    }

    /// Makes room. If the removed replica is alive, its next sign adds it again.
    fn forget_the_most_silent(&mut self, but: &str) {
        let others = self.seen.iter().filter(|(replica, _)| *replica != but && **replica != self.me);
        let oldest = others.min_by_key(|(_, sign)| sign.at).map(|(replica, _)| replica.clone());
        self.seen.remove(&oldest.unwrap_or_default());
    }

    /// Records that the Lease of a replica was deleted.
    pub fn left(&mut self, replica: &str) {
        self.seen.remove(replica);
        if let Some(listing) = &mut self.listing {
            listing.remove(replica);
        }
    }

    /// Returns true if the view of the others is fresh enough to rely on.
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.back.is_some_and(|sent| now.saturating_duration_since(sent) <= FRESH)
    }

    /// Returns the age of the view, or `None` if nothing came back yet.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.back.map(|sent| now.saturating_duration_since(sent))
    }

    /// Returns the live replicas, including this one. While the view is not fresh, none counts as
    /// gone.
    #[must_use]
    pub fn alive(&self, now: Instant) -> BTreeSet<String> {
        let is_fresh = self.is_fresh(now);
        let lives = |sign: &Sign| !is_fresh || now.saturating_duration_since(sign.at) <= GONE;
        let others = self.seen.iter().filter(|(_, sign)| lives(sign)).map(|(replica, _)| replica.clone());
        others.chain([self.me.clone()]).collect()
    }

    /// Returns replicas with a Lease that are gone, each with the length of its silence.
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

    // covers: 6.quota.exchange.bounds
    #[test]
    fn a_lease_that_a_list_does_not_show_is_gone() {
        let (mut peers, now) = (Peers::new("me".to_owned()), Instant::now());
        peers.sending(1, now);
        for replica in ["me", "stays", "gone"] {
            peers.saw(replica, 1, now);
        }
        peers.begin_list();
        peers.saw("me", 1, now);
        assert_eq!(peers.alive(now).len(), 3, "half a list says of nobody that it is gone");
        peers.saw("stays", 1, now + GONE);
        peers.saw("new", 1, now);
        peers.end_list();
        assert_eq!(peers.alive(now), ["me", "new", "stays"].map(str::to_owned).into());
        assert_eq!(peers.seen["stays"].at, now, "that a list shows a sign again is no new one");
    }

    // covers: 6.quota.exchange.bounds
    #[test]
    fn of_forged_leases_no_more_are_remembered_than_a_bound() {
        let begin = Instant::now();
        let mut peers = Peers::new("me".to_owned());
        peers.sending(1, begin);
        peers.saw("me", 1, begin);
        peers.begin_list();
        for number in 0..5 * MOST {
            let name = format!("{number:063}");
            peers.saw(&name, 1, begin + Duration::from_millis(number as u64));
        }
        let now = begin + Duration::from_secs(6);
        peers.saw("real", 1, now);
        let listed = peers.listing.as_ref().map_or(0, BTreeSet::len);
        peers.end_list();
        assert!(peers.seen.len() <= MOST && listed <= MOST + 1, "{} and {listed}", peers.seen.len());
        assert!(peers.is_fresh(now) && peers.alive(now).contains("real"));
        assert!(peers.alive(now).len() >= MOST, "shares are small while that lasts");
    }
}
