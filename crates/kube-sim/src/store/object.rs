//! Stored objects, which are immutable, their places, and their changes.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::json::json_text;
use crate::meta;

/// Key of an object among those of its kind. Lists are ordered by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Place {
    /// Returns the place with this namespace, empty for cluster-scoped kinds, and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the place given by an object's metadata.
    pub fn of(object: &Value) -> Self {
        Self::new(meta::namespace(object), meta::name(object))
    }
}

/// A stored object, with its serialized text once it is needed. The text is shared by the response
/// to a write, by lists and by watches.
///
/// A *frozen* object has only the text, which is a sixth as large as the tree, and the properties
/// that are read from every object. Its tree is created again when other parts are read.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Inner>);

/// At least one of tree and text is set. Without a tree, the head is set too.
#[derive(Debug, Default)]
struct Inner {
    tree: OnceLock<Arc<Value>>,
    text: OnceLock<Bytes>,
    head: OnceLock<Arc<Head>>,
    /// Counts the frozen objects whose tree was created again; `None` if this object was never
    /// frozen.
    thawed: Option<Thawed>,
}

/// Number of frozen objects that have a tree.
pub(crate) type Thawed = Arc<AtomicUsize>;

/// Properties that are read from every object.
#[derive(Debug, PartialEq)]
struct Head {
    deleting: bool,
    uid: Box<str>,
    created: Option<Timestamp>,
    owners: Box<[Value]>,
    labels: Box<[(Box<str>, Box<str>)]>,
}

impl Head {
    fn of(object: &Value) -> Self {
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let text = |(key, value): (&String, &Value)| Some((key.as_str().into(), value.as_str()?.into()));
        Self {
            deleting: meta::is_deleting(object),
            uid: meta::uid(object).into(),
            created: meta::created(object),
            owners: meta::owners(object).into(),
            labels: labels.filter_map(text).collect(),
        }
    }
}

impl Shared {
    pub(crate) fn new(object: Value) -> Self {
        Self(Arc::new(Inner { tree: Arc::new(object).into(), ..Inner::default() }))
    }

    /// Returns true if both are the same state of the same object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_text = || {
            let texts = self.0.text.get().zip(other.0.text.get());
            texts.is_some_and(|(one, other)| one.as_ptr() == other.as_ptr())
        };
        Arc::ptr_eq(&self.0, &other.0) || same_text()
    }

    /// Returns the object in frozen form.
    pub(crate) fn frozen(&self, thawed: &Thawed) -> Self {
        if !self.has_tree() {
            return self.clone();
        }
        let head = self.0.head.get_or_init(|| Arc::new(Head::of(self)));
        Self(Arc::new(Inner {
            tree: OnceLock::new(),
            text: self.json().clone().into(),
            head: head.clone().into(),
            thawed: Some(thawed.clone()),
        }))
    }

    /// Returns true if the object has a tree, whether or not it was frozen before.
    pub(crate) fn has_tree(&self) -> bool {
        self.0.tree.get().is_some()
    }

    /// Returns true if the object was frozen and has a tree again.
    pub(crate) fn is_thawed(&self) -> bool {
        self.0.thawed.is_some() && self.has_tree()
    }

    /// Returns the object's tree. For a frozen object, it is created for the caller only.
    pub fn tree(&self) -> Arc<Value> {
        self.0.tree.get().cloned().unwrap_or_else(|| self.parsed())
    }

    fn parsed(&self) -> Arc<Value> {
        let text = self.0.text.get().and_then(|text| serde_json::from_slice(text).ok());
        Arc::new(text.expect("without a tree there is the text that was made of it"))
    }

    /// Returns the object as JSON. The copy has the exact size, because a buffer that grows by
    /// doubling would waste memory for as long as the object is stored.
    pub(crate) fn json(&self) -> &Bytes {
        self.0.text.get_or_init(|| Bytes::copy_from_slice(&json_text(&**self)))
    }

    /// See [`meta::is_deleting`].
    pub(crate) fn is_deleting(&self) -> bool {
        self.ask(meta::is_deleting, |head| head.deleting)
    }

    /// See [`meta::uid`].
    pub(crate) fn uid(&self) -> &str {
        self.ask(meta::uid, |head| &head.uid)
    }

    /// See [`meta::owners`].
    pub(crate) fn owners(&self) -> &[Value] {
        self.ask(meta::owners, |head| &head.owners)
    }

    /// See [`meta::created`].
    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.ask(meta::created, |head| head.created)
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.ask(
            |object| object["metadata"]["labels"].get(key)?.as_str(),
            |head| head.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value),
        )
    }

    fn ask<'a, T>(&'a self, tree: impl FnOnce(&'a Value) -> T, head: impl FnOnce(&'a Head) -> T) -> T {
        match (self.0.tree.get(), self.0.head.get()) {
            (None, Some(known)) => head(known),
            (Some(_), _) | (None, None) => tree(self),
        }
    }
}

impl Deref for Shared {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.tree.get_or_init(|| {
            if let Some(thawed) = &self.0.thawed {
                thawed.fetch_add(1, Ordering::Relaxed);
            }
            self.parsed()
        })
    }
}

/// A write in the history of a kind, from which watches derive events.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) place: Place,
    /// Object before the write; `None` for a create.
    pub(crate) old: Option<Shared>,
    /// Object as written. For a removal this is its last state, at the new version.
    pub(crate) new: Shared,
    pub(crate) removed: bool,
}
