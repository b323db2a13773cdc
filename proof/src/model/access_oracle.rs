//! What must never happen around the access (spec §8), checked at every effect and in every state.
//!
//! What a gateway opens is what keys, access record and bucket record say together, so it is enough
//! to judge each of them when it is stored: that a map lets in no more than was consented to (A1),
//! and that what is ending lets nobody in (A2).

use std::sync::atomic::Ordering;

use stowage_operator::api::{AccessMode, BucketRecord};

use super::access::{NAMED, OVERLAP, asker};
use super::access_sweep::is_of_access;
use super::facts::Uid;
use super::names::bucket_number;
use super::objects::{Kind, SecretFacts};
use super::phrases::Call;
use super::promise::Promise;
use super::state::{State, Visit};
use super::world::ModelWorld;

/// What both of two words allow together.
fn either(one: Option<AccessMode>, other: Option<AccessMode>) -> Option<AccessMode> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Some(AccessMode::ReadWrite),
        (one, other) => one.or(other),
    }
}

/// Whether one word allows nothing that the other doesn't.
fn is_within(one: Option<AccessMode>, other: Option<AccessMode>) -> bool {
    one.is_none_or(|one| other.is_some_and(|other| one.and(other) == Some(one)))
}

/// What a record lets the access's namespace do.
fn lets_in(record: &BucketRecord) -> Option<AccessMode> {
    record.accesses.get(&asker().uid).map(|consent| consent.max_mode)
}

/// The bucket of a record.
fn place(record: &BucketRecord) -> Option<usize> {
    bucket_number(record.endpoint.as_str(), record.bucket.as_str())
}

/// Whether two Secrets of the access are about one key: each generation may have the same secret.
pub(super) fn is_same_key(one: &SecretFacts, other: &SecretFacts) -> bool {
    let generation = |secret: &SecretFacts| secret.access.as_ref().map(|its| its.generation);
    one.key == other.key && generation(one) == generation(other)
}

impl ModelWorld {
    /// Every Secret that is there.
    pub(super) fn secrets<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a SecretFacts> {
        state.secrets.all().map(|number| self.talks.objects.secret_of(number))
    }

    /// What the owner of a claim lets the access do now, which asks for it.
    pub(super) fn consented(&self, state: &State, uid: Uid) -> Option<AccessMode> {
        let claim = state.claims[NAMED].map(|claim| self.talks.objects.claim_facts(claim));
        let claim = claim.filter(|claim| claim.uid == uid && !claim.deleting)?;
        claim.spec.shares.filter(|_| self.asks(state.access))
    }

    /// An owner's word was edited: what it says may be written into every record in the version
    /// that it has.
    pub(super) fn note_consent(&self, state: &mut State) {
        let records = self.secrets(state).filter_map(|secret| Some((place(secret.record.as_ref()?)?, secret.claim?)));
        let now: Vec<_> = records.map(|(bucket, uid)| (bucket, self.consented(state, uid))).collect();
        for (bucket, word) in now {
            let most = &mut state.ghost.access.consented[bucket];
            *most = either(*most, word);
        }
    }

    /// A1 and A2, when a record of a bucket is stored.
    ///
    /// What is let in has to have been consented to at some moment since the version that it is
    /// written over: the contract has the record read before the owner's word.
    pub(super) fn remember_map(
        &self,
        state: &mut State,
        uid: Uid,
        record: &BucketRecord,
        before: Option<&SecretFacts>,
    ) {
        let Some(bucket) = place(record) else { return };
        let bit = 1 << bucket;
        let before = before.and_then(|before| before.record.as_ref());
        let (was, is) = (before.and_then(lets_in), lets_in(record));
        let was_opened = state.ghost.access.opened[uid.0 as usize] & bit != 0;
        let most = before.and_then(|_| state.ghost.access.consented[bucket]).filter(|_| was_opened);
        let ended = state.ghost.access.ended[uid.0 as usize] & bit != 0;
        let recalled = before.is_some_and(|before| before.ending) && !record.ending;
        if !is_within(is, was) && !is_within(is, most) {
            self.break_promise(state, Promise::A1);
        } else if recalled || (is.is_some() && (ended || record.ending)) {
            self.break_promise(state, Promise::A2);
        }
        if record.ending {
            state.ghost.access.ended[uid.0 as usize] |= bit;
        }
        state.ghost.access.consented[bucket] = self.consented(state, uid);
    }

    /// Notes that a claim has a key to a bucket.
    pub(super) fn remember_key(&self, state: &mut State, uid: Uid, key: &SecretFacts) {
        let to = key.bucket.as_ref().zip(key.stored.endpoint());
        let bucket = to.and_then(|(bucket, endpoint)| bucket_number(endpoint.as_str(), bucket.as_str()));
        state.ghost.access.opened[uid.0 as usize] |= bucket.map_or(0, |bucket| 1 << bucket);
    }

    /// A2, before a claim that goes revokes a key, or before its bucket is emptied or deleted: its
    /// records end every access first. A key that is over, or was revoked, goes whenever that is.
    pub(super) fn outlived(&self, state: &State, uid: Uid, key: Option<&SecretFacts>) -> Option<Promise> {
        let claim = state.claims[uid.slot()].map(|claim| self.talks.objects.claim_facts(claim));
        let goes = claim.is_none_or(|claim| claim.uid != uid || claim.deleting);
        let is_over = key.is_some_and(|key| {
            key.expires.is_some_and(|at| state.now >= at) || key.generation <= state.ghost.revoked[uid.0 as usize]
        });
        if !goes || is_over {
            return None;
        }
        let records = self.secrets(state).filter(|secret| secret.claim == Some(uid));
        let mut records = records.filter_map(|secret| secret.record.as_ref());
        // Another operator's old pass may have made one since.
        let ends = |record: &BucketRecord| record.ending || !self.is_undisturbed(state);
        records.any(|record| lets_in(record).is_some() || !ends(record)).then_some(Promise::A2)
    }

