//! Limits pages of lists by bytes (spec §3.5).
//!
//! A page is requested by a number of objects, each of which may have more than a megabyte. A page
//! is in memory as text and as objects at the same time.

use bytes::Bytes;
use kube::client::Body;
use tower::BoxError;

/// Maximum size in bytes of a page with more than one object.
pub(crate) const LARGEST: usize = 4 << 20;

/// Factor by which the `limit` is divided when a page is too large.
const FEWER: usize = 5;

/// A page of a list is larger than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a page of the list has more than {LARGEST} bytes")]
pub(crate) struct TooLarge;

/// Repeats a list request with a smaller `limit` until the answer is no longer [`TooLarge`].
///
/// # Errors
/// Returns the errors of `ask`.
pub(crate) async fn ask<T, F: Future<Output = Result<T, BoxError>>>(
    mut request: http::Request<Body>,
    ask: impl Fn(http::Request<Body>, usize) -> F,
) -> Result<T, BoxError> {
    while let Some(fewer) = with_fewer(&request) {
        match ask(request, LARGEST).await {
            Err(error) if error.is::<TooLarge>() => request = fewer,
            answer => return answer,
        }
    }
    ask(request, usize::MAX).await
}

/// Returns the same request with a smaller `limit`, if it is above one. The continue token of a
/// page is valid whatever its size.
fn with_fewer(request: &http::Request<Body>) -> Option<http::Request<Body>> {
    let (path, query) = (request.uri().path(), request.uri().query()?);
    let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit=")?.parse::<usize>().ok())?;
    let fewer = (limit / FEWER).max(1);
    if request.method() != http::Method::GET || fewer >= limit {
        return None;
    }
    let pair = |pair: &str| if pair.starts_with("limit=") { format!("limit={fewer}") } else { pair.to_owned() };
    let query: Vec<String> = query.split('&').map(pair).collect();
    let mut uri = request.uri().clone().into_parts();
    uri.path_and_query = Some(format!("{path}?{}", query.join("&")).parse().ok()?);
    let mut again = http::Request::new(Body::empty());
    *again.uri_mut() = http::Uri::from_parts(uri).ok()?;
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    Some(again)
}

/// Remaining size of an answer.
#[derive(Debug)]
pub(crate) struct Size {
    left: usize,
}

impl Size {
    /// Creates the counter of an answer of at most `most` bytes.
    pub(crate) fn of(most: usize) -> Self {
        Self { left: most }
    }

    /// Counts a piece.
    ///
    /// # Errors
    /// Returns an error if the answer is larger than allowed.
    pub(crate) fn take(&mut self, piece: Option<&Bytes>) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(piece.map_or(0, Bytes::len)).ok_or(TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use parking_lot::Mutex;

    use super::*;

    fn get(uri: &str) -> http::Request<Body> {
        http::Request::get(uri).header("accept", "application/json").body(Body::empty()).expect("a request")
    }

    // covers: 3.5.memory.page
    #[tokio::test]
    async fn a_page_that_is_too_large_is_asked_for_with_fewer_objects() {
        let asked = Mutex::new(Vec::new());
        let server = |request: http::Request<Body>, most: usize| {
            assert_eq!(request.headers()["accept"], "application/json");
            asked.lock().push(request.uri().to_string());
            ready(if most == usize::MAX { Ok(()) } else { Err(BoxError::from(TooLarge)) })
        };
        ask(get("http://api/secrets?&limit=25&continue=a%26limit=9"), server).await.expect("one object has to do");
        let query = |limit: usize| format!("http://api/secrets?&limit={limit}&continue=a%26limit=9");
        assert_eq!(*asked.lock(), [25, 5, 1].map(query));
        asked.lock().clear();
        ask(get("/secrets?watch=true"), server).await.expect("no list has no bound");
        assert_eq!(asked.lock().len(), 1);
    }

    #[tokio::test]
    async fn what_fails_for_another_reason_has_failed() {
        let server = |_, _| ready(Err::<(), _>(BoxError::from("broken")));
        assert_eq!(ask(get("/secrets?limit=25"), server).await.expect_err("it fails").to_string(), "broken");
    }

    #[test]
    fn a_page_may_have_just_so_many_bytes() {
        let mut size = Size::of(3);
        let piece = Bytes::from_static(b"ab");
        assert_eq!([Some(&piece), None, Some(&piece)].map(|piece| size.take(piece)), [Ok(()), Ok(()), Err(TooLarge)]);
    }
}
