//! The answer of a server that refuses.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// An answer as a server sends it: a status, headers, and all of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answered {
    /// An answer with a body of this content type.
    ///
    /// # Panics
    /// If the code is no HTTP status.
    pub fn new(code: u16, content_type: &'static str, body: String) -> Self {
        let mut answer = Self { body, ..Self::empty(code) };
        answer.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        answer
    }

    /// An answer without a body.
    ///
    /// # Panics
    /// If the code is no HTTP status.
    pub fn empty(code: u16) -> Self {
        let status = StatusCode::from_u16(code).expect("a table of faults has HTTP's statuses");
        Self { status, headers: HeaderMap::new(), body: String::new() }
    }

    /// The same, asking to wait for so many seconds before the next attempt.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.headers.insert(header::RETRY_AFTER, seconds.into());
        self
    }

    /// As a response with a body of the service's type.
    pub(crate) fn response<B: From<Vec<u8>>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body.into_bytes()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
