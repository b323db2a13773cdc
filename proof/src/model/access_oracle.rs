//! Safety rules for the access (spec §8), checked at every effect and in every state.
//!
//! The gateway opens a bucket only if the keys, the access record and the bucket record agree. So
//! each Secret is judged when it is stored: a map must not let in more than the owner consented to
//! (A1), and a record that is ending must let nobody in (A2).

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

/// Returns the union of two modes.
fn either(one: Option<AccessMode>, other: Option<AccessMode>) -> Option<AccessMode> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Some(AccessMode::ReadWrite),
        (one, other) => one.or(other),
    }
}

/// Returns true if `one` allows nothing that `other` does not allow.
fn is_within(one: Option<AccessMode>, other: Option<AccessMode>) -> bool {
    one.is_none_or(|one| other.is_some_and(|other| one.and(other) == Some(one)))
}

/// Returns the mode that a record grants to the access's namespace.
fn lets_in(record: &BucketRecord) -> Option<AccessMode> {
    record.accesses.get(&asker().uid).map(|consent| consent.max_mode)
}

/// Returns the bucket number of a record.
fn place(record: &BucketRecord) -> Option<usize> {
    bucket_number(record.endpoint.as_str(), record.bucket.as_str())
}

/// Returns true if two Secrets of the access are about the same key. Comparing secret keys is not
/// enough, because two generations can have the same one.
pub(super) fn is_same_key(one: &SecretFacts, other: &SecretFacts) -> bool {
    let generation = |secret: &SecretFacts| secret.access.as_ref().map(|its| its.generation);
    one.key == other.key && generation(one) == generation(other)
}

impl ModelWorld {
    /// Returns every Secret that exists.
    pub(super) fn secrets<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a SecretFacts> {
        state.secrets.all().map(|number| self.talks.objects.secret_of(number))
    }

    /// Returns the mode that the claim's owner grants to the access now; `None` if the access does
    /// not request it.
    pub(super) fn consented(&self, state: &State, uid: Uid) -> Option<AccessMode> {
        let claim = state.claims[NAMED].map(|claim| self.talks.objects.claim_facts(claim));
        let claim = claim.filter(|claim| claim.uid == uid && !claim.deleting)?;
        claim.spec.shares.filter(|_| self.asks(state.access))
    }

    /// Records the consent after the owner edited it. It may be written into every record as long
    /// as that record keeps its current version.
    pub(super) fn note_consent(&self, state: &mut State) {
        let records = self.secrets(state).filter_map(|secret| Some((place(secret.record.as_ref()?)?, secret.claim?)));
        let now: Vec<_> = records.map(|(bucket, uid)| (bucket, self.consented(state, uid))).collect();
        for (bucket, word) in now {
            let most = &mut state.ghost.access.consented[bucket];
            *most = either(*most, word);
        }
    }

    /// Checks A1 and A2 when a bucket record is stored.
    ///
    /// The access that is let in must have been consented to at some moment since the version that
    /// is overwritten: the contract requires that the record is read before the owner's consent.
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

    /// Records that a claim has a key to a bucket.
    pub(super) fn remember_key(&self, state: &mut State, uid: Uid, key: &SecretFacts) {
        let to = key.bucket.as_ref().zip(key.stored.endpoint());
        let bucket = to.and_then(|(bucket, endpoint)| bucket_number(endpoint.as_str(), bucket.as_str()));
        state.ghost.access.opened[uid.0 as usize] |= bucket.map_or(0, |bucket| 1 << bucket);
    }

    /// Checks A2 before a claim that is being deleted revokes a key, and before its bucket is
    /// emptied or deleted: its records must end every access first.
    ///
    /// A key that has expired or was revoked may be deleted at any time.
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
        // An earlier pass of another operator may have created a record since.
        let ends = |record: &BucketRecord| record.ending || !self.is_undisturbed(state);
        records.any(|record| lets_in(record).is_some() || !ends(record)).then_some(Promise::A2)
    }

    /// Judges an effect of a pass over the access just before it is carried out.
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

    /// Checks I12: record and finalizer exist before a key is created, and the access was read
    /// after that.
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
            // Written by an old pass of another operator; a sweep removes it.
            self.limits.fetch_add(1, Ordering::Relaxed);
        }
        let stands = is_held && (recorded || !is_key);
        (!stands && self.is_undisturbed(state)).then_some(Promise::I12)
    }

    /// Checks A4 and I13, and what happens to a key: I6, I8, I10.
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

    /// Records a Secret of the access that is stored.
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
                // The consumer Secret never returns to an earlier key while a later one exists
                // (spec §3.3): the earlier one may have expired by then.
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

    /// Checks A3 and I6: the number of keys of the access, and that the published one works.
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
