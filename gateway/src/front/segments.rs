//! Keys with empty segments, in stores that hide the versions of such objects (spec §6).
//!
//! versitygw 1.8.0 keeps an object under its key without empty segments, but its versions under the
//! key as it was sent. The versions of `a//b` are in no list, and no quota counts them. Other
//! stores treat `a//b` like any other key, so the `Server` header of the store's responses decides.

use std::collections::HashMap;
use std::time::Duration;

use http::header::SERVER;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::authentication::Known;
use super::shared::Shared;
use super::versions::versioning;
use crate::head::{Ask, Operation};
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;

/// Value of the `Server` header of stores that hide such versions.
const HIDES: &[u8] = b"VERSITYGW";
/// Time for which the gateway remembers that a store hides nothing.
const KNOWN: Duration = Duration::from_secs(10 * 60);

/// Endpoints of stores that hide nothing, with the time of that finding. There is at most one per
/// backend.
#[derive(Default)]
pub(super) struct Stores(Mutex<HashMap<String, Instant>>);

impl Stores {
    fn hides_nothing(&self, endpoint: &str, now: Instant) -> bool {
        self.0.lock().get(endpoint).is_some_and(|at| now.duration_since(*at) < KNOWN)
    }

    fn note(&self, endpoint: &str, now: Instant) {
        let mut stores = self.0.lock();
        stores.retain(|_, at| now.duration_since(*at) < KNOWN);
        stores.insert(endpoint.to_owned(), now);
    }
}

impl Shared {
    /// Refuses a request that creates a version of its object, if the store would hide that
    /// version.
    pub(super) async fn refuse_hidden(
        &self,
        ask: &Ask,
        backend: &Backend,
        known: &Known,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        match ask.target.key() {
            Some(key) if makes_version(ask) => {
                self.refuse_hidden_keys(&[key.as_str()], (ask, backend), known, now).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a request that creates versions of these objects, if the store would hide one of
    /// them.
    ///
    /// # Errors
    /// `InvalidArgument` if it would hide one; `ServiceUnavailable` if the store doesn't answer;
    /// `SlowDown` if the tenant already has too many calls to the store.
    pub(super) async fn refuse_hidden_keys(
        &self,
        keys: &[&str],
        (ask, backend): (&Ask, &Backend),
        known: &Known,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let (endpoint, at) = (backend.endpoint.as_str(), Instant::now());
        let Some(bucket) = ask.target.bucket() else { return Ok(()) };
        if !keys.iter().any(|key| has_empty_segment(key)) || self.stores.hides_nothing(endpoint, at) {
            return Ok(());
        }
        let client = self.client(backend)?;
        let admitted = self.look_up(&client, ask, known)?;
        let (keeps, headers) = versioning(&client, &admitted, bucket, now).await?;
        if !headers.get(SERVER).is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(HIDES)) {
            self.stores.note(endpoint, at);
            return Ok(());
        }
        if keeps {
            let message = "The store of this bucket keeps versions, and hides those of a key with an empty segment.";
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        Ok(())
    }
}

fn has_empty_segment(key: &str) -> bool {
    key.starts_with('/') || key.contains("//")
}

/// Returns true for an operation that creates a version of its object, or turns the current one
/// into a past version.
fn makes_version(ask: &Ask) -> bool {
    use Operation as O;
    match ask.operation {
        O::CompleteMultipartUpload | O::CopyObject | O::CreateMultipartUpload | O::PostObject | O::PutObject => true,
        O::DeleteObject => !ask.names_version(),
        _ => false,
    }
}
