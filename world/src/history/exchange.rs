//! Exchanges: a tenant's request to a gateway, the resulting requests to the stores, and the
//! answer.
//!
//! Plain data. Exchanges do not overlap, so every change at the stores during one is caused by it.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Current objects of all buckets: by host and port of the store and bucket name, then by key.
pub type Contents = BTreeMap<(String, String), BTreeMap<String, Bytes>>;

/// A request of a tenant from beginning to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Index of the gateway, counted from 0.
    pub gateway: usize,
    /// Claim of the tenant; empty for a request of no tenant.
    pub tenant: String,
    /// Access key id that signed the request, if any.
    pub access_key_id: Option<String>,
    /// Meaning of the request.
    pub meant: Meant,
    /// Permission of the tenant for the request.
    pub right: Right,
    /// Answer to the client.
    pub answer: Answer,
    /// Requests that the stores received meanwhile.
    pub received: Vec<Received>,
    /// Contents of all buckets just before.
    pub before: Contents,
    /// Contents of all buckets just after.
    pub after: Contents,
}

/// Meaning of a request, as declared by its generator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meant {
    /// Effect on objects.
    pub act: Act,
    /// HTTP method.
    pub method: &'static str,
    /// The bucket.
    pub bucket: String,
    /// The object's key; empty for the bucket itself.
    pub key: String,
    /// Names and values of the query, decoded.
    pub query: Vec<(String, String)>,
    /// Headers that the store must receive.
    pub headers: Vec<(String, String)>,
    /// Bucket and key of the source of a copy.
    pub source: Option<(String, String)>,
    /// Bytes of the object, or the document, as the tenant signed it.
    pub body: Bytes,
}

/// Effect of a request on objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Act {
    /// No effect.
    #[default]
    Look,
    /// Reads an object, or the bytes from the first to the last position.
    Read(Option<(usize, usize)>),
    /// Writes its body as an object.
    Write,
    /// Writes its body as a part, which is visible only after completion.
    Part,
    /// Writes a copy as an object.
    Copy,
    /// Writes these parts as an object.
    Join(Vec<Bytes>),
    /// Removes these objects.
    Remove(Vec<String>),
}

/// Permission for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Permitted; must be served.
    Good,
    /// May be served or refused.
    Either,
    /// Signed with another key, partly unsigned, or signed too long ago.
    Unsigned,
    /// Body differs from the signed or announced one. The request may reach a store, which must not
    /// keep the body.
    OtherBody,
    /// The bucket is not the tenant's or not public any more, or the operation is not permitted to
    /// tenants.
    Beyond,
    /// The key has expired, or never existed.
    Over,
    /// Would exceed the bucket's hard quota.
    TooMuch,
}

/// Answer to a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers, names and values.
    pub headers: Vec<(String, String)>,
    /// Body; `Err` has the bytes received before it broke off.
    pub body: Result<Bytes, Bytes>,
}

/// A request as a store received it, byte by byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Host and port.
    pub host: String,
    /// The method.
    pub method: String,
    /// Path and query, unchanged.
    pub target: String,
    /// Headers, names and values.
    pub headers: Vec<(String, String)>,
    /// Body; `None` if it was incomplete.
    pub body: Option<Bytes>,
}