    /// Judges an effect of a pass over the access right before it is carried out.
    pub(super) fn object_to_visit(&self, state: &mut State, plan: u32, visit: Visit) {
        let alone = self.is_undisturbed(state);
        let objection = match &self.talks.access.planned(plan).call {
            Call::Create(name) => self.making(state, *name, visit),
            Call::Finalizer(access, false) if state.access == Some(*access) => {
                let left = self.secrets(state).any(is_of_access);
                (left && alone).then_some(Promise::I12)
            }
            Call::Patch(secret) | Call::Delete(secret) => {
                let facts = self.talks.objects.secret_of(*secret);
                if state.secrets.live(facts.name) == Some(*secret) { self.touching(state, plan, facts) } else { None }
            }
            _ => None,
        };
        if let Some(promise) = objection {
            self.break_promise(state, promise);
        }
    }

    /// I12: record and finalizer stand before a key is made, and the access was read since.
    fn making(&self, state: &State, name: u32, visit: Visit) -> Option<Promise> {
        let (_, name) = self.talks.objects.named(name);
        let access = state.access.map(|number| self.talks.access.accesses.facts(number));
        let is_held = access.is_some_and(|access| access.finalizer);
        let is_key = name.starts_with(stowage_operator::api::wire::ACCESS_CREDENTIAL_PREFIX);
        let recorded = self.secrets(state).any(|secret| secret.kind == Kind::AccessRecord);
        if is_key && !visit.is_live {
            return Some(Promise::I12);
        }
        if is_key && access.is_none() && !self.is_undisturbed(state) {
            // An old pass of another operator: it is swept.
            self.limits.fetch_add(1, Ordering::Relaxed);
        }
        let stands = is_held && (recorded || !is_key);
        (!stands && self.is_undisturbed(state)).then_some(Promise::I12)
    }

    /// A4, I13, and what becomes of a key: I6, I8, I10.
    pub(super) fn touching(&self, state: &State, plan: u32, facts: &SecretFacts) -> Option<Promise> {
        if matches!(facts.kind, Kind::Record | Kind::Credential | Kind::Binding) {
            return Some(Promise::A4);
        }
        let Some(its) = &facts.access else { return Some(Promise::I13) };
        if facts.kind != Kind::AccessKey {
            return None;
        }
        let ghost = &state.ghost.access;
        if let Call::Delete(_) = self.talks.access.planned(plan).call {
            let published = ghost.published & (1 << its.generation.min(15)) != 0;
            let over = facts.expires.is_some_and(|at| state.now >= at);
            return (published && !over && self.asks(state.access)).then_some(Promise::I6);
        }
        let after = self.talks.access.patch(&self.talks.objects, plan, facts.number);
        let after = self.talks.objects.secret_of(after?);
        let earliest = ghost.switched + OVERLAP;
        match (facts.expires, after.expires) {
            _ if facts.key != after.key => Some(Promise::I10),
            (Some(was), Some(is)) if is >= was => None,
            (Some(_), _) => Some(Promise::I8),
            (None, Some(at)) => (at < earliest).then_some(Promise::I8),
            (None, None) => None,
        }
    }

    /// Notes a Secret of the access that is stored.
    pub(super) fn remember_of_access(&self, state: &mut State, facts: &SecretFacts, before: Option<&SecretFacts>) {
        let Some(its) = &facts.access else { return };
        let bit = 1 << its.generation.min(15);
        match facts.kind {
            Kind::AccessKey if before.is_none() => {
                let again = state.ghost.access.minted & bit != 0;
                state.ghost.access.minted |= bit;
                if again && (self.asks(state.access) || self.recipe.operators == 1) {
                    self.break_promise(state, Promise::I10);
                } else if again {
                    self.limits.fetch_add(1, Ordering::Relaxed);
                }
            }
            Kind::Consumer => {
                state.ghost.access.published |= bit;
                let held = before.and_then(|before| before.access.as_ref()).map(|before| before.generation);
                if held != Some(its.generation) {
                    state.ghost.access.switched = state.now;
                }
                // It never goes back where there is a later key (spec §3.3): the earlier one ends
                // by then.
                let later = held.filter(|held| *held > its.generation);
                let generation = |key: &SecretFacts| key.access.as_ref().map(|its| its.generation);
                let is_later = |secret: &SecretFacts| secret.kind == Kind::AccessKey && generation(secret) == later;
                let has_later = later.is_some() && self.secrets(state).any(is_later);
                if has_later {
                    self.break_promise(state, Promise::I6);
                }
            }
            _ => {}
        }
    }

    /// A3 and I6: how many keys the access has, and whether the one that it publishes works.
    pub(super) fn keys_of_access(&self, state: &State) -> Option<Promise> {
        if !self.recipe.access || state.ghost.tampered {
            return None;
        }
        let living = || {
            let keys = self.secrets(state).filter(|secret| secret.kind == Kind::AccessKey);
            keys.filter(|key| key.expires.is_none_or(|at| state.now < at))
        };
        if living().count() > 2 && self.is_undisturbed(state) {
            return Some(Promise::A3);
        }
        let published = self.secrets(state).filter(|secret| secret.kind == Kind::Consumer);
        let mut published = published.filter(|secret| secret.access.is_some());
        let works = |secret: &SecretFacts| living().any(|key| is_same_key(key, secret));
        (self.asks(state.access) && published.any(|secret| !works(secret))).then_some(Promise::I6)
    }
}
