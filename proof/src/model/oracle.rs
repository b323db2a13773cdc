//! Safety rules, checked at every effect and in every state.

use std::sync::atomic::Ordering;

use stowage_operator::api::{BucketRecord, Deletion};
use stowage_operator::plan::BucketSeen;

use super::facts::{Policy, Uid};
use super::names::{backend_name, bucket_number};
use super::objects::{Kind, SecretFacts, UNTAGGED};
use super::phrases::{Call, Place};
use super::promise::Promise;
use super::state::{Late, Pass, State};
use super::world::ModelWorld;

impl ModelWorld {
    pub(super) fn break_promise(&self, state: &mut State, promise: Promise) {
        state.broken = state.broken.or(Some(promise));
    }

    pub(super) fn is_undisturbed(&self, state: &State) -> bool {
        !state.ghost.tampered && !state.ghost.intruded && self.recipe.operators == 1 && !self.recipe.late
    }

    /// Judges an effect just before it is carried out.
    pub(super) fn object(&self, state: &mut State, plan: u32, pass: Pass) {
        let uid = self.talks.uid(pass.view);
        self.note_retention(state, plan, pass);
        let objection = match &self.talks.planned(plan).call {
            Call::DeleteBucket(place) => {
                self.destruction(state, *place, uid, pass, false).or_else(|| self.outlived(state, uid, None))
            }
            Call::Purge(place, _) => {
                self.destruction(state, *place, uid, pass, true).or_else(|| self.outlived(state, uid, None))
            }
            Call::CreateBucket(place) => self.outside(state, *place, uid),
            Call::Tag(place, _) => self.outside(state, *place, uid).or_else(|| lured(state, *place, pass)),
            Call::Create(_) => {
                let bucket = self.talks.view(pass.view).bucket_of_record();
                bucket.and_then(|bucket| lured(state, Place::of(&bucket), pass))
            }
            Call::Finalizer(claim, false) if state.claims[uid.slot()] == Some(*claim) => {
                let policy = self.talks.objects.claim_facts(*claim).spec.deletion;
                state.ghost.released[uid.0 as usize].get_or_insert(policy);
                self.release(state, uid)
            }
            Call::Patch(secret) | Call::Delete(secret) => self.write(state, *secret, uid).or_else(|| {
                let facts = self.talks.objects.secret_of(*secret);
                let live = state.secrets.live(facts.name) == Some(*secret);
                match self.talks.planned(plan).call {
                    Call::Delete(_) if live => {
                        let ended =
                            || self.outlived(state, uid, Some(facts)).filter(|_| facts.kind == Kind::Credential);
                        self.revocation(state, facts, uid).or_else(ended)
                    }
                    Call::Patch(_) if live => {
                        let overlap = self.talks.view(pass.view).claim().desired.as_ref();
                        let overlap = overlap.map_or(0, |desired| desired.rotation.overlap_seconds);
                        let after = self.talks.patch(plan, *secret).map(|after| self.talks.objects.secret_of(after));
                        after.and_then(|after| self.stamp(state, facts, after, uid, overlap))
                    }
                    _ => None,
                }
            }),
            _ => None,
        };
        if let Some(promise) = objection {
            self.break_promise(state, promise);
        }
    }

    /// Records that a pass which read `Retain` deletes the record. From then on the bucket stays,
    /// even if the policy is edited later.
    fn note_retention(&self, state: &mut State, plan: u32, pass: Pass) {
        let retains = self.talks.view(pass.view).claim().deletion == Deletion::Retain;
        if let Call::Delete(secret) = self.talks.planned(plan).call
            && retains
            && self.talks.objects.secret_of(secret).kind == Kind::Record
        {
            state.ghost.released[self.talks.uid(pass.view).0 as usize] = Some(Policy::Retain);
        }
    }

