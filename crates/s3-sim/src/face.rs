//! Implementation of the protocol: all supported operations, and the checks of account and bucket.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result};

use super::call::Call;
use super::dialect::Dialect;
use super::errors::{refuse, refuse_because};
use super::payload::Payload;
use super::shared::Shared;
use super::state::State;
use super::touched::Touches;
use super::{buckets, locks, multipart, objects, pages};

/// The store as an [`S3`] implementation.
#[derive(Clone)]
pub(super) struct Face {
    pub(super) shared: Arc<Shared>,
    pub(super) identity: Identity,
}

/// The account for which requests are executed.
#[derive(Clone)]
pub(super) enum Identity {
    /// The account whose key signed the request.
    Signer,
    /// This account, independent of the signature.
    Account(String),
}

impl Face {
    fn read<I, O>(&self, request: S3Request<I>, handler: impl FnOnce(&mut Call<'_>, I) -> S3Result<O>) -> S3Result<O> {
        let past = self.shared.past().read(request.extensions.get().copied());
        match past {
            Some(mut past) => self.serve(&mut past, request, handler),
            None => self.serve(&mut self.shared.state(), request, handler),
        }
    }

    fn write<I: Touches, O>(
        &self,
        request: S3Request<I>,
        handler: impl FnOnce(&mut Call<'_>, I) -> S3Result<O>,
    ) -> S3Result<O> {
        let mut state = self.shared.state();
        let past = self.shared.past().of(&state);
        let before = self.shared.before(&state, || request.input.touches());
        let answer = self.serve(&mut state, request, handler);
        if answer.is_ok() {
            self.shared.tell(&state, before);
            self.shared.past().keep(past);
        }
        answer
    }

    fn serve<I, O>(
        &self,
        state: &mut State,
        request: S3Request<I>,
        handler: impl FnOnce(&mut Call<'_>, I) -> S3Result<O>,
    ) -> S3Result<O> {
        let shared = &self.shared;
        let now = (shared.clock)();
        let account = match &self.identity {
            Identity::Account(account) => account.clone(),
            Identity::Signer => signer(&request, state, &shared.dialect)?,
        };
        let disturbance = request.extensions.get().copied();
        let mut call = Call { state, dialect: &shared.dialect, now, account: &account, disturbance };
        handler(&mut call, request.input)
    }
}

/// Returns the account whose key signed a request.
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
    // The signature was checked with this key, but the key may have been revoked since.
    let key = state.keys.get(&credentials.access_key);
    key.map(|key| key.account.clone()).ok_or_else(|| refuse(S3ErrorCode::InvalidAccessKeyId))
}

macro_rules! operations {
    (
        responses { $($whole:ident($whole_input:ident) -> $whole_output:ident = $whole_handler:path;)* }
        reads { $($read:ident($read_input:ident) -> $read_output:ident = $read_handler:path;)* }
        writes { $($write:ident($write_input:ident) -> $write_output:ident = $write_handler:path;)* }
        with_body { $($body:ident($body_input:ident) -> $body_output:ident = $body_handler:path;)* }
    ) => {
        #[async_trait::async_trait]
        impl S3 for Face {
            $(
                async fn $whole(&self, request: S3Request<$whole_input>) -> S3Result<S3Response<$whole_output>> {
                    self.read(request, $whole_handler)
                }
            )*
            $(
                async fn $read(&self, request: S3Request<$read_input>) -> S3Result<S3Response<$read_output>> {
                    self.read(request, $read_handler).map(S3Response::new)
                }
            )*
            $(
                async fn $write(&self, request: S3Request<$write_input>) -> S3Result<S3Response<$write_output>> {
                    self.write(request, $write_handler).map(S3Response::new)
                }
            )*
            $(
                async fn $body(&self, mut request: S3Request<$body_input>) -> S3Result<S3Response<$body_output>> {
                    let payload = Payload::receive(&mut request, self.shared.home()).await?;
                    self.write(request, |call, input| $body_handler(call, input, payload)).map(S3Response::new)
                }
            )*
        }
    };
}

operations! {
    responses {
        head_object(HeadObjectInput) -> HeadObjectOutput = objects::head;
    }
    reads {
        list_buckets(ListBucketsInput) -> ListBucketsOutput = buckets::list;
        head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head;
        get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput = buckets::location;
        get_bucket_acl(GetBucketAclInput) -> GetBucketAclOutput = buckets::acl;
        get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput = buckets::get_tagging;
        get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput = buckets::get_versioning;
        get_object(GetObjectInput) -> GetObjectOutput = objects::get;
        get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput = objects::attributes;
        get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput = objects::get_tagging;
        list_objects(ListObjectsInput) -> ListObjectsOutput = pages::objects;
        list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = pages::objects_v2;
        list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput = pages::versions;
        list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput = pages::uploads;
        list_parts(ListPartsInput) -> ListPartsOutput = multipart::parts;
        get_object_lock_configuration(GetObjectLockConfigurationInput) -> GetObjectLockConfigurationOutput = locks::get_configuration;
        get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput = locks::get_retention;
        get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput = locks::get_legal_hold;
    }
    writes {
        create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create;
        delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete;
        put_bucket_tagging(PutBucketTaggingInput) -> PutBucketTaggingOutput = buckets::put_tagging;
        delete_bucket_tagging(DeleteBucketTaggingInput) -> DeleteBucketTaggingOutput = buckets::delete_tagging;
        put_bucket_versioning(PutBucketVersioningInput) -> PutBucketVersioningOutput = buckets::put_versioning;
        copy_object(CopyObjectInput) -> CopyObjectOutput = objects::copy;
        delete_object(DeleteObjectInput) -> DeleteObjectOutput = objects::delete;
        delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = objects::delete_many;
        put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput = objects::put_tagging;
        delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput = objects::delete_tagging;
        create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput = multipart::create;
        upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = multipart::copy_part;
        complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput = multipart::complete;
        abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput = multipart::abort;
        put_object_lock_configuration(PutObjectLockConfigurationInput) -> PutObjectLockConfigurationOutput = locks::put_configuration;
        put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput = locks::put_retention;
        put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput = locks::put_legal_hold;
    }
    with_body {
        put_object(PutObjectInput) -> PutObjectOutput = objects::put;
        upload_part(UploadPartInput) -> UploadPartOutput = multipart::upload_part;
    }
}
