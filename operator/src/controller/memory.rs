//! What this process remembers of claims.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use parking_lot::Mutex;

use crate::api::{AccessRef, BucketClaim, ClaimRef};

use super::backoff::Backoff;
use super::completions::Completions;
use super::looks::Looks;
use super::pace::{AskPace, WritePace};

/// What this process remembers of claims, by UID: nothing that it could not do without.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) backoff: Backoff,
    pub(super) looks: Looks,
    /// The backend that each counts on.
    counted: Mutex<BTreeMap<String, String>>,
    /// Claims that a pass is under way over.
    under_way: Mutex<BTreeSet<String>>,
    /// Writes about each that is not on its way out.
    pub(super) pace: WritePace,
    /// Passes over each that asked a store, or, over an access, read claims.
    pub(super) asked: AskPace,
    /// Whose Secrets are completed that an older version made.
    pub(super) completions: Completions,
    /// Claims whose last pass patched a Secret and got no answer.
    patch_unanswered: Mutex<BTreeSet<ClaimRef>>,
    /// The same of accesses.
    access_patch_unanswered: Mutex<BTreeSet<AccessRef>>,
}

impl Memory {
    /// Forgets a claim that is gone.
    pub(super) fn forget(&self, uid: &str, claim: &ClaimRef) {
        self.backoff.reset(uid);
        self.looks.forget(uid);
        self.pace.forget(uid);
        self.asked.forget(uid);
        self.completions.forget(uid);
        self.counted.lock().remove(uid);
        self.patch_unanswered.lock().remove(claim);
    }

    /// Notes the backend that a claim's status shows. Returns the one that it showed before, if it
    /// was another.
    pub(super) fn counted_on(&self, claim: &BucketClaim) -> Option<String> {
        let backend = claim.status.as_ref()?.backend.as_ref()?.name.clone();
        self.counted.lock().insert(claim.uid()?, backend.clone()).filter(|before| *before != backend)
    }

    /// Whether a pass over the claim is under way: also one that is gone may have one.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.under_way.lock().contains(uid)
    }

    /// Whether the claim's last pass patched a Secret and got no answer: what its Secrets show now
    /// is most likely that patch, and the claim is tried again after its backoff anyway. Woken at
    /// once, it would go round with a server that does everything and answers nothing.
    pub(super) fn is_patch_unanswered(&self, claim: &ClaimRef) -> bool {
        self.patch_unanswered.lock().contains(claim)
    }

    /// Notes that a pass over the claim patched a Secret and got no answer.
    pub(super) fn patch_unanswered(&self, claim: ClaimRef) {
        self.patch_unanswered.lock().insert(claim);
    }

    /// The same of an access.
    pub(super) fn is_access_patch_unanswered(&self, access: &AccessRef) -> bool {
        self.access_patch_unanswered.lock().contains(access)
    }

    /// Notes that a pass over the access patched a Secret and got no answer.
    pub(super) fn access_patch_unanswered(&self, access: AccessRef) {
        self.access_patch_unanswered.lock().insert(access);
    }

    /// Notes that a pass over the access begins.
    pub(super) fn begin_access(&self, access: &AccessRef) {
        self.access_patch_unanswered.lock().remove(access);
    }

    /// Forgets an access that is gone.
    pub(super) fn forget_access(&self, uid: &str, access: &AccessRef) {
        self.backoff.reset(uid);
        self.pace.forget(uid);
        self.asked.forget(uid);
        self.access_patch_unanswered.lock().remove(access);
    }

    /// Notes that a pass over the claim begins.
    pub(super) fn begin(&self, uid: &str, claim: &ClaimRef) -> UnderWay<'_> {
        self.patch_unanswered.lock().remove(claim);
        self.under_way.lock().insert(uid.to_owned());
        UnderWay { memory: self, uid: uid.to_owned() }
    }
}

/// A pass, until it is dropped.
pub(super) struct UnderWay<'a> {
    memory: &'a Memory,
    uid: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.memory.under_way.lock().remove(&self.uid);
    }
}
