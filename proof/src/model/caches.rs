//! The operator's caches, and how a pass and a sweep begin from them.

use super::facts::{BACKENDS, BackendFacts, NAMES, OPERATOR_NAMESPACE, Uid};
use super::names::{backend_number, bucket_name, endpoint};
use super::objects::{Kind, SecretFacts};
use super::phrases::{Beginning, Place, Reply};
use super::state::{Cell, Memory, Pass, State};
use super::world::{DEADLINE, Lag, ModelWorld};

impl ModelWorld {
    /// Returns the claim in the operator's cache: the later of what the watch showed and what the
    /// operator wrote itself.
    pub(super) fn cached_claim(&self, state: &State, operator: usize, slot: usize) -> Option<u32> {
        if !self.lags(Lag::Claims) {
            return state.claims[slot];
        }
        let operator = &state.operators[operator];
        let seen = operator.seen.claims[slot]?;
        let version = |number: u32| {
            let facts = self.talks.objects.claim_facts(number);
            (facts.uid, facts.version)
        };
        Some(operator.wrote_claims[slot].filter(|wrote| version(*wrote) > version(seen)).unwrap_or(seen))
    }

    /// Returns the Secret that the cache has under a name.
    fn cached(&self, state: &State, operator: usize, name: u32) -> Option<u32> {
        let internal = self.is_internal(name);
        if !self.lags(if internal { Lag::Internal } else { Lag::Consumers }) {
            return state.secrets.live(name);
        }
        let operator = &state.operators[operator];
        let seen = if internal { &operator.seen.internal } else { &operator.seen.consumers };
        operator.wrote.get(name).map_or_else(|| seen.live(name), Cell::live)
    }

    /// Returns every Secret in the operator's caches.
    pub(super) fn all_cached<'a>(&'a self, state: &'a State, operator: usize) -> impl Iterator<Item = &'a SecretFacts> {
        let names = state.secrets.iter().map(|(name, _)| name);
        names
            .filter_map(move |name| self.cached(state, operator, name))
            .map(|number| self.talks.objects.secret_of(number))
    }

    /// Returns a backend in the cache.
    pub(super) fn cached_backend(&self, state: &State, operator: usize, number: u8) -> Option<BackendFacts> {
        self.cached_backends(state, operator)[number as usize]
    }

    /// Returns every backend in the cache.
    pub(super) fn cached_backends(&self, state: &State, operator: usize) -> [Option<BackendFacts>; BACKENDS] {
        if self.lags(Lag::Backends) { state.operators[operator].seen.backends } else { state.backends }
    }

    /// Notes what the operator itself read or wrote under a name.
    pub(super) fn note(&self, state: &mut State, operator: usize, name: u32, cell: Cell) {
        let lags = self.lags(if self.is_internal(name) { Lag::Internal } else { Lag::Consumers });
        // A Secret that the cache does not have needs no tombstone.
        if lags && (cell.live().is_some() || self.cached(state, operator, name).is_some()) {
            state.operators[operator].wrote.put(name, cell);
        }
    }

    /// Returns what the operator knows when a pass over a claim begins; `None` if it knows of no
    /// such claim.
    pub(super) fn begin(&self, state: &State, operator: usize, slot: usize, look: bool) -> Option<(Pass, Memory)> {
        let claim = self.cached_claim(state, operator, slot)?;
        let objects = &self.talks.objects;
        let (facts, status) = (objects.claim_facts(claim), &objects.claim_of(claim).status);
        let is_internal = |secret: &&SecretFacts| self.is_internal(secret.name);
        let of_claim = |secret: &&SecretFacts| secret.claim == Some(facts.uid);
        let number = |secret: &SecretFacts| secret.number;
        let own: Vec<u32> = self.all_cached(state, operator).filter(is_internal).filter(of_claim).map(number).collect();
        let by_name = objects.publishes_to(claim);
        let of_namespace = |secret: &&SecretFacts| {
            !self.is_internal(secret.name) && (of_claim(secret) || by_name.contains(&Some(secret.name)))
        };
        let consumers: Vec<u32> = self.all_cached(state, operator).filter(of_namespace).map(number).collect();
        let process = &state.operators[operator];
        let mut memory = process.memory[facts.uid.0 as usize].unwrap_or_else(|| {
            // As in the controller: a process that crashed may have left a call under way.
            let records = own.iter().filter(|number| objects.secret_of(**number).record.is_some()).count();
            let unfinished = status.bound_secret_name.is_none() || records > 1 || facts.deleting;
            let at_stake = facts.finalizer && unfinished;
            let until = if at_stake { process.began + DEADLINE } else { 0 };
            Memory { missing: None, look: false, until }
        });
        let mut beginning = Beginning {
            claim,
            own,
            consumers,
            missing: memory.missing,
            unanswered: memory.until.saturating_sub(state.now),
            look: look || memory.look,
            asks: self.cached_asks(state, operator, slot),
        };
        let tells = status.conditions.iter().any(|c| c.type_ == "BucketCreated" && c.reason == "BucketMissing");
        if memory.missing.is_some() != tells {
            let view = self.talks.begin(beginning.clone());
            memory.missing = if tells { self.talks.bucket(view) } else { None };
            memory.look = true;
            (beginning.missing, beginning.look) = (memory.missing, true);
        }
        let view = self.talks.begin(beginning);
        Some((Pass { view, edited: false, born: 0, pinned: None }, memory))
    }

    /// Returns the holder of a bucket, as far as the caches know.
    pub(super) fn holder(&self, state: &State, operator: usize, uid: Uid, place: Place) -> Reply {
        let others = |secret: &SecretFacts| secret.claim != Some(uid);
        let mut suspect = false;
        for secret in self.all_cached(state, operator) {
            match (secret.kind, &secret.record) {
                (Kind::Record, Some(_)) if self.is_record_of(secret, place) && others(secret) => {
                    return Reply::Held(secret.claim.map(Uid::slot));
                }
                (Kind::Record, None) if self.is_record_of(secret, place) => return Reply::Damaged,
                (Kind::Credential, _) => {
                    suspect |= others(secret) && self.is_key_to(state, operator, secret, place);
                }
                _ => {}
            }
        }
        if suspect { Reply::Suspect } else { Reply::Held(None) }
    }

    /// Returns true if a Secret has the name of this bucket's record.
    pub(super) fn is_record_of(&self, secret: &SecretFacts, place: Place) -> bool {
        let (namespace, name) = self.talks.objects.named(secret.name);
        namespace == OPERATOR_NAMESPACE && name == place.record()
    }

    /// Returns true if a credential opens exactly this bucket, by the rule of the operator's
    /// `Observer`.
    pub(super) fn is_key_to(&self, state: &State, operator: usize, secret: &SecretFacts, place: Place) -> bool {
        let elsewhere = |name: &String| {
            let backend = backend_number(name).and_then(|number| self.cached_backend(state, operator, number));
            backend.is_some_and(|backend| backend.store != place.store)
        };
        let named = secret.bucket.as_ref().is_some_and(|bucket| bucket.as_str() == bucket_name(place.bucket % NAMES));
        let opens = match secret.stored.endpoint() {
            Some(noted) => noted == endpoint(place.store),
            None => !secret.backend.as_ref().is_some_and(elsewhere),
        };
        named && opens
    }
}
