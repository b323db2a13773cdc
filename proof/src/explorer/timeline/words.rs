//! Descriptions of calls and changes. For Secrets they contain only public data: names, ids, fields
//! of records.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use s3_sim::BucketSnapshot;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};
use stowage_world::effects::{Call, CallOutcome, Line};
use stowage_world::history::facts::{expires_at, field, label};
use stowage_world::history::{Called, History, Stored};

use super::moments::{clock, since_start};

/// Number of changes of one object that are listed; if there are more, they are counted.
const MOST_CHANGES: usize = 4;
/// Number of characters of an internal Secret's name that are shown.
const HASHED: usize = 11;
/// Longest value that is shown in full, in characters.
const LONGEST_VALUE: usize = 60;

/// Descriptions for one history, in which keys have numbers.
pub(in super::super) struct Words {
    keys: BTreeMap<String, usize>,
}

impl Words {
    pub(in super::super) fn of(history: &History) -> Self {
        let mut keys = BTreeMap::new();
        for (_, stored) in history.changes("secrets") {
            let Some(secret) = stored.new.as_deref().filter(|it| has_role(it, Role::VirtualCredential)) else {
                continue;
            };
            if let Some(id) = field(secret, "access_key_id") {
                let next = keys.len() + 1;
                keys.entry(id).or_insert(next);
            }
        }
        Self { keys }
    }

    /// Returns the display name of a key, such as `key #1`, in the order of creation.
    pub(in super::super) fn key(&self, id: &str) -> String {
        self.keys.get(id).map_or_else(|| format!("key {id}"), |number| format!("key #{number}"))
    }

    /// Returns the call without the API's name, which is that of the column.
    pub(super) fn asked(&self, call: &Call) -> String {
        let text = call.to_string();
        let text = text.split_once(':').map_or(text.as_str(), |(_, rest)| rest);
        let named = self
            .keys
            .keys()
            .fold(text.to_owned(), |text, id| text.replace(&format!("vc-{}", id.to_lowercase()), &self.key(id)));
        named.split('/').map(without_hash).collect::<Vec<_>>().join("/")
    }

    /// Returns the status of the world's answer, or a note if the call never arrived.
    pub(super) fn status(&self, line: &Line) -> String {
        match line.world {
            Some(status) => status.to_string(),
            None if line.answer == CallOutcome::Pending => String::new(),
            None => "never hears of it".to_owned(),
        }
    }

    /// Describes the change of an object; `None` for Events and Leases.
    pub(super) fn change(&self, stored: &Stored) -> Option<String> {
        if matches!(stored.plural.as_str(), "events" | "leases") {
            return None;
        }
        let object = stored.new.as_deref().or(stored.old.as_deref())?;
        let what = self.name(stored, object);
        match (stored.old.as_deref(), stored.new.as_deref()) {
            (None, Some(new)) => Some(format!("{what} made{}", self.with(new))),
            (Some(_), None) => Some(format!("{what} gone")),
            (Some(old), Some(new)) => {
                let changes = self.changes(stored, old, new);
                (!changes.is_empty()).then(|| format!("{what}: {}", changes.join(", ")))
            }
            (None, None) => None,
        }
    }

    /// Returns the display name of an object.
    fn name(&self, stored: &Stored, object: &Value) -> String {
        let place = [stored.namespace.as_str(), stored.name.as_str()];
        let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        if stored.plural != "secrets" {
            return format!("{} {place}", object["kind"].as_str().unwrap_or(&stored.plural));
        }
        let text = |name: &str| field(object, name).unwrap_or_default();
        match role(object) {
            Some("bucket-record") => format!("record of bucket {}", text("bucket_name")),
            Some("virtual-credential") => self.key(&text("access_key_id")),
            Some("anonymous-binding") => format!("anonymous binding of {}", text("bucket_name")),
            Some("consumer-secret") => format!("consumer Secret {place}"),
            _ => format!("Secret {place}"),
        }
    }

    /// Returns the notable properties of a new object.
    fn with(&self, object: &Value) -> String {
        if has_role(object, Role::VirtualCredential) {
            let generation = label(object, wire::ROTATION_GENERATION).unwrap_or("?");
            return format!(" ({}, generation {generation})", field(object, "access_key_id").unwrap_or_default());
        }
        match field(object, "AWS_ACCESS_KEY_ID") {
            Some(id) if has_role(object, Role::ConsumerSecret) => format!(" with {}", self.key(&id)),
            _ => String::new(),
        }
    }

    fn changes(&self, stored: &Stored, old: &Value, new: &Value) -> Vec<String> {
        let mut told = Vec::new();
        metadata(old, new, &mut told);
        if stored.plural == "secrets" {
            self.in_secret(old, new, &mut told);
        } else {
            conditions(old, new, &mut told);
            let mut leaves = Vec::new();
            for part in ["spec", "status"] {
                differences(part, &old[part], &new[part], &mut leaves);
            }
            let more = leaves.len().saturating_sub(MOST_CHANGES);
            told.extend(leaves.into_iter().take(MOST_CHANGES));
            if more > 0 {
                told.push(format!("{more} more"));
            }
        }
        told
    }

    /// Describes changes of a Secret's data: names, and values that are not secret.
    fn in_secret(&self, old: &Value, new: &Value, told: &mut Vec<String>) {
        if let Some(end) = expires_at(new).filter(|end| expires_at(old) != Some(*end)) {
            told.push(format!("ends at {}", moment(end)));
        }
        for name in names(&old["data"], &new["data"]) {
            if old["data"][name] == new["data"][name] {
                continue;
            }
            let value = field(new, name).unwrap_or_default();
            told.push(match name {
                _ if new["data"][name].is_null() => format!("{name} taken out"),
                "access_key_id" | "AWS_ACCESS_KEY_ID" if role(new).is_some() => format!("now {}", self.key(&value)),
                _ if has_role(new, Role::BucketRecord) => format!("{name} {}", short(&value)),
                _ => format!("{name} written"),
            });
        }
    }

