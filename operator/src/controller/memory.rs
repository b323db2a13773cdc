//! Memory of this process about claims and accesses.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use parking_lot::Mutex;

use crate::api::{AccessRef, BucketClaim, ClaimRef};

use super::backoff::Backoff;
use super::completions::Completions;
use super::looks::Looks;
use super::pace::{AskPace, WritePace};

/// Memory by UID. Nothing in it is needed for correctness.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) backoff: Backoff,
    pub(super) looks: Looks,
    /// Backend whose count includes the claim.
    counted: Mutex<BTreeMap<String, String>>,
    /// Claims with a running pass.
    under_way: Mutex<BTreeSet<String>>,
    /// Recent writes for each object that is not being deleted.
    pub(super) pace: WritePace,
    /// Recent passes that called a store or, for an access, read claims.
    pub(super) asked: AskPace,
    /// Turns to complete Secrets written by an older version.
    pub(super) completions: Completions,
    /// Claims whose last pass patched a Secret and got no answer.
    patch_unanswered: Mutex<BTreeSet<ClaimRef>>,
    /// Accesses whose last pass patched a Secret and got no answer.
    access_patch_unanswered: Mutex<BTreeSet<AccessRef>>,
}

impl Memory {
    /// Forgets a claim that is deleted.
    pub(super) fn forget(&self, uid: &str, claim: &ClaimRef) {
        self.backoff.reset(uid);
        self.looks.forget(uid);
        self.pace.forget(uid);
        self.asked.forget(uid);
        self.completions.forget(uid);
        self.counted.lock().remove(uid);
        self.patch_unanswered.lock().remove(claim);
    }

    /// Records the backend in a claim's status. Returns the previous one if it differs.
    pub(super) fn counted_on(&self, claim: &BucketClaim) -> Option<String> {
        let backend = claim.status.as_ref()?.backend.as_ref()?.name.clone();
        self.counted.lock().insert(claim.uid()?, backend.clone()).filter(|before| *before != backend)
    }

    /// Returns true if a pass over the claim is running. The claim may already be deleted.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.under_way.lock().contains(uid)
    }

    /// Returns true if the claim's last pass patched a Secret and got no answer.
    ///
    /// The next change of its Secrets is most likely that patch, and the claim is retried after its
    /// backoff anyway. If it were woken, it would loop with a server that does everything and
    /// answers nothing.
    pub(super) fn is_patch_unanswered(&self, claim: &ClaimRef) -> bool {
        self.patch_unanswered.lock().contains(claim)
    }

    /// Records that a pass over the claim patched a Secret and got no answer.
    pub(super) fn patch_unanswered(&self, claim: ClaimRef) {
        self.patch_unanswered.lock().insert(claim);
    }

    /// Like [`is_patch_unanswered`](Self::is_patch_unanswered), for an access.
    pub(super) fn is_access_patch_unanswered(&self, access: &AccessRef) -> bool {
        self.access_patch_unanswered.lock().contains(access)
    }

    /// Records that a pass over the access patched a Secret and got no answer.
    pub(super) fn access_patch_unanswered(&self, access: AccessRef) {
        self.access_patch_unanswered.lock().insert(access);
    }

    /// Records that a pass over the access begins.
    pub(super) fn begin_access(&self, access: &AccessRef) {
        self.access_patch_unanswered.lock().remove(access);
    }

    /// Forgets an access that is deleted.
    pub(super) fn forget_access(&self, uid: &str, access: &AccessRef) {
        self.backoff.reset(uid);
        self.pace.forget(uid);
        self.asked.forget(uid);
        self.access_patch_unanswered.lock().remove(access);
    }

    /// Records that a pass over the claim begins.
    pub(super) fn begin(&self, uid: &str, claim: &ClaimRef) -> UnderWay<'_> {
        self.patch_unanswered.lock().remove(claim);
        self.under_way.lock().insert(uid.to_owned());
        UnderWay { memory: self, uid: uid.to_owned() }
    }
}

/// A running pass; ends when dropped.
pub(super) struct UnderWay<'a> {
    memory: &'a Memory,
    uid: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.memory.under_way.lock().remove(&self.uid);
    }
}
