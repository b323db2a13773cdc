//! The parser of request heads: from the bytes of a head to one struct. The request to the store is
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

/// Maximum length of path and query together, in bytes.
pub const LONGEST_URI: usize = 8 << 10;
/// Maximum number of parameters of a query.
const MOST_PARAMETERS: usize = 64;

/// The query parameters of a signature (Amazon S3, "Authenticating requests: using query
/// parameters"), in lower case. No operation has a parameter of such a name.
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

/// The decoded head of a request, over which the signature is verified. Its `Debug` output omits
/// the fields that may have signatures and encryption keys.
#[derive(Clone)]
pub struct Sent {
    /// The method.
    pub method: Method,
    /// The path, decoded.
    pub path: Vec<u8>,
    /// The query, decoded, in its original order.
    pub query: Vec<Pair>,
    /// All headers.
    pub headers: HeaderMap,
    /// The bucket named by the host, if the host is below one of the gateway's domains.
    bucket_of_host: Option<String>,
}

impl Sent {
    /// Decodes a head.
    ///
    /// # Errors
    /// `InvalidURI` or `InvalidRequest` if it is malformed or contradicts itself.
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

    /// Returns the value of `x-amz-content-sha256`, which says how the body is signed, or `None` if
    /// there is none. It is read from the header, and from the query if the signature is in the
    /// query.
    ///
    /// # Errors
    /// `InvalidArgument` if it is given twice or is not text.
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

    /// Returns the bucket or object that the request is about.
    ///
    /// # Errors
    /// Returns the errors of [`Target::of`].
    pub fn target(&self) -> Result<Target, Refusal> {
        Target::of(&self.path, self.bucket_of_host.as_deref())
    }

    /// Parses the request. `signed_by_query` is true if the signature is in the query. `word` is
    /// the value of `x-amz-content-sha256`.
    ///
    /// # Errors
    /// Returns the first error of any part: malformed, unknown, or allowed to no client.
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

/// A parsed request. Its `Debug` output omits the headers, which may have encryption keys.
#[derive(Clone)]
pub struct Ask {
    /// The operation.
    pub operation: Operation,
    /// The bucket or object.
    pub target: Target,
    /// The parameters of the operation, decoded and sorted by name.
    pub query: Vec<Pair>,
    /// The headers to forward.
    pub headers: HeaderMap,
    /// The body.
    pub payload: Payload,
    /// The source of a copy.
    pub copy: Option<CopySource>,
}

impl Ask {
    /// Returns the method of the request to the store.
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
            // A form is stored by an equivalent PutObject.
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

    /// Returns true if the request names a version.
    #[must_use]
    pub fn names_version(&self) -> bool {
        self.query.iter().any(|pair| pair.name == b"versionId")
    }

    /// Returns true if the request overrides headers of the response.
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

/// Maximum length in bytes of a body that is ignored.
const LONGEST_IGNORED: u64 = 4 << 10;

/// Refuses a request whose body is stored or is a document, if it has neither a length nor chunks.
fn check_announced(operation: Operation, headers: &HeaderMap) -> Result<(), Refusal> {
    let has_body = operation.stores_body() || operation.longest_document().is_some();
    let is_announced = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if has_body && !is_announced {
        let message = "You must provide the Content-Length HTTP header.";
        return Err(Refusal::new(Code::MissingContentLength, message));
    }
    Ok(())
}

/// Refuses a body if the operation has none, and a document that is too long.
fn check_payload(operation: Operation, payload: Payload) -> Result<(), Refusal> {
    match operation.longest_document() {
        Some(longest) if payload.length() > longest => {
            Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."))
        }
        // The body may name a region, which the gateway ignores.
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