    /// Describes the effect of a call at a store, beside its answer.
    pub(super) fn call(&self, called: &Called) -> String {
        let told = match (&called.before, &called.after) {
            (None, None) if called.bucket.is_some() => "there is no bucket".to_owned(),
            (None, None) => String::new(),
            (None, Some(_)) => "bucket made".to_owned(),
            (Some(_), None) => "bucket gone".to_owned(),
            (Some(before), Some(after)) => bucket_changes(before, after).join(", "),
        };
        if told.is_empty() && called.operation.name() == "GetBucketTagging" {
            let tagged = called.before.as_ref().is_some_and(|bucket| bucket.tags.is_some());
            return if tagged { "tags" } else { "no tags" }.to_owned();
        }
        told
    }
}

fn bucket_changes(before: &BucketSnapshot, after: &BucketSnapshot) -> Vec<String> {
    let mut told = Vec::new();
    if before.tags != after.tags {
        let names = after.tags.iter().flatten().map(|(name, _)| name.strip_prefix(wire::PREFIX).unwrap_or(name));
        told.push(format!("tagged with {}", names.collect::<Vec<_>>().join(", ")));
    }
    if before.versioning != after.versioning {
        told.push(format!("versioning {:?}", after.versioning));
    }
    let counts = [
        ("objects", before.objects, after.objects),
        ("versions", before.versions, after.versions),
        ("delete markers", before.delete_markers, after.delete_markers),
        ("uploads", before.uploads, after.uploads),
    ];
    let changed = counts.into_iter().filter(|(_, before, after)| before != after);
    told.extend(changed.map(|(what, before, after)| format!("{what} {before} to {after}")));
    told
}

/// Describes changes of finalizers, deletion, annotations, labels and owners.
fn metadata(old: &Value, new: &Value, told: &mut Vec<String>) {
    let (old, new) = (&old["metadata"], &new["metadata"]);
    if old["deletionTimestamp"].is_null() && !new["deletionTimestamp"].is_null() {
        told.push("is being deleted".to_owned());
    }
    match (count(&old["finalizers"]), count(&new["finalizers"])) {
        (before, after) if before < after => told.push("finalizer set".to_owned()),
        (before, after) if before > after => told.push("finalizer gone".to_owned()),
        _ => {}
    }
    for name in names(&old["annotations"], &new["annotations"]).into_iter().filter(|name| *name != wire::EXPIRES_AT) {
        let (before, after) = (&old["annotations"][name], &new["annotations"][name]);
        if before != after {
            let value = after.as_str().map_or_else(|| "taken off".to_owned(), short);
            told.push(format!("{} {value}", name.strip_prefix(wire::PREFIX).unwrap_or(name)));
        }
    }
    if old["labels"] != new["labels"] {
        told.push("labels".to_owned());
    }
    if old["ownerReferences"] != new["ownerReferences"] {
        told.push("owner references".to_owned());
    }
}

/// Describes conditions whose status or reason has changed.
fn conditions(old: &Value, new: &Value, told: &mut Vec<String>) {
    let all = |object: &Value| -> BTreeMap<String, String> {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        conditions
            .iter()
            .map(|it| (text(&it["type"]), format!("{} {}", text(&it["status"]), text(&it["reason"]))))
            .collect()
    };
    let (before, after) = (all(old), all(new));
    told.extend(
        after
            .iter()
            .filter(|(name, state)| before.get(*name) != Some(*state))
            .map(|(name, state)| format!("{name}={state}")),
    );
    told.extend(before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} no more")));
}

/// Describes fields that differ, except those that change along with every other field.
fn differences(path: &str, old: &Value, new: &Value, told: &mut Vec<String>) {
    if old == new || path.ends_with(".conditions") || path.ends_with(".observedGeneration") {
        return;
    }
    let inner = |value: &Value| value.is_object() || value.is_null();
    if inner(old) && inner(new) && !(old.is_null() && new.is_null()) && (old.is_object() || new.is_object()) {
        for name in names(old, new) {
            differences(&format!("{path}.{name}"), &old[name], &new[name], told);
        }
        return;
    }
    let path = path.strip_prefix("status.").unwrap_or(path);
    told.push(match new {
        Value::Null => format!("{path} taken out"),
        Value::String(text) => format!("{path} {}", short(text)),
        other => format!("{path} {}", short(&other.to_string())),
    });
}

fn names<'a>(old: &'a Value, new: &'a Value) -> BTreeSet<&'a str> {
    let keys = |value: &'a Value| value.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
    keys(old).chain(keys(new)).collect()
}

fn count(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

fn role(secret: &Value) -> Option<&str> {
    label(secret, wire::ROLE)
}

fn has_role(secret: &Value, wanted: Role) -> bool {
    role(secret) == Some(wanted.as_str())
}

/// Shortens the hash in the name of an internal Secret.
fn without_hash(name: &str) -> String {
    let begins = name.get(..HASHED).filter(|_| Role::of_internal(name).is_some());
    begins.map_or_else(|| name.to_owned(), |begins| format!("{begins}…"))
}

/// Truncates a long value.
fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn moment(at: Timestamp) -> String {
    clock(since_start(at))
}
