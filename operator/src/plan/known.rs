//! What a pass knows of Secrets, one fact for each name, with the step since which it is known.
//!
//! A cache is never proof of absence or of life (spec §3). So what a cache doesn't hold is unknown
//! here, and only the answer to a live question makes it absent.
//!
//! A late answer ends that proof. What was absent of internal Secrets is read again: a deletion,
//! and the aim at another generation, go by it alone. What was absent of consumer Secrets is not:
//! a POST finds out that the name is taken, and one that was made meanwhile goes with its claim,
//! which controls it.

use super::secret::Stored;
use std::collections::BTreeMap;
use std::fmt;

/// What is known of the Secret of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Knowledge<'a> {
    /// Nothing.
    Unknown,
    /// A POST found the name taken: it must be read live.
    Taken,
    /// There is none: a live read found none, or this pass deleted it. No proof once a late answer
    /// came: ask `is_absent`.
    Absent,
    /// There it is.
    Present(&'a Stored),
}

/// A fact about one name.
#[derive(Clone)]
struct Fact {
    state: State,
    /// The step of the pass that showed it; 0 = the caches.
    since: u32,
}

#[derive(Clone)]
enum State {
    Present(Stored),
    Absent,
    /// Two live reads did not find it.
    AbsentTwice,
    /// This pass deleted it.
    Deleted,
    Taken,
}

/// What is known of the Secrets of one namespace.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    facts: BTreeMap<String, Fact>,
    /// What was learnt up to this step is no longer live: a late answer came after it.
    aged: u32,
    /// What was learnt up to this step another operator may have changed: a slow answer came after
    /// it.
    doubted: u32,
}

impl Secrets {
    /// What the caches hold.
    pub(super) fn cached(secrets: impl IntoIterator<Item = Stored>) -> Self {
        let fact = |secret: Stored| (secret.name().to_owned(), Fact { state: State::Present(secret), since: 0 });
        Self { facts: secrets.into_iter().map(fact).collect(), aged: 0, doubted: 0 }
    }

    /// What is known of a name.
    pub(super) fn get(&self, name: &str) -> Knowledge<'_> {
        match self.facts.get(name).map(|fact| &fact.state) {
            None => Knowledge::Unknown,
            Some(State::Taken) => Knowledge::Taken,
            Some(State::Absent | State::AbsentTwice | State::Deleted) => Knowledge::Absent,
            Some(State::Present(secret)) => Knowledge::Present(secret),
        }
    }

    /// The Secret of this name, be it from a cache.
    pub(super) fn present(&self, name: &str) -> Option<&Stored> {
        self.facts.get(name).and_then(Fact::present)
    }

    /// Those that are there, by name, be it from a cache.
    pub(super) fn all(&self) -> impl Iterator<Item = &Stored> {
        self.facts.values().filter_map(Fact::present)
    }

    /// Every name of which anything is known.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.facts.keys().map(String::as_str)
    }

    /// Names that must be read live.
    pub(super) fn all_taken(&self) -> impl Iterator<Item = &str> {
        self.facts.iter().filter(|(_, fact)| matches!(fact.state, State::Taken)).map(|(name, _)| name.as_str())
    }

    /// Whether a cache shows it, and no answer of this pass.
    pub(super) fn is_cached(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.since == 0)
    }

    /// Whether this pass wrote it or read it live, and it is there.
    pub(super) fn is_live(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.since > self.aged && fact.present().is_some())
    }

    /// Whether this pass saw live that there is none, or deleted it.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.is_absent() && fact.since > self.aged)
    }

    /// Whether a live read since this step found none.
    pub(super) fn is_absent_since(&self, name: &str, step: u32) -> bool {
        self.is_absent(name) && self.facts.get(name).is_some_and(|fact| fact.since > step)
    }

    /// Whether two live reads of this pass found none, or this pass deleted it and a read since
    /// found none.
    pub(super) fn is_absent_twice(&self, name: &str) -> bool {
        let is_twice = |fact: &Fact| matches!(fact.state, State::AbsentTwice | State::Deleted);
        self.is_absent(name) && self.facts.get(name).is_some_and(is_twice)
    }

    /// Whether this pass wrote it or read it live since the last answer that took long.
    pub(super) fn is_current(&self, name: &str) -> bool {
        let since = self.aged.max(self.doubted);
        self.facts.get(name).is_some_and(|fact| fact.since > since && fact.present().is_some())
    }

    /// Takes in that it is there.
    pub(super) fn found(&mut self, secret: Stored, step: u32) {
        self.facts.insert(secret.name().to_owned(), Fact { state: State::Present(secret), since: step });
    }

    /// Takes in that a live read found none. Of one that this pass deleted, that stays known.
    pub(super) fn missed(&mut self, name: &str, step: u32) {
        let state = match self.facts.get(name).map(|fact| &fact.state) {
            Some(State::Deleted) => State::Deleted,
            Some(State::Absent | State::AbsentTwice) => State::AbsentTwice,
            Some(State::Present(_) | State::Taken) | None => State::Absent,
        };
        self.facts.insert(name.to_owned(), Fact { state, since: step });
    }

    /// Takes in that this pass deleted it.
    pub(super) fn deleted(&mut self, name: &str, step: u32) {
        self.facts.insert(name.to_owned(), Fact { state: State::Deleted, since: step });
    }

    /// Takes in that a POST found the name taken.
    pub(super) fn taken(&mut self, name: &str, step: u32) {
        self.facts.insert(name.to_owned(), Fact { state: State::Taken, since: step });
    }

    /// What a list doesn't show is unknown: labels may have been taken off.
    pub(super) fn forget_present(&mut self) {
        self.facts.retain(|_, fact| fact.present().is_none());
    }

    /// What one read did not show is unknown again, where `matters`; unless this pass deleted it.
    pub(super) fn forget_absent(&mut self, matters: impl Fn(&str) -> bool) {
        let is_of_one_read = |fact: &Fact| fact.is_absent() && !matches!(fact.state, State::Deleted);
        self.facts.retain(|name, fact| !is_of_one_read(fact) || !matters(name));
    }

    /// What was learnt up to this step is of the past: it counts as what a cache shows.
    pub(super) fn age(&mut self, step: u32) {
        self.aged = step;
    }

    /// What was learnt up to this step may be otherwise by now: who goes by a record reads it
    /// again.
    pub(super) fn doubt(&mut self, step: u32) {
        self.doubted = step;
    }

    /// All that is known, in a few bytes.
    pub(super) fn fingerprint(&self) -> String {
        let fact = |(name, fact): (&String, &Fact)| {
            let version = |secret: &Stored| secret.reference().id.resource_version;
            let state = match &fact.state {
                State::Present(secret) => version(secret),
                State::Absent => "absent".to_owned(),
                State::AbsentTwice => "absent twice".to_owned(),
                State::Deleted => "deleted".to_owned(),
                State::Taken => "taken".to_owned(),
            };
            let counts = if fact.since <= self.aged {
                ""
            } else if fact.since <= self.doubted {
                "?"
            } else {
                "!"
            };
            format!("{name}={state}{counts}")
        };
        self.facts.iter().map(fact).collect::<Vec<_>>().join(" ")
    }
}

