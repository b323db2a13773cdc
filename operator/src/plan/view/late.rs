//! Slow and late answers, and the earlier facts that they invalidate.

use super::super::answer::{Answer, BucketSeen, CreateAnswer, Failure, PurgeEnd, Purged};
use super::super::step::{Act, Step};
use super::{Freshness, Trouble, View};

impl View {
    /// Records a late answer. Everything may have changed by now, and the claim may be gone.
    ///
    /// Live facts count as cached, and absent Secrets as unknown. A Secret or list that came late
    /// counts as live. A claim that came late is read again, and a generation whose bump came late
    /// must not get a key.
    pub fn learn_late(&mut self, answer: Answer) {
        if self.ends_with(&answer) {
            // No further decision follows, except for the status.
            return self.learn(answer);
        }
        if !self.claim().deleting && self.bucket.seen == Some(BucketSeen::Absent) && !self.has_asked_about_its_own() {
            // Another operator that works on the claim may have created it.
            self.bucket.seen = None;
        }
        self.internal.doubt(self.step);
        self.internal.learn().age(self.step);
        self.consumers.age(self.step);
        self.others_credentials = None;
        self.learn_made(answer);
        self.claim.freshness = Freshness::Cached;
        self.claim.newborn = false;
        self.deeds.aimed_by_this_pass = None;
    }

    /// Records a slow answer. Another operator may have created, published and replaced a key
    /// meanwhile, so the record is read again before this pass creates or publishes one.
    pub fn learn_slow(&mut self, answer: Answer) {
        if !self.claim().deleting {
            self.internal.doubt(self.step);
        }
        self.learn_made(answer);
    }

    /// Records an answer that was not prompt. After a CreateBucket the bucket is looked at again,
    /// because somebody may have tagged it since, and our tags must not replace those.
    fn learn_made(&mut self, answer: Answer) {
        let made = matches!(answer, Answer::BucketCreated(_, CreateAnswer::Created));
        self.learn(answer);
        if made {
            self.bucket.seen = None;
        }
    }

    /// Returns true if a write of a deletion failed because of an outdated cache. The deletion then
    /// continues with a read.
    pub(super) fn is_cache_refuted(&self, step: &Step, failure: &Failure) -> bool {
        let secret = match step {
            Step::Act(Act::Patch(patch)) => &patch.target,
            Step::Act(Act::Delete(secret)) => secret,
            Step::Act(_) | Step::Look(_) | Step::Rest(_) => return false,
        };
        let internal = secret.namespace == self.setting.operator_namespace;
        let known = if internal { self.internal.known() } else { &self.consumers };
        self.claim().deleting && *failure == Failure::Conflict && known.is_cached(&secret.name)
    }

    /// Returns true if the pass ends after this answer, apart from its status.
    fn ends_with(&self, answer: &Answer) -> bool {
        let failed = matches!(answer, Answer::Failed(step, failure) if !self.is_cache_refuted(step, failure))
            || matches!(answer, Answer::BucketPurged(_, _, Purged { end: PurgeEnd::Failed(_), .. }));
        let released =
            matches!(answer, Answer::FinalizerRemoved | Answer::Failed(Step::Act(Act::RemoveFinalizer(_)), _));
        self.has_failed() || released || (self.claim().deleting && failed)
    }

    fn has_failed(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Failed(..)))
    }

    /// Returns true if the facts about a bucket are about the one that the claim is bound to.
    fn has_asked_about_its_own(&self) -> bool {
        self.bucket.at.as_ref().is_some_and(|at| self.is_bound_to(at))
    }
}
