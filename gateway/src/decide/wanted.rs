//! What a request asks for, as far as access is concerned.

use stowage_api::BucketName;

use crate::deletion::Deletion;
use crate::head::{Ask, CopySource, Operation};

/// What is asked for, as far as access is concerned. Keys and prefixes are decoded bytes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The operation.
    pub operation: Operation,
    /// The bucket, where one is named.
    pub bucket: Option<&'a BucketName>,
    /// The object's key, where one is named.
    pub key: Option<&'a [u8]>,
    /// What the keys of a list begin with, where that is said.
    pub prefix: Option<&'a [u8]>,
    /// The objects that a DeleteObjects deletes, once its body has been read.
    pub deletion: Option<&'a Deletion>,
    /// Where a copy comes from.
    pub source: Option<&'a CopySource>,
    /// Whether it is about a version that may be past.
    pub names_version: bool,
    /// Whether it wants other headers than an object has.
    pub overrides_headers: bool,
}

impl<'a> Wanted<'a> {
    /// What a request wants.
    #[must_use]
    pub fn of(ask: &'a Ask) -> Self {
        let prefix = ask.query.iter().find(|pair| pair.name == b"prefix").map(|pair| pair.value.as_slice());
        Self {
            operation: ask.operation,
            bucket: ask.target.bucket(),
            key: ask.target.key().map(|key| key.as_str().as_bytes()),
            prefix: prefix.filter(|_| ask.operation.lists()),
            deletion: None,
            source: ask.copy.as_ref(),
            names_version: ask.names_version(),
            overrides_headers: ask.overrides_headers(),
        }
    }

    /// An operation on a bucket itself, and nothing more.
    #[must_use]
    pub fn of_bucket(operation: Operation, bucket: &'a BucketName) -> Self {
        Self {
            operation,
            bucket: Some(bucket),
            key: None,
            prefix: None,
            deletion: None,
            source: None,
            names_version: false,
            overrides_headers: false,
        }
    }
}
