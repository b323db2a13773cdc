//! What claims and backends of the abstract world say, in a few bytes, and how many there are.

use stowage_operator::api::{AccessMode, ClaimUid};

/// Namespace of the internal Secrets.
pub(super) const OPERATOR_NAMESPACE: &str = "stowage-system";
/// How many claims a world has at most.
pub(super) const CLAIMS: usize = 2;
/// How many UIDs one name is given at most.
pub(super) const LIVES: usize = 2;
/// How many UIDs there are.
pub(super) const UIDS: usize = CLAIMS * LIVES;
/// How many backends, and stores, there are.
pub(super) const BACKENDS: usize = 2;
/// How many names of buckets there are.
pub(super) const NAMES: usize = 2;
/// How many buckets there can be.
pub(super) const BUCKETS: usize = BACKENDS * NAMES;
/// Generations that are told apart.
pub(super) const GENERATIONS: u64 = 12;

/// A UID of a claim: its name's number and which life of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Uid(pub(super) u8);

impl Uid {
    pub(super) fn of(slot: usize, life: u8) -> Self {
        Self((slot * LIVES) as u8 + life)
    }

    pub(super) fn slot(self) -> usize {
        self.0 as usize / LIVES
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..UIDS as u8).map(Self)
    }

    pub(super) fn text(self) -> String {
        format!("u-{}-{}", self.slot(), self.0 as usize % LIVES)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::all().find(|uid| uid.text() == text)
    }

    pub(super) fn claim_uid(self) -> ClaimUid {
        ClaimUid::new(self.text())
    }
}

/// What a claim asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    /// Number of the backend.
    pub(super) backend: u8,
    /// What becomes of the bucket.
    pub(super) deletion: Policy,
    /// The consumer Secret has its second name.
    pub(super) renamed: bool,
    /// The bucket may be read by everybody.
    pub(super) public: bool,
    /// Seconds for which an old key goes on working.
    pub(super) overlap: u32,
    /// Days between two rotations that come by themselves.
    pub(super) interval: Option<u32>,
    /// What accesses of the one other namespace may do.
    pub(super) shares: Option<AccessMode>,
}

impl Spec {
    /// What a claim asks for unless somebody edits it.
    pub(super) const PLAIN: Self = Self {
        backend: 0,
        deletion: Policy::Retain,
        renamed: false,
        public: false,
        overlap: 300,
        interval: None,
        shares: None,
    };
}

/// Deletion policy and forceDelete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Policy {
    /// The bucket stays.
    Retain,
    /// It goes if it is empty.
    Delete,
    /// It is emptied and goes.
    Force,
}

/// A claim as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimFacts {
    pub(super) uid: Uid,
    pub(super) spec: Spec,
    pub(super) deleting: bool,
    pub(super) finalizer: bool,
    pub(super) paused: bool,
    /// Which rotation the annotation asks for; 0 = none.
    pub(super) rotate: u8,
    /// Which revocation the annotation asks for; 0 = none.
    pub(super) revoke: u8,
    /// Generation of the spec.
    pub(super) generation: u8,
    /// Number of the status.
    pub(super) status: u32,
    /// Counts the writes.
    pub(super) version: u16,
}

/// A backend as it is stored; `None` in its place = there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BackendFacts {
    /// Its own number.
    pub(super) number: u8,
    /// Number of the store that it points to.
    pub(super) store: u8,
    /// Number of the bucket name that its template gives.
    pub(super) template: u8,
    pub(super) adoption: Adoption,
    pub(super) ready: bool,
}

/// What may happen to a bucket that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Adoption {
    /// It is taken if its tags name the claim.
    Owned,
    /// It is taken unless its tags name another.
    Any,
}
