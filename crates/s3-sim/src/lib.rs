//! An S3 store in memory, for simulations: deterministic, with the manners of real stores.
//!
//! - [`Store`] holds accounts and buckets. It has three faces: [`Store::http`] speaks the protocol
//!   and checks signatures, [`Store::as_account`] is the same store in process for one account, and
//!   the methods of [`Store`] itself are the admin handle, which sees and changes everything
//!   without being asked who it is.
//! - `InProcess` (feature `sdk`) lets the AWS SDK talk to the protocol face without a socket.
//! - [`Dialect`] has the switches between the readings of S3 that are found in the field.
//!
//! # Guarantees
//!
//! - Each operation is carried out in one step: no other one sees half of it, and a refused one
//!   changes nothing.
//! - Signatures are checked. A key opens the buckets of its account alone.
//! - What a bucket holds is read back byte by byte: versions, delete markers, parts of uploads,
//!   locks and retention.
//! - Where real stores read the protocol differently, the [`Dialect`] says which of them this one
//!   is.
//!
//! # Determinism
//!
//! Equal sequences of requests get equal answers: the clock is passed in, ids come from counters,
//! and nothing iterates a hash map. Nothing runs by itself and no socket is opened.
//!
//! A store with a [`Keeper`] outlives the process: the keeper holds the bytes of objects and is
//! told of every change. That is how a store on sockets is used; in a simulation there is none.
//!
//! # Limits
//!
//! - Policies, ACLs, lifecycle, encryption, storage classes, replication and the other bucket
//!   configurations answer `NotImplemented`, as do reads of one part of an object.
//! - Buckets of another region are served instead of redirected.
//! - The age of signatures is not checked: the time in them is the client's, the time here is the
//!   simulation's.
//! - Presigned URLs have no place in a simulation: s3s ends them by the wall clock.

#![warn(clippy::too_many_lines)]

mod admin;
#[expect(clippy::needless_pass_by_value, reason = "handlers own their input, as s3s gives it")]
mod buckets;
mod conditions;
#[cfg(feature = "sdk")]
mod connector;
mod convert;
mod data;
mod dialect;
mod disturbance;
mod errors;
mod face;
mod keeper;
mod listing;
mod lock;
#[expect(clippy::needless_pass_by_value, reason = "handlers own their input, as s3s gives it")]
mod locks;
#[expect(clippy::needless_pass_by_value, reason = "handlers own their input, as s3s gives it")]
mod multipart;
#[expect(clippy::needless_pass_by_value, reason = "handlers own their input, as s3s gives it")]
mod objects;
mod pages;
mod payload;
mod record;
mod restore;
mod service;
mod state;
#[cfg(test)]
mod tests;
mod touched;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use s3s::S3;

pub use self::admin::{BucketSnapshot, VersionSnapshot};
#[cfg(feature = "sdk")]
pub use self::connector::InProcess;
pub use self::dialect::{Dialect, ExistingOwnBucket};
pub use self::disturbance::Disturbance;
pub use self::keeper::{BlobReader, BlobWriter, Keeper};
pub use self::lock::{Protection, Retention, RetentionMode};
pub use self::record::{KeptBlob, Whole};
pub use self::restore::{Contents, Sources};
pub use self::service::StoreService;
pub use self::state::Versioning;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use self::disturbance::Past;
use self::face::{Face, Identity};
use self::keeper::Home;
use self::state::State;

/// Where a store reads the time from.
pub type WallClock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// A store. Clones are handles to the same one.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    clock: WallClock,
    dialect: Dialect,
    requests: AtomicU64,
    state: Mutex<State>,
    /// The state before the last write, if that is to be remembered.
    past: Mutex<Past>,
    /// Where it is kept, if it outlives the process.
    home: OnceLock<Arc<Home>>,
}

impl Store {
    /// An empty store without accounts.
    #[must_use]
    pub fn new(clock: WallClock, dialect: Dialect) -> Self {
        let state = Mutex::new(State::default());
        let past = Mutex::new(Past::default());
        let (requests, home) = (AtomicU64::new(0), OnceLock::new());
        Self { shared: Arc::new(Shared { clock, dialect, requests, state, past, home }) }
    }

    /// The reading of the protocol that this store follows.
    #[must_use]
    pub fn dialect(&self) -> &Dialect {
        &self.shared.dialect
    }

    /// The protocol face: requests as they come off the wire, signed with a key of an account.
    ///
    /// Unknown keys answer `InvalidAccessKeyId`, wrong secrets `SignatureDoesNotMatch`, unsigned
    /// requests and buckets of other accounts `AccessDenied`, all 403.
    #[must_use]
    pub fn http(&self) -> StoreService {
        StoreService::new(self.clone())
    }

    /// The in-process face for one account: what the request's credentials say does not matter.
    #[must_use]
    pub fn as_account(&self, account: &str) -> impl S3 + Clone + use<> {
        Face { store: self.clone(), identity: Identity::Account(account.to_owned()) }
    }

    /// The state, also after a panic in an earlier operation: no operation leaves it half-changed
    /// before its last fallible step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.shared.past.lock()
    }

    fn next_request(&self) -> u64 {
        self.shared.requests.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let buckets = self.state().buckets.len();
        f.debug_struct("Store").field("buckets", &buckets).finish_non_exhaustive()
    }
}
