//! A state of the abstract world. It consists of small integers; objects are stored by number.

use stowage_operator::api::AccessMode;

use super::facts::{BACKENDS, BUCKETS, BackendFacts, CLAIMS, Policy, UIDS, Uid};
use super::phrases::Place;
use super::promise::Promise;

/// State of the cluster, the stores, the operators and the oracles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Time in seconds.
    pub(super) now: u32,
    /// Version of the claim under each name.
    pub(super) claims: [Option<u32>; CLAIMS],
    /// Number of UIDs that each name has had.
    pub(super) lives: [u8; CLAIMS],
    /// True for namespaces that are terminating.
    pub(super) terminating: [bool; CLAIMS],
    /// Version of the access.
    pub(super) access: Option<u32>,
    /// Every name that a Secret ever had, in order.
    pub(super) secrets: Cells,
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
    pub(super) buckets: [Bucket; BUCKETS],
    pub(super) operators: Vec<Operator>,
    /// A call that timed out and may still be carried out.
    pub(super) late: Option<Late>,
    /// Faults and events that may still happen.
    pub(super) left: Left,
    /// Events of the world that happened, as bits.
    pub(super) happened: u32,
    pub(super) ghost: Ghost,
    /// First broken promise. A state with one has no successors.
    pub(super) broken: Option<Promise>,
}

/// Secrets by the number of their name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cells(Vec<(u32, Cell)>);

/// Content of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    /// The Secret with this number.
    Live(u32),
    /// No Secret, after this many versions.
    Gone(u16),
}

impl Cell {
    /// Returns the Secret, if there is one.
    pub(super) fn live(self) -> Option<u32> {
        match self {
            Self::Live(number) => Some(number),
            Self::Gone(_) => None,
        }
    }
}

impl Cells {
    /// Returns the content of this name; `None` if it never had any.
    pub(super) fn get(&self, name: u32) -> Option<Cell> {
        self.0.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| self.0[at].1)
    }

    /// Returns the Secret of this name.
    pub(super) fn live(&self, name: u32) -> Option<u32> {
        self.get(name).and_then(Cell::live)
    }

    /// Sets the content of a name.
    pub(super) fn put(&mut self, name: u32, cell: Cell) {
        match self.0.binary_search_by_key(&name, |(name, _)| *name) {
            Ok(at) => self.0[at].1 = cell,
            Err(at) => self.0.insert(at, (name, cell)),
        }
    }

    /// Iterates over existing Secrets, in the order of the numbers of their names.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|(_, cell)| cell.live())
    }

    /// Iterates over every name and its content.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Cell)> {
        self.0.iter().copied()
    }

    /// Removes all names.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps only the names for which `keep` returns true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.0.retain(|(name, _)| keep(*name));
    }
}

/// A bucket, or a bucket name that is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    pub(super) present: bool,
    /// Number of its tags.
    pub(super) tags: u32,
    /// Number of versions, delete markers and uploads in the bucket.
    pub(super) objects: u8,
    /// True if the bucket belongs to another account that grants us access.
    pub(super) theirs: bool,
    /// Claim whose pass created the bucket; `None` if a stranger did.
    pub(super) maker: Option<Uid>,
    /// Counter of buckets that had this name.
    pub(super) born: u8,
}

impl Bucket {
    pub(super) const NONE: Self = Self { present: false, tags: 0, objects: 0, theirs: false, maker: None, born: 0 };
}

/// One process of the operator. A crash loses all of it except what the watches had shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Operator {
    /// Time at which the process started.
    pub(super) began: u32,
    /// Objects that its watches have shown, for kinds whose caches lag.
    pub(super) seen: Seen,
    /// Answers to its own writes and reads since then. They supersede `seen`.
    pub(super) wrote: Cells,
    pub(super) wrote_claims: [Option<u32>; CLAIMS],
    pub(super) wrote_access: Option<u32>,
    pub(super) passes: [Option<Pass>; CLAIMS],
    /// The pass over the access that is under way.
    pub(super) visit: Option<Visit>,
    pub(super) memory: [Option<Memory>; UIDS],
    /// The sweep that is under way.
    pub(super) sweep: Option<(Uid, u32)>,
    /// The sweep of what the access left that is under way.
    pub(super) access_sweep: Option<u32>,
    /// Time since which a claim is known to be gone while the sweep of its record waits.
    pub(super) alone: [Option<u32>; UIDS],
}

