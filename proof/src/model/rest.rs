//! Rules at rest: once no more faults happen, the world comes to rest in a correct state.
//!
//! From every reached state the world runs on without faults: calls under way complete, watches
//! catch up, and passes run to their end and begin again until none of them changes anything. This
//! follows one path and not all of them. But it is done for each state on every path, so a planner
//! that can get stuck in some state is detected.

use stowage_operator::api::{BucketRecord, Claim};

use super::checker::{Action, soon};
use super::facts::{BUCKETS, ClaimFacts, NAMES, Policy, Uid};
use super::names::{backend_number, bucket_number, claim_ref, consumer_name};
use super::objects::{Kind, SecretFacts, UNTAGGED};
use super::promise::Promise;
use super::state::State;
use super::turn::Fate;
use super::world::{DEADLINE, ModelWorld};

/// Limit on the steps to rest; more of them count as never coming to rest.
const MOST_STEPS: usize = 2000;

/// Limit on the steps of one pass. The operator ends a pass after 200.
const MOST_OF_A_PASS: usize = 250;

/// A broken promise and its details.
pub(super) type Trouble = Option<(Promise, String)>;

impl ModelWorld {
    /// Returns the state of rest that follows a state.
    pub(super) fn at_rest(&self, state: State) -> State {
        let mut state = state;
        for _ in 0..MOST_STEPS {
            if !self.calm_down(&mut state) {
                break;
            }
        }
        state
    }

    /// Runs the world without faults. Returns the state in which it comes to rest, and what is
    /// wrong with it.
    pub(super) fn come_to_rest(&self, state: &State) -> (State, Trouble) {
        let mut state = state.clone();
        let mut trail = Vec::new();
        for _ in 0..MOST_STEPS {
            let fingerprint = Self::fingerprint(&state);
            if self.is_known_restful(fingerprint) {
                self.note_restful(&trail);
                return (state, None);
            }
            trail.push(fingerprint);
            let moved = self.calm_down(&mut state);
            if let Some(promise) = state.broken {
                return (state, Some((promise, "after the faults have stopped".to_owned())));
            }
            if !moved {
                let trouble = self.trouble_at_rest(&state);
                if trouble.is_none() {
                    self.note_restful(&trail);
                }
                return (state, trouble);
            }
        }
        (state, Some((Promise::L4, "there is always something to do".to_owned())))
    }

    fn is_known_restful(&self, fingerprint: u64) -> bool {
        self.restful.lock().contains(&fingerprint)
    }

    fn note_restful(&self, trail: &[u64]) {
        self.restful.lock().extend(trail);
    }

    /// Performs one action that happens without an event or a pass. Returns false if there is none.
    fn calm_down(&self, state: &mut State) -> bool {
        if state.late.is_some() {
            self.land(state);
            return true;
        }
        for operator in 0..state.operators.len() {
            let behind = self.behind(state, operator).next();
            if let Some(kind) = behind {
                self.apply(state, Action::CatchUp { operator, kind });
                return true;
            }
        }
        let garbage = self.garbage(state).next();
        if let Some(secret) = garbage {
            self.apply(state, Action::Collect(secret));
            return true;
        }
        for operator in 0..state.operators.len() {
            if let Some(slot) = (0..state.claims.len()).find(|slot| state.operators[operator].passes[*slot].is_some()) {
                self.apply(state, Action::Step { operator, slot, fate: Fate::Answered });
                return true;
            }
            if state.operators[operator].sweep.is_some() {
                self.apply(state, Action::Stride { operator, fate: Fate::Answered });
                return true;
            }
            if state.operators[operator].visit.is_some() {
                self.apply(state, Action::Visit { operator, fate: Fate::Answered });
                return true;
            }
            if state.operators[operator].access_sweep.is_some() {
                self.apply(state, Action::StrideAccess { operator, fate: Fate::Answered });
                return true;
            }
        }
        self.begin_something(state)
    }

