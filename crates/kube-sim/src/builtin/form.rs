//! Serialized form of built-in objects: fields that a server writes although they are empty, and
//! fields that it omits.

use serde_json::{Map, Value, json};

use crate::kind::{Family, Kind};
use crate::schema::{Additional, Schema};

/// Returns true if [`fill_in_structs`] or [`omit_empty`] may change the object.
pub(crate) fn has_own_form(kind: &Kind, object: &Value) -> bool {
    match kind.family {
        Family::Lease | Family::Namespace | Family::Event | Family::CoreEvent => true,
        Family::Secret => object["data"].as_object().is_some_and(Map::is_empty),
        Family::ConfigMap | Family::ServiceAccount | Family::Pod | Family::Service | Family::Deployment => true,
        Family::Custom | Family::Definition | Family::Inert => false,
    }
}

/// Adds the structs and times that a server writes even if they are empty, because they have no
/// `omitempty`.
pub(crate) fn fill_in_structs(kind: &Kind, object: &mut Value) {
    let structs: &[&str] = match kind.family {
        Family::Lease => &["spec"],
        Family::Namespace | Family::Pod | Family::Service | Family::Deployment => &["spec", "status"],
        Family::Event | Family::CoreEvent => &["regarding", "deprecatedSource"],
        Family::Custom | Family::Secret | Family::ConfigMap => &[],
        Family::ServiceAccount | Family::Definition | Family::Inert => &[],
    };
    for name in structs.iter().filter(|name| object[**name].is_null()).collect::<Vec<_>>() {
        object[*name] = json!({});
    }
    if matches!(kind.family, Family::Event | Family::CoreEvent) {
        // Times that are not pointers are written as null if they are not set.
        for name in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
            let time = object[name].take();
            object[name] = time;
        }
    }
}

/// Removes empty lists and maps, which a server omits. Validation runs before, because it
/// distinguishes empty from absent.
pub(crate) fn omit_empty(kind: &Kind, object: &mut Value) {
    match kind.family {
        Family::Secret => {
            if object["data"] == json!({})
                && let Some(fields) = object.as_object_mut()
            {
                fields.remove("data");
            }
        }
        Family::ConfigMap | Family::ServiceAccount | Family::Pod | Family::Service | Family::Deployment => {
            omit_empty_fields(&kind.schema, object);
        }
        Family::Custom | Family::Namespace | Family::Event | Family::CoreEvent | Family::Lease => {}
        Family::Definition | Family::Inert => {}
    }
}

/// Removes empty lists and maps, but no structs: `emptyDir: {}` has a meaning.
fn omit_empty_fields(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(child) = schema.field(name) else { return true };
            omit_empty_fields(child, field);
            match field {
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty() || !matches!(child.additional, Additional::Schema(_)),
                _ => true,
            }
        }),
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                items.iter_mut().for_each(|item| omit_empty_fields(child, item));
            }
        }
        _ => {}
    }
}
