//! The protocol as a tower service: signatures, request ids, and complete error responses.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use s3s::auth::{S3Auth, SecretKey};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use s3s::{Body, S3ErrorCode, S3Result};
use tower::BoxError;

use super::disturbance::{Disturbance, truncate};
use super::errors::{message, refuse};
use super::face::{Face, Identity};
use super::shared::Shared;

/// The store's protocol interface, see [`Store::http`](super::Store::http). Clones serve the same
/// store.
#[derive(Clone)]
pub struct StoreService {
    shared: Arc<Shared>,
    inner: S3Service,
}

impl StoreService {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let mut builder = S3ServiceBuilder::new(Face { shared: shared.clone(), identity: Identity::Signer });
        builder.set_auth(Keys(shared.clone()));
        builder.set_validation(AnyName);
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config()))));
        Self { shared, inner: builder.build() }
    }
}

/// Returns the configuration. s3s compares signatures with the wall clock; the maximum skew
/// disables that.
fn config() -> S3Config {
    let mut config = S3Config::default();
    config.presigned_url_max_skew_time_secs = u32::MAX;
    config
}

impl tower::Service<Request<Body>> for StoreService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { shared, inner } = self.clone();
        Box::pin(async move {
            let id = format!("{:016X}", shared.next_request());
            let method = request.method().clone();
            let disturbance = request.extensions().get::<Disturbance>().copied();
            let mut response = inner.call(request).await.map_err(BoxError::from)?;
            if let Some(home) = shared.home() {
                home.keeper.kept().await;
            }
            complete_error(&mut response, &id);
            let id = HeaderValue::try_from(id).expect("hexadecimal digits are a valid header value");
            response.headers_mut().insert("x-amz-request-id", id);
            mark_part(&method, &mut response);
            strip_body(&method, &mut response);
            if disturbance == Some(Disturbance::Truncated) {
                truncate(&mut response);
            }
            Ok(response)
        })
    }
}

/// Sets the status of a HEAD for a range to 206, which s3s does only for responses with the bytes.
fn mark_part(method: &Method, response: &mut Response<Body>) {
    if method == Method::HEAD && response.headers().contains_key(http::header::CONTENT_RANGE) {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
}

/// Removes the body of responses that have none in HTTP: to HEAD, and with status 304 and 204.
///
/// A server does this while it writes the response, but in process there is no server.
pub(super) fn strip_body(method: &Method, response: &mut Response<Body>) {
    let bodiless = [StatusCode::NOT_MODIFIED, StatusCode::NO_CONTENT].contains(&response.status());
    if method == Method::HEAD || bodiless {
        *response.body_mut() = Body::empty();
    }
}

/// Adds message and request id to an error body, which s3s omits in its own errors.
fn complete_error(response: &mut Response<Body>, id: &str) {
    if response.status().is_success() {
        return;
    }
    let Some(bytes) = response.body().bytes() else { return };
    let Some(completed) = std::str::from_utf8(&bytes).ok().and_then(|xml| complete_xml(xml, id)) else {
        return;
    };
    *response.body_mut() = Body::from(Bytes::from(completed));
    response.headers_mut().remove(http::header::CONTENT_LENGTH);
}

fn complete_xml(xml: &str, id: &str) -> Option<String> {
    let (before, rest) = xml.split_once("<Code>")?;
    let (code, after) = rest.split_once("</Code>")?;
    let known: S3ErrorCode = code.parse().ok()?;
    let message = match message(&known) {
        Some(message) if !after.contains("<Message>") => format!("<Message>{}</Message>", escape(message)),
        _ => String::new(),
    };
    let after = after.replacen("</Error>", &format!("<RequestId>{id}</RequestId></Error>"), 1);
    Some(format!("{before}<Code>{code}</Code>{message}{after}"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Access to the keys of all accounts.
struct Keys(Arc<Shared>);

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let state = self.0.state();
        let key = state.keys.get(access_key).map(|key| key.secret.clone());
        key.ok_or_else(|| refuse(S3ErrorCode::InvalidAccessKeyId))
    }
}

/// Accepts every bucket name. The operations validate names themselves, so that both interfaces
/// give the same responses.
struct AnyName;

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_get_a_message_and_an_id() {
        let bare = "<Error><Code>SignatureDoesNotMatch</Code></Error>";
        let completed = complete_xml(bare, "7").expect("an error document");
        assert!(completed.contains("<Message>The request signature we calculated"));
        assert!(completed.ends_with("<RequestId>7</RequestId></Error>"));
    }

    #[test]
    fn a_message_that_is_there_stays() {
        let full = "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>";
        let completed = complete_xml(full, "7").expect("an error document");
        assert_eq!(completed.matches("<Message>").count(), 1);
    }

    #[test]
    fn the_head_of_a_part_says_that_it_is_one() {
        let status = |method: Method, range: bool| {
            let mut response = Response::new(Body::empty());
            if range {
                response.headers_mut().insert("content-range", HeaderValue::from_static("bytes 0-1/4"));
            }
            mark_part(&method, &mut response);
            response.status().as_u16()
        };
        assert_eq!(status(Method::HEAD, true), 206);
        assert_eq!(status(Method::HEAD, false), 200);
    }

    #[test]
    fn other_documents_are_left_alone() {
        assert_eq!(complete_xml("<html/>", "7"), None);
    }
}
