//! Table of S3 operations by method, path and query keys.
//!
//! Data only. The rows and their order are those of the AWS service model, as s3s routes them; the
//! first match wins. Left out are directory buckets, `SelectObjectContent` and Object Lambda, which
//! no path-style bucket store needs. The two copy operations differ only by a header, which the
//! reader of the table checks.

use Level::{Bucket, Object, Root};

/// Level of a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// `/`: the account.
    Root,
    /// `/bucket`.
    Bucket,
    /// `/bucket/key`.
    Object,
}

/// One row: method, level of the path, required query keys, operation.
pub(super) type Route = (&'static str, Level, &'static [&'static str], &'static str);

/// All rows, most specific first within a method and level.
#[rustfmt::skip]
pub(super) const ROUTES: &[Route] = &[
    ("HEAD", Bucket, &[], "HeadBucket"),
    ("HEAD", Object, &[], "HeadObject"),
    ("GET", Root, &[], "ListBuckets"),
    ("GET", Bucket, &["analytics", "id"], "GetBucketAnalyticsConfiguration"),
    ("GET", Bucket, &["intelligent-tiering", "id"], "GetBucketIntelligentTieringConfiguration"),
    ("GET", Bucket, &["inventory", "id"], "GetBucketInventoryConfiguration"),
    ("GET", Bucket, &["metrics", "id"], "GetBucketMetricsConfiguration"),
    ("GET", Bucket, &["session"], "CreateSession"),
    ("GET", Bucket, &["accelerate"], "GetBucketAccelerateConfiguration"),
    ("GET", Bucket, &["acl"], "GetBucketAcl"),
    ("GET", Bucket, &["cors"], "GetBucketCors"),
    ("GET", Bucket, &["encryption"], "GetBucketEncryption"),
    ("GET", Bucket, &["lifecycle"], "GetBucketLifecycleConfiguration"),
    ("GET", Bucket, &["location"], "GetBucketLocation"),
    ("GET", Bucket, &["logging"], "GetBucketLogging"),
    ("GET", Bucket, &["metadataTable"], "GetBucketMetadataTableConfiguration"),
    ("GET", Bucket, &["notification"], "GetBucketNotificationConfiguration"),
    ("GET", Bucket, &["ownershipControls"], "GetBucketOwnershipControls"),
    ("GET", Bucket, &["policy"], "GetBucketPolicy"),
    ("GET", Bucket, &["policyStatus"], "GetBucketPolicyStatus"),
    ("GET", Bucket, &["replication"], "GetBucketReplication"),
    ("GET", Bucket, &["requestPayment"], "GetBucketRequestPayment"),
    ("GET", Bucket, &["tagging"], "GetBucketTagging"),
    ("GET", Bucket, &["versioning"], "GetBucketVersioning"),
    ("GET", Bucket, &["website"], "GetBucketWebsite"),
    ("GET", Bucket, &["object-lock"], "GetObjectLockConfiguration"),
    ("GET", Bucket, &["publicAccessBlock"], "GetPublicAccessBlock"),
    ("GET", Bucket, &["analytics"], "ListBucketAnalyticsConfigurations"),
    ("GET", Bucket, &["intelligent-tiering"], "ListBucketIntelligentTieringConfigurations"),
    ("GET", Bucket, &["inventory"], "ListBucketInventoryConfigurations"),
    ("GET", Bucket, &["metrics"], "ListBucketMetricsConfigurations"),
    ("GET", Bucket, &["uploads"], "ListMultipartUploads"),
    ("GET", Bucket, &["versions"], "ListObjectVersions"),
    ("GET", Bucket, &["list-type"], "ListObjectsV2"),
    ("GET", Bucket, &[], "ListObjects"),
    ("GET", Object, &["attributes"], "GetObjectAttributes"),
    ("GET", Object, &["acl"], "GetObjectAcl"),
    ("GET", Object, &["legal-hold"], "GetObjectLegalHold"),
    ("GET", Object, &["retention"], "GetObjectRetention"),
    ("GET", Object, &["tagging"], "GetObjectTagging"),
    ("GET", Object, &["torrent"], "GetObjectTorrent"),
    ("GET", Object, &["uploadId"], "ListParts"),
    ("GET", Object, &[], "GetObject"),
    ("POST", Bucket, &["metadataTable"], "CreateBucketMetadataTableConfiguration"),
    ("POST", Bucket, &["delete"], "DeleteObjects"),
    ("POST", Object, &["uploads"], "CreateMultipartUpload"),
    ("POST", Object, &["restore"], "RestoreObject"),
    ("POST", Object, &["uploadId"], "CompleteMultipartUpload"),
    ("PUT", Bucket, &["analytics"], "PutBucketAnalyticsConfiguration"),
    ("PUT", Bucket, &["intelligent-tiering"], "PutBucketIntelligentTieringConfiguration"),
    ("PUT", Bucket, &["inventory"], "PutBucketInventoryConfiguration"),
    ("PUT", Bucket, &["metrics"], "PutBucketMetricsConfiguration"),
    ("PUT", Bucket, &["accelerate"], "PutBucketAccelerateConfiguration"),
    ("PUT", Bucket, &["acl"], "PutBucketAcl"),
    ("PUT", Bucket, &["cors"], "PutBucketCors"),
    ("PUT", Bucket, &["encryption"], "PutBucketEncryption"),
    ("PUT", Bucket, &["lifecycle"], "PutBucketLifecycleConfiguration"),
    ("PUT", Bucket, &["logging"], "PutBucketLogging"),
    ("PUT", Bucket, &["notification"], "PutBucketNotificationConfiguration"),
    ("PUT", Bucket, &["ownershipControls"], "PutBucketOwnershipControls"),
    ("PUT", Bucket, &["policy"], "PutBucketPolicy"),
    ("PUT", Bucket, &["replication"], "PutBucketReplication"),
    ("PUT", Bucket, &["requestPayment"], "PutBucketRequestPayment"),
    ("PUT", Bucket, &["tagging"], "PutBucketTagging"),
    ("PUT", Bucket, &["versioning"], "PutBucketVersioning"),
    ("PUT", Bucket, &["website"], "PutBucketWebsite"),
    ("PUT", Bucket, &["object-lock"], "PutObjectLockConfiguration"),
    ("PUT", Bucket, &["publicAccessBlock"], "PutPublicAccessBlock"),
    ("PUT", Bucket, &[], "CreateBucket"),
    ("PUT", Object, &["acl"], "PutObjectAcl"),
    ("PUT", Object, &["legal-hold"], "PutObjectLegalHold"),
    ("PUT", Object, &["retention"], "PutObjectRetention"),
    ("PUT", Object, &["tagging"], "PutObjectTagging"),
    ("PUT", Object, &["partNumber", "uploadId"], "UploadPart"),
    ("PUT", Object, &[], "PutObject"),
    ("DELETE", Bucket, &["analytics"], "DeleteBucketAnalyticsConfiguration"),
    ("DELETE", Bucket, &["intelligent-tiering"], "DeleteBucketIntelligentTieringConfiguration"),
    ("DELETE", Bucket, &["inventory"], "DeleteBucketInventoryConfiguration"),
    ("DELETE", Bucket, &["metrics"], "DeleteBucketMetricsConfiguration"),
    ("DELETE", Bucket, &["cors"], "DeleteBucketCors"),
    ("DELETE", Bucket, &["encryption"], "DeleteBucketEncryption"),
    ("DELETE", Bucket, &["lifecycle"], "DeleteBucketLifecycle"),
    ("DELETE", Bucket, &["metadataTable"], "DeleteBucketMetadataTableConfiguration"),
    ("DELETE", Bucket, &["ownershipControls"], "DeleteBucketOwnershipControls"),
    ("DELETE", Bucket, &["policy"], "DeleteBucketPolicy"),
    ("DELETE", Bucket, &["replication"], "DeleteBucketReplication"),
    ("DELETE", Bucket, &["tagging"], "DeleteBucketTagging"),
    ("DELETE", Bucket, &["website"], "DeleteBucketWebsite"),
    ("DELETE", Bucket, &["publicAccessBlock"], "DeletePublicAccessBlock"),
    ("DELETE", Bucket, &[], "DeleteBucket"),
    ("DELETE", Object, &["tagging"], "DeleteObjectTagging"),
    ("DELETE", Object, &["uploadId"], "AbortMultipartUpload"),
    ("DELETE", Object, &[], "DeleteObject"),
];
