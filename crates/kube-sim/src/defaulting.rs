//! Steps between decoding and validation: dropping of unknown fields and of meaningless nulls, and
//! defaulting (`k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}`).

use serde_json::Value;

use super::path::FieldPath;
use super::schema::{Additional, Schema};

/// Removes the fields that the schema does not define, and returns their paths in order.
pub(crate) fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_node(schema, value, &FieldPath::ROOT, &mut unknown);
    unknown
}

/// Returns the paths that [`prune`] would remove.
pub(crate) fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    prune(schema, &mut value.clone())
}

fn prune_node(schema: &Schema, value: &mut Value, path: &FieldPath<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps_all = schema.preserve_unknown || matches!(schema.additional, Additional::Any);
            fields.retain(|name, field| {
                if schema.embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                match schema.field(name) {
                    Some(child) => {
                        prune_node(child, field, &FieldPath::Field(path, name), unknown);
                        true
                    }
                    None if keeps_all => true,
                    None => {
                        unknown.push(FieldPath::Field(path, name).to_string());
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_node(child, item, &FieldPath::Item(path, index), unknown);
                }
            }
        }
        _ => {}
    }
}

/// Drops nulls of fields that are not nullable, and sets defaults, also inside of defaults. Returns
/// true if there was anything to do.
pub(crate) fn apply_defaults(schema: &Schema, value: &mut Value) -> bool {
    if !schema.holds.defaults && !holds_null(value) {
        return false;
    }
    let mut changed = false;
    match value {
        Value::Object(fields) => {
            let before = fields.len();
            fields.retain(|name, field| !field.is_null() || schema.field(name).is_none_or(|child| child.nullable));
            changed |= fields.len() != before;
            for (name, child) in &schema.properties {
                if let Some(default) = &child.default
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                    changed = true;
                }
            }
            for (name, field) in fields {
                if let Some(child) = schema.field(name) {
                    changed |= apply_defaults(child, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for item in items {
                    if item.is_null()
                        && !child.nullable
                        && let Some(default) = &child.default
                    {
                        *item = default.clone();
                        changed = true;
                    }
                    changed |= apply_defaults(child, item);
                }
            }
        }
        _ => {}
    }
    changed
}

/// Returns true if the value is null or contains a null.
fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(holds_null),
        Value::Array(items) => items.iter().any(holds_null),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        crate::schema::loader::own(json!({
            "type": "object",
            "properties": {
                "policy": {
                    "type": "object",
                    "default": {"mode": "Manual"},
                    "properties": {
                        "mode": {"type": "string"},
                        "days": {"type": "integer", "default": 90},
                    },
                },
                "style": {"type": "string", "default": "path"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "maybe": {"type": "string", "nullable": true},
            },
        }))
    }

    #[test]
    fn defaults_reach_into_defaulted_objects() {
        let mut value = json!({});
        assert!(apply_defaults(&schema(), &mut value), "something was filled in");
        assert_eq!(value, json!({"policy": {"mode": "Manual", "days": 90}, "style": "path"}));
        assert!(!apply_defaults(&schema(), &mut value), "nothing is left to fill in");
    }

    #[test]
    fn null_counts_as_absent_unless_nullable() {
        let mut value = json!({"style": null, "maybe": null, "policy": {"days": 1, "mode": null}});
        assert!(apply_defaults(&schema(), &mut value), "nulls were dropped");
        assert_eq!(value, json!({"policy": {"days": 1}, "style": "path", "maybe": null}));
        assert!(!apply_defaults(&schema(), &mut value), "a null that counts stays");
    }

    /// Nulls are also dropped in a part of the schema without defaults.
    #[test]
    fn nulls_are_dropped_where_nothing_is_filled_in() {
        let mut value = json!({"style": "x", "policy": {"days": 1}, "list": [{"a": null}]});
        assert!(apply_defaults(&schema(), &mut value));
        assert_eq!(value, json!({"style": "x", "policy": {"days": 1}, "list": [{}]}));
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let mut value = json!({"x": 1, "list": [{"a": "1"}, {"b": 2}], "free": {"any": {"thing": 1}}});
        let unknown = prune(&schema(), &mut value);
        assert_eq!(unknown, ["list[1].b", "x"]);
        assert_eq!(value, json!({"list": [{"a": "1"}, {}], "free": {"any": {"thing": 1}}}));
    }
}
