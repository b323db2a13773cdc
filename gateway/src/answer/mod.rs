//! Responses: the gateway's own documents, and the parts of a store's response that a client may
//! see.

pub mod filter;
pub mod late;
pub mod owner;
pub mod xml;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::body::Body;
use crate::refusal::{Code, Refusal};

pub use crate::body::nothing;
pub use crate::head::OWNER;

/// The header with the gateway's id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
/// The header with the store's id of a request.
pub const ID_2: HeaderName = HeaderName::from_static("x-amz-id-2");
/// The header with the region of a bucket.
pub const BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");

/// An error response, found by the gateway or by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhappy {
    /// HTTP status of the response.
    pub status: StatusCode,
    /// S3's code.
    pub code: String,
    /// Message for the client.
    pub message: String,
    /// Further elements.
    pub details: Vec<(&'static str, String)>,
}

impl From<Refusal> for Unhappy {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message, details } = refusal;
        Self { status: code.status(), code: code.as_str().to_owned(), message: message.into_owned(), details }
    }
}

impl Unhappy {
    /// Builds the response. One to HEAD has no body.
    #[must_use]
    pub fn into_answer(self, resource: &str, request_id: &str, is_head: bool) -> Response<Body> {
        let text = xml::error(&self.code, &self.message, &self.details, resource, request_id);
        let mut answer = if is_head { Response::new(nothing()) } else { document(text) };
        *answer.status_mut() = self.status;
        if self.code == Code::SlowDown.as_str() {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

/// Returns a response with an XML document.
#[must_use]
pub fn document(text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}
