//! Validation of metadata, common to all kinds
//! (`k8s.io/apimachinery/pkg/api/validation/objectmeta.go`).

use serde_json::Value;

use super::{FOREGROUND, ORPHAN, finalizers, is_deleting, name, namespace, owners, text};
use crate::field_error::FieldError;
use crate::kind::{Family, Kind};
use crate::names;

/// Maximum total size of an object's annotations, keys and values, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Validates the metadata of a new object.
pub(crate) fn new_object(kind: &Kind, object: &Value, out: &mut Vec<FieldError>) {
    check_name(kind, object, out);
    check_common(object, out);
    check_finalizers(object, out);
}

fn check_name(kind: &Kind, object: &Value, out: &mut Vec<FieldError>) {
    let rule = match kind.family {
        Family::Namespace => names::dns_label,
        Family::Service => names::dns_1035_label,
        Family::Inert if kind.group == "rbac.authorization.k8s.io" => names::path_segment,
        _ => names::dns_subdomain,
    };
    let prefix = text(object, "generateName");
    // A prefix may end in characters with which a name may not end.
    let stem = prefix.trim_end_matches(['-', '.']);
    if !prefix.is_empty() {
        let errors = rule(if stem.is_empty() { prefix } else { stem }).into_iter();
        out.extend(errors.map(|error| FieldError::invalid("metadata.generateName", prefix, error)));
    }
    let name = name(object);
    if name.is_empty() {
        out.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        out.extend(rule(name).into_iter().map(|error| FieldError::invalid("metadata.name", name, error)));
    }
    if !kind.is_namespaced() && !namespace(object).is_empty() {
        out.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
    }
}

/// Validates the metadata of an object that replaces `old`.
pub(crate) fn update(object: &Value, old: &Value, out: &mut Vec<FieldError>) {
    if is_deleting(old) {
        let before = finalizers(old);
        let mut added: Vec<&str> = finalizers(object).into_iter().filter(|name| !before.contains(name)).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            out.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (&object["metadata"][field], &old["metadata"][field]);
        if new != old {
            out.push(FieldError::immutable(&format!("metadata.{field}"), new.clone()));
        }
    }
    check_common(object, out);
    check_finalizers(object, out);
}

fn check_common(object: &Value, out: &mut Vec<FieldError>) {
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        for error in names::qualified_name(key) {
            out.push(FieldError::invalid("metadata.labels", key.as_str(), error));
        }
        for error in names::label_value(value) {
            out.push(FieldError::invalid("metadata.labels", value, error));
        }
    }
    let mut size = 0;
    for (key, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for error in names::qualified_name(&key.to_lowercase()) {
            out.push(FieldError::invalid("metadata.annotations", key.as_str(), error));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        out.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_LIMIT as i64));
    }
    check_owners(object, out);
}

fn check_owners(object: &Value, out: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in owners(object) {
        let field = |name: &str| owner[name].as_str().unwrap_or_default();
        if field("apiVersion").is_empty() {
            out.push(FieldError::invalid(&format!("{path}.apiVersion"), "", "version must not be empty"));
        }
        for name in ["kind", "name", "uid"] {
            if field(name).is_empty() {
                out.push(FieldError::invalid(&format!("{path}.{name}"), "", "must not be empty"));
            }
        }
        if owner["controller"] != Value::Bool(true) {
            continue;
        }
        let this = format!("{}/{}", field("kind"), field("name"));
        if let Some(first) = &controller {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
            );
            out.push(FieldError::invalid(path, owners(object).to_vec(), detail));
        } else {
            controller = Some(this);
        }
    }
}

fn check_finalizers(object: &Value, out: &mut Vec<FieldError>) {
    let path = "metadata.finalizers";
    let names = finalizers(object);
    for name in &names {
        out.extend(names::qualified_name(name).into_iter().map(|error| FieldError::invalid(path, *name, error)));
    }
    if names.contains(&FOREGROUND) && names.contains(&ORPHAN) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        out.push(FieldError::invalid(path, object["metadata"]["finalizers"].clone(), detail));
    }
}
