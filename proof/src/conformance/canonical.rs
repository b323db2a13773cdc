//! Canonical form of answers, so that two servers can be compared: values that a server makes up
//! are replaced by numbers in the order of their appearance.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{Timestamp, ToSpan as _};
use regex::{Captures, Regex};
use serde_json::Value;

/// Made-up values of one side in a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Replacement for each UID and version.
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    /// Number of values per object. Counting per object keeps other objects equal if one of them
    /// changed more often on one side, or was not shown.
    counts: BTreeMap<String, usize>,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file is well formed")
}

static UID: LazyLock<Regex> = LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
/// Five characters after a prefix that only the generator of operations uses.
static GENERATED: LazyLock<Regex> = LazyLock::new(|| pattern("(gen-[0-9]+-)[a-z0-9]{5}"));
/// Text before the version of an object in a message.
static VERSION_OF: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(ResourceVersion in (?:the precondition|record) \(|\\?"resourceVersion\\?":\s?\\?")(\d+)"#)
});
/// Text before a version of the whole store in a message.
static VERSION_AT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(too old resource version: |Too large resource version: |current: |<version of the store> \()(\d+)")
});

impl Names {
    /// Returns the answer with every made-up value replaced.
    pub(super) fn canonical(&mut self, answer: &Value) -> Value {
        self.value(answer, "")
    }

