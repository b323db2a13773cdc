//! Limits the size of answers of stores, by operation.
//!
//! The SDK collects a body of any length, in as many pieces as it arrived. A store that sends
//! blanks without end would fill the operator's memory. So would a store that sends each byte
//! separately, or a list of a hundred thousand empty elements, each of which becomes a struct.

use std::error::Error;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextMut;
use aws_smithy_runtime_api::client::orchestrator::{HttpResponse, Metadata};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use bytes::Bytes;
use http_body::{Body, Frame};

use super::silence::causes;
use super::whole::root_name;

/// Limits of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    /// Maximum bytes of the body.
    bytes: usize,
    /// Maximum number of tags in the body.
    tags: usize,
}

/// Limits of an error, and of an answer with a handful of fields.
const PLAIN: Bound = Bound { bytes: 64 << 10, tags: 1000 };
/// Limits of a bucket's tags: at most 50, whose text may consist of characters that XML writes as
/// six.
const TAGS: Bound = Bound { bytes: 256 << 10, ..PLAIN };
/// Limits of a page of a list.
///
/// Amazon S3 writes a version with 26 tags, and in less than 2 KiB unless its key has many
/// characters that XML escapes. For such keys, shorter pages are requested.
const LIST: Bound = Bound { bytes: 2 << 20, tags: 48_000 };

/// Returns the limits for an operation and the status of its answer.
fn bound(operation: &str, success: bool) -> Bound {
    match operation {
        _ if !success => PLAIN,
        "GetBucketTagging" => TAGS,
        "ListBuckets" | "ListMultipartUploads" | "ListObjectVersions" | "ListObjectsV2" | "DeleteObjects" => LIST,
        _ => PLAIN,
    }
}

/// The answer is longer than its operation allows.
#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than any of this operation")]
struct TooLong {
    /// Name of the root element, if there is one.
    root: Option<String>,
}

/// Returns true if a call failed because its answer is too long.
pub(super) fn is_too_long(error: &(dyn Error + 'static)) -> bool {
    too_long(error).is_some()
}

/// Returns true if a call was answered with success and a document with this root element, and
/// failed only because that is too long.
pub(super) fn is_too_much_of<E: Error + 'static>(error: &SdkError<E, HttpResponse>, root: &str) -> bool {
    let success = error.raw_response().is_some_and(|response| response.status().is_success());
    success && too_long(error).is_some_and(|too_long| too_long.root.as_deref() == Some(root))
}

fn too_long<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TooLong> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Interceptor that limits the body of every answer.
#[derive(Debug)]
pub(super) struct Bounds;

impl Intercept for Bounds {
    fn name(&self) -> &'static str {
        "Bounds"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let operation = config.load::<Metadata>().map(Metadata::name).unwrap_or_default();
        let response = context.response_mut();
        let bound = bound(operation, response.status().is_success());
        let body = mem::replace(response.body_mut(), SdkBody::taken());
        *response.body_mut() = SdkBody::from_body_1_x(Bounded::new(body, bound));
        Ok(())
    }
}

/// A body that is returned in one piece, and fails if it is too long. The rest is dropped then and
/// the connection closed.
struct Bounded {
    rest: Option<SdkBody>,
    bound: Bound,
    taken: Vec<u8>,
    tags: usize,
}

impl Bounded {
    fn new(body: SdkBody, bound: Bound) -> Self {
        Self { rest: Some(body), bound, taken: Vec::new(), tags: 0 }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        let length = self.taken.len() + piece.len();
        self.tags += memchr::memchr_iter(b'<', piece).count();
        if length > self.bound.bytes || self.tags > self.bound.tags {
            let beginning = if self.taken.is_empty() { piece } else { &self.taken };
            let beginning = String::from_utf8_lossy(&beginning[..beginning.len().min(1024)]);
            return Err(TooLong { root: root_name(&beginning) });
        }
        if length > self.taken.capacity() {
            // Doubles the capacity like a Vec, but not past the limit.
            let room = (2 * length).min(self.bound.bytes);
            self.taken.reserve_exact(room - self.taken.len());
        }
        self.taken.extend_from_slice(piece);
        Ok(())
    }

    fn poll_whole(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, BoxError>> {
        while let Some(rest) = &mut self.rest {
            match ready!(Pin::new(rest).poll_frame(context)) {
                Some(frame) => self.take(&frame?.into_data().unwrap_or_default())?,
                None => self.rest = None,
            }
        }
        Poll::Ready(Ok(mem::take(&mut self.taken).into()))
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.rest.is_none() {
            return Poll::Ready(None);
        }
        let whole = ready!(self.poll_whole(context));
        (self.rest, self.taken) = (None, Vec::new());
        Poll::Ready(Some(whole.map(Frame::data)))
    }
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
