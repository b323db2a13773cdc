//! The request checksum that every store accepts.
//!
//! If S3 requires a checksum of a request's body, the SDK sends a CRC32. Older stores know only
//! `Content-MD5`, as S3 itself did until 2022: MinIO before January 2025 answers a DeleteObjects
//! without it with 400 `MissingContentMD5`. Amazon S3 still accepts either.

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use data_encoding::BASE64;
use md5::{Digest, Md5};

/// Replaces the SDK's checksum by `Content-MD5`. A streamed body keeps its own checksum; the
/// operator sends none.
pub(super) fn content_md5(request: &mut HttpRequest) {
    let Some(digest) = request.body().bytes().map(|body| BASE64.encode(&Md5::digest(body))) else { return };
    let headers = request.headers_mut();
    let theirs: Vec<String> = headers
        .iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm")
        .collect();
    for name in theirs {
        headers.remove(name);
    }
    headers.insert("content-md5", digest);
}
