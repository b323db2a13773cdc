//! Differences between stores, as switches for interpretations of the S3 protocol found in
//! practice.

/// Response of CreateBucket if the caller already owns a bucket of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingOwnBucket {
    /// `BucketAlreadyOwnedByYou`, 409: Amazon S3 in all regions except us-east-1, MinIO.
    AlreadyOwnedByYou,
    /// 200, as for a new bucket: Amazon S3 in us-east-1, Garage.
    Ok,
}

/// The interpretation of the protocol that a [`Store`](super::Store) follows.
///
/// The default is Amazon S3 in us-east-1, except for [`ExistingOwnBucket`], whose default is the
/// response of most other stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Region of the endpoint. Buckets are created in it unless the request names another one.
    pub region: String,
    /// Response of a repeated CreateBucket to the owner.
    pub existing_own_bucket: ExistingOwnBucket,
    /// True if bucket tagging is supported. If not, its three operations return `NotImplemented`.
    pub tagging: bool,
    /// True if requests for settings of a missing bucket are answered as if it existed, like in
    /// MinIO (observed in 2026-02). GetBucketTagging returns `NoSuchTagSet`; DeleteBucketTagging
    /// and PutBucketVersioning succeed.
    pub settings_of_missing_buckets: bool,
    /// True if versioning is supported. If not, Get/PutBucketVersioning return `NotImplemented`.
    pub versioning: bool,
    /// True if object lock is supported. If not, its operations return `NotImplemented`.
    pub object_lock: bool,
    /// True if a signature for another region is rejected (`AuthorizationHeaderMalformed`).
    pub checks_signing_region: bool,
    /// True if unfinished multipart uploads prevent the deletion of a bucket, as for S3 directory
    /// buckets. On Amazon S3 (general purpose buckets), MinIO and Ceph they do not, and are deleted
    /// with the bucket.
    pub uploads_block_bucket_deletion: bool,
    /// Minimum size in bytes of every part of a multipart upload except the last.
    pub minimum_part_size: usize,
    /// Maximum number of entries on a page of a listing, even if the request allows more.
    pub page_size: usize,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            existing_own_bucket: ExistingOwnBucket::AlreadyOwnedByYou,
            tagging: true,
            settings_of_missing_buckets: false,
            versioning: true,
            object_lock: true,
            checks_signing_region: true,
            uploads_block_bucket_deletion: false,
            minimum_part_size: 5 * 1024 * 1024,
            page_size: 1000,
        }
    }
}
