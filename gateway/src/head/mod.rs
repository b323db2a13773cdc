//! One request, read once: from the bytes of its head to one struct. What is asked of the store is
//! built from that struct alone.

mod content;
mod copy;
mod headers;
mod operation;
mod reserved;
mod rules;
mod target;

use std::fmt;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method};

pub use self::copy::{CopySource, taken_over};
pub use self::headers::{OWNER, content_encoding, forwarded, hoisted, kept};
pub(crate) use self::operation::is_id;
pub use self::operation::{Level, Operation};
pub use self::rules::{header_names, reaches_store};
pub use self::target::{Domains, Key, Target, path_of};
pub use crate::body::MAX_LENGTH as MAX_BODY;

use crate::body::Payload;
use crate::refusal::{Code, Refusal};
use crate::uri::{self, Pair};

/// Longest path and query, in bytes.
pub const LONGEST_URI: usize = 8 << 10;
/// Most parameters of a query.
const MOST_PARAMETERS: usize = 64;

/// The parameters that carry a signature (Amazon S3, "Authenticating requests: using query
/// parameters"), in lower case; no operation has one of such a name.
const SIGNATURE: [&str; 8] = [
    "x-amz-algorithm",
    "x-amz-content-sha256",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-security-token",
    "x-amz-signature",
    "x-amz-signedheaders",
];

/// The head of a request, decoded, as its signature is checked over it. Signatures and keys of
/// encryption stand in it, so it prints nothing of them.
#[derive(Clone)]
pub struct Sent {
    /// The method.
    pub method: Method,
    /// The path, decoded.
    pub path: Vec<u8>,
    /// The query, decoded, in its order.
    pub query: Vec<Pair>,
    /// The headers, all of them.
    pub headers: HeaderMap,
    /// The bucket that the host names, where it is below one of the gateway's domains.
    bucket_of_host: Option<String>,
}

impl Sent {
    /// Decodes a head.
    ///
    /// # Errors
    /// `InvalidURI` and `InvalidRequest`, for what can't be read or contradicts itself.
    pub fn read(parts: Parts, domains: &Domains) -> Result<Self, Refusal> {
        let target = &parts.uri;
        let query = target.query().unwrap_or_default();
        if target.path().len() + query.len() > LONGEST_URI {
            return Err(Refusal::new(Code::InvalidURI, "The URI has more than 8192 bytes."));
        }
        let host = target::host(&parts.headers, target.authority().map(http::uri::Authority::as_str))?;
        let bucket_of_host = domains.bucket(host).map(str::to_owned);
        let path = uri::decode_path(target.path())?;
        let query = uri::parse_query(query)?;
        if query.len() > MOST_PARAMETERS {
            return Err(Refusal::new(Code::InvalidURI, "The query has more than 64 parameters."));
        }
        Ok(Self { method: parts.method, path, query, headers: parts.headers, bucket_of_host })
    }

    /// The word that says how the body is signed: of the header, or of the query under a signature
    /// in the query; `None` where there is none.
    ///
    /// # Errors
    /// `InvalidArgument` where there is more than one, or it is no text.
    pub fn payload_word(&self, signed_by_query: bool) -> Result<Option<&str>, Refusal> {
        const NAME: &str = "x-amz-content-sha256";
        let of_header = self.headers.get_all(NAME).iter().map(|value| value.as_bytes());
        let is_it = |pair: &&Pair| pair.name.eq_ignore_ascii_case(NAME.as_bytes());
        let of_query = self.query.iter().filter(is_it).filter(|_| signed_by_query).map(|pair| pair.value.as_slice());
        let mut words = of_header.chain(of_query);
        match (words.next().map(std::str::from_utf8), words.next()) {
            (None, _) => Ok(None),
            (Some(Ok(word)), None) => Ok(Some(word)),
            _ => Err(Refusal::new(Code::InvalidArgument, "x-amz-content-sha256 is given twice, or is no text.")),
        }
    }

    /// What it is about.
    ///
    /// # Errors
    /// Those of [`Target::of`].
    pub fn target(&self) -> Result<Target, Refusal> {
        Target::of(&self.path, self.bucket_of_host.as_deref())
    }

