//! Keys and tenants over time, derived from the history of a run: the data of the chart for
//! scenarios that rotate keys.

use std::collections::BTreeMap;

use serde_json::Value;
use stowage_operator::api::wire::{self, Role};
use stowage_world::history::facts::{expires_at, field, label};
use stowage_world::history::{Event, History, Stored, What};

use crate::explorer::timeline::since_start;

/// Virtual milliseconds shown before the first replacement of a key, and after the replaced key is
/// gone.
const AROUND: i64 = 30_000;

/// Keys and tenants over time. Times are virtual milliseconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChart {
    /// The time range to show: from, to.
    pub window: (i64, i64),
    /// The keys, in the order of their creation.
    pub keys: Vec<Key>,
    /// The keys in each consumer Secret.
    pub published: Vec<Published>,
    /// The actions of each tenant.
    pub tenants: Vec<Tenant>,
}

/// The life of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The access key id.
    pub id: String,
    /// Time of the creation.
    pub minted: i64,
    /// Time at which its expiry was set.
    pub stamped: Option<i64>,
    /// Time at which the key expires.
    pub expires: Option<i64>,
    /// Time of its deletion.
    pub removed: Option<i64>,
}

/// The content of a consumer Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Namespace and name.
    pub secret: String,
    /// The index of the key from each time on; `None` for no known key.
    pub held: Vec<(i64, Option<usize>)>,
}

/// The actions of the tenant of a consumer Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Namespace and consumer Secret.
    pub name: String,
    /// Uses of keys by the tenant.
    pub uses: Vec<Use>,
}

/// A use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Time of the use.
    pub at: i64,
    /// The index of the key.
    pub key: Option<usize>,
    /// True if the gateway allowed it.
    pub allowed: bool,
}

#[derive(Default)]
struct Reader {
    keys: Vec<Key>,
    published: BTreeMap<String, Vec<(i64, Option<usize>)>>,
    tenants: BTreeMap<String, Vec<Use>>,
}

impl KeyChart {
    /// Returns the chart of a history; `None` if fewer than two keys were ever created.
    pub fn of(history: &History) -> Option<Self> {
        let mut reader = Reader::default();
        for event in &history.events {
            reader.take(event);
        }
        let Reader { keys, published, tenants } = reader;
        if keys.len() < 2 {
            return None;
        }
        let end = history.events.last().map_or(0, |event| since_start(event.at));
        let window = window(&keys, end);
        let published = published.into_iter().map(|(secret, held)| Published { secret, held }).collect();
        let tenants = tenants.into_iter().map(|(name, uses)| Tenant { name, uses }).collect();
        Some(Self { window, keys, published, tenants })
    }

    /// Returns the display name of the key at this index: `key #1`.
    pub fn name(index: usize) -> String {
        format!("key #{}", index + 1)
    }
}

/// Returns the range from shortly before the first key is replaced to shortly after it is gone. A
/// whole run of years could not be read.
fn window(keys: &[Key], end: i64) -> (i64, i64) {
    let replaced = keys.get(1).map_or(0, |second| second.minted);
    let first_gone = keys.iter().filter_map(|key| key.removed).find(|removed| *removed >= replaced);
    let from = (replaced - AROUND).max(keys[0].minted - AROUND / 10).max(0);
    (from, first_gone.map_or(end, |gone| gone + AROUND).min(end).max(from + 1))
}

impl Reader {
    fn take(&mut self, event: &Event) {
        let at = since_start(event.at);
        match &event.what {
            What::Stored(stored) if stored.plural == "secrets" => self.secret(at, stored),
            What::Used(used) | What::UsedAt { used, .. } => {
                let key = self.index(&used.access_key_id);
                let tenant = format!("{} with {}", used.namespace, used.secret);
                self.tenants.entry(tenant).or_default().push(Use { at, key, allowed: used.allowed });
            }
            _ => {}
        }
    }

