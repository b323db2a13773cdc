//! A request's head as signatures see it.

use http::{HeaderMap, HeaderName};

use crate::uri::Pair;

/// Header with the time of a request.
pub(super) const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
/// Header with the hash of a request's body, or a word in its place.
pub(super) const AMZ_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// The SHA-256 of no bytes: how requests without a body are signed, as every client does it.
pub(crate) const HASH_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What a request's head says, decoded once; the headers as they came, before any is removed.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, decoded.
    pub path: &'a [u8],
    /// The query, decoded, with the signature's parameters.
    pub query: &'a [Pair],
    /// All headers, those for one hop included: clients sign them, too.
    pub headers: &'a HeaderMap,
}
