//! Calls to a store about versions: whether a bucket keeps them, and whether an object is already
//! deleted.

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use stowage_api::BucketName;

use super::answers::unavailable;
use crate::deletion::Doomed;
use crate::head::Target;
use crate::refusal::Refusal;
use crate::upstream::{Admitted, Call, Client};
use crate::uri::Pair;

/// Maximum length of a GetBucketVersioning response, in bytes.
const LONGEST_STATUS: usize = 64 << 10;

/// The header of a response about a delete marker.
pub(super) const MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// The header with a version id.
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Returns the store's headers about a delete marker if there is no present object. Returns `None`
/// if there is one, or the store doesn't say.
pub(super) async fn absent(
    client: &Client,
    admitted: &Admitted,
    target: Target,
    now: Timestamp,
) -> Result<Option<HeaderMap>, Refusal> {
    let answer =
        client.ask(Call::without_body(Method::HEAD, target, Vec::new(), HeaderMap::new()), admitted, now).await;
    let answer = answer.map_err(|_| unavailable())?;
    if answer.status() != StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let told = |name: HeaderName| Some((name.clone(), answer.headers().get(&name)?.clone()));
    // A version id alone means nothing.
    let is_marker = answer.headers().contains_key(MARKER);
    Ok(Some([MARKER, VERSION].into_iter().filter(|_| is_marker).filter_map(told).collect()))
}

pub(super) async fn absent_of(
    client: &Client,
    admitted: &Admitted,
    bucket: &BucketName,
    object: &Doomed,
    now: Timestamp,
) -> Result<Option<HeaderMap>, Refusal> {
    match object.version {
        Some(_) => Ok(None),
        None => absent(client, admitted, Target::Object(bucket.clone(), object.key.clone()), now).await,
    }
}

/// Asks the store whether a bucket keeps versions. Returns that and the headers of the response. A
/// response that can't be understood counts as yes, which costs a HEAD for each deletion.
pub(super) async fn versioning(
    client: &Client,
    admitted: &Admitted,
    bucket: &BucketName,
    now: Timestamp,
) -> Result<(bool, HeaderMap), Refusal> {
    let query = vec![Pair { name: b"versioning".to_vec(), value: Vec::new() }];
    let answer = client
        .ask(Call::without_body(Method::GET, Target::Bucket(bucket.clone()), query, HeaderMap::new()), admitted, now)
        .await;
    let (parts, body) = answer.map_err(|_| unavailable())?.into_parts();
    let keeps = match parts.status {
        StatusCode::OK => {
            // Boxed, because the compiler can't prove through the body's error type that the future
            // is `Send`.
            let text: BoxFuture<'static, _> = Limited::new(body, LONGEST_STATUS).collect().boxed();
            text.await.map_or(true, |text| memchr::memmem::find(&text.to_bytes(), b"Status>").is_some())
        }
        // The store doesn't support versioning.
        StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => false,
        _ => true,
    };
    Ok((keeps, parts.headers))
}
