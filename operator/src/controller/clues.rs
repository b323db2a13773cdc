//! Reports of Secrets that may be orphans because their claim or access is deleted (spec §3.4).

use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::{AccessUid, ClaimUid};
use crate::cache::AccessCache;
use crate::plan::Stored;
use crate::plan::orphans::{Kind, OfAccess, OfClaim};

use super::objects::Claim;

/// Sender of [`Clue`]s to the sweeps.
pub(super) struct Orphans {
    clues: UnboundedSender<Clue>,
    claims: Store<Claim>,
    accesses: Arc<AccessCache>,
}

/// The owner of Secrets that may be orphans.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gone {
    /// A claim.
    Claim(ClaimUid),
    /// An access.
    Access(AccessUid),
}

impl Gone {
    /// Returns the owner of a Secret.
    pub(super) fn of(secret: &Stored) -> Option<Self> {
        OfClaim::owner(secret).map(Self::Claim).or_else(|| OfAccess::owner(secret).map(Self::Access))
    }

    /// Returns the UID, which is unique across kinds and time.
    pub(super) fn uid(&self) -> &str {
        match self {
            Self::Claim(uid) => uid.as_str(),
            Self::Access(uid) => uid.as_str(),
        }
    }
}

/// A suspicion; the sweep verifies it before it acts.
pub(super) enum Clue {
    /// Any cached Secret may be an orphan.
    Everything,
    /// Secrets of this owner may be orphans, and so may the named one, which the cache may not
    /// have.
    Of(Gone, Option<String>),
}

impl Orphans {
    /// Creates both ends of the channel. Owners are looked up in `claims` and `accesses`.
    pub(super) fn new(claims: Store<Claim>, accesses: Arc<AccessCache>) -> (Self, UnboundedReceiver<Clue>) {
        let (sender, receiver) = unbounded_channel();
        (Self { clues: sender, claims, accesses }, receiver)
    }

    /// Reports that any Secret may be an orphan, after a relist.
    pub(super) fn suspect_everything(&self) {
        self.send(Clue::Everything);
    }

    /// Reports that the claim with this UID was deleted.
    pub(super) fn claim_gone(&self, uid: &str) {
        self.send(Clue::Of(Gone::Claim(ClaimUid::new(uid)), None));
    }

    /// Reports that the access with this UID was deleted.
    pub(super) fn access_gone(&self, uid: &str) {
        self.send(Clue::Of(Gone::Access(AccessUid::new(uid)), None));
    }

    /// Checks a Secret that appeared in the cache.
    pub(super) fn seen(&self, secret: &Stored) {
        self.suspect(secret, None);
    }

    /// Checks a Secret that blocks a claim. The cache may not have it: its labels may be damaged.
    pub(super) fn in_the_way(&self, secret: &Stored) {
        self.suspect(secret, Some(secret.name().to_owned()));
    }

    fn suspect(&self, secret: &Stored, name: Option<String>) {
        let Some(gone) = Gone::of(secret) else { return };
        let is_there = match &gone {
            Gone::Claim(uid) => {
                let at = secret.claim().map(|claim| ObjectRef::new(&claim.name).within(&claim.namespace));
                let claim = at.and_then(|at| self.claims.get(&at));
                claim.is_some_and(|claim| claim.meta().uid.as_deref() == Some(uid.as_str()))
            }
            Gone::Access(uid) => secret.access().is_some_and(|at| self.accesses.has(&at, uid)),
        };
        if !is_there {
            self.send(Clue::Of(gone, name));
        }
    }

    fn send(&self, clue: Clue) {
        // Fails only after shutdown.
        let _ = self.clues.send(clue);
    }
}
