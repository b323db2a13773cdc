//! Deletions of what is deleted already, in buckets that keep versions (spec §6).
//!
//! versitygw 1.8.0 keeps the content of a deleted object as a version, and copies it again for each
//! further deletion without a version: no list shows what the copies take, so no quota counts it.
//! So such a deletion is answered here, by a HEAD of the object before it. A bucket that keeps no
//! versions pays nothing for a DELETE: that one keeps some is learned from the store's answers.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use parking_lot::Mutex;
use stowage_api::BucketName;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::record::Record;
use super::store::{HASH_OF_NOTHING, Passed, unavailable};
use super::{Known, Shared};
use crate::answer::{Unhappy, document, nothing};
use crate::body::Body;
use crate::deletion::{Deletion, Doomed, Supplement};
use crate::head::{Ask, Operation, Target};
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;
use crate::upstream::{Admitted, Call, Client};
use crate::uri::Pair;

/// Most buckets of which it is remembered whether they keep versions. Beyond, all are taken for
/// such that do.
const MOST_BUCKETS: usize = 64 << 10;
/// Longest time for which a bucket counts as one that keeps no versions because its store said so.
const SAID: Duration = Duration::from_secs(60);
/// Longest wait for another deletion of the same object.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a deletion without an answer may still be carried out by the store.
const IN_DOUBT: Duration = Duration::from_secs(60);
/// Most objects that are being deleted at once.
const MOST_BUSY: usize = 1 << 20;
/// Most objects of one DeleteObjects that are looked at at once, each with a call of the tenant's.
const LANES: usize = 8;
/// Longest answer to the question whether a bucket keeps versions.
const LONGEST_STATUS: usize = 64 << 10;

const MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
const VERSION: HeaderName = HeaderName::from_static("x-amz-version-id");

/// A bucket of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    endpoint: String,
    bucket: BucketName,
}

impl Place {
    fn of(backend: &Backend, ask: &Ask) -> Option<Self> {
        let bucket = ask.target.bucket()?.clone();
        Some(Self { endpoint: backend.endpoint.as_str().to_owned(), bucket })
    }
}

/// Knowledge of whether a bucket keeps versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Versions {
    /// It does, or did: what it kept is there.
    Kept,
    /// It did not at this time.
    None(Instant),
}

/// The buckets that keep versions, and the objects in them that are being deleted.
#[derive(Default)]
pub(super) struct Deletions {
    buckets: Mutex<HashMap<Place, Versions>>,
    /// Hashes of the objects: of two with the same hash one waits for the other.
    busy: Mutex<HashSet<u64>>,
    freed: Notify,
    hashes: RandomState,
}

impl Deletions {
    /// True where a bucket keeps versions, false where nothing says so.
    fn keeps(&self, place: &Place) -> bool {
        let buckets = self.buckets.lock();
        match buckets.get(place) {
            Some(versions) => *versions == Versions::Kept,
            None => buckets.len() >= MOST_BUCKETS,
        }
    }

    /// The same, `None` where a store would have to be asked.
    fn known(&self, place: &Place, now: Instant) -> Option<bool> {
        match self.buckets.lock().get(place) {
            Some(Versions::Kept) => Some(true),
            Some(Versions::None(at)) if now.duration_since(*at) < SAID => Some(false),
            Some(Versions::None(_)) | None => None,
        }
    }

    fn note(&self, place: Place, versions: Versions) {
        let mut buckets = self.buckets.lock();
        if buckets.get(&place) == Some(&Versions::Kept) {
            return;
        }
        if buckets.len() >= MOST_BUCKETS && !buckets.contains_key(&place) {
            buckets.retain(|_, versions| *versions == Versions::Kept);
        }
        if buckets.len() < MOST_BUCKETS || buckets.contains_key(&place) {
            buckets.insert(place, versions);
        }
    }

    /// Learns from an answer. A bucket whose versioning is suspended gives the id `null`.
    fn learn(&self, place: Place, headers: &HeaderMap) {
        let has_version = headers.get(VERSION).is_some_and(|id| !id.is_empty() && id != "null");
        if has_version || headers.contains_key(MARKER) {
            self.note(place, Versions::Kept);
        }
    }

    /// The turn to delete these objects, once nobody else deletes one of them.
    ///
    /// # Errors
    /// `SlowDown` where that takes too long.
    async fn turn(self: &Arc<Self>, place: &Place, keys: &[&str]) -> Result<Turn, Refusal> {
        let keys: Vec<u64> = keys.iter().map(|key| self.hashes.hash_one((place, key))).collect();
        let until = Instant::now() + PATIENCE;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.take(&keys) {
                return Ok(Turn { keys, is_open: false, deletions: self.clone() });
            }
            if timeout_at(until, freed).await.is_err() {
                let message = "This object is being deleted. Please try again.";
                return Err(Refusal::new(Code::SlowDown, message));
            }
        }
    }

    fn take(&self, keys: &[u64]) -> bool {
        let mut busy = self.busy.lock();
        let is_free = busy.len() + keys.len() <= MOST_BUSY && !keys.iter().any(|key| busy.contains(key));
        if is_free {
            busy.extend(keys);
        }
        is_free
    }

    fn free(&self, keys: &[u64]) {
        let mut busy = self.busy.lock();
        for key in keys {
            busy.remove(key);
        }
        drop(busy);
        self.freed.notify_waiters();
    }
}

/// Objects that nobody else deletes through this gateway, until this is dropped.
struct Turn {
    keys: Vec<u64>,
    /// The store was asked to delete, and has not answered.
    is_open: bool,
    deletions: Arc<Deletions>,
}

impl Turn {
    /// Notes an outcome: after an error of the store or none at all it may still delete.
    fn ends<T>(&mut self, outcome: &Result<T, Unhappy>) {
        self.is_open = outcome.as_ref().is_err_and(|unhappy| unhappy.status.is_server_error());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (deletions, keys) = (self.deletions.clone(), std::mem::take(&mut self.keys));
        match Handle::try_current() {
            Ok(runtime) if self.is_open => {
                runtime.spawn(async move {
                    sleep(IN_DOUBT).await;
                    deletions.free(&keys);
                });
            }
            _ => deletions.free(&keys),
        }
    }
}

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

fn call(method: Method, target: Target, query: Vec<Pair>) -> Call {
    Call {
        method,
        target,
        query,
        headers: HeaderMap::new(),
        payload: HASH_OF_NOTHING.to_owned(),
        length: None,
        body: nothing(),
        is_long: false,
    }
}

/// Headers of the store about a delete marker, where there is no present object; `None` where there
/// is one, or the store doesn't say.
async fn absent(
    client: &Client,
    admitted: &Admitted,
    target: Target,
    now: Timestamp,
) -> Result<Option<HeaderMap>, Refusal> {
    let answer = client.ask(call(Method::HEAD, target, Vec::new()), admitted, now).await;
    let answer = answer.map_err(|_| unavailable())?;
    if answer.status() != StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let told = |name: HeaderName| Some((name.clone(), answer.headers().get(&name)?.clone()));
    // The id of a version alone says nothing.
    let is_marker = answer.headers().contains_key(MARKER);
    Ok(Some([MARKER, VERSION].into_iter().filter(|_| is_marker).filter_map(told).collect()))
}

async fn absent_of(
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
    let answer = client.ask(call(Method::GET, Target::Bucket(bucket.clone()), query), admitted, now).await;
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

#[cfg(test)]
#[path = "deletions_tests.rs"]
mod tests;
