//! Deletions of what is deleted already, in buckets that keep versions (spec §6).
//!
//! versitygw 1.8.0 keeps the content of a deleted object as a version, and copies it again for each
//! further deletion without a version: no list shows what the copies take, so no quota counts it.
//! So such a deletion is answered here, by a HEAD of the object before it. A bucket that keeps no
//! versions pays nothing for a DELETE: that one keeps some is learned from the store's answers.

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

/// Most objects of one DeleteObjects that are looked at at once, each with a call of the tenant's.
const LANES: usize = 8;

/// The part of a DeleteObjects that the store is not asked for.
pub(super) struct Aside {
    told: Supplement,
    /// All of it is.
    is_all: bool,
    turn: Option<Turn>,
}

impl Shared {
    /// Passes a request on, but for a DELETE of an object that is deleted already.
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

    /// Passes a DeleteObjects on, and answers for what was set aside of it.
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

    /// Sets aside the objects of a DeleteObjects that are deleted already, and those that it names
    /// again. What remains is for the store.
    ///
    /// A bucket of which nothing is known is asked about, as the answer to a quiet DeleteObjects
    /// teaches nothing.
    ///
    /// # Errors
    /// `SlowDown` where others delete the same objects, or the tenant has no call left;
    /// `ServiceUnavailable` where the store gives no answer; that of [`Self::refuse_hidden_keys`].
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

    /// A call of the tenant's to look at an object.
    pub(super) fn look_up(&self, client: &Client, ask: &Ask, known: &Known) -> Result<Admitted, Refusal> {
        let slow_down = |_| Refusal::new(Code::SlowDown, "The store behind this bucket can't be asked now.");
        client.admit(self.tenant(known, ask), Instant::now()).map_err(slow_down)
    }

    /// True where a bucket keeps versions, by what is known or by what the store says.
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

/// A deletion without the objects that were found to be deleted, by place.
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

/// The answer to a DELETE of what is deleted.
///
/// # Errors
/// `PreconditionFailed` where it was for an object with this tag, length or time alone.
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
