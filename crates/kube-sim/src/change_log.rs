//! Notification about changes, inside the step of the store that makes them.

use crate::kind::Kind;
use crate::observer::Author;
use crate::store::{Place, Shared};

/// A change of a stored object.
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) place: &'a Place,
    /// Version of the store after the change.
    pub(crate) version: u64,
    /// Object before the change; `None` if it is new.
    pub(crate) old: Option<&'a Shared>,
    /// Object after the change; `None` if it was removed.
    pub(crate) new: Option<&'a Shared>,
    /// True if reads of the object show defaults that are not stored.
    pub(crate) completed_on_read: bool,
    /// Author of the change.
    pub(crate) author: Option<Author>,
    /// True for a write, which has a version. Other changes only concern how an object is stored,
    /// and are not sent to watches.
    pub(crate) is_write: bool,
}

/// A listener for changes. It is called in order while each change happens, so it must be quick and
/// must not call the store.
pub(crate) trait ChangeLog: Send + Sync {
    /// Receives a change or removal of an object.
    fn changed(&self, entry: &Entry<'_>);

    /// Receives the removal of all objects. Calls for the objects that replace them follow.
    fn cleared(&self);
}
