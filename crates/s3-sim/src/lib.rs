//! An S3 store in memory, for simulations: deterministic, with the behaviour of real stores.
//!
//! - [`Store`] contains accounts and buckets, and has three interfaces. [`Store::http`] implements
//!   the protocol and checks signatures. [`Store::as_account`] is the same store in process, for
//!   one account. The methods of [`Store`] itself are for administrators: they read and change
//!   everything without authentication.
//! - `InProcess` (feature `sdk`) connects the AWS SDK to the protocol without a socket.
//! - [`Dialect`] has switches for interpretations of S3 that are found in practice.
//!
//! # Guarantees
//!
//! - Each operation is atomic: no other operation sees a part of it, and a rejected one changes
//!   nothing.
//! - Signatures are checked. A key opens only the buckets of its account.
//! - The content of a bucket is read back byte by byte: versions, delete markers, parts of uploads,
//!   locks and retention.
//! - Where real stores interpret the protocol differently, the [`Dialect`] determines the
//!   behaviour.
//!
//! # Determinism
//!
//! Equal sequences of requests get equal responses: the clock is a parameter, ids are derived from
//! counters, and nothing iterates over a hash map. Nothing runs in the background and no socket is
//! opened.
//!
//! A store with a [`Keeper`] is persistent: the keeper stores the bytes of objects and is notified
//! of every change. This is for a store on sockets; simulations do not use it.
//!
//! # Limits
//!
//! - Policies, ACLs, lifecycle, encryption, storage classes, replication and the other bucket
//!   configurations return `NotImplemented`, as do reads of one part of an object.
//! - Buckets of another region are served instead of redirected.
//! - The age of signatures is not checked, because they contain the client's time and the store has
//!   the simulation's.
//! - Presigned URLs cannot be used in a simulation: s3s compares their expiry with the wall clock.

#![warn(clippy::too_many_lines)]

mod blob;
#[expect(clippy::needless_pass_by_value, reason = "handlers own their input, as s3s gives it")]
mod buckets;
mod call;
mod conditions;
#[cfg(feature = "sdk")]
mod connector;
mod convert;
mod data;
mod dialect;
mod disturbance;
mod errors;
mod face;
mod journal;
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
mod past;
mod payload;
mod record;
mod restore;
mod service;
mod shared;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod touched;

#[cfg(feature = "sdk")]
pub use self::connector::InProcess;
pub use self::dialect::{Dialect, ExistingOwnBucket};
pub use self::disturbance::Disturbance;
pub use self::keeper::{BlobReader, BlobWriter, Entry, Keeper};
pub use self::lock::{Protection, Retention, RetentionMode};
pub use self::record::{KeptBlob, Whole};
pub use self::restore::{Contents, Sources};
pub use self::service::StoreService;
pub use self::shared::WallClock;
pub use self::state::Versioning;
pub use self::store::{BucketSnapshot, Store, VersionSnapshot};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
