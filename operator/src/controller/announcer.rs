//! Publishes Events (spec §4): the first Event of a kind about an object is created, later ones are
//! counted in its series.
//!
//! kube's `Recorder` keeps every Event whole for minutes and walks through all of them under a lock
//! for each new one. In a burst of new claims, each Event costs more than the one before.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::events::Reporter;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;

use crate::Clock;
use crate::api::shortened;
use crate::kubernetes::{self, CONTROLLER};
use crate::plan::Announcement;

/// Maximum length of an Event's note that the API server accepts, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Maximum length of the object's name inside an Event's name, in bytes.
///
/// The rest of the Event's name is a dot and 16 hexadecimal digits.
const LONGEST_NAME: usize = 200;

/// Time after which a repeated Event is a new object instead of a count in the series.
///
/// Other publishers of Events use the same time.
const SOON: Duration = Duration::from_secs(360);

/// Maximum number of remembered series.
///
/// More at once means a burst of first Events, for example of many new claims. Forgetting a series
/// costs one extra Event object.
const MOST: usize = 1000;

/// Content of an Event.
pub(super) struct Announced<'a> {
    /// True for type `Warning`, false for `Normal`.
    pub(super) warning: bool,
    /// Machine-readable reason in CamelCase.
    pub(super) reason: &'a str,
    /// Human-readable message; truncated if it is too long.
    pub(super) note: &'a str,
}

/// Publishes Events.
pub(super) struct Announcer {
    client: Client,
    clock: Clock,
    reporter: Reporter,
    told: Mutex<Told>,
}

/// The last Event of each kind about each object.
#[derive(Default)]
struct Told {
    by_kind: BTreeMap<Kind, Last>,
    /// Number of Events created, part of the hash in each name so that names are unique.
    count: u64,
}

