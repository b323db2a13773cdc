//! What a pass knows of Secrets, one fact for each name, with the step since which it is known.
//!
//! A cache is never proof of absence or of life (spec §3). So what a cache doesn't hold is unknown
//! here, and only the answer to a live question makes it absent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::api::BucketRecord;

use super::super::secret::Stored;

/// What is known of the Secret of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Knowledge<'a> {
    /// Nothing.
    Unknown,
    /// A POST found the name taken: it must be read live.
    Taken,
    /// There is none: a live read found none, or this pass deleted it.
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
}

impl Secrets {
    /// What the caches hold.
    pub(super) fn cached(secrets: impl IntoIterator<Item = Stored>) -> Self {
        let fact = |secret: Stored| (secret.name().to_owned(), Fact { state: State::Present(secret), since: 0 });
        Self { facts: secrets.into_iter().map(fact).collect(), aged: 0 }
    }

    /// What is known of a name.
    pub(super) fn get(&self, name: &str) -> Knowledge<'_> {
        match self.facts.get(name).map(|fact| &fact.state) {
            None => Knowledge::Unknown,
            Some(State::Taken) => Knowledge::Taken,
            Some(State::Absent | State::Deleted) => Knowledge::Absent,
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

    /// Whether this pass wrote it or read it live, and it is there.
    pub(super) fn is_live(&self, name: &str) -> bool {
        self.facts.get(name).is_some_and(|fact| fact.since > self.aged && fact.present().is_some())
    }

    /// Whether this pass saw live that there is none, or deleted it.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        let is_absent = |fact: &Fact| matches!(fact.state, State::Absent | State::Deleted) && fact.since > self.aged;
        self.facts.get(name).is_some_and(is_absent)
    }

    /// Takes in that it is there.
    pub(super) fn found(&mut self, secret: Stored, step: u32) {
        self.facts.insert(secret.name().to_owned(), Fact { state: State::Present(secret), since: step });
    }

    /// Takes in that a live read found none. Of one that this pass deleted, that stays known.
    pub(super) fn missed(&mut self, name: &str, step: u32) {
        let deleted = self.facts.get(name).is_some_and(|fact| matches!(fact.state, State::Deleted));
        let state = if deleted { State::Deleted } else { State::Absent };
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
    fn forget_present(&mut self) {
        self.facts.retain(|_, fact| fact.present().is_none());
    }

    /// What one read did not show is unknown again, where `matters`; unless this pass deleted it.
    pub(super) fn forget_absent(&mut self, matters: impl Fn(&str) -> bool) {
        self.facts.retain(|name, fact| !matches!(fact.state, State::Absent) || !matters(name));
    }

    /// What was learnt up to this step is of the past: it counts as what a cache shows.
    pub(super) fn age(&mut self, step: u32) {
        self.aged = step;
    }

    /// All that is known, in a few bytes.
    pub(super) fn key(&self) -> String {
        let fact = |(name, fact): (&String, &Fact)| {
            let version = |secret: &Stored| secret.reference().id.resource_version;
            let state = match &fact.state {
                State::Present(secret) => version(secret),
                State::Absent => "absent".to_owned(),
                State::Deleted => "deleted".to_owned(),
                State::Taken => "taken".to_owned(),
            };
            format!("{name}={state}{}", if fact.since > self.aged { "!" } else { "" })
        };
        self.facts.iter().map(fact).collect::<Vec<_>>().join(" ")
    }
}

impl Fact {
    fn present(&self) -> Option<&Stored> {
        match &self.state {
            State::Present(secret) => Some(secret),
            State::Absent | State::Deleted | State::Taken => None,
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}

/// A record, and the Secret that it was read from.
pub(in super::super) type StoredRecord = (BucketRecord, Stored);

/// The claim's internal Secrets; the records among them are parsed once, however often the planner
/// asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Internal {
    secrets: Secrets,
    records: OnceLock<Arc<[StoredRecord]>>,
    lists: Lists,
}

/// Live lists of the claim's internal Secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// Made since the last answer that showed those before to be of the past.
    count: u32,
    /// The step of the last of them.
    last: u32,
    /// The step of the last deletion of one of them.
    deletion: u32,
    /// An answer came so late that another operator may have been at the claim's keys.
    doubted: bool,
}

impl Internal {
    /// What the caches hold.
    pub(super) fn cached(secrets: impl IntoIterator<Item = Stored>) -> Self {
        Self { secrets: Secrets::cached(secrets), ..Self::default() }
    }

    /// What is known, to be read.
    pub(super) fn known(&self) -> &Secrets {
        &self.secrets
    }

    /// What is known, to be changed: the records are read anew.
    pub(super) fn learn(&mut self) -> &mut Secrets {
        self.records.take();
        &mut self.secrets
    }

    /// Those that are bucket records, whoever's, by name.
    pub(super) fn records(&self) -> &[StoredRecord] {
        self.records.get_or_init(|| {
            let read = |secret: &Stored| Some((BucketRecord::read(&secret.0).ok()?, secret.clone()));
            self.secrets.all().filter_map(read).collect()
        })
    }

    /// Takes in a live list.
    pub(super) fn listed(&mut self, secrets: impl IntoIterator<Item = Stored>, step: u32) {
        let known = self.learn();
        known.forget_present();
        secrets.into_iter().for_each(|secret| known.found(secret, step));
        self.lists.count += 1;
        self.lists.last = step;
    }

    /// Takes in that this pass deleted one.
    pub(super) fn deleted(&mut self, name: &str, step: u32) {
        self.learn().deleted(name, step);
        self.lists.deletion = step;
    }

    /// Lists made in this pass, since the last answer that showed those before to be of the past.
    pub(super) fn lists(&self) -> u32 {
        self.lists.count
    }

    /// Whether nothing of them was deleted since the last list.
    pub(super) fn is_list_current(&self) -> bool {
        self.lists.last > self.lists.deletion
    }

    /// Lists made before are of the past.
    pub(super) fn forget_lists(&mut self) {
        self.lists.count = 0;
    }

    /// Another operator may have been at the claim's keys: they are listed before one is made or
    /// given away.
    pub(super) fn doubt_lists(&mut self) {
        self.lists.count = 0;
        self.lists.doubted = true;
    }

    /// Whether another operator may have been at the claim's keys since the last list.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.lists.doubted && self.lists.count == 0
    }

    /// All that is known, in a few bytes.
    pub(super) fn key(&self) -> String {
        let Lists { count, last: _, deletion: _, doubted } = self.lists;
        format!("{} {count} {} {doubted}", self.secrets.key(), self.is_list_current())
    }
}
