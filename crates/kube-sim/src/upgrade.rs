//! Upgrade of an object from `kubectl apply` to `kubectl apply --server-side`
//! (`k8s.io/apimachinery/pkg/util/managedfields/internal/lastapplied{manager,updater}.go`).
//!
//! kubectl may take over the fields that it applied according to the annotation, and the annotation
//! is updated with each apply.

use serde_json::{Value, json};

use super::fields::{self, FieldSet};
use super::kind::Kind;

/// Field manager of kubectl's server-side apply.
const KUBECTL: &str = "kubectl";
/// Annotation in which kubectl records a client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn last_applied<'a>(live: &'a Value, manager: &str, subresource: &str) -> Option<&'a str> {
    let own = manager == KUBECTL && subresource.is_empty();
    live["metadata"]["annotations"][LAST_APPLIED].as_str().filter(|_| own)
}

/// Returns the fields that this manager may take from others without force: those that kubectl
/// applied and that have not changed since.
pub(crate) fn yielded(kind: &Kind, live: &Value, manager: &str, subresource: &str) -> FieldSet {
    let applied = last_applied(live, manager, subresource).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(applied) = applied.filter(Value::is_object) else { return FieldSet::new() };
    let since = fields::difference(&kind.schema, &applied, live, &[]);
    let mut all = fields::fields_of(&kind.schema, &applied, &[]);
    all.retain(|path| !since.changed.contains(path) && !since.removed.contains(path));
    all
}

/// Updates the annotation with the applied config, if kubectl had set it before.
pub(crate) fn note(object: &mut Value, live: &Value, config: &Value, manager: &str, subresource: &str) {
    if last_applied(live, manager, subresource).is_none() {
        return;
    }
    let mut noted = config.clone();
    if let Some(annotations) = noted.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][LAST_APPLIED] = format!("{noted}\n").into();
}
