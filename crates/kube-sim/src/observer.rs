//! Observation of all writes requested and all changes stored, in the order in which they happen.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

/// A number that identifies the sender of a request, set by the sender in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author(pub u64);

/// A requested write, whether or not it succeeds.
#[derive(Clone, Debug)]
pub struct Asked {
    /// HTTP method: POST, PUT, PATCH or DELETE.
    pub method: http::Method,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// `status` or another subresource; `None` for the object itself.
    pub subresource: Option<String>,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object. Empty for a POST, whose body contains it, and for a collection.
    pub name: String,
    /// Content type of the body.
    pub content_type: String,
    /// The body as it was sent.
    pub body: Bytes,
}

/// A change of a stored object.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Object before the change; `None` if it is new.
    pub old: Option<Arc<Value>>,
    /// Object after the change; `None` if it was removed.
    pub new: Option<Arc<Value>>,
}

/// A listener for writes and changes. It is called while they happen, so it must be quick and must
/// not call the cluster.
pub trait Observer: Send + Sync {
    /// Receives a requested write.
    fn asked(&self, author: Option<Author>, write: Asked);

    /// Receives a change of an object.
    fn stored(&self, author: Option<Author>, change: Stored);
}
