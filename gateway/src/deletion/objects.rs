//! Objects to be deleted, and the form of the store's answer.

use crate::head::Key;

/// Maximum number of objects of one request (Amazon S3, DeleteObjects).
pub const MOST_OBJECTS: usize = 1000;

/// The results that the store returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Results of all objects.
    #[default]
    Full,
    /// Results only of objects that could not be deleted: `Quiet`.
    Errors,
}

/// An object to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Key of the object.
    pub key: Key,
    /// The version to delete. Without one, the object gets a delete marker in a bucket that keeps
    /// versions.
    pub version: Option<Box<str>>,
    /// A condition on its `ETag`.
    pub etag: Option<Box<str>>,
    /// A condition on its modification time, in the client's format.
    pub modified: Option<Box<str>>,
    /// A condition on its size in bytes.
    pub size: Option<u64>,
}
