//! Answers that took long: what counts of what was known before.

use super::super::answer::{Answer, BucketSeen, CreateAnswer, Failure, PurgeEnd, Purged};
use super::super::step::{Act, Step};
use super::{Freshness, Trouble, View};

impl View {
    /// Takes in a late answer: by now everything may be otherwise, and the claim be gone. What was
    /// live counts as cached, what was absent as unknown. A Secret or list that came late counts as
    /// live; a claim that did is read again; an aim that did may not be minted.
    pub fn learn_late(&mut self, answer: Answer) {
        if self.ends_with(&answer) {
            // Nothing is decided any more, but what is told.
            return self.learn(answer);
        }
        if !self.claim().deleting && self.bucket.seen == Some(BucketSeen::Absent) && !self.has_asked_about_its_own() {
            // Whoever else works on the claim may have made it.
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

    /// Takes in what came slowly: another operator may have made, published and replaced a key
    /// meanwhile, so this pass reads the record again before it makes or publishes one.
    pub fn learn_slow(&mut self, answer: Answer) {
        if !self.claim().deleting {
            self.internal.doubt(self.step);
        }
        self.learn_made(answer);
    }

    /// Takes in an answer that was not prompt: since a bucket was made, somebody else may have put
    /// tags on it, which ours are not to replace.
    fn learn_made(&mut self, answer: Answer) {
        let made = matches!(answer, Answer::BucketCreated(_, CreateAnswer::Created));
        self.learn(answer);
        if made {
            self.bucket.seen = None;
        }
    }

    /// Whether a deletion only goes on to read what a cache showed otherwise.
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

    /// Whether the pass is over but for its status, whatever comes of this step.
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

    /// Whether what is known of a bucket is about the one that the claim is bound to.
    fn has_asked_about_its_own(&self) -> bool {
        self.bucket.at.as_ref().is_some_and(|at| self.is_bound_to(at))
    }
}
