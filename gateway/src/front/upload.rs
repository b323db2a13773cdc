//! Form uploads: signed by a policy in the body, and stored by an equivalent PutObject.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use tokio::time::timeout;

use super::authentication::Known;
use super::peer::Peer;
use super::record::{self, Record};
use super::shared::Shared;
use super::store::Passed;
use crate::answer::{Unhappy, document, xml};
use crate::body::pace::Slow;
use crate::body::{Body, Payload, nothing};
use crate::decide::{Verdict, Wanted, decide, denied};
use crate::form::{self, Boundary, File, Form, Success};
use crate::head::{Ask, Key as ObjectKey, MAX_BODY, Operation, Sent, Target, forwarded};
use crate::limits::Source;
use crate::refusal::{Code, Refusal};
use crate::registry::Key;
use crate::upstream::{Share, Shares, Tenant};

/// Maximum memory for the fields of all forms together, in KiB: enough for 512 forms.
const MOST_KIB: usize = 512 * KIB;
/// Memory for the fields of one form, in KiB.
const KIB: usize = form::MOST_HELD.div_ceil(1024);
/// Time limit for the fields of a form: the same as for a head, as the sender is not authenticated
/// yet.
const FIELDS: Duration = Duration::from_secs(10);

/// The memory budget for the fields of forms that are not authenticated yet.
pub(super) struct Forms(Arc<Shares>);

impl Default for Forms {
    fn default() -> Self {
        Self(Arc::new(Shares::new(MOST_KIB)))
    }
}

impl Forms {
    /// Reserves memory for one more form of a client.
    ///
    /// # Errors
    /// `SlowDown` if none is left.
    fn take(&self, peer: &Peer) -> Result<Share, Refusal> {
        let full = |_| Refusal::new(Code::SlowDown, "Too many forms are being read at once. Please try again.");
        self.0.take(Tenant::Source(Source::of(peer.address.ip())), KIB).map_err(full)
    }
}

/// An authenticated form that has been read up to its file.
struct Judged {
    held: record::Held,
    ask: Ask,
    key: Arc<Key>,
    body: Body,
    success: Success,
}

/// Returns the boundary of a form, or `None` if the request is not a form upload.
///
/// # Errors
/// `MalformedPOSTRequest` if the `Content-Type` is a form's but has no valid boundary.
pub(super) fn boundary(sent: &Sent) -> Result<Option<Boundary>, Refusal> {
    let kind = sent.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind {
        Some(kind) if sent.method == Method::POST => Boundary::of(kind),
        _ => Ok(None),
    }
}

impl Shared {
    /// Answers a form upload.
    pub(super) async fn upload(
        self: &Arc<Self>,
        sent: Sent,
        form: (Boundary, Body),
        peer: &Peer,
        (now, location): (Timestamp, String),
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        let (boundary, body) = form;
        let length = content_length(&sent.headers)?;
        let target = sent.target()?;
        let Target::Bucket(bucket) = &target else { return Err(denied().into()) };
        let room = self.forms.take(peer)?;
        let read = timeout(FIELDS, form::read(body, boundary)).await;
        let (form, file) = read.map_err(|_| Slow::Trickle.refusal())??;
        let judged = self.judge((&form, room), file, bucket.as_str(), length, now).await?;
        let Judged { held, ask, key, body, success } = judged;
        record.signed_by(&key, "Form");
        record.asks(&ask);
        let known = Known::Form(key);
        let verdict = self.registry.ask(|tables| decide(known.caller(), &Wanted::of(&ask), tables, now))?;
        let Verdict::Forward(backend) = verdict else { return Err(denied().into()) };
        record.forwarded(&backend.name);
        self.refuse_hidden(&ask, &backend, &known, now).await?;
        let key = ask.target.key().map(|key| key.as_str().to_owned()).unwrap_or_default();
        let passed = Passed { ask, backend, body, now, location: location.clone() };
        let stored = self.pass(passed, known, record).await?;
        let answer = told(&success, stored, bucket.as_str(), &key, &location)?;
        Ok(record::holding(answer, held))
    }

    /// Authenticates a form and builds its request. The form's memory is released once one of the
    /// tenant's slots is taken; only then is more of the body read.
    async fn judge(
        &self,
        (form, room): (&Form, Share),
        file: File,
        bucket: &str,
        length: Option<u64>,
        now: Timestamp,
    ) -> Result<Judged, Refusal> {
        let claim = form::claim(form)?.ok_or_else(denied)?;
        let (region, dated) = (&self.config.region, (self.clock_of_clients)());
        let Some(key) = self.key(&claim.access_key_id, now).await else {
            return Err(claim.refuse_unknown(form, region, dated));
        };
        let policy = claim.verify(form, bucket, &key.signing, region, dated)?;
        let held = self.admit_holder(&key)?;
        drop(room);
        let file = file.measured(length).await?;
        policy.check_length(file.length)?;
        if file.length > MAX_BODY {
            return Err(Refusal::new(Code::EntityTooLarge, "Your proposed upload exceeds the maximum allowed size."));
        }
        let target = Target::of(format!("/{bucket}/{}", form.key()?).as_bytes(), None)?;
        if target.key().map(ObjectKey::as_str) != Some(form.key()?.as_str()) {
            return Err(Refusal::new(Code::InvalidArgument, "The form's key can't be one."));
        }
        let ask = Ask {
            operation: Operation::PostObject,
            target,
            query: Vec::new(),
            headers: headers(form)?,
            payload: Payload::Unsigned { length: file.length },
            copy: None,
        };
        Ok(Judged { held, ask, key, body: file.body.boxed_unsync(), success: Success::of(form) })
    }
}

/// Converts the fields to the headers that they stand for, under the same rules as those of a PUT.
fn headers(form: &Form) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::new();
    for (name, value) in form.headers() {
        let refuse = || Refusal::new(Code::InvalidArgument, "A field can't stand in a header, or is given twice.");
        if name == "tagging" {
            return Err(Refusal::new(Code::NotImplemented, "Tags in a form are not implemented."));
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| refuse())?;
        if headers.insert(name, value).is_some() {
            return Err(refuse());
        }
    }
    forwarded(Operation::PostObject, &headers)
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.parse().ok());
    length.map(Some).ok_or_else(|| Refusal::new(Code::InvalidArgument, "A length is a number."))
}

/// Builds the response that the form requests from the store's.
fn told(
    success: &Success,
    stored: Response<Body>,
    bucket: &str,
    key: &str,
    url: &str,
) -> Result<Response<Body>, Refusal> {
    let (parts, _) = stored.into_parts();
    if !parts.status.is_success() {
        return Err(Refusal::new(Code::ServiceUnavailable, "The store gave no answer that can be passed on."));
    }
    let etag = parts.headers.get(ETAG).and_then(|etag| etag.to_str().ok()).unwrap_or_default();
    let object = format!("{}/{}", url.trim_end_matches('/'), crate::uri::encode_path(key.as_bytes()));
    let mut answer = match success.status() {
        StatusCode::CREATED => document(xml::post_response(&object, bucket, key, etag)),
        _ => Response::new(nothing()),
    };
    *answer.status_mut() = success.status();
    let location = success.location(bucket, key, etag).unwrap_or(object);
    for (name, value) in [(LOCATION, location.as_str()), (ETAG, etag)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers_mut().insert(name, value);
        }
    }
    Ok(answer)
}
