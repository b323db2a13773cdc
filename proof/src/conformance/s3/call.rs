//! Operations on a store as plain data. Nothing in them depends on what a store answered:
//! `$(version a/k 0)` in a text stands for the newest version of `k` in bucket `a` that was seen,
//! on the side that the operation is sent to.

use std::fmt;

use md5::{Digest as _, Md5};

/// With which keys a request is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Those of the account.
    Account,
    /// The account's access key, and another secret key.
    WrongSecret,
    /// An access key that the store doesn't know.
    Unknown,
    /// None: the request isn't signed.
    Nobody,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A text, in which places are filled in.
    Text(String),
    /// So many bytes of a kind: parts of a multipart upload have a least size.
    Filled(u8, usize),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method of HTTP.
    pub method: &'static str,
    /// The bucket; none for requests to the store.
    pub bucket: Option<String>,
    /// The key, not yet encoded; none for requests to the bucket.
    pub key: Option<String>,
    /// Parameters, not yet encoded; some have no value.
    pub query: Vec<(&'static str, Option<String>)>,
    /// Headers besides those of the signature.
    pub headers: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: Body,
    /// Who signs.
    pub signer: Signer,
}

/// What a list in pages is of, which says how its next page is asked for.
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

/// Something to do on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request.
    Call(Call),
    /// A list to its end, page by page.
    Pages(Listing, Call),
}

/// Stands for the digest of the body in a header: what is filled into the body counts.
pub(super) const DIGEST: &str = "$(md5)";

/// The name of a bucket of the sequence.
pub(super) fn own(bucket: &str) -> String {
    format!("$(place)-{bucket}")
}

/// The entity tag of a body that is written in one piece, with its quotes.
pub(super) fn tag_of(body: &str) -> String {
    format!("\"{}\"", hex::encode(Md5::digest(body)))
}

impl Call {
    /// A request to the store.
    pub fn to_store(method: &'static str) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        let body = Body::Text(String::new());
        Self { method, bucket: None, key: None, query, headers, body, signer: Signer::Account }
    }

    /// A request to a bucket of the sequence.
    pub fn to_bucket(method: &'static str, bucket: &str) -> Self {
        Self { bucket: Some(own(bucket)), ..Self::to_store(method) }
    }

    /// A request to a key in a bucket of the sequence.
    pub fn to_key(method: &'static str, bucket: &str, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::to_bucket(method, bucket) }
    }

    /// With a parameter that has no value: the subresource.
    #[must_use]
    pub fn of(mut self, subresource: &'static str) -> Self {
        self.query.push((subresource, None));
        self
    }

    /// With this parameter.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, Some(value.into())));
        self
    }

    /// With this parameter, if there is one.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With this text as its body.
    #[must_use]
    pub fn body(self, text: impl Into<String>) -> Self {
        Self { body: Body::Text(text.into()), ..self }
    }

    /// With this text as its body, and its digest, which some operations insist on.
    #[must_use]
    pub fn checked(self, text: impl Into<String>) -> Self {
        self.header("content-md5", DIGEST).body(text)
    }

    /// Signed so.
    #[must_use]
    pub fn signed(self, signer: Signer) -> Self {
        Self { signer, ..self }
    }

    /// Whether the request is about this subresource.
    pub(super) fn is_of(&self, subresource: &str) -> bool {
        self.query.iter().any(|(name, _)| *name == subresource)
    }

    /// Whether the answer to a read is an object's data, not a document.
    pub(super) fn is_object(&self) -> bool {
        const DOCUMENTS: [&str; 6] = ["tagging", "retention", "legal-hold", "uploads", "uploadId", "delete"];
        self.key.is_some() && !DOCUMENTS.iter().any(|name| self.is_of(name))
    }

    /// The key with the bucket before it, as places name it: `a/dir/x`.
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
