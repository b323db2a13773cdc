//! Namespaces (`k8s.io/kubernetes/pkg/registry/core/namespace`).

use serde_json::{Value, json};

use crate::meta;

/// Sets the fields that only the server sets.
pub(super) fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            label(object);
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        Some(old) => {
            object["spec"] = old["spec"].clone();
            label(object);
        }
    }
}

/// Sets the label that contains the namespace's name.
pub(super) fn label(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    let labels = meta::metadata_mut(namespace).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name.into();
}
