//! A look-up of a copy's source before the copy: existence, length and content. The copy is pinned
//! to that content.

use http::header::{CONTENT_LENGTH, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;

use super::answers::unavailable;
use crate::decide::denied;
use crate::head::{Ask, CopySource, Target, taken_over};
use crate::refusal::{Code, Refusal};
use crate::upstream::{Admitted, Call, Client};
use crate::uri::Pair;

const PIN: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");

/// Headers of a HEAD of the source, each with the copy header that it is taken from.
const OF_HEAD: [(&str, &str); 7] = [
    ("if-match", "x-amz-copy-source-if-match"),
    ("if-modified-since", "x-amz-copy-source-if-modified-since"),
    ("if-none-match", "x-amz-copy-source-if-none-match"),
    ("if-unmodified-since", "x-amz-copy-source-if-unmodified-since"),
    ("x-amz-server-side-encryption-customer-algorithm", "x-amz-copy-source-server-side-encryption-customer-algorithm"),
    ("x-amz-server-side-encryption-customer-key", "x-amz-copy-source-server-side-encryption-customer-key"),
    ("x-amz-server-side-encryption-customer-key-md5", "x-amz-copy-source-server-side-encryption-customer-key-md5"),
];

/// Returns the number of bytes that a copy stores, including the metadata and tags taken over from
/// its source. Returns `None` if nothing is copied or the length doesn't matter.
///
/// The source is looked up if the length counts and no range gives it, and for a key of an access,
/// which may be limited to present objects: versitygw 1.8.0 copies the content of a key behind a
/// delete marker. The copy then either has the content that was found, or fails. The client's
/// conditions are sent with the look-up too, because a store ignores `if-unmodified-since` next to
/// the pin.
///
/// # Errors
/// `NoSuchKey`, `PreconditionFailed`, `AccessDenied` and `InvalidRequest` by the store's response;
/// `ServiceUnavailable` if the response doesn't describe the source.
pub(super) async fn look(
    ask: &mut Ask,
    is_access: bool,
    is_metered: bool,
    store: (&Client, &Admitted),
    now: Timestamp,
) -> Result<Option<u64>, Refusal> {
    let Some(source) = &ask.copy else { return Ok(None) };
    let range = ask.headers.get("x-amz-copy-source-range").and_then(|range| range.to_str().ok()).and_then(range_length);
    let is_looked_at = is_access || is_metered && range.is_none();
    if !is_looked_at {
        return Ok(range);
    }
    let found = head(source, &ask.headers, store, now).await?;
    let beside = taken_over(ask.operation, &ask.headers, &found.headers);
    ask.headers.insert(PIN, found.etag);
    Ok(Some(range.unwrap_or(found.length).saturating_add(beside)))
}

struct Found {
    length: u64,
    etag: HeaderValue,
    headers: HeaderMap,
}

async fn head(
    source: &CopySource,
    headers: &HeaderMap,
    (client, admitted): (&Client, &Admitted),
    now: Timestamp,
) -> Result<Found, Refusal> {
    let version = source.version.iter().map(|id| Pair { name: b"versionId".to_vec(), value: id.clone() });
    let of_head = OF_HEAD.iter().filter_map(|(to, from)| {
        let value = headers.get(*from)?;
        Some((HeaderName::from_static(to), value.clone()))
    });
    let target = Target::Object(source.bucket.clone(), source.key.clone());
    let call = Call::without_body(Method::HEAD, target, version.collect(), of_head.collect());
    let answer = client.ask(call, admitted, now).await.map_err(|_| unavailable())?;
    match answer.status() {
        StatusCode::OK => {
            let headers = answer.into_parts().0.headers;
            let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
            let length = length.and_then(|text| text.parse().ok()).ok_or_else(unavailable)?;
            let etag = headers.get(ETAG).cloned().ok_or_else(unavailable)?;
            Ok(Found { length, etag, headers })
        }
        StatusCode::NOT_FOUND => Err(Refusal::new(Code::NoSuchKey, "The specified key does not exist.")),
        StatusCode::FORBIDDEN => Err(denied()),
        StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => {
            let message = "At least one of the pre-conditions you specified did not hold";
            Err(Refusal::new(Code::PreconditionFailed, message))
        }
        StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED => {
            Err(Refusal::new(Code::InvalidRequest, "The source can't be read."))
        }
        _ => Err(unavailable()),
    }
}

/// Returns the length of a byte range, in the form that is sent to the store.
fn range_length(range: &str) -> Option<u64> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}
