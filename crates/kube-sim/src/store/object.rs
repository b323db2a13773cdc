//! What the store holds: objects that nobody changes any more, where they stand, and what became of
//! them.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::json::json_text;
use crate::meta;

/// Where an object of a kind is stored; orders a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl Place {
    /// The place of this namespace, empty for cluster-scoped kinds, and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Where an object says that it stands.
    pub fn of(object: &Value) -> Self {
        Self::new(meta::namespace(object), meta::name(object))
    }
}

/// A stored object, and its text once somebody has been told of it: the answer to a write, lists
/// and watches share that.
///
/// Of a *frozen* one there is the text, which is a sixth as large as the tree, and what those ask
/// for who look at every object. Its tree is made again when somebody reads more.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Inner>);

/// At least one of tree and text is there; of one without a tree the head as well.
#[derive(Debug, Default)]
struct Inner {
    tree: OnceLock<Arc<Value>>,
    text: OnceLock<Bytes>,
    head: OnceLock<Arc<Head>>,
    /// Counts the frozen ones whose tree was made again; `None` where it never was away.
    thawed: Option<Thawed>,
}

/// How many frozen objects have a tree by now.
pub(crate) type Thawed = Arc<AtomicUsize>;

/// What is asked of every object.
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

    /// Whether they are the same state of the same object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_text = || {
            let texts = self.0.text.get().zip(other.0.text.get());
            texts.is_some_and(|(one, other)| one.as_ptr() == other.as_ptr())
        };
        Arc::ptr_eq(&self.0, &other.0) || same_text()
    }

    /// The same, frozen.
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

    /// Whether it has a tree, be it again.
    pub(crate) fn has_tree(&self) -> bool {
        self.0.tree.get().is_some()
    }

    /// Whether it was frozen, and has a tree again.
    pub(crate) fn is_thawed(&self) -> bool {
        self.0.thawed.is_some() && self.has_tree()
    }

    /// The object by itself. Of one that is frozen a tree of the caller's own.
    pub fn tree(&self) -> Arc<Value> {
        self.0.tree.get().cloned().unwrap_or_else(|| self.parsed())
    }

    fn parsed(&self) -> Arc<Value> {
        let text = self.0.text.get().and_then(|text| serde_json::from_slice(text).ok());
        Arc::new(text.expect("without a tree there is the text that was made of it"))
    }

    /// The object as JSON, in no more room than it has bytes: what it is written into grows by
    /// doubling, and this stays.
    pub(crate) fn json(&self) -> &Bytes {
        self.0.text.get_or_init(|| Bytes::copy_from_slice(&json_text(&**self)))
    }

    /// As [`meta::is_deleting`].
    pub(crate) fn is_deleting(&self) -> bool {
        self.ask(meta::is_deleting, |head| head.deleting)
    }

    /// As [`meta::uid`].
    pub(crate) fn uid(&self) -> &str {
        self.ask(meta::uid, |head| &head.uid)
    }

    /// As [`meta::owners`].
    pub(crate) fn owners(&self) -> &[Value] {
        self.ask(meta::owners, |head| &head.owners)
    }

    /// As [`meta::created`].
    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.ask(meta::created, |head| head.created)
    }

    /// The value of a label.
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
