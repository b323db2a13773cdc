//! Compact content of the abstract world's claims and backends, and the limits on their number.

use stowage_operator::api::{AccessMode, ClaimUid};

/// Namespace of the internal Secrets.
pub(super) const OPERATOR_NAMESPACE: &str = "stowage-system";
/// Maximum number of claims in a world.
pub(super) const CLAIMS: usize = 2;
/// Maximum number of UIDs per claim name.
pub(super) const LIVES: usize = 2;
/// Number of claim UIDs.
pub(super) const UIDS: usize = CLAIMS * LIVES;
/// Number of backends, and of stores.
pub(super) const BACKENDS: usize = 2;
/// Number of bucket names.
pub(super) const NAMES: usize = 2;
/// Maximum number of buckets.
pub(super) const BUCKETS: usize = BACKENDS * NAMES;
/// Number of distinct generations.
pub(super) const GENERATIONS: u64 = 12;

/// A UID of a claim: the number of its name, and a counter of the claims that had that name.
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

/// Spec of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    /// Number of the backend.
    pub(super) backend: u8,
    /// Deletion policy for the bucket.
    pub(super) deletion: Policy,
    /// True if the consumer Secret has its second name.
    pub(super) renamed: bool,
    /// True if everybody may read the bucket.
    pub(super) public: bool,
    /// Seconds for which a replaced key keeps working.
    pub(super) overlap: u32,
    /// Days between two automatic rotations.
    pub(super) interval: Option<u32>,
    /// Mode that accesses of the other namespace may have.
    pub(super) shares: Option<AccessMode>,
}

impl Spec {
    /// Spec of a claim that nobody has edited.
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

/// `deletionPolicy` and `forceDelete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Policy {
    /// Keep the bucket.
    Retain,
    /// Delete the bucket if it is empty.
    Delete,
    /// Empty the bucket and delete it.
    Force,
}

/// Fields of a claim as stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimFacts {
    pub(super) uid: Uid,
    pub(super) spec: Spec,
    pub(super) deleting: bool,
    pub(super) finalizer: bool,
    pub(super) paused: bool,
    /// Number of the rotation that the annotation requests; 0 = none.
    pub(super) rotate: u8,
    /// Number of the revocation that the annotation requests; 0 = none.
    pub(super) revoke: u8,
    /// `metadata.generation`.
    pub(super) generation: u8,
    /// Number of its status.
    pub(super) status: u32,
    /// Number of writes so far.
    pub(super) version: u16,
}

/// Fields of a backend as stored. A slot with `None` has no backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BackendFacts {
    /// Number of this backend.
    pub(super) number: u8,
    /// Number of the store that it points to.
    pub(super) store: u8,
    /// Number of the bucket name that its template renders.
    pub(super) template: u8,
    pub(super) adoption: Adoption,
    pub(super) ready: bool,
}

/// Adoption policy for buckets that already exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Adoption {
    /// Adopt a bucket whose tags name the claim.
    Owned,
    /// Adopt a bucket unless its tags name another claim.
    Any,
}
