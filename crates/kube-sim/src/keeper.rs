//! What outlives the process: whoever keeps a cluster is told of every change.

use bytes::Bytes;

/// A stored object, or that there is none any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The cluster's version after the change.
    pub version: u64,
    /// The object as JSON; `None` for one that is gone.
    pub object: Option<Bytes>,
    /// Whether reads of the object show defaults that aren't stored.
    pub completed_on_read: bool,
}

/// Told of each change of what a cluster holds, in order and while it happens: has to be quick and
/// must not call the cluster. What is told twice is as it was told last.
pub trait Keeper: Send + Sync {
    /// An object is so from now on.
    fn keep(&self, kept: Kept);

    /// There is no object any more.
    fn cleared(&self);
}
