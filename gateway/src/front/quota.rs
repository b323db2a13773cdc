//! Room for what a request is about to store.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, Method, Response, StatusCode};
use jiff::Timestamp;
use stowage_api::{Limits, RecordName};

use super::store::unavailable;
use super::{Gateway, Known, Shared};
use crate::answer::nothing;
use crate::body::Body;
use crate::decide::denied;
use crate::head::{Ask, CopySource, Operation, Target};
use crate::quota::Reservation;
use crate::refusal::{Code, Refusal};
use crate::registry::{Backend, Limited, Source};
use crate::upstream::{Admitted, Call, Client};

/// The SHA-256 of no bytes.
const HASH_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A bucket with limits that a request is about.
pub(super) struct Metered {
    id: RecordName,
    limits: Limits,
}

impl Gateway {
    /// Keeps count of what buckets hold that have limits, together with the other replicas, for
    /// ever.
    pub async fn keep_quotas(&self, source: Source) -> Infallible {
        let shared = self.0.clone();
        let client = move |limited: &Limited| shared.client(&limited.backend).ok();
        self.0.quotas.follow(&self.0.registry, source, self.0.clock.clone(), Arc::new(client)).await
    }

    /// What a bucket of a backend holds, as far as is known, in bytes; `None` where there is no
    /// such backend.
    #[must_use]
    pub fn used(&self, backend: &str, bucket: &str) -> Option<u64> {
        let backend = self.0.registry.backend(backend)?;
        let bucket = stowage_api::BucketName::parse(bucket).ok()?;
        Some(self.0.quotas.used(&RecordName::of(&backend.endpoint, &bucket)))
    }

    /// Tells the other replicas what they have not been told yet.
    pub async fn part(&self, source: &Source) {
        self.0.quotas.part(source, self.0.clock.clone()).await;
    }
}

impl Shared {
    /// The limits that a request meets; `None` where there are none, or it changes nothing.
    pub(super) fn metered(&self, ask: &Ask, backend: &Backend, known: &Known) -> Result<Option<Metered>, Refusal> {
        let Some(bucket) = ask.target.bucket().filter(|_| ask.operation.adds() || removes(ask.operation)) else {
            return Ok(None);
        };
        let own = match known {
            Known::Key(key, _) | Known::Form(key) => Some(&**key),
            Known::Nobody => None,
        };
        let limits = self.registry.ask(|tables| tables.limits(own, bucket, backend));
        let limits = match limits {
            Ok(limits) => limits,
            // What takes something out is never in the way of a limit.
            Err(_) if !ask.operation.adds() => return Ok(None),
            Err(_) => {
                let message = "The limit of this bucket can't be read. Please try again later.";
                return Err(Refusal::new(Code::ServiceUnavailable, message));
            }
        };
        let id = || RecordName::of(&backend.endpoint, bucket);
        Ok((limits != Limits::default()).then(|| Metered { id: id(), limits }))
    }

    /// Room for what a request is about to store.
    pub(super) async fn reserve(
        &self,
        metered: Option<&Metered>,
        ask: &Ask,
        store: (&Client, &Admitted),
        now: Timestamp,
    ) -> Result<Option<Reservation>, Refusal> {
        let Some(Metered { id, limits }) = metered else { return Ok(None) };
        let length = match (&ask.copy, ask.operation.stores_body()) {
            (Some(source), _) => copied(source, &ask.headers, store, now).await?,
            (None, true) => ask.payload.length(),
            (None, false) => return Ok(None),
        };
        let reserved = self.quotas.reserve(id.clone(), *limits, length, now).await;
        if let Err(refusal) = &reserved {
            self.metrics.no_room(refusal.code);
        }
        reserved.map(Some)
    }

    /// Notes what a request has taken out of a bucket.
    pub(super) fn note_removal(&self, metered: Option<&Metered>, operation: Operation, status: StatusCode) {
        if let Some(Metered { id, limits }) = metered.filter(|_| removes(operation) && status.is_success()) {
            self.quotas.removed(id, *limits);
        }
    }
}

/// Whether a bucket may hold less after it.
fn removes(operation: Operation) -> bool {
    use Operation as O;
    matches!(operation, O::DeleteObject | O::DeleteObjects | O::AbortMultipartUpload | O::CompleteMultipartUpload)
}

/// How many bytes a copy stores: those of its range, else all of its source.
async fn copied(
    source: &CopySource,
    headers: &HeaderMap,
    store: (&Client, &Admitted),
    now: Timestamp,
) -> Result<u64, Refusal> {
    let range = headers.get("x-amz-copy-source-range").and_then(|range| range.to_str().ok()).and_then(range_length);
    if let Some(length) = range {
        return Ok(length);
    }
    let mut query = Vec::new();
    if let Some(version) = &source.version {
        query.push(crate::uri::Pair { name: b"versionId".to_vec(), value: version.clone() });
    }
    let mut of_head = HeaderMap::new();
    for name in ["algorithm", "key", "key-md5"] {
        let from = format!("x-amz-copy-source-server-side-encryption-customer-{name}");
        let to = HeaderName::from_bytes(format!("x-amz-server-side-encryption-customer-{name}").as_bytes());
        if let (Some(value), Ok(to)) = (headers.get(from.as_str()), to) {
            of_head.insert(to, value.clone());
        }
    }
    let call = Call {
        method: Method::HEAD,
        target: Target::Object(source.bucket.clone(), source.key.clone()),
        query,
        headers: of_head,
        payload: HASH_OF_NOTHING.to_owned(),
        length: None,
        body: nothing(),
        is_long: false,
    };
    let (client, admitted) = store;
    let answer: Response<Body> = client.ask(call, admitted, now).await.map_err(|_| unavailable())?;
    match answer.status() {
        StatusCode::OK => {
            let length = answer.headers().get(http::header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
            length.and_then(|text| text.parse().ok()).ok_or_else(unavailable)
        }
        StatusCode::NOT_FOUND => Err(Refusal::new(Code::NoSuchKey, "The specified key does not exist.")),
        StatusCode::FORBIDDEN => Err(denied()),
        StatusCode::BAD_REQUEST => Err(Refusal::new(Code::InvalidRequest, "The source can't be read.")),
        _ => Err(unavailable()),
    }
}

/// The length of a range of bytes, where it has both ends.
fn range_length(range: &str) -> Option<u64> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// What an answer of a store says of what was to be stored. A proxy before it may say that it has
/// none.
pub(super) fn is_unclear(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}
