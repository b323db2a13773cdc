//! Canonical form of the ends of runs, to compare them (D1).
//!
//! Values that are random or depend on the time of an event are replaced by a description: a UID by
//! that of its object, the first key of a claim by its key #1. A time is only shown as present; for
//! the next rotation, the distance to the last one is shown.
//!
//! Left out are Events, which are best effort (spec §3); CustomResourceDefinitions, which nothing
//! changes; messages between gateways, which follow from the tenants' actions; Leases, which depend
//! on the living processes; and versions of objects. Of `managedFields` the managers and their
//! subresources are shown, not the fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use memchr::memmem::Finder;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};
use stowage_operator::api::{AccessRecord, AccessUid};
use stowage_world::history::Facts;
use stowage_world::history::facts::{field, label};

/// The end of a run as text lines, which are the same for all runs with the same end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical(Vec<String>);

/// Data fields of Secrets that contain a secret key.
pub(super) const SECRET_FIELDS: [&str; 2] = ["secret_access_key", "AWS_SECRET_ACCESS_KEY"];

/// Resources that are left out.
const UNTOLD: [&str; 3] = ["events", "customresourcedefinitions", "leases"];

/// Kinds of objects whose UID occurs in other objects.
const KINDS: [(&str, &str); 4] = [
    ("bucketclaims", "claim"),
    ("bucketaccesses", "access"),
    ("objectbucketclaims", "ObjectBucketClaim"),
    ("objectbuckets", "ObjectBucket"),
];

/// Maximum number of differences that are listed.
const MOST_TOLD: usize = 5;

/// Random names, and their replacements.
#[derive(Debug, Default)]
struct Names {
    /// Texts that are replaced everywhere.
    texts: Vec<Name>,
    /// Generations of the keys of a claim or access, by its UID. Numbers may be skipped; only their
    /// order counts.
    generations: BTreeMap<String, Vec<u64>>,
}

#[derive(Debug)]
struct Name {
    text: String,
    /// Search for the text, prepared once because an end has hundreds of texts.
    finder: Finder<'static>,
    meaning: String,
}

/// Returns the canonical form of an end.
pub fn canonical(facts: &Facts) -> Canonical {
    let names = Names::of(facts);
    let mut lines = Vec::new();
    for ((plural, namespace, name), object) in facts.objects.iter() {
        if !UNTOLD.contains(&plural.as_str()) && label(object, wire::USAGE).is_none() {
            let place = names.replace(&format!("{plural} {namespace}/{name}"));
            names.tell_object(&place, object, &mut lines);
        }
    }
    for ((host, name), bucket) in &facts.buckets {
        let place = format!("bucket {name} at {host}");
        lines.push(format!("{place}: of {} in {}, {:?}", bucket.owner, bucket.region, bucket.versioning));
        lines.push(format!("{place}: {} objects, {} versions", bucket.objects, bucket.versions));
        lines.push(format!("{place}: {} delete markers, {} uploads", bucket.delete_markers, bucket.uploads));
        for (tag, value) in bucket.tags.iter().flatten() {
            lines.push(format!("{place}: tag {tag} = {}", names.replace(value)));
        }
    }
    lines.sort();
    Canonical(lines)
}

