//! Reconciles BucketClaims.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use tokio::time::Instant;
use tracing::Span;

use crate::api::BucketClaim;
use crate::api::wire::Role;
use crate::metrics::PassResult;
use crate::plan::{
    Act, Answer, Change, Failure, Look, Posted, PurgeEnd, Purged, Remembered, Step, Then, View, is_incomplete,
};
use crate::upstream::Caller;

use super::done::Done;
use super::drive::{CarryOut, drive};
use super::objects::Claim;
use super::reconcile::{Kind, requeue};
use super::shared::Shared;
use super::slots::Slot;

/// The [`Kind`] of BucketClaims.
pub(super) struct Claims {
    pub(super) shared: Arc<Shared>,
}

impl Kind for Claims {
    type Object = BucketClaim;
    type End = Then;

    const CONTROLLER: &'static str = "bucketclaim";

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn latest(&self, seen: &BucketClaim) -> Arc<BucketClaim> {
        self.shared.written.latest(seen)
    }

    fn log_undecodable(&self, claim: &str, error: &dyn Display) {
        tracing::warn!(claim, %error, "this claim can't be decoded and is left alone");
    }

    fn span(&self, claim: &BucketClaim) -> Span {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        tracing::info_span!("claim", namespace, name, generation = claim.metadata.generation)
    }

    async fn reconcile(&self, raw: &BucketClaim, mut slot: Slot<'_>) -> Then {
        let uid = raw.uid().unwrap_or_default();
        let view = self.shared.observer.begin(raw);
        let _under_way = self.shared.memory.begin(&uid, &view.claim().at);
        let has_turn = || self.shared.memory.completions.wait(&uid, Instant::now());
        let remembered = Remembered {
            held_off: self.held_off(raw, &uid),
            setbacks: self.shared.memory.backoff.failures(&uid),
            complete_after: if is_incomplete(&view) { has_turn() } else { None },
            ..self.shared.memory.looks.recall(&uid, &view, &self.shared.config)
        };
        let mut view = view.begin(remembered);
        let caller = Arc::new(Caller::new(&view.claim().at.namespace, &uid, slot.place()));
        let (began, done) = (Instant::now(), Done::default());
        let mut hands = Hands { claims: self, caller, slot: &mut slot, asked: false, done };
        let rest = drive(&mut view, &self.shared.clock, &mut hands).await;
        hands.done.tell(began.elapsed());
        self.shared.memory.looks.remember(&uid, &view, &rest, self.shared.config.resync_interval);
        self.shared.announcer.announce(&rest.events, &raw.object_ref(&())).await;
        if let Some((record, _)) = view.holder().filter(|_| rest.waits_for.is_none()) {
            self.shared.wakes.stop_waiting(record.as_str(), &view.claim().at);
        }
        if let Some(deleted) = raw.metadata.deletion_timestamp.as_ref().filter(|_| view.is_finalizer_removed()) {
            let took = self.shared.clock.now().duration_since(deleted.0);
            self.shared.metrics.finalized(view.claim().deletion, Duration::try_from(took).unwrap_or_default());
        }
        rest.then
    }

    fn requeue(&self, uid: &str, then: Then) -> (PassResult, Action) {
        requeue(&self.shared, uid, then, self.shared.memory.looks.until_due(uid))
    }

    fn after(&self, claim: &Claim, latest: &BucketClaim, store: &Store<Claim>) {
        let there = store.get(&ObjectRef::from_obj(claim));
        if there.is_none_or(|there| there.uid() != latest.uid()) {
            // The claim was deleted during its pass, and the pass may have stored state since.
            self.shared.forget_claim(claim);
        }
    }
}

/// Carries out the steps of one pass.
struct Hands<'a, 'slot> {
    claims: &'a Claims,
    caller: Arc<Caller>,
    slot: &'a mut Slot<'slot>,
    /// Set once this pass has called a store.
    asked: bool,
    done: Done,
}

impl CarryOut<View> for Hands<'_, '_> {
    async fn carry_out(&mut self, view: &View, step: &Step) -> Answer {
        let (claims, caller) = (self.claims, self.caller.clone());
        self.done.take_in(step);
        let answer = match step {
            Step::Look(look) => match self.too_soon(view, step) {
                Some(wait) => Answer::Failed(step.clone(), Failure::Paced(wait)),
                None => self.waiting(step, claims.look(&caller, view, look)).await,
            },
            Step::Act(act) => self.waiting(step, claims.act(&caller, view, act)).await,
            Step::Rest(_) => unreachable!("a pass that is at rest has ended"),
        };
        if let Answer::Failed(step, failure) = &answer {
            tracing::warn!(%step, ?failure, "step failed");
        }
        answer
    }
}

impl Hands<'_, '_> {
    /// Returns the time to wait before this pass may call a store, `None` if it may do so now.
    ///
    /// Only the first call of a pass is limited: the number of the others follows from it.
    fn too_soon(&mut self, view: &View, step: &Step) -> Option<Duration> {
        if self.asked || step.upstream().is_none() {
            return None;
        }
        let wait = self.claims.shared.memory.asked.take(view.claim().uid.as_str(), Instant::now());
        self.asked = wait.is_none();
        wait
    }

