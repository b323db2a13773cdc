//! Responses to the client, made from a verdict or from a store's response.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use stowage_api::BucketName;
use tokio::time::timeout;

use super::peer::Peer;
use crate::answer::filter::{self, LONGEST_ERROR, StoreError};
use crate::answer::late::{self, Words};
use crate::answer::owner::Document;
use crate::answer::{BUCKET_REGION, ID_2, OWNER, REQUEST_ID, Unhappy, document, owner, xml};
use crate::body::Body;
use crate::body::pace::{Pace, paced};
use crate::decide::denied;
use crate::head::{Ask, Operation, path_of};
use crate::metrics::{Metrics, Trouble};
use crate::refusal::{Code, Refusal};

/// The creation date of buckets whose creation time is unknown: clients need a time to parse.
const LONG_AGO: &str = "1970-01-01T00:00:00.000Z";

/// The pace of a response on which a store works for minutes: it sends blanks now and then.
const LONG: Pace = Pace { idle: Duration::from_secs(5 * 60), window: Duration::from_secs(60), least: 0 };

/// Time limit for the body of an error response.
const ERROR: Duration = Duration::from_secs(10);

/// Builds the ListBuckets response from the caller's buckets and the times since which they have
/// been claimed.
pub(super) fn buckets(buckets: &[(BucketName, Option<Timestamp>)], ask: &Ask) -> Response<Body> {
    let prefix = ask.query.iter().find(|pair| pair.name == b"prefix").map_or(&[][..], |pair| &pair.value);
    let shown = |since: Option<Timestamp>| {
        since.map_or_else(|| LONG_AGO.to_owned(), |since| since.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string())
    };
    let mut buckets: Vec<(&str, String)> = buckets.iter().map(|(name, since)| (name.as_str(), shown(*since))).collect();
    buckets.retain(|(name, _)| name.as_bytes().starts_with(prefix));
    buckets.sort_unstable();
    buckets.dedup_by_key(|(name, _)| *name);
    document(xml::buckets(&buckets, OWNER))
}

/// Answers an operation on a bucket's configuration: a tenant configures and creates no buckets.
///
/// # Errors
/// Returns S3's error code for configuration that is not set, or for a bucket that already exists.
pub(super) fn configuration(operation: Operation) -> Result<Response<Body>, Refusal> {
    let refuse = |code, message: &'static str| Err(Refusal::new(code, message));
    match operation {
        Operation::CreateBucket => refuse(
            Code::BucketAlreadyOwnedByYou,
            "Your previous request to create the named bucket succeeded and you already own it.",
        ),
        Operation::GetBucketAcl | Operation::GetObjectAcl => Ok(document(xml::acl(OWNER))),
        Operation::GetBucketEncryption => refuse(
            Code::ServerSideEncryptionConfigurationNotFoundError,
            "The server side encryption configuration was not found",
        ),
        Operation::GetBucketTagging => refuse(Code::NoSuchTagSet, "The TagSet does not exist"),
        Operation::GetObjectLockConfiguration => refuse(
            Code::ObjectLockConfigurationNotFoundError,
            "Object Lock configuration does not exist for this bucket",
        ),
        Operation::GetPublicAccessBlock => {
            refuse(Code::NoSuchPublicAccessBlockConfiguration, "The public access block configuration was not found")
        }
        _ => Err(denied()),
    }
}

/// Builds the GetBucketLocation response with the gateway's region.
pub(super) fn region(region: &str) -> Response<Body> {
    document(xml::location(region))
}

/// Returns the URL by which the client addressed the object.
pub(super) fn location_of(parts: &Parts, peer: &Peer) -> String {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if peer.is_tls { "https" } else { "http" };
    format!("{scheme}://{host}{}", parts.uri.path())
}

/// Returns the gateway's values that replace the store's in a late response.
pub(super) fn words(location: String, ask: &Ask, id: &str, key_id: &str) -> Words {
    Words { location, resource: path_of(&ask.target), request_id: id.to_owned(), key_id: key_id.to_owned() }
}

/// The backend that sent a response, and the gateway's context for it.
pub(super) struct Heard<'a> {
    pub(super) backend: &'a str,
    pub(super) region: &'a str,
    pub(super) metrics: &'a Metrics,
}

