//! Knowledge of a pass about Secrets: one fact for each name, with the step that found it.
//!
//! A cache never proves that a Secret exists or is absent (spec §3). A Secret that the cache lacks
//! is unknown here; only the answer to a live query makes it absent.
//!
//! A late answer ends that proof. Absent internal Secrets are read again, because a deletion and a
//! bump of the generation rely on their absence alone. Absent consumer Secrets are not: a POST
//! finds out that the name is taken, and a Secret created meanwhile is garbage-collected with its
//! claim, which controls it.

use super::secret::Stored;
use std::collections::BTreeMap;
use std::fmt;

/// Knowledge about the Secret of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Knowledge<'a> {
    /// Nothing is known.
    Unknown,
    /// A POST found the name taken. The Secret must be read live.
    Taken,
    /// A live read found no Secret, or this pass deleted it. This is no proof after a late answer;
    /// use `is_absent` for that.
    Absent,
    /// The Secret exists.
    Present(&'a Stored),
}

/// A fact about one name.
#[derive(Clone)]
struct Fact {
    state: State,
    /// The step of the pass that found it. 0 for the caches.
    since: u32,
}

#[derive(Clone)]
enum State {
    Present(Stored),
    Absent,
    /// Two live reads found no Secret.
    AbsentTwice,
    /// This pass deleted the Secret.
    Deleted,
    Taken,
}

/// Knowledge about the Secrets of one namespace.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    facts: BTreeMap<String, Fact>,
    /// Facts up to this step are no longer live, because a late answer came after it.
    aged: u32,
    /// Facts up to this step may have been changed by another operator, because a slow answer came
    /// after it.
    doubted: u32,
}

impl Secrets {
    /// Creates the knowledge from the caches.
    pub(super) fn cached(secrets: impl IntoIterator<Item = Stored>) -> Self {
        let fact = |secret: Stored| (secret.name().to_owned(), Fact { state: State::Present(secret), since: 0 });
        Self { facts: secrets.into_iter().map(fact).collect(), aged: 0, doubted: 0 }
    }

    /// Returns what is known about a name.
    pub(super) fn get(&self, name: &str) -> Knowledge<'_> {
        match self.facts.get(name).map(|fact| &fact.state) {
            None => Knowledge::Unknown,
            Some(State::Taken) => Knowledge::Taken,
            Some(State::Absent | State::AbsentTwice | State::Deleted) => Knowledge::Absent,
            Some(State::Present(secret)) => Knowledge::Present(secret),
        }
    }

    /// Returns the Secret of this name, possibly cached.
    pub(super) fn present(&self, name: &str) -> Option<&Stored> {
        self.facts.get(name).and_then(Fact::present)
    }

    /// Returns all known Secrets by name, possibly cached.
    pub(super) fn all(&self) -> impl Iterator<Item = &Stored> {
        self.facts.values().filter_map(Fact::present)
    }

    /// Returns every name that something is known about.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.facts.keys().map(String::as_str)
    }

    /// Returns the names that must be read live.
    pub(super) fn all_taken(&self) -> impl Iterator<Item = &str> {
        self.facts.iter().filter(|(_, fact)| matches!(fact.state, State::Taken)).map(|(name, _)| name.as_str())
    }

    /// Returns true if a cache shows the Secret, and no answer of this pass does.
    pub(super) fn is_cached(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.since == 0)
    }

    /// Returns true if the Secret exists and this pass wrote it or read it live.
    pub(super) fn is_live(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.since > self.aged && fact.present().is_some())
    }

    /// Returns true if this pass read live that the Secret does not exist, or deleted it.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.is_absent() && fact.since > self.aged)
    }

    /// Returns true if a live read after this step found no Secret.
    pub(super) fn is_absent_since(&self, name: &str, step: u32) -> bool {
        self.is_absent(name) && self.facts.get(name).is_some_and(|fact| fact.since > step)
    }

    /// Returns true if two live reads of this pass found no Secret, or this pass deleted it.
    pub(super) fn is_absent_twice(&self, name: &str) -> bool {
        let is_twice = |fact: &Fact| matches!(fact.state, State::AbsentTwice | State::Deleted);
        self.is_absent(name) && self.facts.get(name).is_some_and(is_twice)
    }

    /// Returns true if this pass wrote the Secret or read it live after the last slow or late
    /// answer.
    pub(super) fn is_current(&self, name: &str) -> bool {
        let since = self.aged.max(self.doubted);
        self.facts.get(name).is_some_and(|fact| fact.since > since && fact.present().is_some())
    }

    /// Records that the Secret exists.
    pub(super) fn found(&mut self, secret: Stored, step: u32) {
        self.facts.insert(secret.name().to_owned(), Fact { state: State::Present(secret), since: step });
    }

    /// Records that a live read found no Secret. A deletion by this pass remains recorded.
    pub(super) fn missed(&mut self, name: &str, step: u32) {
        let state = match self.facts.get(name).map(|fact| &fact.state) {
            Some(State::Deleted) => State::Deleted,
            Some(State::Absent | State::AbsentTwice) => State::AbsentTwice,
            Some(State::Present(_) | State::Taken) | None => State::Absent,
        };
        self.facts.insert(name.to_owned(), Fact { state, since: step });
    }

    /// Records that this pass deleted the Secret.
    pub(super) fn deleted(&mut self, name: &str, step: u32) {
        self.facts.insert(name.to_owned(), Fact { state: State::Deleted, since: step });
    }

    /// Records that a POST found the name taken.
    pub(super) fn taken(&mut self, name: &str, step: u32) {
        self.facts.insert(name.to_owned(), Fact { state: State::Taken, since: step });
    }

    /// Forgets all present Secrets before a list is recorded. A Secret that the list does not show
    /// is unknown, because its labels may have been removed.
    pub(super) fn forget_present(&mut self) {
        self.facts.retain(|_, fact| fact.present().is_none());
    }

    /// Forgets the result of single reads that found no Secret, for names where `matters` is true.
    /// Keeps deletions by this pass.
    pub(super) fn forget_absent(&mut self, matters: impl Fn(&str) -> bool) {
        let is_of_one_read = |fact: &Fact| fact.is_absent() && !matches!(fact.state, State::Deleted);
        self.facts.retain(|name, fact| !is_of_one_read(fact) || !matters(name));
    }

    /// Marks everything up to this step as outdated: it counts as cached.
    pub(super) fn age(&mut self, step: u32) {
        self.aged = step;
    }

    /// Marks everything up to this step as in doubt: a record is read again before it is relied on.
    pub(super) fn doubt(&mut self, step: u32) {
        self.doubted = step;
    }

    /// Returns a compact summary of all that is known.
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

    /// A model checker treats two passes with the same fingerprint as one.
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
