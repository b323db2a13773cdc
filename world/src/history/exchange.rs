//! What a tenant asked a gateway, what the gateway asked the stores for it, and what came of it.
//!
//! Plain data. One exchange is over before the next one begins, so that what changed at the stores
//! meanwhile is its doing.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The present objects of all buckets: by host and port of the store and by name, then by key.
pub type Contents = BTreeMap<(String, String), BTreeMap<String, Bytes>>;

/// A request of a tenant, from beginning to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The gateway that was asked, counted from 0.
    pub gateway: usize,
    /// Whom it is from, by the claim; nobody's if empty.
    pub tenant: String,
    /// The key id that it is signed with, if any.
    pub access_key_id: Option<String>,
    /// What the tenant means by it.
    pub meant: Meant,
    /// Whether the tenant may ask for that.
    pub right: Right,
    /// What the client got.
    pub answer: Answer,
    /// What the stores were asked meanwhile.
    pub received: Vec<Received>,
    /// All buckets, right before.
    pub before: Contents,
    /// All buckets, right after.
    pub after: Contents,
}

/// What a request means, told by who made it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meant {
    /// What is asked for.
    pub act: Act,
    /// The method.
    pub method: &'static str,
    /// The bucket.
    pub bucket: String,
    /// The object's key; empty for the bucket itself.
    pub key: String,
    /// Names and values of the query, decoded.
    pub query: Vec<(String, String)>,
    /// Headers that the store is to have.
    pub headers: Vec<(String, String)>,
    /// Bucket and key that are copied.
    pub source: Option<(String, String)>,
    /// The object's bytes, or the document, as the tenant signed it.
    pub body: Bytes,
}

/// What a request does to objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Act {
    /// Nothing.
    #[default]
    Look,
    /// Reads an object, or of it the bytes from the first to the last of these.
    Read(Option<(usize, usize)>),
    /// Writes its body as an object.
    Write,
    /// Writes its body as a part, which shows later.
    Part,
    /// Writes what it copies as an object.
    Copy,
    /// Writes these parts as an object.
    Join(Vec<Bytes>),
    /// Removes these objects.
    Remove(Vec<String>),
}

/// Whether a request is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// It is, and has to be served.
    Good,
    /// It may be served or refused.
    Either,
    /// It is signed by somebody else, or not all of it is signed, or too long ago.
    Unsigned,
    /// Its body is not what was signed or announced: a store may be asked, and must not keep it.
    OtherBody,
    /// It is about a bucket that is not the tenant's, or public no more, or asks for what tenants
    /// may not do.
    Beyond,
    /// Its key is over, or never was.
    Over,
    /// It would make the bucket hold more than its hard quota.
    TooMuch,
}

/// What a client got.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers, names and values.
    pub headers: Vec<(String, String)>,
    /// The body, or what came before it broke off.
    pub body: Result<Bytes, Bytes>,
}

/// What a store was asked, byte by byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Host and port.
    pub host: String,
    /// The method.
    pub method: String,
    /// Path and query as they stood there.
    pub target: String,
    /// Headers, names and values.
    pub headers: Vec<(String, String)>,
    /// The body; `None` where it never came to its end.
    pub body: Option<Bytes>,
}
