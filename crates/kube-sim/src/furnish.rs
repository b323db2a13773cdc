//! Objects that a cluster's controllers create in every namespace, and the expiry of Events.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kind::SharedKind;
use super::options::{Ownership, Part, WriteOptions};
use super::store::{Place, Shared, Store};
use super::write;

/// Creates the ServiceAccount, and the ConfigMap with the certificate, in each namespace that is
/// not terminating. Returns the number of objects created or changed.
pub(crate) fn namespaces(state: &mut Store, ca_pem: &str) -> usize {
    let namespaces = state.kind("", "v1", "namespaces").expect("namespaces are always served");
    let active = state.objects(&namespaces).filter(|(_, namespace)| !namespace.is_deleting());
    let names: Vec<String> = active.map(|(place, _)| place.name.clone()).collect();
    let accounts = state.kind("", "v1", "serviceaccounts");
    let maps = state.kind("", "v1", "configmaps").filter(|_| !ca_pem.is_empty());
    let mut changes = 0;
    for name in &names {
        if let Some(accounts) = &accounts {
            changes += usize::from(ensure(state, accounts, name, "default", None));
        }
        if let Some(maps) = &maps {
            changes += usize::from(ensure(state, maps, name, "kube-root-ca.crt", Some(ca_pem)));
        }
    }
    changes
}

/// Creates an object, or updates the certificate in it.
fn ensure(state: &mut Store, kind: &SharedKind, namespace: &str, name: &str, ca_pem: Option<&str>) -> bool {
    let data = ca_pem.map(|pem| json!({"ca.crt": pem}));
    let existing = state.get(kind, &Place::new(namespace, name)).cloned();
    match (existing, data) {
        (Some(_), None) => false,
        (Some(existing), Some(data)) => {
            if existing["data"] == data {
                return false;
            }
            let mut object = Value::clone(&existing);
            object["data"] = data;
            write::update(state, kind, &existing, object, Part::Main, &WriteOptions::own()).is_ok()
        }
        (None, data) => {
            let metadata = json!({"name": name, "namespace": namespace});
            let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata});
            if let Some(data) = data {
                object["metadata"]["annotations"] = json!({
                    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
                });
                object["data"] = data;
            }
            write::create(state, kind, object, Ownership::Creator, &WriteOptions::own()).is_ok()
        }
    }
}

/// Removes Events that have not been updated for longer than `older_than`, and returns their
/// number.
pub(crate) fn expire_events(state: &mut Store, older_than: SignedDuration) -> usize {
    let Some(events) = state.kind("events.k8s.io", "v1", "events") else { return 0 };
    let Ok(limit) = state.time().checked_sub(older_than) else { return 0 };
    let is_old = |event: &Shared| {
        // The tree of an Event that was created later is not read.
        event.created().is_none_or(|created| created < limit)
            && last_seen(&event.tree()).is_some_and(|seen| seen < limit)
    };
    let old = state.objects(&events).filter(|(_, event)| is_old(event));
    let old: Vec<Place> = old.map(|(place, _)| place.clone()).collect();
    old.iter().filter(|place| state.remove(&events, place).is_some()).count()
}

/// Returns the time of the last addition to an Event.
fn last_seen(event: &Value) -> Option<Timestamp> {
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
        &event["deprecatedLastTimestamp"],
    ];
    times.iter().filter_map(|time| time.as_str()?.parse().ok()).max()
}
