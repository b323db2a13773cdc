//! The S3 side: authentication and access as hooks of s3s, and the way to the backend.

use std::sync::Arc;

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};

use super::decide::{Caller, Operation, Refusal, Verdict, decide};
use super::remote::Remote;
use super::{Behind, Shared};

/// The hooks and the operations; all three roles share one state.
#[derive(Clone)]
pub(super) struct Front(pub(super) Arc<Shared>);

/// Where the access check has found a request may go; travels with it to the operation.
#[derive(Clone)]
pub(super) struct Route(pub(super) String);

pub(super) fn denied() -> S3Error {
    S3Error::with_message(S3ErrorCode::AccessDenied, "Access Denied")
}

fn unknown_key() -> S3Error {
    let message = "The AWS Access Key Id you provided does not exist in our records.";
    S3Error::with_message(S3ErrorCode::InvalidAccessKeyId, message)
}

fn unknown_backend() -> S3Error {
    let message = "The backend of this bucket is not known to the gateway. Please try again.";
    S3Error::with_message(S3ErrorCode::ServiceUnavailable, message)
}

/// Before the first lists are in nobody's key is known: that must not look like a refusal.
fn not_ready() -> S3Error {
    let message = "The gateway has not read its credentials yet. Please try again.";
    S3Error::with_message(S3ErrorCode::ServiceUnavailable, message)
}

impl Front {
    /// Decides about a request by the access key it is signed with, if it is.
    pub(super) fn verdict(
        &self,
        access_key: Option<&str>,
        operation: Operation,
        bucket: Option<&str>,
    ) -> S3Result<Verdict> {
        let now = (self.0.clock)();
        let registry = self.0.registry();
        if !registry.is_ready() {
            return Err(not_ready());
        }
        let caller = match access_key {
            Some(key) => Caller::Signed(registry.credential(key).ok_or_else(unknown_key)?),
            None => Caller::Anonymous(bucket.and_then(|bucket| registry.binding(bucket))),
        };
        match decide(caller, operation, bucket, now) {
            Verdict::Refuse(Refusal::Expired) => Err(unknown_key()),
            Verdict::Refuse(Refusal::Denied) => Err(denied()),
            verdict => Ok(verdict),
        }
    }

    /// The source of a copy must be in the caller's scope too, and on the same backend.
    pub(super) fn check_source<I>(&self, request: &S3Request<I>, source: &CopySource) -> S3Result<()> {
        let CopySource::Bucket { bucket, .. } = source else { return Err(denied()) };
        let key = request.credentials.as_ref().map(|credentials| credentials.access_key.as_str());
        let found = self.verdict(key, Operation::ReadObject, Some(bucket))?;
        let Some(Route(target)) = request.extensions.get::<Route>() else { return Err(denied()) };
        if found == (Verdict::Forward { backend: target.clone() }) {
            Ok(())
        } else {
            Err(S3Error::with_message(S3ErrorCode::NotImplemented, "Copies between backends are not possible."))
        }
    }

    /// The backend of this process that a request goes to. From here on the tenant's credentials
    /// are of no use.
    fn backend<I>(&self, request: &mut S3Request<I>) -> S3Result<Arc<dyn S3>> {
        let Route(name) = request.extensions.remove::<Route>().ok_or_else(denied)?;
        request.credentials = None;
        request.region = None;
        match &self.0.behind {
            Behind::Here(backends) => backends(&name).ok_or_else(unknown_backend),
            Behind::Remote(_) => Err(unknown_backend()),
        }
    }

    /// The store that a request goes to over HTTP.
    pub(super) fn remote<I>(&self, request: &mut S3Request<I>) -> S3Result<Remote> {
        let Route(name) = request.extensions.remove::<Route>().ok_or_else(denied)?;
        match &self.0.behind {
            Behind::Remote(remotes) => remotes.get(&name).cloned().ok_or_else(unknown_backend),
            Behind::Here(_) => Err(unknown_backend()),
        }
    }
}

