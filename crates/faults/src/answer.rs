//! Answers of a server that refuses a request.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// A complete answer of a server: status, headers and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answered {
    /// Creates an answer with a body of this content type.
    ///
    /// # Panics
    /// Panics if the code is not an HTTP status.
    pub fn new(code: u16, content_type: &'static str, body: String) -> Self {
        let mut answer = Self { body, ..Self::empty(code) };
        answer.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        answer
    }

    /// Creates an answer without a body.
    ///
    /// # Panics
    /// Panics if the code is not an HTTP status.
    pub fn empty(code: u16) -> Self {
        let status = StatusCode::from_u16(code).expect("a table of faults has HTTP's statuses");
        Self { status, headers: HeaderMap::new(), body: String::new() }
    }

    /// Adds a `Retry-After` header with this many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.headers.insert(header::RETRY_AFTER, seconds.into());
        self
    }

    /// Converts the answer to a response with the service's body type.
    pub(crate) fn response<B: From<Vec<u8>>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body.into_bytes()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