    /// Runs a pass or sweep that changes something; if there is none, advances the clock.
    fn begin_something(&self, state: &mut State) -> bool {
        let mut due: Vec<u32> = Vec::new();
        for operator in 0..state.operators.len() {
            for slot in 0..state.claims.len() {
                let mut after = state.clone();
                due.extend(self.pass(&mut after, operator, slot).map(|seconds| state.now + seconds.max(1)));
                if after != *state {
                    *state = after;
                    return true;
                }
            }
            let mut after = state.clone();
            due.extend(self.visit(&mut after, operator).map(|seconds| state.now + seconds.max(1)));
            if after != *state {
                *state = after;
                return true;
            }
            for uid in Uid::all() {
                let mut after = state.clone();
                self.start_sweep(&mut after, operator, uid);
                while after.operators[operator].sweep.is_some() && after.broken.is_none() {
                    self.stride(&mut after, operator, Fate::Answered);
                }
                due.extend(after.operators[operator].alone[uid.0 as usize].map(|since| since + DEADLINE));
                if after != *state {
                    *state = after;
                    return true;
                }
            }
        }
        let next = due.into_iter().filter(|at| *at > state.now).min();
        if let Some(moment) = next {
            self.go_on_to(state, moment);
        }
        next.is_some()
    }

    /// Runs a whole pass. Returns the seconds until the claim is looked at again.
    fn pass(&self, state: &mut State, operator: usize, slot: usize) -> Option<u32> {
        self.start(state, operator, slot, self.recipe.drift);
        for _ in 0..MOST_OF_A_PASS {
            if let Some(ending) = self.ending(state, operator, slot) {
                self.end(state, operator, slot);
                return soon(ending);
            }
            if state.operators[operator].passes[slot].is_none() || state.broken.is_some() {
                return None;
            }
            self.step(state, operator, slot, Fate::Answered);
            self.inspect(state);
        }
        state.broken = Some(Promise::L4);
        None
    }

    /// Runs a whole pass over the access, and a whole sweep of what it left behind. Returns the
    /// seconds until the access is looked at again.
    fn visit(&self, state: &mut State, operator: usize) -> Option<u32> {
        self.start_visit(state, operator);
        for _ in 0..MOST_OF_A_PASS {
            if let Some(ending) = self.visit_ending(state, operator) {
                state.operators[operator].visit = None;
                return soon(ending);
            }
            if state.operators[operator].visit.is_none() {
                state.operators[operator].access_sweep = self.access_suspect(state, operator);
                while state.operators[operator].access_sweep.is_some() && state.broken.is_none() {
                    self.access_stride(state, operator, Fate::Answered);
                }
                return None;
            }
            if state.broken.is_some() {
                return None;
            }
            self.visit_step(state, operator, Fate::Answered);
            self.inspect(state);
        }
        state.broken = Some(Promise::L4);
        None
    }

    /// Returns the first rule that is broken at rest.
    fn trouble_at_rest(&self, state: &State) -> Trouble {
        let claims = state.claims.iter().flatten();
        let trouble = claims.map(|number| self.trouble_of(state, *number)).find(Option::is_some).flatten();
        trouble.or_else(|| self.left_over(state)).or_else(|| self.trouble_of_access(state))
    }

    fn trouble_of(&self, state: &State, number: u32) -> Trouble {
        let (facts, claim) = (self.talks.objects.claim_facts(number), self.talks.objects.claim_of(number));
        let ready = claim.status.conditions.iter().find(|condition| condition.type_ == "Ready");
        let reason = ready.map_or("", |condition| condition.reason.as_str());
        let told = format!("{} says {reason:?}", claim.at);
        if facts.deleting && !facts.finalizer {
            return None;
        }
        if claim.status.observed_generation != Some(claim.generation) {
            return Some((Promise::I16, format!("the status of {} is of an earlier spec", claim.at)));
        }
        if let Some(why) = self.unrevoked(state, facts) {
            return Some((Promise::L1, format!("{told}, but {why}")));
        }
        if facts.paused {
            return (reason != "Paused").then_some((Promise::I16, told));
        }
        if facts.deleting {
            return (!self.is_blocked(state, facts, claim, reason)).then_some((Promise::L2, told));
        }
        if ready.is_some_and(|condition| condition.status == "True") {
            return self.untrue(state, facts).map(|why| (Promise::I16, format!("{told}, but {why}")));
        }
        (!self.is_in_the_way(state, facts, reason)).then_some((Promise::L1, told))
    }