#[async_trait::async_trait]
impl S3Auth for Front {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let now = (self.0.clock)();
        let registry = self.0.registry();
        if !registry.is_ready() {
            return Err(not_ready());
        }
        let credential = registry.credential(access_key).filter(|credential| !credential.is_expired(now));
        credential.map(|credential| credential.secret_access_key.clone()).ok_or_else(unknown_key)
    }
}

/// Headers of writes that would open an object to others or lock it: configuration by the back
/// door.
pub(super) fn configures(header: &str) -> bool {
    header == "x-amz-acl"
        || header == "x-amz-bypass-governance-retention"
        || header.starts_with("x-amz-grant-")
        || header.starts_with("x-amz-object-lock-")
}

#[async_trait::async_trait]
impl S3Access for Front {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        if cx.headers().keys().any(|header| configures(header.as_str())) {
            return Err(denied());
        }
        let access_key = cx.credentials().map(|credentials| credentials.access_key.as_str());
        let operation = Operation::from_name(cx.s3_op().name());
        let verdict = self.verdict(access_key, operation, cx.s3_path().get_bucket_name())?;
        if let Verdict::Forward { backend } = verdict {
            cx.extensions_mut().insert(Route(backend));
        }
        Ok(())
    }

    async fn get_object(&self, request: &mut S3Request<GetObjectInput>) -> S3Result<()> {
        deny_old_versions(request.credentials.is_none(), request.input.version_id.is_some())
    }

    async fn head_object(&self, request: &mut S3Request<HeadObjectInput>) -> S3Result<()> {
        deny_old_versions(request.credentials.is_none(), request.input.version_id.is_some())
    }

    async fn copy_object(&self, request: &mut S3Request<CopyObjectInput>) -> S3Result<()> {
        self.check_source(request, &request.input.copy_source)
    }

    async fn upload_part_copy(&self, request: &mut S3Request<UploadPartCopyInput>) -> S3Result<()> {
        self.check_source(request, &request.input.copy_source)
    }
}

/// What a bucket shows to the public is its present content.
pub(super) fn deny_old_versions(anonymous: bool, version: bool) -> S3Result<()> {
    if anonymous && version { Err(denied()) } else { Ok(()) }
}

macro_rules! forward {
    ($($operation:ident($input:ident) -> $output:ident;)*) => {
        #[async_trait::async_trait]
        impl S3 for Front {
            $(
                async fn $operation(&self, mut request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                    self.backend(&mut request)?.$operation(request).await
                }
            )*

            /// Answers from the caller's scope alone, without a call to any backend.
            async fn list_buckets(
                &self,
                request: S3Request<ListBucketsInput>,
            ) -> S3Result<S3Response<ListBucketsOutput>> {
                let credentials = request.credentials.ok_or_else(denied)?;
                let registry = self.0.registry();
                let credential = registry.credential(&credentials.access_key).ok_or_else(unknown_key)?;
                let mut names: Vec<&str> = credential.scopes.iter().map(|scope| scope.bucket.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                let bucket = |name: &str| Bucket { name: Some(name.to_owned()), ..Bucket::default() };
                let buckets = Some(names.into_iter().map(bucket).collect());
                Ok(S3Response::new(ListBucketsOutput { buckets, ..ListBucketsOutput::default() }))
            }
        }
    };
}

forward! {
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput;
    copy_object(CopyObjectInput) -> CopyObjectOutput;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput;
    delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput;
    get_object(GetObjectInput) -> GetObjectOutput;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput;
    head_bucket(HeadBucketInput) -> HeadBucketOutput;
    head_object(HeadObjectInput) -> HeadObjectOutput;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput;
    list_objects(ListObjectsInput) -> ListObjectsOutput;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output;
    list_parts(ListPartsInput) -> ListPartsOutput;
    put_object(PutObjectInput) -> PutObjectOutput;
    put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput;
    upload_part(UploadPartInput) -> UploadPartOutput;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput;
}
