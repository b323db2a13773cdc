//! Deletions of objects that are already deleted, in buckets that keep versions (spec §6).
//!
//! versitygw 1.8.0 keeps the content of a deleted object as a version, and copies it again for each
//! further deletion without a version id. No list shows the space those copies take, so no quota
//! counts it. The gateway therefore answers such a deletion itself, after a HEAD of the object. A
//! bucket that keeps no versions costs no extra call for a DELETE: the gateway learns from the
//! store's responses which buckets keep versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use tokio::time::Instant;

use super::answers::unavailable;
use super::authentication::Known;
use super::deleting::{Place, Turn, Versions};
use super::record::Record;
use super::shared::Shared;
use super::store::Passed;
use super::versions::{VERSION, absent, absent_of, versioning};
use crate::answer::{Unhappy, document};
use crate::body::{Body, nothing};
use crate::deletion::{Deletion, Supplement};
use crate::head::{Ask, Operation};
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;
use crate::upstream::{Admitted, Client};

/// Maximum number of objects of one DeleteObjects checked concurrently. Each takes one call of the
/// tenant.
const LANES: usize = 8;

/// The part of a DeleteObjects that the gateway answers without the store.
pub(super) struct Aside {
    told: Supplement,
    /// True if nothing is left for the store.
    is_all: bool,
    turn: Option<Turn>,
}

impl Shared {
    /// Forwards a request. A DELETE of an object that is already deleted is answered here.
    pub(super) async fn carry_out(
        self: &Arc<Self>,
        passed: Passed,
        known: Known,
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        let Some(place) = Place::of(&passed.backend, &passed.ask) else {
            return self.pass(passed, known, record).await;
        };
        self.refuse_hidden(&passed.ask, &passed.backend, &known, passed.now).await?;
        let mut turn = None;
        let is_deletion = passed.ask.operation == Operation::DeleteObject && !passed.ask.names_version();
        if let Some(key) = passed.ask.target.key().filter(|_| is_deletion && self.deletions.keeps(&place)) {
            turn = Some(self.deletions.turn(&place, &[key.as_str()]).await?);
            let client = self.client(&passed.backend)?;
            let admitted = self.look_up(&client, &passed.ask, &known)?;
            if let Some(found) = absent(&client, &admitted, passed.ask.target.clone(), passed.now).await? {
                return Ok(gone(&passed.ask, found)?);
            }
        }
        turn.iter_mut().for_each(|turn| turn.is_open = true);
        let answer = self.pass(passed, known, record).await;
        turn.iter_mut().for_each(|turn| turn.ends(&answer));
        if let Ok(answer) = &answer {
            self.deletions.learn(place, answer.headers());
        }
        answer
    }

    /// Forwards a DeleteObjects, and adds the results of the objects that were set aside.
    pub(super) async fn carry_out_deletion(
        self: &Arc<Self>,
        passed: Passed,
        aside: Aside,
        known: Known,
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        let Aside { told, is_all, mut turn } = aside;
        if is_all {
            return Ok(document(told.alone()));
        }
        turn.iter_mut().for_each(|turn| turn.is_open = true);
        let answer = self.pass(passed, known, record).await;
        turn.iter_mut().for_each(|turn| turn.ends(&answer));
        Ok(answer?.map(|body| told.within(body)))
    }