    /// Checks I1, I2 and I3: the pass is entitled to destroy, and the bucket is the claim's.
    fn destruction(&self, state: &State, place: Place, uid: Uid, pass: Pass, purge: bool) -> Option<Promise> {
        let view = self.talks.view(pass.view);
        let bucket = &state.buckets[place.bucket];
        let is_about = |record: &&BucketRecord| {
            record.bucket.as_str() == place.bucket_name() && record.backend == backend_name(place.backend)
        };
        let record = view.records().map(|(record, _)| record).find(is_about);
        let tags = match view.last_look() {
            Some(BucketSeen::Present(Some(tags))) => self.talks.objects.tags(tags),
            _ => return Some(Promise::I1),
        };
        let tagged = self.talks.objects.tags_of(tags).uid == Some(uid);
        let unfinished = !purge && tags == UNTAGGED && record.is_some_and(|record| record.absence && !record.settled);
        if record.is_none_or(|record| record.adopted) || !(tagged || unfinished) {
            return Some(Promise::I1);
        }
        if bucket.present && bucket.maker != Some(uid) {
            // The bucket looks like ours and is not: a stranger replaced it between look and call,
            // wrote our tags, or created an empty one after the absence was recorded (spec §3.2).
            if bucket.born != pass.born || unfinished || state.ghost.intruded || self.recipe.operators > 1 {
                self.limits.fetch_add(1, Ordering::Relaxed);
            } else {
                return Some(Promise::I1);
            }
        }
        let policy =
            state.claims[uid.slot()].map(|claim| self.talks.objects.claim_facts(claim)).filter(|f| f.uid == uid);
        match policy.map(|facts| facts.spec.deletion) {
            _ if pass.edited => None,
            Some(Policy::Retain) => Some(Promise::I2),
            Some(Policy::Delete) if purge => Some(Promise::I3),
            _ => None,
        }
    }

    /// Checks I12 at the first effect outside Kubernetes.
    fn outside(&self, state: &State, place: Place, uid: Uid) -> Option<Promise> {
        let held = state.ghost.held[uid.0 as usize] & (1 << place.bucket) != 0;
        let claim = state.claims[uid.slot()].map(|claim| self.talks.objects.claim_facts(claim));
        let finalizer = claim.is_none_or(|facts| facts.uid != uid || facts.finalizer);
        (!held || (!finalizer && self.is_undisturbed(state))).then_some(Promise::I12)
    }

    /// Checks I12 when the finalizer is removed.
    fn release(&self, state: &State, uid: Uid) -> Option<Promise> {
        let of_claim = |secret: &SecretFacts| secret.kind != Kind::Consumer && secret.claim == Some(uid);
        let left = state.secrets.all().any(|number| of_claim(self.talks.objects.secret_of(number)));
        (left && self.is_undisturbed(state)).then_some(Promise::I12)
    }

    /// Checks I13: the Secret belongs to the claim.
    fn write(&self, state: &State, secret: u32, uid: Uid) -> Option<Promise> {
        let facts = self.talks.objects.secret_of(secret);
        let live = state.secrets.live(facts.name).map(|live| self.talks.objects.secret_of(live))?;
        let ours = if live.kind == Kind::Consumer { live.controller == Some(uid) } else { live.claim == Some(uid) };
        (live.number == secret && !ours && !state.ghost.tampered).then_some(Promise::I13)
    }

    /// Checks I6: a published key is revoked only after its expiry, or with its claim.
    fn revocation(&self, state: &State, facts: &SecretFacts, uid: Uid) -> Option<Promise> {
        let published = state.ghost.published[uid.0 as usize] & (1 << facts.generation.min(15)) != 0;
        let over = facts.expires.is_some_and(|at| state.now >= at);
        let deleting = state.claims[uid.slot()].map(|claim| self.talks.objects.claim_facts(claim));
        let deleting = deleting.is_none_or(|claim| claim.uid != uid || claim.deleting);
        let revoked = is_revoked(state, facts, uid);
        (facts.kind == Kind::Credential && published && !over && !deleting && !revoked).then_some(Promise::I6)
    }

