//! Context of an operation.

use jiff::Timestamp;
use s3s::{S3ErrorCode, S3Result};

use super::dialect::Dialect;
use super::disturbance::Disturbance;
use super::errors::refuse;
use super::state::{Bucket, State};

/// A request being executed. It has exclusive access to the store.
pub(super) struct Call<'a> {
    pub(super) state: &'a mut State,
    pub(super) dialect: &'a Dialect,
    pub(super) now: Timestamp,
    /// Account that sent the request.
    pub(super) account: &'a str,
    /// Fault in the response.
    pub(super) disturbance: Option<Disturbance>,
}

impl Call<'_> {
    /// Returns a bucket of the caller's account, or one to which it was granted access.
    ///
    /// # Errors
    /// `InvalidBucketName`, `NoSuchBucket`, and `AccessDenied` for a bucket of another account.
    pub(super) fn bucket(&mut self, name: &str) -> S3Result<&mut Bucket> {
        if !s3s::path::check_bucket_name(name) {
            return Err(refuse(S3ErrorCode::InvalidBucketName));
        }
        let found = self.state.buckets.get_mut(name);
        let bucket = found.ok_or_else(|| refuse(S3ErrorCode::NoSuchBucket))?;
        if bucket.lets_in(self.account) { Ok(bucket) } else { Err(refuse(S3ErrorCode::AccessDenied)) }
    }
}