/// Turns a store's response into the client's.
///
/// # Errors
/// Returns the store's error if it is about the request, and `ServiceUnavailable` if it is about
/// the gateway.
pub(super) async fn from_store(
    answer: Response<Body>,
    ask: &Ask,
    words: Words,
    heard: &Heard<'_>,
) -> Result<Response<Body>, Unhappy> {
    let (parts, body) = answer.into_parts();
    let mut headers = filter::headers(&parts.headers);
    let is_head = matches!(ask.operation, Operation::HeadObject | Operation::HeadBucket);
    let is_good = parts.status.is_success() || parts.status == StatusCode::NOT_MODIFIED;
    if !is_good {
        let text = if is_head { Bytes::new() } else { timeout(ERROR, text_of(body)).await.unwrap_or_default() };
        return Err(unhappy(parts.status, &text, is_head, &words.key_id, heard));
    }
    if let Some(id) = parts.headers.get(REQUEST_ID) {
        headers.insert(ID_2, id.clone());
    }
    if ask.operation == Operation::HeadBucket {
        headers.insert(BUCKET_REGION, HeaderValue::from_str(heard.region).unwrap_or(HeaderValue::from_static("")));
    }
    let body = if ask.operation.is_long() {
        headers.remove(CONTENT_LENGTH);
        late::body(paced(body, LONG), words)
    } else if let Some(document) = Document::of(ask.operation) {
        headers.remove(CONTENT_LENGTH);
        owner::body(paced(body, Pace::default()), document)
    } else {
        paced(body, Pace::default())
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

/// Reads the body of an error response. Returns nothing if it is longer than any error or breaks
/// off.
async fn text_of(mut body: Body) -> Bytes {
    let mut text = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Some(data) = frame.ok().and_then(|frame| frame.into_data().ok()) else { return Bytes::new() };
        if text.len() + data.len() > LONGEST_ERROR {
            return Bytes::new();
        }
        text.extend_from_slice(&data);
    }
    text.freeze()
}

/// Turns a store's error into the one shown to the client.
fn unhappy(status: StatusCode, text: &[u8], is_head: bool, key_id: &str, heard: &Heard<'_>) -> Unhappy {
    // A response to HEAD has no body, so the status alone decides. 401 is about the gateway's own
    // signature.
    let is_told_by_status = status.is_client_error() && status != StatusCode::UNAUTHORIZED;
    if is_head && is_told_by_status {
        if status == StatusCode::FORBIDDEN {
            heard.metrics.trouble(heard.backend, Trouble::Denied);
        }
        return Unhappy { status, code: status_code(status), message: String::new(), details: Vec::new() };
    }
    let trouble = match filter::error(status, text, key_id) {
        StoreError::Told { code, message, details } => {
            if code == Code::AccessDenied.as_str() {
                heard.metrics.trouble(heard.backend, Trouble::Denied);
            }
            return Unhappy { status, code, message, details };
        }
        StoreError::OurKey(code) => {
            tracing::warn!(backend = heard.backend, code, "a store refuses the gateway's key");
            Trouble::Key
        }
        StoreError::NotS3 => {
            tracing::warn!(backend = heard.backend, status = status.as_u16(), "what answers is no error of S3");
            Trouble::NotS3
        }
    };
    heard.metrics.trouble(heard.backend, trouble);
    unavailable().into()
}

/// Returns the refusal for a store that can't be reached, or whose response can't be understood.
pub(super) fn unavailable() -> Refusal {
    Refusal::new(Code::ServiceUnavailable, "The store behind this bucket can't be asked now. Please try again.")
}

/// Returns the error code that SDKs use for the status of a response to HEAD.
fn status_code(status: StatusCode) -> String {
    match status {
        StatusCode::NOT_FOUND => "NotFound".to_owned(),
        StatusCode::FORBIDDEN => Code::AccessDenied.as_str().to_owned(),
        StatusCode::PRECONDITION_FAILED => "PreconditionFailed".to_owned(),
        StatusCode::RANGE_NOT_SATISFIABLE => "InvalidRange".to_owned(),
        _ => "BadRequest".to_owned(),
    }
}
