//! Limits for individual clients: concurrent requests per source and per key, and requests per
//! second of clients without a key.
//!
//! Memory does not grow with the number of clients: counts exist only for requests in progress, and
//! rates have a maximum number of entries.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of entries of a [`Rates`].
const MOST_SOURCES: usize = 64 << 10;

/// The unit by which addresses are limited: an IPv4 address, or the /64 of an IPv6 address, as a
/// single host has a whole /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source([u8; 8]);

impl Source {
    /// Returns the source of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                // No IPv6 network begins with these bytes.
                Self([0, 0, 0xff, 0xff, a, b, c, d])
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                Self([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// Counters of concurrent uses, by key.
#[derive(Clone, Debug)]
pub struct Counts<K> {
    most: u32,
    now: Arc<Mutex<HashMap<K, u32>>>,
}

/// A counted use, until it is dropped.
#[derive(Debug)]
pub struct Counted<K: Hash + Eq> {
    key: K,
    now: Arc<Mutex<HashMap<K, u32>>>,
}

impl<K: Hash + Eq + Clone> Counts<K> {
    /// Creates counters with a maximum of `most` for each key.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most, now: Arc::default() }
    }

    /// Counts one more use, or returns `None` at the maximum.
    #[must_use]
    pub fn take(&self, key: K) -> Option<Counted<K>> {
        let mut now = self.now.lock();
        let count = now.entry(key.clone()).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Counted { key, now: self.now.clone() })
    }
}

impl<K: Hash + Eq> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut now = self.now.lock();
        if let Some(count) = now.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                now.remove(&self.key);
            }
        }
    }
}

/// Rate limits per second, by key. Stores one time per key: when the key is back at its rate (GCRA,
/// the leaky bucket as a meter).
#[derive(Debug)]
pub struct Rates<K> {
    even: Mutex<HashMap<K, Instant>>,
    most: usize,
}

impl<K: Hash + Eq> Default for Rates<K> {
    fn default() -> Self {
        Self { even: Mutex::default(), most: MOST_SOURCES }
    }
}

impl<K: Hash + Eq> Rates<K> {
    /// Admits one more request of `key` at this time, at a rate of `per_second` with bursts of two
    /// seconds' worth.
    ///
    /// # Errors
    /// Returns the time to wait.
    pub fn pass(&self, key: K, per_second: u32, now: Instant) -> Result<(), Duration> {
        let step = Duration::from_secs(1) / per_second.max(1);
        let burst = Duration::from_secs(2);
        let mut even = self.even.lock();
        let due = even.get(&key).copied().unwrap_or(now).max(now);
        if let Some(wait) = (due + step).checked_duration_since(now + burst).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        if even.len() >= self.most && !even.contains_key(&key) {
            even.retain(|_, due| *due > now);
            if even.len() >= self.most {
                // The table is full: new sources wait, and known ones continue.
                return Err(Duration::from_secs(1));
            }
        }
        even.insert(key, due + step);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_address_or_the_network_of_a_host() {
        let of = |text: &str| Source::of(text.parse().expect("an address"));
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }

    #[test]
    fn what_is_under_way_is_counted_and_forgotten() {
        let counts = Counts::new(2);
        let held = [counts.take("a"), counts.take("a")];
        assert!(held.iter().all(Option::is_some));
        assert!(counts.take("a").is_none() && counts.take("b").is_some());
        drop(held);
        assert!(counts.now.lock().is_empty());
    }

    #[test]
    fn a_rate_has_a_burst_and_then_its_pace() {
        let rates = Rates::default();
        let start = Instant::now();
        let passed = (0..100).filter(|_| rates.pass("a", 5, start).is_ok()).count();
        assert_eq!(passed, 10, "twice as many as a second has");
        assert!(rates.pass("b", 5, start).is_ok(), "another is not disturbed");
        let later = start + Duration::from_secs(1);
        let passed = (0..100).filter(|_| rates.pass("a", 5, later).is_ok()).count();
        assert_eq!(passed, 5);
        assert!(rates.pass("a", 5, later).is_err_and(|wait| wait <= Duration::from_millis(200)));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let rates = Rates { most: 3, ..Rates::default() };
        let start = Instant::now();
        for key in 0..3 {
            assert!(rates.pass(key, 1, start).is_ok());
        }
        assert!(rates.pass(3, 1, start).is_err());
        assert!(rates.pass(3, 1, start + Duration::from_secs(2)).is_ok(), "who is even again leaves");
    }
}
