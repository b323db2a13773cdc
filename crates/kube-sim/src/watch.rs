//! Watches: streams of events, one per line, from the history of a kind.
//!
//! A watch keeps a version and reads the change after it from the store. If there is none, it
//! sleeps until the kind changes, its timeout expires, or a bookmark is due. It waits only with
//! tokio's timers, so it works with paused time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::builtin;
use super::disturbance::{Disturbance, LAG};
use super::json::json_text;
use super::kind::{Kind, SharedKind};
use super::output::{Form, status_object};
use super::route::Query;
use super::selector::Filter;
use super::shared_store::SharedStore;
use super::status::{self, Failure, FieldError};
use super::store::{Change, Place, Shared, Store};

/// Duration of a watch without `timeoutSeconds`, or with 0. A server chooses a random duration
/// between half an hour and an hour.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Interval of bookmarks, for a watch that allows them and whose version has changed.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Annotation of the bookmark that completes a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A running watch.
struct Watch {
    store: SharedStore,
    kind: SharedKind,
    filter: Filter,
    form: Form,
    /// Version up to which all changes were sent.
    version: u64,
    /// Version known to the client.
    known: u64,
    /// Lines to send before reading the history again.
    pending: VecDeque<Bytes>,
    news: Arc<Notify>,
    ends: Instant,
    bookmarks: bool,
    next_bookmark: Instant,
    ended: bool,
    disturbance: Option<Disturbance>,
    /// Time since which the disturbance has held back a change.
    behind_since: Option<Instant>,
    /// Event to send a second time.
    again: Option<Bytes>,
}

/// Starts a watch and returns the body that streams it.
///
/// # Errors
/// 400 and 422 for bad parameters. A version that has expired is *not* an error here: the stream
/// opens, and its only event is `ERROR` with code 410, as on a server.
pub(crate) fn watch(
    store: &SharedStore,
    state: &Store,
    kind: SharedKind,
    filter: Filter,
    form: Form,
    query: &Query,
    disturbance: Option<Disturbance>,
) -> Result<impl Stream<Item = Result<Frame<Bytes>, std::convert::Infallible>> + Send + 'static, Failure> {
    let asked = query.number("resourceVersion")?;
    let bookmarks = query.flag("allowWatchBookmarks");
    let streaming = query.flag("sendInitialEvents");
    check_streaming(query, streaming)?;
    let timeout = query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
    let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let started = Instant::now();
    let mut watch = Watch {
        news: state.subscribe(&kind),
        version: asked.unwrap_or(0),
        known: asked.unwrap_or(0),
        store: store.clone(),
        kind,
        filter,
        form,
        pending: VecDeque::new(),
        ends: started + timeout,
        bookmarks,
        next_bookmark: started + BOOKMARK_EVERY,
        ended: false,
        disturbance,
        behind_since: None,
        again: None,
    };
    if streaming || watch.version == 0 {
        watch.start_from_now(state, streaming && bookmarks);
    }
    Ok(stream::unfold(watch, |mut watch| async move {
        let line = watch.next_disturbed().await?;
        Some((Ok(Frame::data(line)), watch))
    }))
}

fn check_streaming(query: &Query, streaming: bool) -> Result<(), Failure> {
    let refuse = |error| Err(status::invalid("meta.k8s.io", "ListOptions", "", &[error]));
    match query.get("resourceVersionMatch") {
        None if query.get("sendInitialEvents").is_some() => {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            refuse(FieldError::forbidden("resourceVersionMatch", why))
        }
        Some(_) if !streaming && query.get("sendInitialEvents").is_none() => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            refuse(FieldError::forbidden("resourceVersionMatch", why))
        }
        Some(other) if other != "NotOlderThan" => {
            let kind = super::status::FieldErrorKind::NotSupported;
            let detail = "supported values: \"NotOlderThan\"";
            refuse(FieldError::new(kind, "resourceVersionMatch", other.into(), detail))
        }
        _ => Ok(()),
    }
}

/// Returns the line of an event with a serialized object.
fn line(event_type: &str, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{event_type}\",\"object\":");
    [head.as_bytes(), object, b"}\n"].concat().into()
}

impl Watch {
    /// Sends all existing objects as added, and continues from the current version.
    fn start_from_now(&mut self, state: &Store, closing_bookmark: bool) {
        self.version = state.version();
        let existing = state.objects(&self.kind).filter(|(place, object)| self.filter.matches(place, object));
        self.pending = existing.map(|(_, object)| self.event("ADDED", object)).collect();
        if closing_bookmark {
            let mut object = versioned_stub(&self.kind, self.version);
            object["metadata"]["annotations"] = json!({INITIAL_EVENTS_END: "true"});
            let event = self.unstored("BOOKMARK", &object);
            self.pending.push_back(event);
        }
    }

    fn event(&self, event_type: &str, object: &Shared) -> Bytes {
        line(event_type, &self.form.text(object))
    }

    /// Returns an event for an object that is not stored in this form.
    fn unstored(&self, event_type: &str, object: &Value) -> Bytes {
        line(event_type, &json_text(&self.form.of(object)))
    }

