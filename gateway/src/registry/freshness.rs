//! The age of the cached cluster state: the time of each watch's last sign of life.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::backend::SecretName;

/// One of the watches that fill the registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// The watch of the internal Secrets.
    Secrets,
    /// The watch of the S3Backends.
    Backends,
    /// The watch of a Secret referenced by a backend.
    StoreSecret(SecretName),
}

/// A sign of life of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The watch begins to list. Until the list is complete, the data ages, even if the watch hears
    /// from the API server.
    Listing,
    /// The list is complete.
    Listed,
    /// The API server has answered, or has sent something: an event, a bookmark.
    Heard,
}

/// The last sign of life of each watch. An idle watch gives one per minute if the API server sends
/// bookmarks, and otherwise each time that it is renewed.
#[derive(Debug, Default)]
pub struct Freshness {
    watches: BTreeMap<Watch, Life>,
}

#[derive(Debug, Default)]
struct Life {
    is_listing: bool,
    last: Option<Instant>,
}

impl Freshness {
    /// Records a sign of life.
    pub fn note(&mut self, watch: &Watch, sign: Sign, now: Instant) {
        let life = match self.watches.get_mut(watch) {
            Some(life) => life,
            None => self.watches.entry(watch.clone()).or_default(),
        };
        match sign {
            Sign::Listing => life.is_listing = true,
            Sign::Heard if life.is_listing => {}
            Sign::Listed | Sign::Heard => {
                life.is_listing = false;
                life.last = Some(now);
            }
        }
    }

    /// Removes a watch that has ended.
    pub fn forget(&mut self, watch: &Watch) {
        self.watches.remove(watch);
    }

    /// Returns the age of one watch's data, or `None` if it has delivered none yet.
    #[must_use]
    pub fn age_of(&self, watch: &Watch, now: Instant) -> Option<Duration> {
        let last = self.watches.get(watch)?.last?;
        Some(now.saturating_duration_since(last))
    }

    /// Returns the age of the cached state: that of the older of the two watches that everything
    /// depends on. The watches of single Secrets are excluded, so that a namespace that can't be
    /// read only affects one store. Returns `None` if there is no state yet.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let (secrets, backends) = (self.age_of(&Watch::Secrets, now)?, self.age_of(&Watch::Backends, now)?);
        Some(secrets.max(backends))
    }

    /// Returns every watch with the age of its data.
    #[must_use]
    pub fn ages(&self, now: Instant) -> Vec<(Watch, Option<Duration>)> {
        self.watches.keys().map(|watch| (watch.clone(), self.age_of(watch, now))).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn secret() -> Watch {
        Watch::StoreSecret(SecretName { namespace: "vault".to_owned(), name: "admin".to_owned() })
    }

    /// Signs at these seconds, and the age of the state ten seconds after the start.
    #[rstest]
    #[case(&[], None)]
    #[case(&[(Watch::Secrets, Sign::Listed, 1)], None)]
    #[case(&[(Watch::Secrets, Sign::Listed, 1), (Watch::Backends, Sign::Listed, 4)], Some(9))]
    #[case(&[(Watch::Secrets, Sign::Listed, 1), (Watch::Backends, Sign::Listed, 4), (Watch::Secrets, Sign::Heard, 8)], Some(6))]
    #[case(&[(Watch::Secrets, Sign::Listing, 1), (Watch::Backends, Sign::Listed, 2), (Watch::Secrets, Sign::Heard, 8)], None)]
    fn the_older_watch_has_the_age_of_the_view(#[case] signs: &[(Watch, Sign, u64)], #[case] age: Option<u64>) {
        let begin = Instant::now();
        let mut freshness = Freshness::default();
        for (watch, sign, second) in signs {
            freshness.note(watch, *sign, begin + Duration::from_secs(*second));
        }
        assert_eq!(freshness.age(begin + Duration::from_secs(10)), age.map(Duration::from_secs));
    }

    #[test]
    fn what_is_heard_of_a_list_that_never_ends_is_no_news() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let mut freshness = Freshness::default();
        for watch in [Watch::Secrets, Watch::Backends] {
            freshness.note(&watch, Sign::Listed, begin);
        }
        freshness.note(&Watch::Backends, Sign::Heard, at(100));
        for second in [1, 40, 99] {
            freshness.note(&Watch::Secrets, Sign::Listing, at(second));
            freshness.note(&Watch::Secrets, Sign::Heard, at(second));
        }
        assert_eq!(freshness.age(at(100)), Some(Duration::from_secs(100)));
        freshness.note(&Watch::Secrets, Sign::Listed, at(100));
        freshness.note(&Watch::Secrets, Sign::Heard, at(101));
        assert_eq!(freshness.age(at(101)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn one_store_ages_alone() {
        let begin = Instant::now();
        let mut freshness = Freshness::default();
        for watch in [Watch::Secrets, Watch::Backends] {
            freshness.note(&watch, Sign::Listed, begin);
        }
        freshness.note(&secret(), Sign::Listing, begin);
        assert_eq!(freshness.age(begin), Some(Duration::ZERO));
        let ages = |freshness: &Freshness| freshness.ages(begin).into_iter().map(|(_, age)| age).collect::<Vec<_>>();
        assert_eq!(ages(&freshness), [Some(Duration::ZERO), Some(Duration::ZERO), None]);
        freshness.note(&secret(), Sign::Listed, begin);
        assert_eq!(freshness.age_of(&secret(), begin + Duration::from_secs(7)), Some(Duration::from_secs(7)));
        freshness.forget(&secret());
        assert_eq!(ages(&freshness).len(), 2);
    }

    #[test]
    fn a_time_before_the_last_sign_is_no_age() {
        let begin = Instant::now();
        let mut freshness = Freshness::default();
        freshness.note(&Watch::Secrets, Sign::Heard, begin + Duration::from_secs(5));
        assert_eq!(freshness.age_of(&Watch::Secrets, begin), Some(Duration::ZERO));
    }
}
