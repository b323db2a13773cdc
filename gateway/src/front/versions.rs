//! Questions to a store about versions: whether a bucket keeps them, and whether an object is
//! deleted already.

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

/// Longest answer to the question whether a bucket keeps versions.
const LONGEST_STATUS: usize = 64 << 10;

/// Header that says that a delete marker is meant.
pub(super) const MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// Header with the id of a version.
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Headers of the store about a delete marker, where there is no present object; `None` where there
/// is one, or the store doesn't say.
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
    // The id of a version alone says nothing.
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

/// Asks the store whether a bucket keeps versions; with the headers of the answer. One whose answer
/// can't be understood is taken for one that does: it costs a HEAD for each deletion.
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
            // In a box, as the compiler can't see through the body's error that it is `Send`.
            let text: BoxFuture<'static, _> = Limited::new(body, LONGEST_STATUS).collect().boxed();
            text.await.map_or(true, |text| memchr::memmem::find(&text.to_bytes(), b"Status>").is_some())
        }
        // A store without versions.
        StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => false,
        _ => true,
    };
    Ok((keeps, parts.headers))
}