    /// Returns the next event, changed by the disturbance; `None` if the watch has ended.
    async fn next_disturbed(&mut self) -> Option<Bytes> {
        match self.disturbance {
            Some(Disturbance::Silent) => std::future::pending().await,
            Some(Disturbance::Gone) if !self.ended => {
                let current = self.store.lock().version();
                Some(self.expired(current))
            }
            Some(Disturbance::Cut) => {
                self.next().await;
                None
            }
            Some(Disturbance::Duplicated) => match self.again.take() {
                Some(event) => Some(event),
                None => {
                    self.again = self.next().await;
                    self.again.clone()
                }
            },
            _ => self.next().await,
        }
    }

    /// Returns the last event of a watch whose version has expired.
    fn expired(&mut self, oldest: u64) -> Bytes {
        self.ended = true;
        let failure = status::expired(self.version, oldest);
        line("ERROR", &json_text(&status_object(&failure)))
    }

    /// Returns the next event; `None` if the watch has ended.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let news = self.news.clone();
            let mut news = std::pin::pin!(news.notified());
            // From here on no notification is missed. One may refer to a change that was already
            // sent.
            news.as_mut().enable();
            if let Some(event) = self.told_by_history() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let bookmark = self.bookmarks.then_some(self.next_bookmark);
            let held_back = self.behind_since.map(|since| since + LAG);
            let wake = [bookmark, held_back].into_iter().flatten().fold(self.ends, Instant::min);
            tokio::select! {
                biased;
                () = news => {}
                () = tokio::time::sleep_until(wake) => {
                    self.ended = Instant::now() >= self.ends;
                    if self.bookmarks && (self.ended || Instant::now() >= self.next_bookmark) {
                        self.next_bookmark = wake + BOOKMARK_EVERY;
                        if let Some(bookmark) = self.bookmark() {
                            return Some(bookmark);
                        }
                    }
                }
            }
        }
    }

    /// Returns a bookmark, if the version has changed. A server sends one every minute in any case,
    /// without guaranteeing it. In a simulation at rest these would be the majority of all events.
    fn bookmark(&mut self) -> Option<Bytes> {
        // Unless changes are held back, all changes of this kind were sent, so the watch has
        // reached the store's version.
        if self.behind_since.is_none() {
            self.version = self.version.max(self.store.lock().version());
        }
        if self.version == self.known && self.disturbance.is_none() {
            return None;
        }
        self.known = self.version;
        Some(self.unstored("BOOKMARK", &versioned_stub(&self.kind, self.version)))
    }

    /// Returns the event for the next change that concerns this watch, if there is one.
    fn told_by_history(&mut self) -> Option<Bytes> {
        let store = self.store.clone();
        let state = store.lock();
        if !state.serves(&self.kind) {
            self.ended = true;
            return None;
        }
        loop {
            let mut changes = match state.changes_after(&self.kind, self.version) {
                Ok(changes) => changes,
                Err(oldest) => return Some(self.expired(oldest)),
            };
            if self.holds_back(changes.len()) {
                return None;
            }
            if self.disturbance == Some(Disturbance::Collapsed) {
                self.gather(changes);
                return self.pending.pop_front();
            }
            let change = changes.next()?;
            self.version = change.version;
            if let Some(event) = self.translate(change) {
                self.known = change.version;
                return Some(event);
            }
        }
    }

    /// Returns true if the first of this number of unsent changes must not be sent yet.
    fn holds_back(&mut self, untold: usize) -> bool {
        let enough = match self.disturbance {
            Some(Disturbance::Behind(changes)) => untold as u64 > changes,
            Some(Disturbance::Collapsed) => false,
            _ => return false,
        };
        if untold == 0 {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert_with(Instant::now);
        !enough && since.elapsed() < LAG
    }

    /// Combines all changes of each object into one event.
    fn gather<'a>(&mut self, changes: impl Iterator<Item = &'a Change>) {
        let mut whole: BTreeMap<Place, Change> = BTreeMap::new();
        for change in changes {
            self.version = change.version;
            let old = |first: &Change| first.old.clone();
            let place = &change.place;
            let old = whole.get(place).map_or_else(|| old(change), old);
            whole.insert(place.clone(), Change { old, ..change.clone() });
        }
        self.behind_since = None;
        self.pending = whole.values().filter_map(|change| self.translate(change)).collect();
    }

    /// Returns the event for a change after filtering. An object that stops matching is deleted,
    /// with its old labels and the new version; one that starts matching is added.
    fn translate(&self, change: &Change) -> Option<Bytes> {
        let before = change.old.as_ref().filter(|old| self.filter.matches(&change.place, old));
        let after = Some(&change.new).filter(|new| !change.removed && self.filter.matches(&change.place, new));
        match (before, after) {
            (None, None) => None,
            (None, Some(new)) => Some(self.event("ADDED", new)),
            (Some(_), Some(new)) => Some(self.event("MODIFIED", new)),
            (Some(_), None) if change.removed => Some(self.event("DELETED", &change.new)),
            (Some(old), None) => {
                let mut last = Value::clone(old);
                super::meta::set(&mut last, "resourceVersion", change.version.to_string().into());
                Some(self.unstored("DELETED", &last))
            }
        }
    }
}

/// Returns an object with only type and version, for bookmarks and similar events.
fn versioned_stub(kind: &Kind, version: u64) -> Value {
    let mut stub = json!({
        "kind": kind.kind,
        "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": version.to_string()},
    });
    builtin::fill_in_structs(kind, &mut stub);
    stub
}