    fn secret(&mut self, at: i64, stored: &Stored) {
        let Some(object) = stored.new.as_deref().or(stored.old.as_deref()) else { return };
        match label(object, wire::ROLE) {
            Some(role) if role == Role::VirtualCredential.as_str() => self.key(at, object, stored.new.as_deref()),
            Some(role) if role == Role::ConsumerSecret.as_str() => {
                let id = stored.new.as_deref().and_then(|secret| field(secret, "AWS_ACCESS_KEY_ID"));
                let key = id.and_then(|id| self.index(&id));
                let held = self.published.entry(format!("{}/{}", stored.namespace, stored.name)).or_default();
                if held.last().is_none_or(|(_, last)| *last != key) {
                    held.push((at, key));
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, at: i64, object: &Value, now: Option<&Value>) {
        let Some(id) = field(object, "access_key_id") else { return };
        let index = self.index(&id).unwrap_or_else(|| {
            self.keys.push(Key { id, minted: at, stamped: None, expires: None, removed: None });
            self.keys.len() - 1
        });
        let key = &mut self.keys[index];
        match now.map(expires_at) {
            None => key.removed = Some(at),
            Some(Some(end)) => {
                key.stamped.get_or_insert(at);
                key.expires = Some(since_start(end));
            }
            Some(None) => {}
        }
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.keys.iter().position(|key| key.id == id)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use jiff::Timestamp;
    use seeded::VirtualClock;
    use serde_json::json;
    use stowage_world::history::Used;

    use super::*;

    fn moment(seconds: i64) -> Timestamp {
        VirtualClock::epoch() + jiff::SignedDuration::from_secs(seconds)
    }

    fn event(at: i64, what: What) -> Event {
        Event { at: moment(at), effect: None, what }
    }

    fn secret(role: Role, field: &str, id: &str, expires: Option<i64>) -> Arc<Value> {
        let annotations = expires.map(|at| json!({wire::EXPIRES_AT: moment(at).to_string()}));
        let data = json!({field: BASE64_STANDARD.encode(id)});
        Arc::new(json!({"metadata": {"labels": {wire::ROLE: role.as_str()}, "annotations": annotations}, "data": data}))
    }

    fn stored(name: &str, old: Option<&Arc<Value>>, new: Option<&Arc<Value>>) -> What {
        let (plural, namespace, name) = ("secrets".to_owned(), "ns".to_owned(), name.to_owned());
        What::Stored(Stored { plural, namespace, name, old: old.cloned(), new: new.cloned() })
    }

    fn used(id: &str, allowed: bool) -> What {
        What::Used(Used {
            namespace: "team-a".to_owned(),
            secret: "photos-s3".to_owned(),
            access_key_id: id.to_owned(),
            bucket: "photos".to_owned(),
            read_at: moment(0),
            allowed,
        })
    }

    /// Returns a history of two keys: the first is replaced at 100 s, expires at 160 s and is
    /// deleted at 220 s.
    pub(in super::super) fn rotation() -> History {
        let key = |id, expires| secret(Role::VirtualCredential, "access_key_id", id, expires);
        let consumer = |id| secret(Role::ConsumerSecret, "AWS_ACCESS_KEY_ID", id, None);
        let (first, stamped, second) = (key("AKIAONE", None), key("AKIAONE", Some(160)), key("AKIATWO", None));
        let (before, after) = (consumer("AKIAONE"), consumer("AKIATWO"));
        let events = vec![
            event(1, stored("vc-akiaone", None, Some(&first))),
            event(2, stored("photos-s3", None, Some(&before))),
            event(80, used("AKIAONE", true)),
            event(100, stored("vc-akiatwo", None, Some(&second))),
            event(101, stored("photos-s3", Some(&before), Some(&after))),
            event(102, stored("vc-akiaone", Some(&first), Some(&stamped))),
            event(110, used("AKIAONE", true)),
            event(120, used("AKIATWO", true)),
            event(170, used("AKIAONE", false)),
            event(220, stored("vc-akiaone", Some(&stamped), None)),
            event(400, What::AtRest),
        ];
        History { events, ..History::default() }
    }

    #[test]
    fn the_lives_of_keys_are_read_off_a_history() {
        let chart = KeyChart::of(&rotation()).expect("there are two keys");
        let [first, second] = chart.keys.as_slice() else { panic!("there are two keys") };
        assert_eq!((first.minted, first.stamped, first.expires), (1_000, Some(102_000), Some(160_000)));
        assert_eq!(first.removed, Some(220_000));
        assert_eq!((second.minted, second.stamped, second.removed), (100_000, None, None));
        assert_eq!(chart.published[0].held, [(2_000, Some(0)), (101_000, Some(1))]);
        let uses: Vec<_> = chart.tenants[0].uses.iter().map(|it| (it.at, it.key, it.allowed)).collect();
        assert_eq!(uses[1..], [(110_000, Some(0), true), (120_000, Some(1), true), (170_000, Some(0), false)]);
        assert_eq!(chart.window, (70_000, 250_000), "around the rotation");
    }

    #[test]
    fn a_single_key_is_no_rotation() {
        let mut history = rotation();
        history.events.truncate(3);
        assert_eq!(KeyChart::of(&history), None);
    }
}
