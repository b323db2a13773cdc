//! Who looks on: everything that is asked for and everything that is stored, in the order in which
//! it happens.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

/// The number under which a request's sender wants to be noted; whoever knows it puts it among the
/// extensions of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author(pub u64);

/// A write that somebody asked for, whatever comes of it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// HTTP method: POST, PUT, PATCH or DELETE.
    pub method: http::Method,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// `status` or another part of the object; absent for the object itself.
    pub subresource: Option<String>,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name; empty for a POST, where the body has it, and for a collection.
    pub name: String,
    /// The body's form.
    pub content_type: String,
    /// The body as it was sent.
    pub body: Bytes,
}

/// A change of a stored object.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object before; `None` for one that is new.
    pub old: Option<Arc<Value>>,
    /// The object now; `None` for one that is gone.
    pub new: Option<Arc<Value>>,
}

/// Told of what happens, while it happens: has to be quick and must not call the cluster.
pub trait Observer: Send + Sync {
    /// A write was asked for.
    fn asked(&self, author: Option<Author>, write: Asked);

    /// An object changed.
    fn stored(&self, author: Option<Author>, change: Stored);
}