impl Fact {
    fn present(&self) -> Option<&Stored> {
        match &self.state {
            State::Present(secret) => Some(secret),
            State::Absent | State::AbsentTwice | State::Deleted | State::Taken => None,
        }
    }

    fn is_absent(&self) -> bool {
        match self.state {
            State::Absent | State::AbsentTwice | State::Deleted => true,
            State::Present(_) | State::Taken => false,
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    fn secret(name: &str) -> Stored {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        Stored(Arc::new(secret))
    }

    #[test]
    fn a_cache_proves_neither_life_nor_absence() {
        let secrets = Secrets::cached([secret("a")]);
        assert_eq!(secrets.get("a"), Knowledge::Present(&secret("a")));
        assert!(!secrets.is_live("a"));
        assert_eq!(secrets.get("b"), Knowledge::Unknown);
        assert!(!secrets.is_absent("b"));
    }

    #[test]
    fn after_a_late_answer_what_was_live_is_as_good_as_cached_and_what_was_absent_is_not_so_any_more() {
        let mut secrets = Secrets::cached([]);
        secrets.found(secret("a"), 1);
        secrets.missed("b", 2);
        secrets.deleted("c", 3);
        assert!(secrets.is_live("a") && secrets.is_absent("b") && secrets.is_absent("c"));
        secrets.age(3);
        assert_eq!(secrets.present("a"), Some(&secret("a")));
        assert!(!secrets.is_live("a") && !secrets.is_absent("b") && !secrets.is_absent("c"));
        secrets.found(secret("a"), 4);
        secrets.missed("b", 4);
        assert!(secrets.is_live("a") && secrets.is_absent("b"), "the late answer itself counts as any other");
    }

    #[test]
    fn only_of_what_this_pass_deleted_one_read_that_shows_none_is_enough() {
        let mut secrets = Secrets::cached([secret("a")]);
        secrets.deleted("a", 1);
        secrets.missed("b", 2);
        secrets.missed("other", 3);
        secrets.forget_absent(|name| name != "other");
        assert!(secrets.is_absent("a") && secrets.is_absent("other"));
        assert_eq!(secrets.get("b"), Knowledge::Unknown);
        secrets.age(3);
        secrets.missed("a", 4);
        secrets.forget_absent(|_| true);
        assert!(secrets.is_absent("a"), "also where a late answer came in between");
    }

    #[test]
    fn a_name_that_a_post_found_taken_is_neither_there_nor_absent_until_it_is_read() {
        let mut secrets = Secrets::cached([]);
        secrets.taken("a", 1);
        assert_eq!(secrets.get("a"), Knowledge::Taken);
        assert!(!secrets.is_live("a") && !secrets.is_absent("a") && secrets.all().next().is_none());
        secrets.found(secret("a"), 2);
        assert!(secrets.is_live("a"));
    }

    /// A model checker takes two passes with one fingerprint for one.
    #[test]
    fn the_fingerprint_tells_what_still_counts_and_not_since_when() {
        let known = |step: u32, aged: u32| {
            let mut secrets = Secrets::cached([secret("a")]);
            secrets.found(secret("b"), step);
            secrets.missed("c", step);
            secrets.age(aged);
            secrets.fingerprint()
        };
        assert_eq!(known(1, 0), known(5, 4));
        assert_ne!(known(1, 0), known(1, 1));
        let mut deleted = Secrets::cached([]);
        let mut missed = deleted.clone();
        deleted.deleted("a", 1);
        missed.missed("a", 1);
        assert_ne!(deleted.fingerprint(), missed.fingerprint(), "one is asked for again");
    }
}
