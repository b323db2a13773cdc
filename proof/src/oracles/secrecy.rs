//! Secret keys occur only in the Secrets that are for them, and the content of a Secret is sent
//! only to endpoints that its owner allows (I11).

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use memchr::memmem::Finder;
use serde_json::Value;
use stowage_operator::api::wire::ROLE;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::{Event, What};

use super::Promise;
use super::canonical::SECRET_FIELDS;
use super::case::Case;
use super::findings::{Findings, Violation};

/// Shortest secret key that is searched for: shorter values are not generated keys, but a third
/// party's edits.
const SHORTEST: usize = 16;

/// Secret keys, each in plain form and in the API's encoding.
#[derive(Debug, Default)]
struct Secrets<'a> {
    encoded: BTreeSet<&'a str>,
    /// Prepared searches for each key in both forms, because there are many texts.
    finders: Vec<Finder<'a>>,
    /// Admin keys of stores.
    admin: BTreeSet<&'a str>,
}

/// Searches everything that the operator wrote and exposed for every secret key of the run.
pub(super) fn judge(case: &Case<'_>, found: &mut Findings) {
    let secrets = Secrets::of(&case.history.events);
    for (index, event) in case.history.events.iter().enumerate().filter(|(_, event)| event.effect.is_some()) {
        let shown = match &event.what {
            What::Asked(asked) if asked.plural != "secrets" => {
                let text = std::str::from_utf8(&asked.body).unwrap_or_default();
                secrets.is_in(text).then(|| format!("{} {}/{}", asked.plural, asked.namespace, asked.name))
            }
            What::Stored(stored) if stored.plural == "secrets" => {
                let new = stored.new.as_deref().unwrap_or(&Value::Null);
                let place = || format!("Secret {}/{}", stored.namespace, stored.name);
                secrets.show_in_secret(&stored.namespace, new).map(|where_| format!("{where_} of {}", place()))
            }
            _ => None,
        };
        if let Some(place) = shown {
            let message = format!("at {}, a secret key is shown by {place}", event.at);
            found.add(Violation { promise: Promise::I11, message, event: Some(index) });
        }
    }
    judge_sent(case, found);
    for shown in case.shown.iter().filter(|shown| secrets.is_in(&shown.text)) {
        found.broken_in_the_end(Promise::I11, format!("a secret key is shown by {}", shown.place));
    }
}

/// Judges for every call to a store that its key id is from a Secret whose owner has named that
/// store, now or earlier, because a call may be late.
fn judge_sent(case: &Case<'_>, found: &mut Findings) {
    let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (index, event) in case.history.events.iter().enumerate() {
        match &event.what {
            What::Stored(stored) if stored.plural == "secrets" => {
                let Some(secret) = stored.new.as_deref() else { continue };
                let metadata = &secret["metadata"];
                let opted_in = metadata["labels"]["broker.stowage.io/backend-credentials"] == "true";
                let endpoints = metadata["annotations"]["broker.stowage.io/endpoints"].as_str();
                let Some(endpoints) = endpoints.filter(|_| opted_in) else { continue };
                for value in secret["data"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
                    named.entry(value).or_default().push(endpoints);
                }
            }
            What::Called(called) => {
                let Some(id) = &called.key_id else { continue };
                let endpoints = named.get(BASE64_STANDARD.encode(id).as_str()).into_iter().flatten();
                let mut all = endpoints.flat_map(|list| list.split([',', ' ', '\n', '\t']));
                if !all.any(|endpoint| endpoint.split_once("://").is_some_and(|(_, host)| host == called.host)) {
                    let (at, host) = (event.at, &called.host);
                    let message =
                        format!("at {at}, {host} is sent a key id that no owner of a Secret lets be sent there");
                    found.add(Violation { promise: Promise::I11, message, event: Some(index) });
                }
            }
            _ => {}
        }
    }
}

impl<'a> Secrets<'a> {
    fn of(events: &'a [Event]) -> Self {
        let mut secrets = Self::default();
        for event in events {
            let What::Stored(stored) = &event.what else { continue };
            let Some(secret) = stored.new.as_deref().filter(|_| stored.plural == "secrets") else { continue };
            let ours = !secret["metadata"]["labels"][ROLE].is_null() || secret["data"].get("claim_uid").is_some();
            for field in SECRET_FIELDS {
                let Some(encoded) = secret["data"].get(field).and_then(Value::as_str) else { continue };
                if encoded.len() > SHORTEST && secrets.encoded.insert(encoded) {
                    let plain = BASE64_STANDARD.decode(encoded).ok();
                    secrets.finders.extend(plain.map(|plain| Finder::new(&plain).into_owned()));
                    secrets.finders.push(Finder::new(encoded));
                    if !ours && field == "AWS_SECRET_ACCESS_KEY" && stored.namespace == OPERATOR_NAMESPACE {
                        secrets.admin.insert(encoded);
                    }
                }
            }
        }
        secrets
    }

    fn is_in(&self, text: &str) -> bool {
        self.finders.iter().any(|finder| finder.find(text.as_bytes()).is_some())
    }

    /// Returns the part of a Secret that contains a key which doesn't belong there.
    fn show_in_secret(&self, namespace: &str, secret: &Value) -> Option<&'static str> {
        let texts = |field: &str| secret["metadata"][field].as_object().into_iter().flatten();
        let shown = |field: &str| texts(field).any(|(_, value)| self.is_in(value.as_str().unwrap_or_default()));
        if shown("labels") || shown("annotations") {
            return Some("the metadata");
        }
        let mut data = secret["data"].as_object().into_iter().flatten();
        let wrong = data.any(|(field, value)| {
            let value = value.as_str().unwrap_or_default();
            let admin = self.admin.contains(value) && namespace != OPERATOR_NAMESPACE;
            admin || (!SECRET_FIELDS.contains(&field.as_str()) && self.encoded.contains(value))
        });
        wrong.then_some("the data")
    }
}
