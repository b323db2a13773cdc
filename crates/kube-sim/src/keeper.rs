//! Persistence: a keeper is notified of every change of a cluster.

use bytes::Bytes;

/// State of a stored object, or its removal.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Version of the cluster after the change.
    pub version: u64,
    /// The object as JSON; `None` if it was removed.
    pub object: Option<Bytes>,
    /// True if reads of the object show defaults that are not stored.
    pub completed_on_read: bool,
}

/// A listener for changes of a cluster. It is called in order while each change happens, so it must
/// be quick and must not call the cluster. A later call for an object replaces an earlier one.
pub trait Keeper: Send + Sync {
    /// Stores the new state of an object.
    fn keep(&self, kept: Kept);

    /// Removes all objects.
    fn cleared(&self);
}
