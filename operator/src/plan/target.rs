//! A bucket at a backend, as the target of store requests.

use crate::api::{BucketName, BucketRecord, Endpoint, RecordName};

/// A bucket at a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name of the S3Backend.
    pub backend: String,
    /// Endpoint of the backend. The request is made only if the backend still has it.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
}

impl Target {
    /// Returns the bucket of a record, at the record's endpoint.
    pub fn of(record: &BucketRecord) -> Self {
        Self { backend: record.backend.clone(), endpoint: record.endpoint.clone(), bucket: record.bucket.clone() }
    }

    /// Returns the name of the record of this bucket.
    pub fn record(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }

    /// Returns true if this is the record's bucket, at any endpoint.
    pub(super) fn is_of(&self, record: &BucketRecord) -> bool {
        self.backend == record.backend && self.bucket == record.bucket
    }
}
