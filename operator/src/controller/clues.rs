//! Where it is told that a Secret may be an orphan: its claim or access may be no more (spec §3.4).

use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::{AccessUid, ClaimUid};
use crate::cache::AccessCache;
use crate::plan::Stored;
use crate::plan::orphans::{Kind, OfAccess, OfClaim};

use super::objects::Claim;

/// Where suspicions are reported.
pub(super) struct Orphans {
    clues: UnboundedSender<Clue>,
    claims: Store<Claim>,
    accesses: Arc<AccessCache>,
}

/// Whose Secrets may be orphans.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gone {
    /// A claim's.
    Claim(ClaimUid),
    /// An access's.
    Access(AccessUid),
}

impl Gone {
    /// Whose a Secret is.
    pub(super) fn of(secret: &Stored) -> Option<Self> {
        OfClaim::owner(secret).map(Self::Claim).or_else(|| OfAccess::owner(secret).map(Self::Access))
    }

    /// Its UID: none is given twice, to whatever.
    pub(super) fn uid(&self) -> &str {
        match self {
            Self::Claim(uid) => uid.as_str(),
            Self::Access(uid) => uid.as_str(),
        }
    }
}

/// A suspicion. Checked before anything is done about it.
pub(super) enum Clue {
    /// Any cached Secret.
    Everything,
    /// Secrets of this UID; and one that the cache does not have.
    Of(Gone, Option<String>),
}

impl Orphans {
    /// Both ends. The others are where claims and accesses are found.
    pub(super) fn new(claims: Store<Claim>, accesses: Arc<AccessCache>) -> (Self, UnboundedReceiver<Clue>) {
        let (sender, receiver) = unbounded_channel();
        (Self { clues: sender, claims, accesses }, receiver)
    }

    /// Whole caches may hold orphans: they were filled anew.
    pub(super) fn suspect_everything(&self) {
        self.send(Clue::Everything);
    }

    /// The claim of this UID disappeared.
    pub(super) fn claim_gone(&self, uid: &str) {
        self.send(Clue::Of(Gone::Claim(ClaimUid::new(uid)), None));
    }

    /// The access of this UID disappeared.
    pub(super) fn access_gone(&self, uid: &str) {
        self.send(Clue::Of(Gone::Access(AccessUid::new(uid)), None));
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
        // Fails only when the operator has ended.
        let _ = self.clues.send(clue);
    }
}