impl Canonical {
    /// Returns the lines that only one of the two ends has, sorted; `None` for equal ends.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (mut told, mut left, mut right) = (Vec::new(), 0, 0);
        while left < self.0.len() || right < other.0.len() {
            match (self.0.get(left), other.0.get(right)) {
                (Some(mine), Some(theirs)) if mine == theirs => (left, right) = (left + 1, right + 1),
                (Some(mine), theirs) if theirs.is_none_or(|theirs| mine < theirs) => {
                    told.push(format!("- {mine}"));
                    left += 1;
                }
                (_, Some(theirs)) => {
                    told.push(format!("+ {theirs}"));
                    right += 1;
                }
                (_, None) => break,
            }
        }
        let more = told.len().saturating_sub(MOST_TOLD);
        told.truncate(MOST_TOLD);
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl Names {
    fn of(facts: &Facts) -> Self {
        let mut names = Self::default();
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        for (plural, kind) in KINDS {
            for (namespace, name, object) in facts.all(plural) {
                names.add(&uid(object), format!("<uid of {kind} {namespace}/{name}>"));
            }
        }
        for (_, name, namespace) in facts.all("namespaces") {
            names.add(&uid(namespace), format!("<uid of namespace {name}>"));
        }
        let mut keys: BTreeMap<String, Vec<(u64, &Value)>> = BTreeMap::new();
        let credentials = [Role::VirtualCredential, Role::AccessCredential];
        for (_, _, secret) in credentials.into_iter().flat_map(|role| facts.secrets(role)) {
            let generation = label(secret, wire::ROTATION_GENERATION).and_then(|text| text.parse().ok());
            let owner = owner(secret).unwrap_or_default().to_owned();
            keys.entry(owner).or_default().push((generation.unwrap_or_default(), secret));
        }
        for (owner, mut its) in keys {
            its.sort_by_key(|(generation, _)| *generation);
            for (number, (_, secret)) in (1..).zip(&its) {
                names.add_key(number, secret);
            }
            names.generations.insert(owner, its.iter().map(|(generation, _)| *generation).collect());
        }
        for (namespace, name, access) in facts.all("bucketaccesses") {
            let record = AccessRecord::name(&AccessUid::new(uid(access)));
            names.add(&record, format!("<record of access {namespace}/{name}>"));
        }
        names
    }

    /// Adds a replacement, unless the text is empty.
    fn add(&mut self, text: &str, meaning: String) {
        if !text.is_empty() {
            let finder = Finder::new(text).into_owned();
            self.texts.push(Name { text: text.to_owned(), finder, meaning });
        }
    }

    fn add_key(&mut self, number: usize, secret: &Value) {
        let part = |claims: &str, accesses: &str| {
            label(secret, claims).or_else(|| label(secret, accesses)).unwrap_or_default().to_owned()
        };
        let namespace = part(wire::CLAIM_NAMESPACE, wire::ACCESS_NAMESPACE);
        let key = format!("key #{number} of {namespace}/{}", part(wire::CLAIM_NAME, wire::ACCESS_NAME));
        let id = field(secret, "access_key_id").unwrap_or_default();
        let key_text = field(secret, "secret_access_key").unwrap_or_default();
        self.add(&id.to_lowercase(), format!("<{key}>"));
        self.add(&id, format!("<id of {key}>"));
        self.add(&key_text, format!("<secret of {key}>"));
    }

    fn replace(&self, text: &str) -> String {
        let mut replaced = text.to_owned();
        for Name { text, finder, meaning } in &self.texts {
            if finder.find(replaced.as_bytes()).is_some() {
                replaced = replaced.replace(text, meaning);
            }
        }
        replaced
    }

    /// Replaces a generation by the number of its key, or by a note that no key has it.
    fn generation(&self, uid: &str, text: &str) -> String {
        let known = self.generations.get(uid).map(Vec::as_slice).unwrap_or_default();
        let Ok(generation) = text.parse::<u64>() else { return text.to_owned() };
        match known.iter().position(|one| *one == generation) {
            Some(index) => format!("<that of key #{}>", index + 1),
            None => "<that of no key>".to_owned(),
        }
    }

    fn tell_object(&self, place: &str, object: &Value, lines: &mut Vec<String>) {
        let uid = match owner(object) {
            Some(uid) => uid,
            None => object["metadata"]["uid"].as_str().unwrap_or_default(),
        };
        lines.push(format!("{place} .metadata.managedFields = {}", managers(object)));
        let teller = Teller { names: self, uid, object };
        teller.tell(place, &mut String::new(), object, lines);
    }
}

/// Returns the UID of the claim or access in a Secret's labels.
fn owner(secret: &Value) -> Option<&str> {
    label(secret, wire::CLAIM_UID).or_else(|| label(secret, wire::ACCESS_UID))
}

/// Returns the managers of an object, sorted.
fn managers(object: &Value) -> String {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let words = |entry| ["manager", "operation", "subresource"].map(|field| text(entry, field)).join(" ");
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let all: BTreeSet<String> = entries.map(|entry| words(entry).trim_end().to_owned()).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// Writes the lines of one object.
struct Teller<'a> {
    names: &'a Names,
    /// UID of the claim or access that it belongs to.
    uid: &'a str,
    object: &'a Value,
}

impl Teller<'_> {
    /// Writes every field below a path; restores `path` before it returns.
    fn tell(&self, place: &str, path: &mut String, value: &Value, lines: &mut Vec<String>) {
        // The managers have a line of their own.
        if path == ".metadata.managedFields" {
            return;
        }
        let length = path.len();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push('.');
                    path.push_str(name);
                    self.tell(place, path, value, lines);
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let name = item["type"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                    path.push('.');
                    path.push_str(&name);
                    self.tell(place, path, item, lines);
                    path.truncate(length);
                }
            }
            // The usage of a bucket depends on the tenants' actions.
            _ if path.starts_with(".status.usage") => {}
            leaf => {
                let text = match leaf.as_str() {
                    Some(text) => self.text(path, text),
                    None => Some(self.number(path, leaf)),
                };
                lines.extend(text.map(|text| [place, " ", path, " = ", &text].concat()));
            }
        }
    }

    /// Returns the canonical form of a text; `None` for values that may differ between two runs to
    /// one end.
    fn text(&self, path: &str, text: &str) -> Option<String> {
        if path == ".metadata.resourceVersion" {
            return None;
        }
        if path == ".metadata.uid" {
            return Some("<its uid>".to_owned());
        }
        if path.ends_with(wire::ROTATION_GENERATION) {
            return Some(self.names.generation(self.uid, text));
        }
        if let Some(field) = path.strip_prefix(".data.") {
            let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
            let plain = String::from_utf8_lossy(&bytes);
            let told = self.names.replace(&plain);
            return Some(match field {
                "generation" => self.names.generation(self.uid, &plain),
                // The lowest generation that is checked depends on the course of the run.
                "lowest-generation" | "another-record" | "public" => return None,
                // The key with this number is gone.
                "revoked-through" => "<a generation>".to_owned(),
                // An existing key already shows that the claim was bound once.
                "settled" if self.names.generations.contains_key(self.uid) => return None,
                // A secret that no key has is shown as present, without its value.
                _ if SECRET_FIELDS.contains(&field) && told == plain => "<another secret>".to_owned(),
                _ => told,
            });
        }
        match text.parse::<Timestamp>() {
            Ok(time) => Some(self.time(path, time)),
            Err(_) => Some(self.names.replace(text)),
        }
    }

    /// Returns a time, as the distance from another time if it depends on that.
    fn time(&self, path: &str, time: Timestamp) -> String {
        if path == ".status.nextRotationAt"
            && let Some(rotated) = self.object["status"]["rotatedAt"].as_str()
            && let Ok(rotated) = rotated.parse::<Timestamp>()
        {
            return format!("<{} s after rotatedAt>", time.duration_since(rotated).as_secs());
        }
        "<a time>".to_owned()
    }

    fn number(&self, path: &str, value: &Value) -> String {
        if path.ends_with(".observedGeneration") && *value == self.object["metadata"]["generation"] {
            return "<its generation>".to_owned();
        }
        if path == ".status.rotationGeneration" {
            return self.names.generation(self.uid, &value.to_string());
        }
        value.to_string()
    }
}
