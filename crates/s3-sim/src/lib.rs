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
