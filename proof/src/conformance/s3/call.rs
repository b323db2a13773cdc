//! Operations on a store as plain data. They do not depend on any store's answers: `$(version a/k
//! 0)` in a text is replaced by the newest version of `k` in bucket `a` that was seen on the side
//! to which the operation is sent.

use std::fmt;

use md5::{Digest as _, Md5};

/// Keys that sign a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Keys of the account.
    Account,
    /// The account's access key with another secret key.
    WrongSecret,
    /// An access key that the store does not know.
    Unknown,
    /// No signature.
    Nobody,
}

/// Body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A text with placeholders.
    Text(String),
    /// This byte, repeated that many times. Parts of a multipart upload have a minimum size.
    Filled(u8, usize),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// HTTP method.
    pub method: &'static str,
    /// Bucket; `None` for requests to the store.
    pub bucket: Option<String>,
    /// Key, not yet encoded; `None` for requests to the bucket.
    pub key: Option<String>,
    /// Query parameters, not yet encoded. Some have no value.
    pub query: Vec<(&'static str, Option<String>)>,
    /// Headers other than those of the signature.
    pub headers: Vec<(&'static str, String)>,
    /// Body of the request.
    pub body: Body,
    /// Keys that sign the request.
    pub signer: Signer,
}

/// Operation of a paginated list. It decides how the next page is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// ListObjects.
    Objects,
    /// ListObjectsV2.
    ObjectsV2,
    /// ListObjectVersions.
    Versions,
    /// ListMultipartUploads.
    Uploads,
    /// ListParts.
    Parts,
}

/// An operation for both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request.
    Call(Call),
    /// A list, requested page by page until its end.
    Pages(Listing, Call),
}

/// Placeholder for the digest of the body in a header. The digest is of the body after its
/// placeholders are filled in.
pub(super) const DIGEST: &str = "$(md5)";

/// Returns the full name of a bucket of the sequence.
pub(super) fn own(bucket: &str) -> String {
    format!("$(place)-{bucket}")
}

/// Returns the entity tag of an object that is written in a single request, with quotes.
pub(super) fn tag_of(body: &str) -> String {
    format!("\"{}\"", hex::encode(Md5::digest(body)))
}

impl Call {
    /// Creates a request to the store.
    pub fn to_store(method: &'static str) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        let body = Body::Text(String::new());
        Self { method, bucket: None, key: None, query, headers, body, signer: Signer::Account }
    }

    /// Creates a request to a bucket of the sequence.
    pub fn to_bucket(method: &'static str, bucket: &str) -> Self {
        Self { bucket: Some(own(bucket)), ..Self::to_store(method) }
    }

    /// Creates a request to a key in a bucket of the sequence.
    pub fn to_key(method: &'static str, bucket: &str, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::to_bucket(method, bucket) }
    }

    /// Adds a subresource, which is a query parameter without a value.
    #[must_use]
    pub fn of(mut self, subresource: &'static str) -> Self {
        self.query.push((subresource, None));
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, Some(value.into())));
        self
    }

    /// Adds a query parameter if it has a value.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the body to a text.
    #[must_use]
    pub fn body(self, text: impl Into<String>) -> Self {
        Self { body: Body::Text(text.into()), ..self }
    }

    /// Sets the body to a text and adds its digest, which some operations require.
    #[must_use]
    pub fn checked(self, text: impl Into<String>) -> Self {
        self.header("content-md5", DIGEST).body(text)
    }

    /// Sets the keys that sign the request.
    #[must_use]
    pub fn signed(self, signer: Signer) -> Self {
        Self { signer, ..self }
    }

    /// Returns true if the request has this subresource.
    pub(super) fn is_of(&self, subresource: &str) -> bool {
        self.query.iter().any(|(name, _)| *name == subresource)
    }

    /// Returns true if the answer to a read is an object's data and not a document.
    pub(super) fn is_object(&self) -> bool {
        const DOCUMENTS: [&str; 6] = ["tagging", "retention", "legal-hold", "uploads", "uploadId", "delete"];
        self.key.is_some() && !DOCUMENTS.iter().any(|name| self.is_of(name))
    }

    /// Returns bucket and key as placeholders name them: `a/dir/x`.
    pub(super) fn object(&self) -> String {
        let bucket = self.bucket.as_deref().unwrap_or_default();
        format!("{}/{}", bucket.strip_prefix("$(place)-").unwrap_or(bucket), self.key.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /{}", self.method, self.bucket.as_deref().unwrap_or_default())?;
        if let Some(key) = &self.key {
            write!(f, "/{key}")?;
        }
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}", if index == 0 { '?' } else { '&' })?;
            value.iter().try_for_each(|value| write!(f, "={value}"))?;
        }
        for (name, value) in &self.headers {
            write!(f, " {name}: {value}")?;
        }
        if self.signer != Signer::Account {
            write!(f, " signed by {:?}", self.signer)?;
        }
        match &self.body {
            Body::Text(text) if text.is_empty() => Ok(()),
            Body::Text(text) if text.len() > 400 => write!(f, " with {} bytes", text.len()),
            Body::Text(text) => write!(f, " with {text}"),
            Body::Filled(byte, length) => write!(f, " with {length} times {byte:#04x}"),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => call.fmt(f),
            Self::Pages(_, first) => write!(f, "all pages of {first}"),
        }
    }
}

impl From<Call> for Operation {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}
