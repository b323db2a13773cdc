//! How stores differ: the switches between the readings of the S3 protocol found in the field.

/// What CreateBucket answers when the caller already owns a bucket of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingOwnBucket {
    /// `BucketAlreadyOwnedByYou`, 409: Amazon S3 in all regions but one, MinIO.
    AlreadyOwnedByYou,
    /// 200 as if it had been made: Amazon S3 in us-east-1, Garage.
    Ok,
}

/// The reading of the protocol that a [`Store`](super::Store) follows.
///
/// The default is Amazon S3 in us-east-1, except for [`ExistingOwnBucket`], where it is the
/// answer that most other stores give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The region of the endpoint; buckets are made in it unless asked otherwise.
    pub region: String,
    /// What a repeated CreateBucket answers to the owner.
    pub existing_own_bucket: ExistingOwnBucket,
    /// Whether bucket tagging exists; without it, its three operations answer `NotImplemented`.
    pub tagging: bool,
    /// Whether settings of a bucket that isn't there are answered as if it were: GetBucketTagging
    /// with `NoSuchTagSet`, DeleteBucketTagging and PutBucketVersioning with success, as MinIO does
    /// (seen of 2026-02).
    pub settings_of_missing_buckets: bool,
    /// Whether versioning exists; without it, Get/PutBucketVersioning answer `NotImplemented`.
    pub versioning: bool,
    /// Whether object lock exists; without it, its operations answer `NotImplemented`.
    pub object_lock: bool,
    /// Whether a signature made for another region is refused (`AuthorizationHeaderMalformed`).
    pub checks_signing_region: bool,
    /// Whether unfinished multipart uploads keep a bucket from being deleted. They do not on
    /// Amazon S3 (general purpose buckets), MinIO and Ceph: they vanish with the bucket. They do
    /// for S3 directory buckets.
    pub uploads_block_bucket_deletion: bool,
    /// The least size in bytes of every part of a multipart upload but the last.
    pub minimum_part_size: usize,
    /// The most entries one page of a listing holds, whatever the request asks for.
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