    /// Checks I6 for a record that is stored: each revocation in it was requested, and is counted
    /// once per request.
    fn revocation_noted(&self, state: &State, record: &BucketRecord, before: Option<&SecretFacts>, uid: Uid) -> bool {
        let handled = before.and_then(|before| before.record.as_ref()?.handled_revoke_request.clone());
        let asked = state.claims[uid.slot()].map_or(0, |claim| self.talks.objects.claim_facts(claim).revoke);
        let is_new = record.handled_revoke_request.is_some() && record.handled_revoke_request != handled;
        record.revoked_through <= state.ghost.revoked[uid.0 as usize] || (asked > 0 && is_new)
    }

    /// Checks I8 and I10 for a patch of a key.
    fn stamp(
        &self,
        state: &State,
        before: &SecretFacts,
        after: &SecretFacts,
        uid: Uid,
        overlap: u32,
    ) -> Option<Promise> {
        if before.kind != Kind::Credential || is_revoked(state, before, uid) {
            return None;
        }
        if before.key != after.key {
            return Some(Promise::I10);
        }
        let earliest = state.ghost.switched[uid.0 as usize] + overlap;
        match (before.expires, after.expires) {
            (Some(was), Some(is)) if is >= was => None,
            (Some(_), _) => Some(Promise::I8),
            (None, Some(at)) => (at < earliest).then_some(Promise::I8),
            (None, None) => None,
        }
    }

    /// Checks that a sweep deletes only Secrets of a claim that is gone.
    pub(super) fn object_to_sweep(&self, state: &mut State, uid: Uid, secret: u32) {
        let facts = self.talks.objects.secret_of(secret);
        let live = state.secrets.live(facts.name) == Some(secret);
        if live && facts.claim.is_some_and(|owner| owner != uid) {
            self.break_promise(state, Promise::I13);
        } else if live && self.is_alive(state, uid) {
            self.break_promise(state, Promise::I6);
        } else if live
            && facts.kind == Kind::Credential
            && let Some(promise) = self.outlived(state, uid, Some(facts))
        {
            self.break_promise(state, promise);
        }
    }

    /// Checks I1 for a call that timed out: within its deadline it must not hit the bucket of the
    /// name's next holder.
    pub(super) fn object_to_late(&self, state: &mut State, late: Late) {
        if let Call::DeleteBucket(place) | Call::Purge(place, _) = self.talks.planned(late.plan).call {
            let bucket = &state.buckets[place.bucket];
            if bucket.present && bucket.maker != Some(late.uid) && !state.ghost.intruded {
                self.break_promise(state, Promise::I1);
            }
        }
    }

    /// Records the keys, publications and records in a Secret that is stored.
    pub(super) fn remember(&self, state: &mut State, secret: u32) {
        let facts = self.talks.objects.secret_of(secret);
        let before = state.secrets.live(facts.name).map(|before| self.talks.objects.secret_of(before));
        self.remember_of_access(state, facts, before);
        let Some(uid) = facts.claim else { return };
        let bit = 1 << facts.generation.min(15);
        match facts.kind {
            Kind::Credential if before.is_none() => {
                if state.ghost.minted[uid.0 as usize] & bit != 0 {
                    let claim = state.claims[uid.slot()].map(|claim| self.talks.objects.claim_facts(claim));
                    let lives = claim.is_some_and(|claim| claim.uid == uid && !claim.deleting);
                    if lives || self.recipe.operators == 1 {
                        self.break_promise(state, Promise::I10);
                    } else {
                        // An old pass of a second operator over a claim whose deletion the other
                        // operator completed; a sweep removes it.
                        self.limits.fetch_add(1, Ordering::Relaxed);
                    }
                }
                state.ghost.minted[uid.0 as usize] |= bit;
                if self.recipe.access {
                    self.remember_key(state, uid, facts);
                }
                if self.is_undisturbed(state) && self.is_beside_a_revoked(state, uid) {
                    self.break_promise(state, Promise::I7);
                }
            }
            Kind::Consumer if facts.controller == Some(uid) => {
                state.ghost.published[uid.0 as usize] |= bit;
                if before.is_none_or(|before| before.generation != facts.generation) {
                    state.ghost.switched[uid.0 as usize] = state.now;
                }
            }
            Kind::Record => {
                let held = facts
                    .record
                    .as_ref()
                    .and_then(|record| bucket_number(record.endpoint.as_str(), record.bucket.as_str()));
                state.ghost.held[uid.0 as usize] |= held.map_or(0, |bucket| 1 << bucket);
                let Some(record) = &facts.record else { return };
                if self.recipe.access {
                    self.remember_map(state, uid, record, before);
                }
                if !self.revocation_noted(state, record, before, uid) {
                    self.break_promise(state, Promise::I6);
                }
                let revoked = &mut state.ghost.revoked[uid.0 as usize];
                *revoked = record.revoked_through.max(*revoked);
            }
            _ => {}
        }
    }