/// UID of the object, and the reason.
type Kind = (String, String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Last {
    event: String,
    times: i32,
    at: Timestamp,
}

impl Announcer {
    pub(super) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, reporter: Reporter::from(CONTROLLER), told: Mutex::default() }
    }

    /// Publishes an Event about an object, in its namespace.
    ///
    /// # Errors
    /// Returns an error if the request fails.
    pub(super) async fn publish(&self, announced: &Announced<'_>, about: ObjectReference) -> kube::Result<()> {
        let now = self.clock.now();
        let kind = (about.uid.clone().unwrap_or_default(), announced.reason.to_owned());
        let api: Api<Event> = Api::namespaced(self.client.clone(), about.namespace.as_deref().unwrap_or("default"));
        let last = self.told.lock().last(&kind, now);
        if let Some(last) = last {
            let series = EventSeries { count: last.times, last_observed_time: MicroTime(now) };
            let answer =
                api.patch(&last.event, &PatchParams::default(), &Patch::Merge(json!({ "series": series }))).await;
            // On failure the series is forgotten, as the Event may be deleted: the next one is a
            // new Event.
            answer?;
            self.told.lock().put(kind, last);
            return Ok(());
        }
        let count = self.told.lock().next();
        let event = self.first(announced, about, now, count);
        let name = event.metadata.name.clone().unwrap_or_default();
        api.create(&PostParams::default(), &event).await?;
        self.told.lock().put(kind, Last { event: name, times: 1, at: now });
        Ok(())
    }

    /// Publishes the Events of a pass. They are best effort, and never fail a pass (spec §3).
    pub(super) async fn announce(&self, announcements: &[Announcement], about: &ObjectReference) {
        for Announcement { warning, reason, note } in announcements {
            let announced = Announced { warning: *warning, reason, note };
            if let Err(error) = self.publish(&announced, about.clone()).await {
                tracing::debug!(reason, why = kubernetes::describe(&error), "event not published");
            }
        }
    }

    fn first(&self, announced: &Announced<'_>, about: ObjectReference, now: Timestamp, count: u64) -> Event {
        let Reporter { controller, instance } = &self.reporter;
        Event {
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(now)),
            metadata: ObjectMeta {
                name: Some(name(&about, announced.reason, now, count)),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            note: Some(shortened(announced.note, LONGEST_NOTE).into_owned()),
            reason: Some(announced.reason.to_owned()),
            regarding: Some(about),
            reporting_controller: Some(controller.clone()),
            reporting_instance: Some(instance.clone().unwrap_or_else(|| controller.clone())),
            type_: Some(if announced.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

impl Told {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Removes and returns the series that this Event counts in, with this Event counted.
    fn last(&mut self, kind: &Kind, now: Timestamp) -> Option<Last> {
        let last = self.by_kind.remove(kind)?;
        let is_soon = Duration::try_from(now.duration_since(last.at)).unwrap_or_default() <= SOON;
        is_soon.then(|| Last { times: last.times.saturating_add(1), at: now, ..last })
    }

    /// Records the last Event of a kind.
    ///
    /// Above [`MOST`], expired series are removed, then the oldest one if that freed nothing.
    fn put(&mut self, kind: Kind, last: Last) {
        let now = last.at;
        self.by_kind.insert(kind, last);
        if self.by_kind.len() <= MOST {
            return;
        }
        self.by_kind.retain(|_, last| Duration::try_from(now.duration_since(last.at)).unwrap_or_default() <= SOON);
        if self.by_kind.len() > MOST {
            let oldest = self.by_kind.iter().min_by_key(|(_, last)| last.at).map(|(kind, _)| kind.clone());
            oldest.and_then(|kind| self.by_kind.remove(&kind));
        }
    }
}

/// Returns a name for an Event that is unique, also across restarts of this process.
fn name(about: &ObjectReference, reason: &str, now: Timestamp, count: u64) -> String {
    let of = about.name.as_deref().unwrap_or(CONTROLLER);
    let end = (0..=LONGEST_NAME.min(of.len())).rev().find(|end| of.is_char_boundary(*end)).unwrap_or_default();
    let of = of[..end].trim_end_matches(['.', '-']);
    let uid = about.uid.as_deref().unwrap_or_default();
    let mut digits = DefaultHasher::new();
    (uid, reason, now.as_second(), count).hash(&mut digits);
    format!("{of}.{:016x}", digits.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn kind(number: usize) -> Kind {
        (format!("uid-{number}"), "Bound".to_owned())
    }

    fn first(second: i64) -> Last {
        Last { event: "photos.1".to_owned(), times: 1, at: at(second) }
    }

    #[test]
    fn what_follows_soon_is_counted_and_what_comes_later_is_an_event_of_its_own() {
        let mut told = Told::default();
        assert_eq!(told.last(&kind(1), at(0)), None);
        told.put(kind(1), first(0));
        let second = told.last(&kind(1), at(300)).expect("it is soon");
        assert_eq!(second, Last { times: 2, at: at(300), ..first(0) });
        assert_eq!(told.last(&kind(1), at(300)), None, "one that could not be counted is forgotten");
        told.put(kind(1), second);
        assert_eq!(told.last(&kind(2), at(301)), None);
        assert_eq!(told.last(&kind(1), at(661)), None, "that is later");
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_the_oldest_goes_first() {
        let mut told = Told::default();
        for number in 0..3 * MOST {
            told.put(kind(number), first(i64::try_from(number).expect("it is small") / 100));
        }
        assert_eq!(told.by_kind.len(), MOST);
        assert!(told.last(&kind(3 * MOST - 1), at(40)).is_some());
        assert!(told.last(&kind(0), at(40)).is_none());
        told.put(kind(0), first(10_000));
        told.put(kind(1), first(10_000));
        assert_eq!(told.by_kind.len(), 2, "those that are long over are gone");
    }

    #[test]
    fn names_differ_and_are_names() {
        let about = |name: &str| ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() };
        let short = name(&about("photos"), "Bound", at(7), 1);
        assert!(short.starts_with("photos.") && short.len() == "photos.".len() + 16, "{short}");
        assert_ne!(short, name(&about("photos"), "Bound", at(7), 2));
        assert_ne!(short, name(&about("photos"), "Rotated", at(7), 1));
        let long = name(&about(&format!("{}.-{}", "a".repeat(198), "b".repeat(50))), "Bound", at(7), 1);
        assert!(long.starts_with(&format!("{}.", "a".repeat(198))) && long.len() < 253, "{long}");
        assert!(!long.contains(".."), "{long}");
    }
}
