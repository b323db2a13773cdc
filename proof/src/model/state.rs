//! A state of the abstract world: small integers throughout; objects by their numbers.

use stowage_operator::api::AccessMode;

use super::facts::{BACKENDS, BUCKETS, BackendFacts, CLAIMS, Policy, UIDS, Uid};
use super::phrases::Place;
use super::promise::Promise;

/// All of it: cluster, stores, operators, and what the oracles remember.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Seconds.
    pub(super) now: u32,
    /// The claim of each name.
    pub(super) claims: [Option<u32>; CLAIMS],
    /// How many UIDs each name was given.
    pub(super) lives: [u8; CLAIMS],
    /// Namespaces that are going away.
    pub(super) terminating: [bool; CLAIMS],
    /// The version of the access.
    pub(super) access: Option<u32>,
    /// Every name that a Secret ever had, in order.
    pub(super) secrets: Cells,
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
    pub(super) buckets: [Bucket; BUCKETS],
    pub(super) operators: Vec<Operator>,
    /// A call that nobody waits for any more, and that may still happen.
    pub(super) late: Option<Late>,
    /// What may still go wrong.
    pub(super) left: Left,
    /// Which of the world's events happened: bits.
    pub(super) happened: u32,
    pub(super) ghost: Ghost,
    /// The first promise that was broken. Nothing follows it.
    pub(super) broken: Option<Promise>,
}

/// Secrets by the numbers of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cells(Vec<(u32, Cell)>);

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    /// The Secret of this number.
    Live(u32),
    /// Nothing, after this many versions.
    Gone(u16),
}

impl Cell {
    /// The Secret, if there is one.
    pub(super) fn live(self) -> Option<u32> {
        match self {
            Self::Live(number) => Some(number),
            Self::Gone(_) => None,
        }
    }
}

impl Cells {
    /// What stands under this name; `None` = nothing ever did.
    pub(super) fn get(&self, name: u32) -> Option<Cell> {
        self.0.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| self.0[at].1)
    }

    /// The Secret of this name.
    pub(super) fn live(&self, name: u32) -> Option<u32> {
        self.get(name).and_then(Cell::live)
    }

    /// Puts something under a name.
    pub(super) fn put(&mut self, name: u32, cell: Cell) {
        match self.0.binary_search_by_key(&name, |(name, _)| *name) {
            Ok(at) => self.0[at].1 = cell,
            Err(at) => self.0.insert(at, (name, cell)),
        }
    }

    /// Every Secret that is there, in the order of their names' numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|(_, cell)| cell.live())
    }

    /// Every name and what stands there.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Cell)> {
        self.0.iter().copied()
    }

    /// Forgets what stood under any name.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps what stands under these names.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.0.retain(|(name, _)| keep(*name));
    }
}

/// A bucket, or the place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    pub(super) present: bool,
    /// Number of its tags.
    pub(super) tags: u32,
    /// Versions, delete markers and uploads in it.
    pub(super) objects: u8,
    /// It is of another account, which lets us in.
    pub(super) theirs: bool,
    /// Whose call made it; `None` = a stranger's.
    pub(super) maker: Option<Uid>,
    /// Which bucket of this name it is.
    pub(super) born: u8,
}

impl Bucket {
    pub(super) const NONE: Self = Self { present: false, tags: 0, objects: 0, theirs: false, maker: None, born: 0 };
}

/// One process of the operator: all of it is lost in a crash, but for what the watches had shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Operator {
    /// When it started.
    pub(super) began: u32,
    /// What its watches have shown, of kinds that lag.
    pub(super) seen: Seen,
    /// Answers to its own writes and reads since, which supersede that.
    pub(super) wrote: Cells,
    pub(super) wrote_claims: [Option<u32>; CLAIMS],
    pub(super) wrote_access: Option<u32>,
    pub(super) passes: [Option<Pass>; CLAIMS],
    /// The pass over the access that is under way.
    pub(super) visit: Option<Visit>,
    pub(super) memory: [Option<Memory>; UIDS],
    /// The sweep under way.
    pub(super) sweep: Option<(Uid, u32)>,
    /// The sweep of what the access left that is under way.
    pub(super) access_sweep: Option<u32>,
    /// Since when a claim whose record has to wait has been known gone.
    pub(super) alone: [Option<u32>; UIDS],
}

/// What watches have shown; of kinds that don't lag, nothing.
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
    /// What it knows.
    pub(super) view: u32,
    /// The deletion policy was edited since its last answer.
    pub(super) edited: bool,
    /// Which bucket of its name it saw last.
    pub(super) born: u8,
    /// It reads what a bucket is opened by, and has read the record.
    pub(super) pinned: Option<Pinned>,
}

/// The record that a pass has read, and from which on nothing that it reads is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pinned(pub(super) Option<u32>);

/// A pass over the access that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Visit {
    /// What it knows.
    pub(super) view: u32,
    /// It read the access, or put the finalizer on, since it last made the record; and the access
    /// was not on its way out.
    pub(super) is_live: bool,
}

/// What a process remembers of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    pub(super) missing: Option<Place>,
    /// A look at the bucket is due: the last one failed, or another operator saw something else.
    pub(super) look: bool,
    /// Until when a call without an answer may still happen.
    pub(super) until: u32,
}

/// A call that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Late {
    pub(super) plan: u32,
    pub(super) uid: Uid,
    pub(super) until: u32,
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) crashes: u8,
    pub(super) losses: u8,
    pub(super) ticks: u8,
    pub(super) events: u8,
}

/// What the oracles remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ghost {
    /// Generations of each claim whose key was made: bits.
    pub(super) minted: [u16; UIDS],
    /// Generations whose key could be read in a consumer Secret: bits.
    pub(super) published: [u16; UIDS],
    /// When each claim's consumer Secret was given the key that it holds.
    pub(super) switched: [u32; UIDS],
    /// Buckets that each claim ever held a record of: bits.
    pub(super) held: [u8; UIDS],
    /// The policy by which the operator let go of each claim.
    pub(super) released: [Option<Policy>; UIDS],
    /// Up to which generation each claim's keys are revoked, as a record has noted.
    pub(super) revoked: [u64; UIDS],
    pub(super) access: AccessGhost,
    /// Somebody edited or deleted what the operator wrote.
    pub(super) tampered: bool,
    /// A stranger was at the store.
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

/// What the oracles remember of the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessGhost {
    /// Generations of its keys that were made: bits.
    pub(super) minted: u16,
    /// Generations whose key could be read in its consumer Secret: bits.
    pub(super) published: u16,
    /// When its consumer Secret was given the key that it holds.
    pub(super) switched: u32,
    /// Buckets that each claim ever had a key to: bits.
    pub(super) opened: [u8; UIDS],
    /// Buckets whose record said that the claim is on its way out: bits.
    pub(super) ended: [u8; UIDS],
    /// The most that could be let into the record of each bucket, since it is in the version that
    /// it is in.
    pub(super) consented: [Option<AccessMode>; BUCKETS],
}

impl AccessGhost {
    pub(super) const NONE: Self =
        Self { minted: 0, published: 0, switched: 0, opened: [0; UIDS], ended: [0; UIDS], consented: [None; BUCKETS] };
}
