//! The columns of built-in kinds (`k8s.io/kubernetes/pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use kube_sim::meta;
use serde_json::{Value, json};

use super::age;
use super::values::{pairs, size, text};
use super::workloads;

/// Name, type and priority of a column. Only wide tables show columns with a priority above 0.
pub(super) type Title = (&'static str, &'static str, i64);

/// Returns true if the kind shows the creation time of its objects, as kinds without a special
/// printer do.
fn shows_creation(group: &str, plural: &str) -> bool {
    match group {
        "rbac.authorization.k8s.io" => matches!(plural, "roles" | "clusterroles"),
        "apiextensions.k8s.io" => true,
        "admissionregistration.k8s.io" => !plural.ends_with("webhookconfigurations"),
        _ => false,
    }
}

fn plain(name: &'static str) -> Title {
    (name, "string", 0)
}

fn wide(name: &'static str) -> Title {
    (name, "string", 1)
}

fn whole(name: &'static str) -> Title {
    (name, "integer", 0)
}

/// Returns the columns name and age, with `own` between them and `after` behind them.
fn with_age(own: &[Title], after: &[Title]) -> Vec<Title> {
    [&[plain("Name")], own, &[plain("Age")], after].concat()
}

/// Returns the columns of a kind.
pub(super) fn columns(group: &str, plural: &str) -> Vec<Title> {
    match (group, plural) {
        _ if shows_creation(group, plural) => vec![plain("Name"), ("Created At", "date", 0)],
        ("", "secrets") => with_age(&["Type", "Data"].map(plain), &[]),
        ("", "configmaps") => with_age(&[plain("Data")], &[]),
        ("", "namespaces") => with_age(&[plain("Status")], &[]),
        ("", "serviceaccounts") => with_age(&[plain("Secrets")], &[]),
        ("coordination.k8s.io", "leases") => with_age(&[plain("Holder")], &[]),
        ("rbac.authorization.k8s.io", _) => {
            with_age(&[plain("Role")], &["Users", "Groups", "ServiceAccounts"].map(wide))
        }
        ("storage.k8s.io", "storageclasses") => {
            with_age(&["Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion"].map(plain), &[])
        }
        ("" | "events.k8s.io", "events") => vec![
            plain("Last Seen"),
            plain("Type"),
            plain("Reason"),
            plain("Object"),
            wide("Subobject"),
            wide("Source"),
            plain("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ],
        _ => columns_of_workloads(group, plural),
    }
}

fn columns_of_workloads(group: &str, plural: &str) -> Vec<Title> {
    match (group, plural) {
        ("", "pods") => with_age(&["Ready", "Status", "Restarts"].map(plain), &[]),
        ("", "services") => with_age(&["Type", "Cluster-IP", "External-IP", "Port(s)"].map(plain), &[wide("Selector")]),
        ("", "persistentvolumeclaims") => {
            let own = ["Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass"];
            with_age(&own.map(plain), &[wide("VolumeMode")])
        }
        ("apps", "deployments") => {
            with_age(&["Ready", "Up-to-date", "Available"].map(plain), &["Containers", "Images", "Selector"].map(wide))
        }
        ("apps", "statefulsets") => with_age(&[plain("Ready")], &["Containers", "Images"].map(wide)),
        ("apps", "replicasets") => with_age(&["Desired", "Current", "Ready"].map(whole), &[]),
        ("apps", "daemonsets") => {
            let own = ["Desired", "Current", "Ready", "Up-to-date", "Available"].map(whole);
            with_age(&[&own[..], &[plain("Node Selector")]].concat(), &[])
        }
        ("batch", "jobs") => with_age(&["Status", "Completions", "Duration"].map(plain), &[]),
        ("batch", "cronjobs") => {
            let own = [plain("Schedule"), plain("Timezone"), ("Suspend", "boolean", 0), whole("Active")];
            with_age(&[&own[..], &[plain("Last Schedule")]].concat(), &[])
        }
        ("networking.k8s.io", "ingresses") => with_age(&["Class", "Hosts", "Address", "Ports"].map(plain), &[]),
        _ => with_age(&[], &[]),
    }
}

/// Returns an object's cells for these columns.
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
        ("", "services") => [with_age(workloads::service(object)), vec![pairs(&object["spec"]["selector"])]].concat(),
        ("", "pods") => with_age(workloads::pod(object)),
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
        ("apps", "daemonsets") => with_age(workloads::daemon_set(object)),
        ("batch", "jobs") => with_age(workloads::job(object, now)),
        ("batch", "cronjobs") => with_age(workloads::cron_job(object, now)),
        ("networking.k8s.io", "ingresses") => with_age(workloads::ingress(object)),
        ("", "persistentvolumeclaims") => [
            with_age(workloads::volume_claim(object)),
            vec![workloads::or_text(&object["spec"]["volumeMode"], "Filesystem")],
        ]
        .concat(),
        ("rbac.authorization.k8s.io", _) => {
            let role = &object["roleRef"];
            let role = format!("{}/{}", text(&role["kind"]), text(&role["name"]));
            [with_age(vec![role.into()]), workloads::subjects(object)].concat()
        }
        ("storage.k8s.io", "storageclasses") => with_age(workloads::storage_class(object)),
        ("" | "events.k8s.io", "events") => event(object, now),
        _ => with_age(Vec::new()),
    }
}

fn ready(object: &Value) -> Value {
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    format!("{}/{}", number(&object["status"]["readyReplicas"]), number(&object["spec"]["replicas"])).into()
}

/// Returns the names and images of the containers of a pod template.
fn containers(object: &Value) -> Vec<Value> {
    let list = object["spec"]["template"]["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let joined = |field: &str| list.iter().map(|one| text(&one[field])).collect::<Vec<_>>().join(",").into();
    vec![joined("name"), joined("image")]
}

/// Returns the cells of a stored event, which has the field names of `events.k8s.io`.
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
        let kinds = kube_sim::builtin::kinds().iter().chain(kube_sim::builtin::inert_kinds());
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
        let expected = json!(["10s", "Normal", "Bound", "bucketclaim/photos", "", "op, op-1", "done", "60s", 3, "e"]);
        assert_eq!(Value::from(cells), expected);
    }
}