    fn value(&mut self, value: &Value, at: &str) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            // Servers order the entries by time and store only seconds. The manager, the operation
            // and the subresource identify an entry.
            Value::Array(items) if at == "managedFields" => {
                Value::Object(items.iter().map(|item| (entry_of(item), self.value(item, ""))).collect())
            }
            Value::Array(items) => items.iter().map(|item| self.value(item, "")).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, field)| {
                    let field = match (name.as_str(), field) {
                        ("metadata", Value::Object(_)) => self.metadata(field),
                        _ => self.value(field, name),
                    };
                    (self.text(name), field)
                });
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    /// Replaces the version in metadata. It is the version of the object or, in lists and
    /// bookmarks, the version of the whole store. Also replaces the continue token of a list.
    fn metadata(&mut self, metadata: &Value) -> Value {
        if let (Some(name), Some(uid)) = (metadata["name"].as_str(), metadata["uid"].as_str()) {
            let name = self.text(name);
            self.uid(&name, uid);
        }
        let mut canonical = self.value(metadata, "");
        if let Some(version) = metadata["resourceVersion"].as_str() {
            canonical["resourceVersion"] = match canonical["uid"].as_str().map(str::to_owned) {
                Some(of) => self.version(&of, version).into(),
                None => "<version of the store>".into(),
            };
        }
        if metadata["continue"].as_str().is_some_and(|token| !token.is_empty()) {
            canonical["continue"] = "<token>".into();
        }
        canonical
    }

    /// Returns the replacement for the UID of an object with this name. A known UID keeps its
    /// replacement.
    fn uid(&mut self, of: &str, uid: &str) -> String {
        if let Some(known) = self.uids.get(uid) {
            return known.clone();
        }
        let name = format!("<uid {} of {of}>", self.count(&format!("uid {of}")));
        self.uids.insert(uid.to_owned(), name.clone());
        name
    }

    /// Returns the replacement for a version. A known version keeps its replacement, even if
    /// another object has it now.
    fn version(&mut self, of: &str, version: &str) -> String {
        if let Some(known) = self.versions.get(version) {
            return known.clone();
        }
        let name = format!("<version {} of {of}>", self.count(of));
        self.versions.insert(version.to_owned(), name.clone());
        name
    }

    fn count(&mut self, of: &str) -> usize {
        let count = self.counts.entry(of.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn text(&mut self, text: &str) -> String {
        let text = UID.replace_all(text, |found: &Captures<'_>| self.uid("an object", &found[0]));
        let text = VERSION_AT.replace_all(&text, "${1}<version of the store>");
        // Repeated, because a second version in parentheses only matches after the first is
        // replaced.
        let text = VERSION_AT.replace_all(&text, "${1}<version of the store>");
        let text = VERSION_OF.replace_all(&text, |found: &Captures<'_>| {
            format!("{}{}", &found[1], self.version("an object", &found[2]))
        });
        let text = GENERATED.replace_all(&text, "${1}<suffix>");
        TIME.replace_all(&text, |found: &Captures<'_>| recent(&found[0])).into_owned()
    }
}

/// Returns the key of an entry of `managedFields`: manager, operation and subresource.
fn entry_of(entry: &Value) -> String {
    let fields = ["manager", "operation", "subresource"].map(|field| entry[field].as_str().unwrap_or_default());
    fields.join(" ").trim_end().to_owned()
}

/// Replaces a time of this run. A time that an operation has sent stays.
fn recent(text: &str) -> String {
    let now = Timestamp::now();
    match text.parse::<Timestamp>() {
        Ok(time) if time > now - 24.hours() && time < now + 24.hours() => "<now>".to_owned(),
        _ => text.to_owned(),
    }
}

/// Sorts the errors of an `Invalid` status, because a server's own order is random. Removes
/// duplicates, which appear because the server validated twice.
pub(super) fn in_order(status: &mut Value) {
    let causes = status.pointer_mut("/details/causes").and_then(Value::as_array_mut);
    let Some(causes) = causes.filter(|causes| causes.len() > 1) else { return };
    causes.sort_by_cached_key(ToString::to_string);
    causes.dedup();
    let told = |cause: &Value| Some(format!("{}: {}", cause["field"].as_str()?, cause["message"].as_str()?));
    let told: Option<Vec<String>> = causes.iter().map(told).collect();
    let (Some(told), Some(message)) = (told, status["message"].as_str()) else { return };
    let Some((start, list)) = message.split_once(": [").and_then(|(a, b)| Some((a, b.strip_suffix(']')?))) else {
        return;
    };
    let length: usize = told.iter().map(String::len).sum::<usize>() + 2 * (told.len() - 1);
    if list.len() == length && told.iter().all(|one| list.contains(one)) {
        status["message"] = format!("{start}: [{}]", told.join(", ")).into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_makes_up_is_numbered_by_appearance() {
        let uid = "0d4b5f0e-0000-4000-8000-00000000000a";
        let object = |version: &str, time: &str| json!({"metadata": {"uid": uid, "resourceVersion": version, "creationTimestamp": time}});
        let now = Timestamp::now().to_string();
        let mut names = Names::default();
        let first = names.canonical(&object("10", &now));
        assert_eq!(first["metadata"]["uid"], "<uid 1 of an object>");
        assert_eq!(first["metadata"]["creationTimestamp"], "<now>");
        assert_eq!(first, names.canonical(&object("10", &now)));
        assert_ne!(first, names.canonical(&object("11", &now)));
        let told = names.canonical(&json!({"message": format!("UID in precondition: {uid}")}));
        assert_eq!(told["message"], "UID in precondition: <uid 1 of an object>");
    }

    #[test]
    fn a_bookmark_tells_the_version_of_the_store_whatever_object_has_it() {
        let mut names = Names::default();
        let uid = "0d4b5f0e-0000-4000-8000-00000000000a";
        names.canonical(&json!({"metadata": {"uid": uid, "resourceVersion": "10"}}));
        let event = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "10"}}});
        assert_eq!(names.canonical(&event)["object"]["metadata"]["resourceVersion"], "<version of the store>");
    }

    #[test]
    fn times_and_versions_that_were_sent_stay() {
        let sent = json!({"spec": {"renewTime": "2001-02-03T04:05:06.000000Z", "resourceVersion": "7"}});
        assert_eq!(Names::default().canonical(&sent), sent);
    }

    #[test]
    fn the_errors_of_a_status_are_put_in_order() {
        let status = |order: [usize; 2]| {
            let errors = [("spec.a", "Required value"), ("spec.b", "Invalid value: 1: no, never")];
            let told: Vec<String> = order.iter().map(|at| format!("{}: {}", errors[*at].0, errors[*at].1)).collect();
            let causes: Vec<Value> =
                order.iter().map(|at| json!({"field": errors[*at].0, "message": errors[*at].1})).collect();
            json!({"message": format!("X \"x\" is invalid: [{}]", told.join(", ")), "details": {"causes": causes}})
        };
        let (mut one, mut other) = (status([0, 1]), status([1, 0]));
        assert_ne!(one, other);
        in_order(&mut one);
        in_order(&mut other);
        assert_eq!(one, other);
    }
}