/// Objects that watches have shown. Kinds that do not lag are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) claims: [Option<u32>; CLAIMS],
    pub(super) access: Option<u32>,
    pub(super) internal: Cells,
    pub(super) consumers: Cells,
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
}

/// A pass that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pass {
    /// Number of its view.
    pub(super) view: u32,
    /// True if the deletion policy was edited since its last answer.
    pub(super) edited: bool,
    /// Counter of the bucket that it saw last under the name.
    pub(super) born: u8,
    /// Set while the pass reads the objects that justify opening a bucket, once it has read the
    /// record.
    pub(super) pinned: Option<Pinned>,
}

/// The record that a pass has read. Everything that the pass reads after it is at least as recent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pinned(pub(super) Option<u32>);

/// A pass over the access that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Visit {
    /// Number of its view.
    pub(super) view: u32,
    /// True if the pass read the access or added the finalizer since it last created the record,
    /// and the access was not being deleted.
    pub(super) is_live: bool,
}

/// Memory that a process keeps about a claim between passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    pub(super) missing: Option<Place>,
    /// True if a look at the bucket is due: the last one failed, or another operator saw something
    /// else.
    pub(super) look: bool,
    /// Time until which a call without an answer may still be carried out.
    pub(super) until: u32,
}

/// A call that may still be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Late {
    pub(super) plan: u32,
    pub(super) uid: Uid,
    pub(super) until: u32,
}

/// Faults and events that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) crashes: u8,
    pub(super) losses: u8,
    pub(super) ticks: u8,
    pub(super) events: u8,
}

/// Memory of the oracles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ghost {
    /// Generations of each claim whose key was created, as bits.
    pub(super) minted: [u16; UIDS],
    /// Generations of each claim whose key was readable in a consumer Secret, as bits.
    pub(super) published: [u16; UIDS],
    /// Time at which each claim's consumer Secret got its current key.
    pub(super) switched: [u32; UIDS],
    /// Buckets of which each claim ever had a record, as bits.
    pub(super) held: [u8; UIDS],
    /// Policy by which the operator released each claim.
    pub(super) released: [Option<Policy>; UIDS],
    /// Highest revoked generation of each claim, as noted in a record.
    pub(super) revoked: [u64; UIDS],
    pub(super) access: AccessGhost,
    /// True if a third party edited or deleted objects that the operator wrote.
    pub(super) tampered: bool,
    /// True if a stranger changed something at the store.
    pub(super) intruded: bool,
}

impl Ghost {
    pub(super) const NONE: Self = Self {
        minted: [0; UIDS],
        published: [0; UIDS],
        switched: [0; UIDS],
        held: [0; UIDS],
        released: [None; UIDS],
        revoked: [0; UIDS],
        access: AccessGhost::NONE,
        tampered: false,
        intruded: false,
    };
}

/// Memory of the oracles about the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessGhost {
    /// Generations of its keys that were created, as bits.
    pub(super) minted: u16,
    /// Generations whose key was readable in its consumer Secret, as bits.
    pub(super) published: u16,
    /// Time at which its consumer Secret got its current key.
    pub(super) switched: u32,
    /// Buckets to which each claim ever had a key, as bits.
    pub(super) opened: [u8; UIDS],
    /// Buckets whose record said that the claim is being deleted, as bits.
    pub(super) ended: [u8; UIDS],
    /// The most that each bucket's record may grant: the union of all consents since its current
    /// version was written.
    pub(super) consented: [Option<AccessMode>; BUCKETS],
}

impl AccessGhost {
    pub(super) const NONE: Self =
        Self { minted: 0, published: 0, switched: 0, opened: [0; UIDS], ended: [0; UIDS], consented: [None; BUCKETS] };
}
