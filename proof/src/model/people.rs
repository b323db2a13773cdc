//! Events from outside the operator: users, admins, third parties that edit Stowage's Secrets, and
//! strangers at the store.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use stowage_operator::api::wire;

use super::facts::{ClaimFacts, LIVES, OPERATOR_NAMESPACE, Policy, Spec};
use super::names::{claim_ref, consumer_name};
use super::objects::{Kind, STRANGERS, SecretFacts, stored_first};
use super::state::{Bucket, Cell, State};
use super::world::{Event, ModelWorld};

impl ModelWorld {
    /// Returns true if an event can happen now.
    pub(super) fn can_happen(&self, state: &State, event: Event) -> bool {
        let claim = |slot: usize| state.claims[slot].map(|claim| self.talks.objects.claim_facts(claim));
        let alive = |slot: usize| claim(slot).filter(|facts| !facts.deleting);
        match event {
            Event::Create(slot) => {
                state.claims[slot].is_none() && !state.terminating[slot] && usize::from(state.lives[slot]) < LIVES
            }
            Event::Delete(slot)
            | Event::Rename(slot)
            | Event::Rotate(slot)
            | Event::Revoke(slot)
            | Event::Move(slot, _)
            | Event::Public(slot, _) => alive(slot).is_some(),
            Event::Share(slot, mode) => alive(slot).is_some_and(|facts| facts.spec.shares != mode),
            Event::RotateAccess | Event::DeleteAccess => self.asks(state.access),
            Event::StripAccess => state.access.is_some_and(|number| self.talks.access.accesses.facts(number).finalizer),
            Event::Policy(slot, policy) => claim(slot).is_some_and(|facts| facts.spec.deletion != policy),
            Event::Pause(slot) => claim(slot).is_some_and(|facts| !facts.paused),
            Event::Resume(slot) => claim(slot).is_some_and(|facts| facts.paused),
            Event::EndNamespace(slot) => !state.terminating[slot],
            Event::Backend(number, facts) => state.backends[number as usize] != facts,
            Event::DropRecord(slot) | Event::Unlabel(slot) => self.newest(state, slot, Kind::Record).is_some(),
            Event::DropKey(slot) | Event::DamageKey(slot) => self.newest(state, slot, Kind::Credential).is_some(),
            Event::DropConsumer(slot) => self.newest(state, slot, Kind::Consumer).is_some(),
            Event::Strip(slot) => claim(slot).is_some_and(|facts| facts.finalizer),
            Event::Squat(slot) => state.secrets.live(self.consumer(slot)).is_none(),
            Event::Make(bucket) | Event::Lure(bucket) => !state.buckets[bucket].present,
            Event::Put(bucket) | Event::Remove(bucket) | Event::Retag(bucket) => state.buckets[bucket].present,
        }
    }

    /// Applies an event.
    pub(super) fn happen(&self, state: &mut State, event: Event) {
        match event {
            Event::Create(slot) => self.make_claim(state, slot, self.recipe.claims[slot].unwrap_or(Spec::PLAIN)),
            Event::Delete(slot) => self.delete_claim(state, slot),
            Event::Policy(slot, policy) => self.edit_policy(state, slot, policy),
            Event::Rotate(slot) => self.annotate(state, slot, |facts| facts.rotate += 1),
            Event::Revoke(slot) => self.annotate(state, slot, |facts| facts.revoke += 1),
            Event::Pause(slot) => self.annotate(state, slot, |facts| facts.paused = true),
            Event::Resume(slot) => self.annotate(state, slot, |facts| facts.paused = false),
            Event::Rename(slot) => self.edit_spec(state, slot, |spec| spec.renamed = !spec.renamed),
            Event::Move(slot, backend) => self.edit_spec(state, slot, |spec| spec.backend = backend),
            Event::Public(slot, public) => self.edit_spec(state, slot, |spec| spec.public = public),
            Event::Share(slot, mode) => {
                self.edit_spec(state, slot, |spec| spec.shares = mode);
                self.note_consent(state);
            }
            Event::RotateAccess => {
                self.edit_access(state, |facts| facts.rotate += 1);
            }
            Event::DeleteAccess => {
                self.edit_access(state, |facts| facts.deleting = true);
            }
            Event::StripAccess => {
                state.ghost.tampered = true;
                self.edit_access(state, |facts| facts.finalizer = false);
            }
            Event::EndNamespace(slot) => {
                state.terminating[slot] = true;
                self.delete_claim(state, slot);
            }
            Event::Backend(number, facts) => state.backends[number as usize] = facts,
            Event::DropRecord(slot) => self.drop_secret(state, slot, Kind::Record),
            Event::DropKey(slot) => self.drop_secret(state, slot, Kind::Credential),
            Event::DropConsumer(slot) => self.drop_secret(state, slot, Kind::Consumer),
            Event::DamageKey(slot) => self.tamper(state, slot, Kind::Credential, |secret| {
                secret.data.get_or_insert_default().insert("secret_access_key".to_owned(), ByteString(Vec::new()));
            }),
            Event::Unlabel(slot) => self.tamper(state, slot, Kind::Record, |secret| secret.metadata.labels = None),
            Event::Strip(slot) => {
                state.ghost.tampered = true;
                self.edit_claim(state, slot, |facts| facts.finalizer = false);
            }
            Event::Squat(slot) => self.squat(state, slot),
            Event::Put(bucket) => state.buckets[bucket].objects += 2,
            Event::Make(bucket) => {
                state.ghost.intruded = true;
                let bucket = &mut state.buckets[bucket];
                *bucket = Bucket { present: true, born: bucket.born + 1, ..Bucket::NONE };
            }
            Event::Lure(bucket) => {
                state.ghost.intruded = true;
                let bucket = &mut state.buckets[bucket];
                *bucket = Bucket { present: true, theirs: true, born: bucket.born + 1, ..Bucket::NONE };
            }
            Event::Remove(bucket) => {
                state.ghost.intruded = true;
                let bucket = &mut state.buckets[bucket];
                *bucket = Bucket { born: bucket.born, ..Bucket::NONE };
            }
            Event::Retag(bucket) => {
                state.ghost.intruded = true;
                state.buckets[bucket].tags = STRANGERS;
            }
        }
    }

