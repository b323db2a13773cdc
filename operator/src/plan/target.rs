//! A bucket at a backend, as a target of calls.

use crate::api::{BucketName, BucketRecord, Endpoint, RecordName};

/// A bucket at a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name of the S3Backend.
    pub backend: String,
    /// Its endpoint: the call is made only if the backend still has it.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
}

impl Target {
    /// The bucket of a record, where the record says that it is.
    pub fn of(record: &BucketRecord) -> Self {
        Self { backend: record.backend.clone(), endpoint: record.endpoint.clone(), bucket: record.bucket.clone() }
    }

    /// Name of the record of this bucket.
    pub fn record(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }

    /// Whether this is the record's bucket, at whatever endpoint its backend has now.
    pub(super) fn is_of(&self, record: &BucketRecord) -> bool {
        self.backend == record.backend && self.bucket == record.bucket
    }
}
