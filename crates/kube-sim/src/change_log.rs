//! The log of changes: what a store tells, inside the step that makes the change.

use crate::kind::Kind;
use crate::observer::Author;
use crate::store::{Place, Shared};

/// A change of what a store holds.
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) place: &'a Place,
    /// The store's version after it.
    pub(crate) version: u64,
    /// The object before; `None` for one that is new.
    pub(crate) old: Option<&'a Shared>,
    /// The object now; `None` for one that is gone.
    pub(crate) new: Option<&'a Shared>,
    /// Whether reads of the object show defaults that aren't stored.
    pub(crate) completed_on_read: bool,
    /// Who made it.
    pub(crate) author: Option<Author>,
    /// Whether it is a write, with a version of its own. Others are how something is kept, and no
    /// watch hears of them.
    pub(crate) is_write: bool,
}

/// Hears of each change, in order and while it happens: has to be quick and must not call the
/// store.
pub(crate) trait ChangeLog: Send + Sync {
    /// An object is another from now on, or is gone.
    fn changed(&self, entry: &Entry<'_>);

    /// Nothing is there any more. What is there instead follows, object by object.
    fn cleared(&self);
}
