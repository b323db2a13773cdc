//! The [`Wanted`] type: the input of an authorisation.

use stowage_api::BucketName;

use crate::deletion::Deletion;
use crate::head::{Ask, CopySource, Operation};

/// The properties of a request that decide about access. Keys and prefixes are decoded bytes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The operation.
    pub operation: Operation,
    /// The bucket, if the request names one.
    pub bucket: Option<&'a BucketName>,
    /// The object's key, if the request names one.
    pub key: Option<&'a [u8]>,
    /// The prefix of a list, if the request has one.
    pub prefix: Option<&'a [u8]>,
    /// The objects that a DeleteObjects deletes, once its body has been read.
    pub deletion: Option<&'a Deletion>,
    /// The source of a copy.
    pub source: Option<&'a CopySource>,
    /// True if the request names a version, which may be a past one.
    pub names_version: bool,
    /// True if the request overrides headers of the response.
    pub overrides_headers: bool,
}

impl<'a> Wanted<'a> {
    /// Returns the properties of a parsed request.
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

    /// Returns the properties of an operation on a bucket, without a key or other parameters.
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