    /// Returns the part of a requested revocation that is not done. Nothing delays a revocation,
    /// not even a pause. A claim without a record has no place to note it in.
    fn unrevoked(&self, state: &State, facts: &ClaimFacts) -> Option<&'static str> {
        let asked = (facts.revoke > 0).then(|| facts.revoke.to_string());
        let mut records = self.of_claim(state, facts.uid, Kind::Record).filter_map(|secret| secret.record.as_ref());
        let handled = |record: &BucketRecord| record.handled_revoke_request == asked;
        if facts.deleting || state.ghost.tampered {
            None
        } else if self.is_beside_a_revoked(state, facts.uid) {
            Some("a key that is revoked is there")
        } else if asked.is_some() && records.next().is_some_and(|first| !handled(first) && !records.any(handled)) {
            Some("a revocation is not handled")
        } else {
            None
        }
    }

    fn of_claim<'a>(&'a self, state: &'a State, uid: Uid, kind: Kind) -> impl Iterator<Item = &'a SecretFacts> {
        let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
        all.filter(move |secret| secret.kind == kind && secret.claim == Some(uid))
    }

    /// Returns why a claim with `Ready=True` is not ready.
    fn untrue(&self, state: &State, facts: &ClaimFacts) -> Option<&'static str> {
        let name = self.talks.objects.name(&claim_ref(facts.uid.slot()).namespace, &self.wanted_name(facts));
        let Some(published) = state.secrets.live(name).map(|number| self.talks.objects.secret_of(number)) else {
            return Some("there is no Secret to connect with");
        };
        let works = |key: &&SecretFacts| key.key == published.key && key.generation == published.generation;
        let mut keys = self.of_claim(state, facts.uid, Kind::Credential);
        let Some(key) = keys.find(works).filter(|key| key.expires.is_none()) else {
            return Some("the key that it publishes does not work");
        };
        let lasting = self.of_claim(state, facts.uid, Kind::Credential).filter(|key| key.expires.is_none()).count();
        let record = self.of_claim(state, facts.uid, Kind::Record).filter_map(|secret| secret.record.as_ref());
        let mut record = record.filter(|record| Some(&record.bucket) == key.bucket.as_ref());
        let place = record.find_map(|record| bucket_number(record.endpoint.as_str(), record.bucket.as_str()));
        let public = self.of_claim(state, facts.uid, Kind::Binding).next().is_some();
        match place {
            _ if lasting != 1 => Some("more than one key is for good"),
            _ if public != facts.spec.public => Some("public access is not as the spec has it"),
            None => Some("it holds no record of the bucket"),
            // Without a drift check the operator does not notice that a bucket is gone, and need
            // not.
            Some(bucket) if !state.buckets[bucket].present && self.recipe.drift => Some("there is no bucket"),
            Some(_) => None,
        }
    }

    fn wanted_name(&self, facts: &ClaimFacts) -> String {
        consumer_name(facts.uid.slot(), facts.spec.renamed)
    }

    /// Returns true if the reason in the status really keeps a claim from being Ready.
    fn is_in_the_way(&self, state: &State, facts: &ClaimFacts, reason: &str) -> bool {
        let uid = facts.uid;
        let wanted = state.backends[facts.spec.backend as usize];
        let held = self.of_claim(state, uid, Kind::Record).filter_map(|secret| secret.record.as_ref());
        let held = held.filter_map(|record| bucket_number(record.endpoint.as_str(), record.bucket.as_str()));
        let asked = wanted.map(|backend| backend.store as usize * NAMES + backend.template as usize);
        let places: Vec<usize> = held.chain(asked).collect();
        let is_ours = |bucket: &usize| {
            let bucket = &state.buckets[*bucket];
            // A stranger's bucket that replaced ours just before it was tagged has our tags.
            !bucket.theirs && self.talks.objects.tags_of(bucket.tags).uid == Some(uid)
        };
        let others = || {
            let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
            all.filter(move |secret| secret.claim.is_some_and(|owner| owner != uid))
        };
        match reason {
            "BucketNameConflict" => others().any(|secret| matches!(secret.kind, Kind::Record | Kind::Credential)),
            "BucketExists" => places.iter().any(|bucket| state.buckets[*bucket].present && !is_ours(bucket)),
            "BucketMissing" => places.iter().any(|bucket| !state.buckets[*bucket].present || !is_ours(bucket)),
            "SecretConflict" => {
                let name = self.talks.objects.name(&claim_ref(uid.slot()).namespace, &self.wanted_name(facts));
                let found = state.secrets.live(name).map(|number| self.talks.objects.secret_of(number));
                found.is_some_and(|secret| secret.controller != Some(uid))
            }
            "BackendNotReady" => {
                let of_key = self.of_claim(state, uid, Kind::Credential).filter_map(|key| key.backend.as_deref());
                let pinned = of_key.filter_map(backend_number).map(|number| state.backends[number as usize]);
                pinned.chain([wanted]).any(|backend| backend.is_none_or(|backend| !backend.ready))
            }
            "CreationInconsistent" => state.ghost.tampered,
            _ => state.terminating[uid.slot()],
        }
    }

    /// Returns true if the reason in the status really blocks the deletion of a claim.
    fn is_blocked(&self, state: &State, facts: &ClaimFacts, claim: &Claim, reason: &str) -> bool {
        let ours = |bucket: &usize| {
            state.buckets[*bucket].present
                && self.talks.objects.tags_of(state.buckets[*bucket].tags).uid == Some(facts.uid)
        };
        match reason {
            "BucketNotEmpty" => (0..BUCKETS).filter(ours).any(|bucket| state.buckets[bucket].objects > 0),
            "DeletionBlocked" => {
                let pinned = claim.status.backend.as_ref();
                let backend = pinned.and_then(|backend| state.backends[backend_number(&backend.name)? as usize]);
                let endpoint = |store: u8| super::names::endpoint(store).as_str().to_owned();
                let moved = backend.zip(pinned).is_some_and(|(now, then)| endpoint(now.store) != then.endpoint);
                facts.spec.deletion != Policy::Retain && (backend.is_none() || moved)
            }
            _ => false,
        }
    }

    /// Checks I14: nothing is left of claims that are gone.
    fn left_over(&self, state: &State) -> Trouble {
        let orphan = |secret: &&SecretFacts| {
            secret.kind != Kind::Consumer && secret.claim.is_some_and(|uid| !self.is_alive(state, uid))
        };
        let mut all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
        if let Some(secret) = all.find(orphan) {
            return Some((Promise::I14, format!("Secret {} is left over", secret.stored.name())));
        }
        if state.ghost.tampered || state.ghost.intruded || self.recipe.operators > 1 {
            return None;
        }
        for (uid, policy) in Uid::all().zip(state.ghost.released) {
            let ours = |bucket: &super::state::Bucket| {
                let tagged = self.talks.objects.tags_of(bucket.tags).uid == Some(uid);
                // A bucket that has objects and whose claim was never bound was not proved to
                // belong to it: tags may come late.
                let bound = state.ghost.minted[uid.0 as usize] != 0;
                let unfinished = bucket.maker == Some(uid) && bucket.tags == UNTAGGED;
                bucket.present && (tagged || unfinished) && (bucket.objects == 0 || (bound && tagged))
            };
            let deleted = matches!(policy, Some(Policy::Delete | Policy::Force)) && !self.is_alive(state, uid);
            let adopted = state.buckets.iter().any(|bucket| ours(bucket) && bucket.maker != Some(uid));
            if deleted && !adopted && state.buckets.iter().any(ours) {
                return Some((Promise::I14, format!("the bucket of {} is left over", uid.text())));
            }
        }
        None
    }
}
