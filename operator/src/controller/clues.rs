//! Where it is told that a Secret may be an orphan: its claim may be no more (spec §3.4).

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::ClaimUid;
use crate::plan::Stored;
use crate::plan::orphans::owner;

use super::objects::Claim;

/// Where suspicions are reported.
pub(super) struct Orphans {
    clues: UnboundedSender<Clue>,
    claims: Store<Claim>,
}

/// A suspicion. Checked before anything is done about it.
pub(super) enum Clue {
    /// Any cached Secret.
    Everything,
    /// Secrets of this UID; and one that the cache does not have.
    Of(ClaimUid, Option<String>),
}

impl Orphans {
    /// Both ends. `claims` is where claims are found.
    pub(super) fn new(claims: Store<Claim>) -> (Self, UnboundedReceiver<Clue>) {
        let (sender, receiver) = unbounded_channel();
        (Self { clues: sender, claims }, receiver)
    }

    /// Whole caches may hold orphans: they were filled anew.
    pub(super) fn suspect_everything(&self) {
        self.send(Clue::Everything);
    }

    /// The claim of this UID disappeared.
    pub(super) fn claim_gone(&self, uid: &str) {
        self.send(Clue::Of(ClaimUid::new(uid), None));
    }

    /// A Secret turned up in the cache.
    pub(super) fn seen(&self, secret: &Stored) {
        self.suspect(secret, None);
    }

    /// A Secret stands in a claim's way. The cache may not have it: its labels may be damaged.
    pub(super) fn in_the_way(&self, secret: &Stored) {
        self.suspect(secret, Some(secret.name().to_owned()));
    }

    fn suspect(&self, secret: &Stored, name: Option<String>) {
        let Some(uid) = owner(secret) else { return };
        let at = secret.claim().map(|claim| ObjectRef::new(&claim.name).within(&claim.namespace));
        let claim = at.and_then(|at| self.claims.get(&at));
        if claim.is_none_or(|claim| claim.meta().uid.as_deref() != Some(uid.as_str())) {
            self.send(Clue::Of(uid, name));
        }
    }

    fn send(&self, clue: Clue) {
        // Fails only when the operator has ended.
        let _ = self.clues.send(clue);
    }
}
