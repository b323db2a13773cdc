//! Quota for the bytes that a request is about to store.

use http::StatusCode;
use jiff::Timestamp;
use stowage_api::{Limits, RecordName};

use super::authentication::Known;
use super::shared::Shared;
use crate::head::{Ask, Operation, kept};
use crate::quota::{Fate, Reservation};
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;

/// The limited bucket that a request is about.
pub(super) struct Metered {
    id: RecordName,
    limits: Limits,
}

impl Shared {
    /// Returns the limits that apply to a request, or `None` if there are none or the request
    /// changes nothing.
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
            // A limit never blocks an operation that frees space.
            Err(_) if !ask.operation.adds() => return Ok(None),
            Err(_) => {
                let message = "The limit of this bucket can't be read. Please try again later.";
                return Err(Refusal::new(Code::ServiceUnavailable, message));
            }
        };
        let id = || RecordName::of(&backend.endpoint, bucket);
        Ok((limits != Limits::default()).then(|| Metered { id: id(), limits }))
    }

    /// Reserves quota for the bytes that a request is about to store. `copied` is the length of a
    /// copy.
    pub(super) async fn reserve(
        &self,
        metered: Option<&Metered>,
        ask: &Ask,
        copied: Option<u64>,
        now: Timestamp,
    ) -> Result<Option<Reservation>, Refusal> {
        let Some(Metered { id, limits }) = metered else { return Ok(None) };
        let content = match (copied, ask.operation.stores_body()) {
            (Some(copied), _) => copied,
            (None, true) => ask.payload.length(),
            (None, false) => 0,
        };
        // Metadata and tags are in no list of the store, so a scan doesn't find them again.
        let length = content.saturating_add(described(ask));
        if length == 0 && !ask.operation.stores_body() {
            return Ok(None);
        }
        let reserved = self.quotas.reserve(id.clone(), *limits, length, now).await;
        if let Err(refusal) = &reserved {
            self.metrics.no_room(refusal.code);
        }
        reserved.map(Some)
    }

    /// Records that a request has removed something from a bucket.
    pub(super) fn note_removal(&self, metered: Option<&Metered>, operation: Operation, status: StatusCode) {
        if let Some(Metered { id, limits }) = metered.filter(|_| removes(operation) && status.is_success()) {
            self.quotas.removed(id, *limits);
        }
    }
}

/// Returns true if a bucket may hold less after the operation.
fn removes(operation: Operation) -> bool {
    use Operation as O;
    matches!(operation, O::DeleteObject | O::DeleteObjects | O::AbortMultipartUpload | O::CompleteMultipartUpload)
}

/// Returns the number of bytes stored besides the content: metadata and tags.
fn described(ask: &Ask) -> u64 {
    let document = if ask.operation == Operation::PutObjectTagging { ask.payload.length() } else { 0 };
    kept(ask.operation, &ask.headers).saturating_add(document)
}

/// Returns the fate of content, `passed` bytes of which were sent, by the status of the store's
/// response.
///
/// The part of a body sent before it broke off may be kept: the store may have missed that it did.
/// If the store fails, it may keep all of it: versitygw 1.8.0 answers 500 for an object that it
/// stores without its tags.
pub(super) fn fate_of(status: Option<StatusCode>, passed: u64, content: u64) -> Fate {
    match status {
        _ if passed == 0 && content > 0 => Fate::Unsent,
        Some(status) if status.is_success() && passed >= content => Fate::Stored,
        Some(status) if !status.is_success() && !status.is_server_error() => Fate::Unsent,
        Some(_) | None => Fate::Unknown,
    }
}
