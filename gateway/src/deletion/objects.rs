//! Objects that are to be deleted, and what the store tells of them.

use crate::head::Key;

/// Most objects of one request (Amazon S3, DeleteObjects).
pub const MOST_OBJECTS: usize = 1000;

/// What the store tells of what it has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Every object.
    #[default]
    Full,
    /// Those that it could not delete: `Quiet`.
    Errors,
}

/// An object that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Its key.
    pub key: Key,
    /// Which version; the present one is marked as deleted without.
    pub version: Option<Box<str>>,
    /// Its `ETag`, where only that one is meant.
    pub etag: Option<Box<str>>,
    /// Its time, where only that one is meant, as the client wrote it.
    pub modified: Option<Box<str>>,
    /// Its length in bytes, where only that one is meant.
    pub size: Option<u64>,
}
