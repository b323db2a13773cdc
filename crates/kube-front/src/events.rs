//! Events of the core group: a second view of the events of `events.k8s.io`, which are the ones
//! stored (`k8s.io/kubernetes/pkg/apis/events/v1/conversion.go`).

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use kube_sim::builtin;
use kube_sim::kind::SharedKind;

/// Names of fields in the core group, and in the stored events.
pub(super) const NAMES: [(&str, &str); 7] = [
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("reportingComponent", "reportingController"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
];

const CORE: &str = "v1";
const STORED: &str = "events.k8s.io/v1";

/// Returns the kind for requests for events of the core group. It stores the same objects, by the
/// rules of the older API.
pub(super) fn core_kind() -> &'static SharedKind {
    static KIND: LazyLock<SharedKind> = LazyLock::new(|| Arc::new(builtin::core_event()));
    &KIND
}

/// Converts an event, a merge patch or the operations of a JSON patch to the stored format.
pub(super) fn inward(body: &mut Value) {
    match body {
        Value::Object(fields) => {
            for (core, stored) in NAMES {
                if let Some(field) = fields.remove(core) {
                    fields.insert(stored.to_owned(), field);
                }
            }
            set_version(fields, CORE, STORED);
        }
        Value::Array(operations) => operations.iter_mut().for_each(|operation| {
            rename(operation, "path");
            rename(operation, "from");
        }),
        _ => {}
    }
}

/// Renames the first segment of a path of a JSON patch.
fn rename(operation: &mut Value, name: &str) {
    let Some(path) = operation[name].as_str().and_then(|path| path.strip_prefix('/')) else { return };
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some((_, stored)) = NAMES.iter().find(|(core, _)| *core == first) else { return };
    operation[name] = rest.map_or_else(|| format!("/{stored}"), |rest| format!("/{stored}/{rest}")).into();
}

/// Converts a stored event, or a list of events, to the format of the core group.
pub(super) fn outward(object: &mut Value) {
    let is_event = object["kind"] == "Event" || object.get("regarding").is_some();
    let Some(fields) = object.as_object_mut() else { return };
    set_version(fields, STORED, CORE);
    if !is_event {
        return;
    }
    for (core, stored) in NAMES {
        if let Some(field) = fields.remove(stored) {
            fields.insert(core.to_owned(), field);
        }
    }
    // Fields without `omitempty`.
    for (name, empty) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
    ] {
        fields.entry(name).or_insert(empty);
    }
}

fn set_version(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(version) = fields.get_mut("apiVersion").filter(|version| *version == from) {
        *version = to.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_after_the_way_in_and_out() {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "m", "reason": "r",
            "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "c"}, "count": 2,
            "firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:00:00Z", "type": "Normal",
            "eventTime": null, "reportingComponent": "", "reportingInstance": "",
        });
        let mut stored = event.clone();
        inward(&mut stored);
        assert_eq!((&stored["note"], &stored["regarding"]["name"]), (&json!("m"), &json!("p")));
        assert_eq!(stored["apiVersion"], "events.k8s.io/v1");
        outward(&mut stored);
        assert_eq!(stored, event);
    }

    #[test]
    fn the_operations_of_a_patch_name_what_is_stored() {
        let mut patch = json!([{"op": "replace", "path": "/involvedObject/name", "value": "x"}, {"op": "remove", "path": "/count"}]);
        inward(&mut patch);
        assert_eq!((&patch[0]["path"], &patch[1]["path"]), (&json!("/regarding/name"), &json!("/deprecatedCount")));
    }

    #[test]
    fn metadata_alone_stays_as_it_is() {
        let mut object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {}});
        let before = object.clone();
        outward(&mut object);
        assert_eq!(object, before);
    }
}