    /// Returns true if a revoked key of the claim still exists.
    pub(super) fn is_beside_a_revoked(&self, state: &State, uid: Uid) -> bool {
        let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
        let mut keys = all.filter(|secret| secret.kind == Kind::Credential && secret.claim == Some(uid));
        keys.any(|key| is_revoked(state, key, uid))
    }

    /// Checks the rules that apply to every state.
    pub(super) fn inspect(&self, state: &mut State) {
        if state.broken.is_some() {
            return;
        }
        let promise = self.keys_apart(state).or_else(|| self.keys_of_claims(state));
        let promise = promise.or_else(|| self.keys_of_access(state));
        state.broken = promise;
    }

    /// Checks I4: no two live claims have keys to the same bucket.
    fn keys_apart(&self, state: &State) -> Option<Promise> {
        if state.ghost.tampered {
            return None;
        }
        let keys = || {
            let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
            all.filter(|secret| secret.kind == Kind::Credential)
        };
        let live = |secret: &SecretFacts| secret.claim.is_some_and(|uid| self.is_alive(state, uid));
        let works = |secret: &SecretFacts| secret.expires.is_none_or(|at| state.now < at);
        let rivals = |one: &SecretFacts, other: &SecretFacts| {
            one.claim != other.claim && one.bucket == other.bucket && one.backend == other.backend
        };
        let clash = keys().filter(|key| live(key) && works(key)).any(|one| {
            keys().filter(|key| key.number > one.number && live(key) && works(key)).any(|other| rivals(one, other))
        });
        clash.then_some(Promise::I4)
    }

    /// Checks I5 and I6: the number of keys of each claim, and that the published one works.
    fn keys_of_claims(&self, state: &State) -> Option<Promise> {
        if state.ghost.tampered {
            return None;
        }
        for claim in state.claims.iter().flatten() {
            let claim = self.talks.objects.claim_facts(*claim);
            let secrets = || state.secrets.all().map(|number| self.talks.objects.secret_of(number));
            let keys = || secrets().filter(|s| s.kind == Kind::Credential && s.claim == Some(claim.uid));
            let living = keys().filter(|key| key.expires.is_none_or(|at| state.now < at)).count();
            if living > 2 && self.is_undisturbed(state) {
                return Some(Promise::I5);
            }
            if claim.deleting {
                continue;
            }
            let published = secrets().filter(|s| s.kind == Kind::Consumer && s.controller == Some(claim.uid));
            for secret in published.filter(|secret| secret.generation > 0) {
                let works = |key: &SecretFacts| {
                    key.generation == secret.generation
                        && key.key == secret.key
                        && key.expires.is_none_or(|at| state.now < at)
                };
                let revoked = secret.generation <= state.ghost.revoked[claim.uid.0 as usize];
                if !revoked && !keys().any(works) {
                    return Some(Promise::I6);
                }
            }
        }
        None
    }
}

/// Returns true if a record has noted a key as revoked.
fn is_revoked(state: &State, key: &SecretFacts, uid: Uid) -> bool {
    (1..=state.ghost.revoked[uid.0 as usize]).contains(&key.generation)
}

/// Checks I4: the pass does not use a bucket of another account whose existence the store has
/// shown.
fn lured(state: &State, place: Place, pass: Pass) -> Option<Promise> {
    let bucket = &state.buckets[place.bucket];
    (bucket.present && bucket.theirs && bucket.born == pass.born).then_some(Promise::I4)
}