    /// Sets aside the objects of a DeleteObjects that are already deleted, and those listed more
    /// than once. The rest is for the store.
    ///
    /// If nothing is known of the bucket, the store is asked for its versioning first: the response
    /// to a quiet DeleteObjects does not show it.
    ///
    /// # Errors
    /// `SlowDown` if other requests delete the same objects, or the tenant has no call left;
    /// `ServiceUnavailable` if the store doesn't answer; the errors of
    /// [`Self::refuse_hidden_keys`].
    pub(super) async fn set_aside(
        &self,
        deletion: Deletion,
        backend: &Backend,
        ask: &Ask,
        known: &Known,
        now: Timestamp,
    ) -> Result<(Deletion, Aside), Refusal> {
        let place = Place::of(backend, ask).filter(|_| deletion.objects().iter().any(|it| it.version.is_none()));
        let Some(place) = place else { return Ok(without(deletion, &[], None)) };
        let present = deletion.objects().iter().filter(|object| object.version.is_none());
        let keys: Vec<&str> = present.map(|object| object.key.as_str()).collect();
        self.refuse_hidden_keys(&keys, (ask, backend), known, now).await?;
        let client = self.client(backend)?;
        let mut admitted = vec![self.look_up(&client, ask, known)?];
        if !self.keeps_versions(&client, &admitted, &place, now).await? {
            return Ok(without(deletion, &[], None));
        }
        let turn = self.deletions.turn(&place, &keys).await?;
        while admitted.len() < LANES.min(deletion.objects().len()) {
            let Ok(another) = self.look_up(&client, ask, known) else { break };
            admitted.push(another);
        }
        let mut found = Vec::with_capacity(deletion.objects().len());
        for objects in deletion.objects().chunks(admitted.len()) {
            let mut looks = Vec::with_capacity(objects.len());
            for (object, admitted) in objects.iter().zip(&admitted) {
                looks.push(absent_of(&client, admitted, &place.bucket, object, now));
            }
            found.extend(try_join_all(looks).await?);
        }
        Ok(without(deletion, &found, Some(turn)))
    }

    /// Acquires one of the tenant's calls to the store, to look up an object.
    pub(super) fn look_up(&self, client: &Client, ask: &Ask, known: &Known) -> Result<Admitted, Refusal> {
        let slow_down = |_| Refusal::new(Code::SlowDown, "The store behind this bucket can't be asked now.");
        client.admit(self.tenant(known, ask), Instant::now()).map_err(slow_down)
    }

    /// Returns true if a bucket keeps versions, from the cache or from the store.
    async fn keeps_versions(
        &self,
        client: &Client,
        admitted: &[Admitted],
        place: &Place,
        now: Timestamp,
    ) -> Result<bool, Refusal> {
        let at = Instant::now();
        if let Some(known) = self.deletions.known(place, at) {
            return Ok(known);
        }
        let admitted = admitted.first().ok_or_else(unavailable)?;
        let (keeps, _) = versioning(client, admitted, &place.bucket, now).await?;
        self.deletions.note(place.clone(), if keeps { Versions::Kept } else { Versions::None(at) });
        Ok(keeps)
    }
}

/// Splits a deletion: `found` has, at the index of each object, the delete marker's headers if it
/// is already deleted.
fn without(deletion: Deletion, found: &[Option<HeaderMap>], turn: Option<Turn>) -> (Deletion, Aside) {
    let markers: BTreeMap<usize, Option<Box<str>>> = found
        .iter()
        .enumerate()
        .filter_map(|(at, found)| {
            let version = found.as_ref()?.get(VERSION).and_then(|id| id.to_str().ok());
            Some((at, version.map(Into::into)))
        })
        .collect();
    let (remaining, told) = deletion.without(&markers);
    let is_all = remaining.objects().is_empty();
    (remaining, Aside { told, is_all, turn })
}

/// Builds the response to a DELETE of an object that is already deleted.
///
/// # Errors
/// `PreconditionFailed` if the request depends on the object's ETag, size or time.
fn gone(ask: &Ask, found: HeaderMap<HeaderValue>) -> Result<Response<Body>, Refusal> {
    if ask.headers.keys().any(|name| name.as_str().contains("if-match")) {
        let message = "At least one of the pre-conditions you specified did not hold";
        return Err(Refusal::new(Code::PreconditionFailed, message));
    }
    let mut answer = Response::new(nothing());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    *answer.headers_mut() = found;
    Ok(answer)
}
