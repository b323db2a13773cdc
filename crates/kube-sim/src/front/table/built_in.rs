//! The columns of built-in kinds (`k8s.io/kubernetes/pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::meta;

/// Name, type and priority of a column; above 0, only wide tables show it.
pub(super) type Title = (&'static str, &'static str, i64);

/// Whether the kind shows when its objects were made, as those without a printer of their own do.
fn shows_creation(group: &str, plural: &str) -> bool {
    match group {
        "rbac.authorization.k8s.io" => matches!(plural, "roles" | "clusterroles"),
        "apiextensions.k8s.io" => true,
        "admissionregistration.k8s.io" => !plural.ends_with("webhookconfigurations"),
        _ => false,
    }
}

/// The columns of a kind.
pub(super) fn columns(group: &str, plural: &str) -> Vec<Title> {
    let text = |name| (name, "string", 0);
    let wide = |name| (name, "string", 1);
    let name = text("Name");
    let with_age = |own: &[Title]| [&[name], own, &[text("Age")]].concat();
    match (group, plural) {
        _ if shows_creation(group, plural) => vec![name, ("Created At", "date", 0)],
        ("", "secrets") => with_age(&[text("Type"), text("Data")]),
        ("", "configmaps") => with_age(&[text("Data")]),
        ("", "namespaces") => with_age(&[text("Status")]),
        ("", "serviceaccounts") => with_age(&[text("Secrets")]),
        ("coordination.k8s.io", "leases") => with_age(&[text("Holder")]),
        ("", "services") => {
            let own = [text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)")];
            [with_age(&own), vec![wide("Selector")]].concat()
        }
        ("", "pods") => with_age(&[text("Ready"), text("Status"), text("Restarts")]),
        ("apps", "deployments") => {
            let own = with_age(&[text("Ready"), text("Up-to-date"), text("Available")]);
            [own, vec![wide("Containers"), wide("Images"), wide("Selector")]].concat()
        }
        ("apps", "statefulsets") => [with_age(&[text("Ready")]), vec![wide("Containers"), wide("Images")]].concat(),
        ("apps", "replicasets") => {
            let number = |name| (name, "integer", 0);
            with_age(&[number("Desired"), number("Current"), number("Ready")])
        }
        ("rbac.authorization.k8s.io", _) => with_age(&[text("Role")]),
        ("storage.k8s.io", "storageclasses") => {
            let own = ["Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion"];
            with_age(&own.map(text))
        }
        ("" | "events.k8s.io", "events") => vec![
            text("Last Seen"),
            text("Type"),
            text("Reason"),
            text("Object"),
            wide("Subobject"),
            wide("Source"),
            text("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ],
        _ => with_age(&[]),
    }
}

/// What an object shows in them.
pub(super) fn cells(group: &str, plural: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = Value::from(meta::name(object));
    let created = &object["metadata"]["creationTimestamp"];
    let age = Value::from(age::of_time(created, now));
    let with_age = |own: Vec<Value>| [vec![name.clone()], own, vec![age.clone()]].concat();
    match (group, plural) {
        _ if shows_creation(group, plural) => vec![name, created.clone()],
        ("", "secrets") => with_age(vec![object["type"].clone(), size(&object["data"]).into()]),
        ("", "configmaps") => with_age(vec![(size(&object["data"]) + size(&object["binaryData"])).into()]),
        ("", "namespaces") => with_age(vec![object["status"]["phase"].clone()]),
        ("", "serviceaccounts") => with_age(vec![size(&object["secrets"]).into()]),
        ("coordination.k8s.io", "leases") => with_age(vec![text(&object["spec"]["holderIdentity"]).into()]),
        ("", "services") => [with_age(service(object)), vec![pairs(&object["spec"]["selector"])]].concat(),
        ("", "pods") => with_age(pod(object)),
        ("apps", "deployments") => {
            let number = |name: &str| object["status"][name].as_i64().unwrap_or_default().into();
            let own = vec![ready(object), number("updatedReplicas"), number("availableReplicas")];
            let selector = pairs(&object["spec"]["selector"]["matchLabels"]);
            [with_age(own), containers(object), vec![selector]].concat()
        }
        ("apps", "statefulsets") => [with_age(vec![ready(object)]), containers(object)].concat(),
        ("apps", "replicasets") => {
            let number = |value: &Value| Value::from(value.as_i64().unwrap_or_default());
            let status = &object["status"];
            let numbers = [&object["spec"]["replicas"], &status["replicas"], &status["readyReplicas"]];
            with_age(numbers.map(number).to_vec())
        }
        ("rbac.authorization.k8s.io", _) => {
            let role = &object["roleRef"];
            with_age(vec![format!("{}/{}", text(&role["kind"]), text(&role["name"])).into()])
        }
        ("storage.k8s.io", "storageclasses") => with_age(storage_class(object)),
        ("" | "events.k8s.io", "events") => event(object, now),
        _ => with_age(Vec::new()),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How many there are of something.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Labels as a selector is written.
fn pairs(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value)));
    let joined = pairs.collect::<Vec<_>>().join(",");
    if joined.is_empty() { "<none>".into() } else { joined.into() }
}

fn ready(object: &Value) -> Value {
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    format!("{}/{}", number(&object["status"]["readyReplicas"]), number(&object["spec"]["replicas"])).into()
}

/// The names and images of the containers of a template.
fn containers(object: &Value) -> Vec<Value> {
    let list = object["spec"]["template"]["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let joined = |field: &str| list.iter().map(|one| text(&one[field])).collect::<Vec<_>>().join(",").into();
    vec![joined("name"), joined("image")]
}

fn service(object: &Value) -> Vec<Value> {
    let spec = &object["spec"];
    let or_none = |value: &str| if value.is_empty() { "<none>".into() } else { Value::from(value) };
    let port = |port: &Value| {
        let node = port["nodePort"].as_i64().filter(|node| *node > 0).map(|node| format!(":{node}"));
        format!("{}{}/{}", port["port"], node.unwrap_or_default(), text(&port["protocol"]))
    };
    let ports: Vec<String> = spec["ports"].as_array().into_iter().flatten().map(port).collect();
    let external: Vec<&str> = spec["externalIPs"].as_array().into_iter().flatten().map(text).collect();
    let external = if spec["type"] == "ExternalName" { text(&spec["externalName"]).to_owned() } else { external.join(",") };
    vec![spec["type"].clone(), or_none(text(&spec["clusterIP"])), or_none(&external), or_none(&ports.join(","))]
}

fn pod(object: &Value) -> Vec<Value> {
    let statuses = object["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let restarts: i64 = statuses.iter().filter_map(|status| status["restartCount"].as_i64()).sum();
    let phase = text(&object["status"]["phase"]);
    let status = if meta::is_deleting(object) { "Terminating" } else { phase };
    vec![format!("{ready}/{}", size(&object["spec"]["containers"])).into(), status.into(), restarts.to_string().into()]
}

fn storage_class(object: &Value) -> Vec<Value> {
    let or = |field: &str, default: &str| Value::from(object[field].as_str().unwrap_or(default));
    vec![
        object["provisioner"].clone(),
        or("reclaimPolicy", "Delete"),
        or("volumeBindingMode", "Immediate"),
        object["allowVolumeExpansion"].as_bool().unwrap_or_default().to_string().into(),
    ]
}

/// An event as it is stored, under the names of `events.k8s.io`.
fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let or = |time: &Value, other: &Value| if time.is_null() { other.clone() } else { time.clone() };
    let first = or(&object["deprecatedFirstTimestamp"], &object["eventTime"]);
    let series = &object["series"];
    let (last, count) = if series.is_object() {
        (series["lastObservedTime"].clone(), series["count"].as_i64().unwrap_or_default())
    } else {
        let count = object["deprecatedCount"].as_i64().filter(|count| *count > 0);
        (or(&object["deprecatedLastTimestamp"], &first), count.unwrap_or(1))
    };
    let regarding = &object["regarding"];
    let kind = text(&regarding["kind"]).to_lowercase();
    let target = Some(text(&regarding["name"])).filter(|name| !name.is_empty());
    let target = target.map_or_else(|| kind.clone(), |name| format!("{kind}/{name}"));
    let part = |own: &str, general: &str| {
        let own = text(&object["deprecatedSource"][own]);
        if own.is_empty() { text(&object[general]).to_owned() } else { own.to_owned() }
    };
    let source = [part("component", "reportingController"), part("host", "reportingInstance")];
    let source = source.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    vec![
        age::of_time(&last, now).into(),
        text(&object["type"]).into(),
        text(&object["reason"]).into(),
        target.into(),
        text(&regarding["fieldPath"]).into(),
        source.into(),
        text(&object["note"]).trim().into(),
        age::of_time(&first, now).into(),
        json!(count),
        meta::name(object).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_cell_for_each_column() {
        let kinds = crate::builtin::kinds().iter().chain(crate::builtin::extra_kinds());
        for kind in kinds {
            let (columns, cells) = (
                columns(&kind.group, &kind.plural),
                cells(&kind.group, &kind.plural, &json!({}), Timestamp::UNIX_EPOCH),
            );
            assert_eq!(columns.len(), cells.len(), "{}", kind.plural);
        }
    }

    #[test]
    fn an_event_of_a_series_shows_its_last_time_and_its_count() {
        let object = json!({
            "metadata": {"name": "e"}, "type": "Normal", "reason": "Bound", "note": " done ",
            "eventTime": "1970-01-01T00:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "1970-01-01T00:00:50.000000Z"},
            "regarding": {"kind": "BucketClaim", "name": "photos"}, "reportingController": "op", "reportingInstance": "op-1",
        });
        let cells = cells("", "events", &object, Timestamp::from_second(60).expect("a time"));
        let expected =
            json!(["10s", "Normal", "Bound", "bucketclaim/photos", "", "op, op-1", "done", "60s", 3, "e"]);
        assert_eq!(Value::from(cells), expected);
    }
}