    /// Returns the initial name of a claim's consumer Secret.
    fn consumer(&self, slot: usize) -> u32 {
        self.talks.objects.name(&claim_ref(slot).namespace, &consumer_name(slot, false))
    }

    /// Returns the claim's Secret of a kind; for keys, the newest one.
    fn newest(&self, state: &State, slot: usize, kind: Kind) -> Option<u32> {
        let claim = self.talks.objects.claim_facts(state.claims[slot]?);
        let ours = |secret: &&SecretFacts| secret.kind == kind && secret.claim == Some(claim.uid);
        let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
        all.filter(ours).max_by_key(|secret| secret.generation).map(|secret| secret.number)
    }

    fn delete_claim(&self, state: &mut State, slot: usize) {
        self.edit_claim(state, slot, |facts| facts.deleting = true);
    }

    fn edit_policy(&self, state: &mut State, slot: usize, policy: Policy) {
        self.edit_spec(state, slot, |spec| spec.deletion = policy);
        for pass in state.operators.iter_mut().filter_map(|operator| operator.passes[slot].as_mut()) {
            pass.edited = true;
        }
    }

    fn edit_spec(&self, state: &mut State, slot: usize, edit: impl FnOnce(&mut Spec)) {
        self.edit_claim(state, slot, |facts| {
            edit(&mut facts.spec);
            facts.generation += 1;
        });
    }

    fn annotate(&self, state: &mut State, slot: usize, edit: impl FnOnce(&mut ClaimFacts)) {
        self.edit_claim(state, slot, edit);
    }

    fn drop_secret(&self, state: &mut State, slot: usize, kind: Kind) {
        state.ghost.tampered = true;
        if let Some(secret) = self.newest(state, slot, kind) {
            self.delete_secret(state, None, secret);
        }
    }

    fn tamper(&self, state: &mut State, slot: usize, kind: Kind, edit: impl FnOnce(&mut Secret)) {
        state.ghost.tampered = true;
        if let Some(number) = self.newest(state, slot, kind) {
            let facts = self.talks.objects.secret_of(number);
            let mut secret = facts.stored.0.as_ref().clone();
            edit(&mut secret);
            secret.metadata.resource_version = None;
            let after = self.talks.objects.secret(&secret, facts.version + 1);
            state.secrets.put(facts.name, Cell::Live(after));
        }
    }

    /// Creates a foreign Secret under the name of the claim's consumer Secret.
    fn squat(&self, state: &mut State, slot: usize) {
        let name = self.consumer(slot);
        let version = match state.secrets.get(name) {
            Some(Cell::Gone(version)) => version + 1,
            _ => 1,
        };
        let mut secret = Secret::default();
        secret.metadata.namespace = Some(claim_ref(slot).namespace);
        secret.metadata.name = Some(consumer_name(slot, false));
        let role = wire::Role::ConsumerSecret.as_str().to_owned();
        secret.metadata.labels.get_or_insert_default().insert(wire::ROLE.to_owned(), role);
        let number = self.talks.objects.secret(&stored_first(secret, version, state.now), version);
        state.secrets.put(name, Cell::Live(number));
    }

    /// Returns the Secrets that the garbage collector may delete: their controller is gone, or
    /// their namespace is terminating.
    pub(super) fn garbage<'a>(&'a self, state: &'a State) -> impl Iterator<Item = u32> + 'a {
        state.secrets.all().filter(move |number| {
            let facts = self.talks.objects.secret_of(*number);
            let (namespace, _) = self.talks.objects.named(facts.name);
            let ends = |slot: usize| state.terminating[slot] && claim_ref(slot).namespace == namespace;
            let of_access = facts.access.is_some() && state.access.is_none();
            let orphaned = of_access || facts.controller.is_some_and(|uid| !self.is_alive(state, uid));
            namespace != OPERATOR_NAMESPACE && (orphaned || (0..state.terminating.len()).any(ends))
        })
    }
}