    /// Runs a step, and gives up the slot while the step calls a store.
    ///
    /// The client is created before that, because it may take calls to the API server.
    async fn waiting(&mut self, step: &Step, answer: impl Future<Output = Answer>) -> Answer {
        let Some(target) = step.upstream() else { return answer.await };
        match self.claims.shared.observer.upstream(&self.caller, target).await {
            Ok(_) => self.slot.aside(answer).await,
            Err(failure) => Answer::Failed(step.clone(), failure),
        }
    }
}

impl Claims {
    /// Returns the time until the claim may be written again, `None` if it may be now.
    ///
    /// A claim that is being deleted is not held off: it takes as many steps as it has objects and
    /// keys, and ends.
    fn held_off(&self, raw: &BucketClaim, uid: &str) -> Option<Duration> {
        let wait = self.shared.memory.pace.wait(uid, Instant::now())?;
        if raw.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let seconds = wait.as_secs();
        tracing::warn!(
            seconds,
            "this claim is written about too often and has to wait: does another operator work on it?"
        );
        Some(wait)
    }

    async fn look(&self, caller: &Arc<Caller>, view: &View, look: &Look) -> Answer {
        let record = match look {
            Look::Holder(target) => Some(target.record().to_string()),
            // The record may name another holder as well. Don't wait for the claim's own record:
            // each write of it would wake the claim, also a write without an answer.
            Look::Internal(name) if !view.claim().deleting && Role::of_internal(name) == Some(Role::BucketRecord) => {
                let is_own = view.records().any(|(_, stored)| stored.name() == name);
                (!is_own).then(|| name.clone())
            }
            _ => None,
        };
        if let Some(record) = record {
            // Register before the read, so that no change is missed in between.
            self.shared.wakes.wait_for(&record, &view.claim().at);
        }
        let answer = self.shared.observer.answer(caller, view.claim(), look).await;
        if let Answer::Internal(_, Some(secret)) = &answer {
            // The bucket's holder may be deleted, and the cache may not have the record.
            self.shared.orphans.in_the_way(secret);
        }
        answer
    }

    async fn act(&self, caller: &Arc<Caller>, view: &View, act: &Act) -> Answer {
        tracing::debug!(step = %act, "acting");
        let answer = self.shared.actor.perform(caller, view.claim(), act).await;
        if view.is_paced() {
            self.shared.memory.pace.did(view.claim().uid.as_str(), Instant::now());
        }
        self.count(&answer);
        self.tell_rivals(view, &answer);
        self.tell_accesses(view, &answer);
        if matches!(&answer, Answer::BucketPurged(_, _, purged) if purged.deleted > 0) {
            // Emptying a bucket takes as many passes as it has slices.
            self.shared.memory.asked.forget(view.claim().uid.as_str());
        }
        match &answer {
            // The watch will show this as the echo of our own write, so wake the waiting claims
            // here.
            Answer::Deleted(secret, None) if self.shared.is_internal(&secret.namespace) => {
                self.shared.wakes.record_changed(&secret.name);
            }
            Answer::Failed(Step::Act(Act::Patch(_)), Failure::Kubernetes(_)) => {
                self.shared.memory.patch_unanswered(view.claim().at.clone());
            }
            Answer::Failed(
                Step::Act(Act::CreateBucket(_) | Act::TagBucket(..) | Act::SetVersioning(..) | Act::DeleteBucket(_)),
                Failure::Upstream(_),
            )
            | Answer::BucketPurged(_, _, Purged { end: PurgeEnd::Failed(Failure::Upstream(_)), .. }) => {
                let deadline = self.shared.config.limits.timeout;
                self.shared.memory.looks.unanswered(view.claim().uid.as_str(), deadline);
            }
            _ => {}
        }
        answer
    }

    /// Wakes the claim's accesses if they depend on this write.
    ///
    /// The watch doesn't: it shows the echo of our own write.
    fn tell_accesses(&self, view: &View, answer: &Answer) {
        let matters = match answer {
            Answer::Patched(change, _) => {
                matches!(change, Change::Consent | Change::End | Change::Leave | Change::Retire)
            }
            Answer::CredentialPosted(..) | Answer::RecordPosted(..) | Answer::Deleted(..) => true,
            _ => false,
        };
        if matters {
            self.shared.wake_accesses_of(&view.claim().at);
        }
    }

    /// Wakes the claims whose public access may depend on this write.
    ///
    /// The watch doesn't: it shows the echo of our own write. `view` is from before the answer.
    fn tell_rivals(&self, view: &View, answer: &Answer) {
        let before = |name: &str| view.all_own().find(|known| known.name() == name);
        let written = match answer {
            Answer::RecordPosted(_, Posted::Stored(now))
            | Answer::BindingPosted(Posted::Stored(now))
            | Answer::Patched(_, now) => [before(now.name()), Some(now)],
            Answer::Deleted(secret, _) => [before(&secret.name), None],
            _ => return,
        };
        written.into_iter().flatten().for_each(|secret| self.shared.public_changed(secret));
    }

    fn count(&self, answer: &Answer) {
        match answer {
            // Don't create a metric for a backend that is deleted.
            Answer::BucketPurged(target, _, purged) if self.shared.observer.backends.get(&target.backend).is_some() => {
                self.shared.metrics.purged(&target.backend, purged.deleted);
            }
            Answer::Patched(Change::RaiseGeneration(trigger), _) => {
                self.shared.metrics.rotated(*trigger);
            }
            _ => {}
        }
    }
}