    /// What it asks for. `signed_by_query` says where its signature is; a request without one has
    /// none in the query. `word` says how its body is signed.
    ///
    /// # Errors
    /// Whatever is wrong with it, or not known, or not allowed to anybody.
    pub fn ask(mut self, signed_by_query: bool, word: &str) -> Result<Ask, Refusal> {
        let mut query = std::mem::take(&mut self.query);
        if signed_by_query {
            query.retain(|pair| !SIGNATURE.iter().any(|name| pair.name.eq_ignore_ascii_case(name.as_bytes())));
            query = hoisted(query, &mut self.headers)?;
        }
        let target = self.target()?;
        let copy = copy_source(&self.headers)?;
        let (operation, query) = Operation::of(&self.method, target.level(), &query, copy.is_some())?;
        if copy.is_some() && !matches!(operation, Operation::CopyObject | Operation::UploadPartCopy) {
            return Err(Refusal::new(Code::InvalidArgument, "This operation takes no x-amz-copy-source."));
        }
        check_announced(operation, &self.headers)?;
        let payload = content::payload(&self.headers, word)?;
        check_payload(operation, payload)?;
        let headers = headers::forwarded(operation, &self.headers)?;
        Ok(Ask { operation, target, query, headers, payload, copy })
    }
}

/// What a request asks for. Keys of encryption may be among its headers, so it prints none.
#[derive(Clone)]
pub struct Ask {
    /// The operation.
    pub operation: Operation,
    /// What it is about.
    pub target: Target,
    /// The parameters of the operation, decoded, by name.
    pub query: Vec<Pair>,
    /// The headers that the store gets.
    pub headers: HeaderMap,
    /// The body.
    pub payload: Payload,
    /// Where a copy comes from.
    pub copy: Option<CopySource>,
}

impl Ask {
    /// The method that the store is asked by.
    #[must_use]
    pub fn method(&self) -> Method {
        use Operation as O;
        match self.operation {
            O::HeadBucket | O::HeadObject => Method::HEAD,
            O::GetBucketAcl
            | O::GetBucketEncryption
            | O::GetBucketLocation
            | O::GetBucketTagging
            | O::GetBucketVersioning
            | O::GetObject
            | O::GetObjectAcl
            | O::GetObjectAttributes
            | O::GetObjectLockConfiguration
            | O::GetObjectTagging
            | O::GetPublicAccessBlock
            | O::ListBuckets
            | O::ListMultipartUploads
            | O::ListObjectVersions
            | O::ListObjects
            | O::ListObjectsV2
            | O::ListParts => Method::GET,
            // A form is written as the PutObject that it is.
            O::CopyObject
            | O::CreateBucket
            | O::PostObject
            | O::PutObject
            | O::PutObjectTagging
            | O::UploadPart
            | O::UploadPartCopy => Method::PUT,
            O::AbortMultipartUpload | O::DeleteObject | O::DeleteObjectTagging => Method::DELETE,
            O::CompleteMultipartUpload | O::CreateMultipartUpload | O::DeleteObjects => Method::POST,
        }
    }

    /// Whether it names a version other than the present one.
    #[must_use]
    pub fn names_version(&self) -> bool {
        self.query.iter().any(|pair| pair.name == b"versionId")
    }

    /// Whether it asks for other headers in the answer than the object has.
    #[must_use]
    pub fn overrides_headers(&self) -> bool {
        self.query.iter().any(|pair| pair.name.starts_with(b"response-"))
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sent").field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, target, .. } = self;
        f.debug_struct("Ask").field("operation", operation).field("target", target).finish_non_exhaustive()
    }
}

fn copy_source(headers: &HeaderMap) -> Result<Option<CopySource>, Refusal> {
    let mut values = headers.get_all("x-amz-copy-source").iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => CopySource::parse(value.as_bytes()).map(Some),
        _ => Err(Refusal::new(Code::InvalidArgument, "x-amz-copy-source is given twice.")),
    }
}

/// Longest body of a request that is answered without it.
const LONGEST_IGNORED: u64 = 4 << 10;

/// A body that is to be stored, or a document, comes with its length or in chunks.
fn check_announced(operation: Operation, headers: &HeaderMap) -> Result<(), Refusal> {
    let has_body = operation.stores_body() || operation.longest_document().is_some();
    let is_announced = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if has_body && !is_announced {
        let message = "You must provide the Content-Length HTTP header.";
        return Err(Refusal::new(Code::MissingContentLength, message));
    }
    Ok(())
}

/// Bodies where there should be none, or too long a document.
fn check_payload(operation: Operation, payload: Payload) -> Result<(), Refusal> {
    match operation.longest_document() {
        Some(longest) if payload.length() > longest => {
            Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."))
        }
        // It may name a region, which nobody reads.
        None if operation == Operation::CreateBucket && payload.length() <= LONGEST_IGNORED => Ok(()),
        None if !operation.stores_body() && payload.length() > 0 => {
            Err(Refusal::new(Code::InvalidRequest, "This operation takes no body."))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
