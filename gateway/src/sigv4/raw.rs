//! A request's head, as input for signatures.

use http::{HeaderMap, HeaderName};

use crate::uri::Pair;

/// The header with the time of a request.
pub(super) const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
/// The header with the hash of a request's body, or a constant in its place.
pub(super) const AMZ_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// The SHA-256 of the empty string, with which every client signs requests without a body.
pub(crate) const HASH_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A request's head, decoded once, with the headers as they were sent, before any is removed.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, decoded.
    pub path: &'a [u8],
    /// The query, decoded, including the signature's parameters.
    pub query: &'a [Pair],
    /// All headers, also hop-by-hop ones: clients sign them, too.
    pub headers: &'a HeaderMap,
}
