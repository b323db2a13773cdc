//! A generated request and its parts.

use std::fmt;

use http::HeaderMap;
use stowage_gateway::uri::Pair;
use stowage_testbed::request::Signed;

use super::form::Form;
use super::scene::{Kind, Who};

/// Body of a request.
#[derive(Clone)]
pub(in super::super) enum Body {
    Bytes(Vec<u8>),
    /// A form, the policy of which is signed when it is sent.
    Form(Form),
}

/// A request before it is signed.
#[derive(Clone)]
pub(in super::super) struct Request {
    pub(in super::super) number: u64,
    pub(in super::super) kind: Kind,
    pub(in super::super) who: Who,
    /// Place of the signature.
    pub(in super::super) signed: Signed,
    pub(in super::super) method: &'static str,
    /// The path, decoded, as it is signed.
    pub(in super::super) path: Vec<u8>,
    /// The query, decoded.
    pub(in super::super) query: Vec<Pair>,
    /// Path and query, encoded.
    pub(in super::super) target: String,
    pub(in super::super) headers: HeaderMap,
    pub(in super::super) body: Body,
}

/// A request before its target is encoded.
pub(super) struct Draft {
    pub(super) method: &'static str,
    /// `None` for a request on the bucket.
    pub(super) key: Option<Vec<u8>>,
    pub(super) query: Vec<Pair>,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, kind, who, signed, method, target, .. } = self;
        write!(f, "request {number} ({}) of the {who:?}, signed by {signed:?}: {method} {target}", kind.name())
    }
}
