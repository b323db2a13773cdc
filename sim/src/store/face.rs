//! The protocol face: every operation the store knows, who asks, and for which bucket.

use jiff::Timestamp;
use s3s::dto::*;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result};

use super::dialect::Dialect;
use super::errors::{refuse, refuse_because};
use super::payload::Payload;
use super::state::{Bucket, State};
use super::{Store, buckets, locks, multipart, objects, pages};

/// The store as an [`S3`] implementation.
#[derive(Clone)]
pub(super) struct Face {
    pub(super) store: Store,
    pub(super) identity: Identity,
}

/// As whom a face acts.
#[derive(Clone)]
pub(super) enum Identity {
    /// As the account whose key signed the request.
    Signer,
    /// As this account, whoever signed.
    Account(String),
}

/// One request being carried out: nothing else happens in the store meanwhile.
pub(super) struct Call<'a> {
    pub(super) state: &'a mut State,
    pub(super) dialect: &'a Dialect,
    pub(super) now: Timestamp,
    /// The account that asks.
    pub(super) account: &'a str,
}

impl Call<'_> {
    /// A bucket of the account that asks.
    ///
    /// # Errors
    /// `InvalidBucketName`, `NoSuchBucket`, and `AccessDenied` for a bucket of another account.
    pub(super) fn bucket(&mut self, name: &str) -> S3Result<&mut Bucket> {
        if !s3s::path::check_bucket_name(name) {
            return Err(refuse(S3ErrorCode::InvalidBucketName));
        }
        let found = self.state.buckets.get_mut(name);
        let bucket = found.ok_or_else(|| refuse(S3ErrorCode::NoSuchBucket))?;
        if bucket.owner == self.account { Ok(bucket) } else { Err(refuse(S3ErrorCode::AccessDenied)) }
    }
}

impl Face {
    fn serve<I, O>(
        &self,
        request: S3Request<I>,
        handler: impl FnOnce(&mut Call<'_>, I) -> S3Result<O>,
    ) -> S3Result<S3Response<O>> {
        let shared = &self.store.shared;
        let now = (shared.clock)();
        let mut state = self.store.state();
        let account = match &self.identity {
            Identity::Account(account) => account.clone(),
            Identity::Signer => signer(&request, &state, &shared.dialect)?,
        };
        let mut call = Call { state: &mut state, dialect: &shared.dialect, now, account: &account };
        handler(&mut call, request.input).map(S3Response::new)
    }
}

/// The account whose key signed a request.
fn signer<I>(request: &S3Request<I>, state: &State, dialect: &Dialect) -> S3Result<String> {
    let Some(credentials) = &request.credentials else {
        return Err(refuse(S3ErrorCode::AccessDenied));
    };
    if let Some(region) = &request.region
        && dialect.checks_signing_region
        && region.as_str() != dialect.region
    {
        let message = format!(
            "The authorization header is malformed; the region '{}' is wrong; expecting '{}'",
            region.as_str(),
            dialect.region
        );
        return Err(refuse_because(S3ErrorCode::AuthorizationHeaderMalformed, message));
    }
    // The signature was checked with this key, but it may have been withdrawn since.
    let key = state.keys.get(&credentials.access_key);
    key.map(|key| key.account.clone()).ok_or_else(|| refuse(S3ErrorCode::InvalidAccessKeyId))
}

macro_rules! operations {
    (
        plain { $($plain:ident($plain_input:ident) -> $plain_output:ident = $plain_handler:path;)* }
        with_body { $($body:ident($body_input:ident) -> $body_output:ident = $body_handler:path;)* }
    ) => {
        #[async_trait::async_trait]
        impl S3 for Face {
            $(
                async fn $plain(&self, request: S3Request<$plain_input>) -> S3Result<S3Response<$plain_output>> {
                    self.serve(request, $plain_handler)
                }
            )*
            $(
                async fn $body(&self, mut request: S3Request<$body_input>) -> S3Result<S3Response<$body_output>> {
                    let payload = Payload::receive(&mut request).await?;
                    self.serve(request, |call, input| $body_handler(call, input, payload))
                }
            )*
        }
    };
}

operations! {
    plain {
        list_buckets(ListBucketsInput) -> ListBucketsOutput = buckets::list;
        create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create;
        head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head;
        delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete;
        get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput = buckets::location;
        get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput = buckets::get_tagging;
        put_bucket_tagging(PutBucketTaggingInput) -> PutBucketTaggingOutput = buckets::put_tagging;
        delete_bucket_tagging(DeleteBucketTaggingInput) -> DeleteBucketTaggingOutput = buckets::delete_tagging;
        get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput = buckets::get_versioning;
        put_bucket_versioning(PutBucketVersioningInput) -> PutBucketVersioningOutput = buckets::put_versioning;
        get_object(GetObjectInput) -> GetObjectOutput = objects::get;
        head_object(HeadObjectInput) -> HeadObjectOutput = objects::head;
        copy_object(CopyObjectInput) -> CopyObjectOutput = objects::copy;
        delete_object(DeleteObjectInput) -> DeleteObjectOutput = objects::delete;
        delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = objects::delete_many;
        get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput = objects::get_tagging;
        put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput = objects::put_tagging;
        delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput = objects::delete_tagging;
        list_objects(ListObjectsInput) -> ListObjectsOutput = pages::objects;
        list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = pages::objects_v2;
        list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput = pages::versions;
        list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput = pages::uploads;
        create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput = multipart::create;
        upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = multipart::copy_part;
        complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput = multipart::complete;
        abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput = multipart::abort;
        list_parts(ListPartsInput) -> ListPartsOutput = multipart::parts;
        get_object_lock_configuration(GetObjectLockConfigurationInput) -> GetObjectLockConfigurationOutput = locks::get_configuration;
        put_object_lock_configuration(PutObjectLockConfigurationInput) -> PutObjectLockConfigurationOutput = locks::put_configuration;
        get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput = locks::get_retention;
        put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput = locks::put_retention;
        get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput = locks::get_legal_hold;
        put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput = locks::put_legal_hold;
    }
    with_body {
        put_object(PutObjectInput) -> PutObjectOutput = objects::put;
        upload_part(UploadPartInput) -> UploadPartOutput = multipart::upload_part;
    }
}
