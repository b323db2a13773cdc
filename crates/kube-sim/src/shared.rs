//! What the store holds: objects that nobody changes any more, where they stand, and what became of
//! them.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use super::meta;
use super::output::json_text;

/// Where an object of a kind is stored; orders a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(meta::namespace(object), meta::name(object))
    }
}

/// A stored object, and its text once somebody has been told of it: the answer to a write, lists
/// and watches share that.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<(Arc<Value>, OnceLock<Bytes>)>);

impl Shared {
    pub(crate) fn new(object: Value) -> Self {
        Self(Arc::new((Arc::new(object), OnceLock::new())))
    }

    /// Whether they are the same state of the same object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The object by itself.
    pub(crate) fn value(&self) -> &Arc<Value> {
        &self.0.0
    }

    /// The object as JSON.
    pub(crate) fn json(&self) -> &Bytes {
        self.0.1.get_or_init(|| json_text(self.value().as_ref()))
    }
}

impl Deref for Shared {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

/// One write, as a watch sees it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) place: Place,
    /// Absent for a create.
    pub(crate) old: Option<Shared>,
    /// The object as written; for a removal its last state, under the new version.
    pub(crate) new: Shared,
    pub(crate) removed: bool,
}
