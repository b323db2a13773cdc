//! Structural checks required by the typed objects of server-side apply
//! (`sigs.k8s.io/structured-merge-diff`): types match the schema, and the identities of list items
//! are unique.

use serde_json::Value;

use super::path::FieldPath;
use super::schema::{Additional, JsonType, ListType, Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};

/// Returns true if a wrong type is also wrong in the typed form of objects that server-side apply
/// uses.
///
/// The typed form does not distinguish integers from other numbers, accepts any scalar for an
/// int-or-string, and null for any type.
pub(crate) fn is_untypable(error: &FieldError) -> bool {
    let wanted = error.detail.split_once("must be of type ").and_then(|(_, rest)| rest.split_once(':'));
    let wanted = wanted.map_or("", |(wanted, _)| wanted);
    error.kind == FieldErrorKind::TypeInvalid
        && match error.value.as_str().unwrap_or_default() {
            "integer" | "number" => !matches!(wanted, "integer" | "number" | "integer,string"),
            "string" | "boolean" => wanted != "integer,string",
            "array" | "object" => true,
            // Null, or a string with the wrong format, whose type is correct.
            _ => false,
        }
}

/// Returns true if an object, without its metadata, has the structure of its schema: nothing in it
/// [`is_untypable`].
pub(crate) fn has_structure(schema: &Schema, object: &Value) -> bool {
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    let mut children = fields.filter_map(|(name, field)| Some((schema.field(name)?, field)));
    is_typable(schema, object)
        && children.all(|(child, field)| is_structured(child, field))
        && schema.junctors.all_of.iter().all(|branch| has_structure(branch, object))
}

/// Returns true if a value inside an object has the structure of its schema.
fn is_structured(schema: &Schema, value: &Value) -> bool {
    let below = match (value, &schema.items) {
        (Value::Array(items), Some(child)) => items.iter().all(|item| is_structured(child, item)),
        (Value::Object(fields), _) => {
            let mut children = fields.iter().filter_map(|(name, field)| Some((schema.field(name)?, field)));
            children.all(|(child, field)| is_structured(child, field))
        }
        _ => true,
    };
    is_typable(schema, value) && below && schema.junctors.all_of.iter().all(|branch| is_structured(branch, value))
}

/// Returns true if the type of a value itself, without nested values, is accepted by the typed form
/// of objects.
fn is_typable(schema: &Schema, value: &Value) -> bool {
    match (schema.type_rule, value) {
        (TypeRule::Any, _) | (_, Value::Null) => true,
        (TypeRule::IntOrString, _) => !matches!(value, Value::Array(_) | Value::Object(_)),
        (TypeRule::Only(JsonType::Integer | JsonType::Number), _) => value.is_number(),
        (TypeRule::Only(JsonType::String), _) => value.is_string(),
        (TypeRule::Only(JsonType::Boolean), _) => value.is_boolean(),
        (TypeRule::Only(JsonType::Array), _) => value.is_array(),
        (TypeRule::Only(JsonType::Object), _) => value.is_object(),
    }
}

/// Returns errors for duplicate items in keyed lists and sets (`x-kubernetes-list-type`).
pub(crate) fn duplicates(schema: &Schema, value: &Value) -> Vec<FieldError> {
    let mut found = Vec::new();
    find_duplicates(schema, value, &FieldPath::ROOT, &mut found);
    found
}

fn find_duplicates(schema: &Schema, value: &Value, path: &FieldPath<'_>, out: &mut Vec<FieldError>) {
    if !schema.holds.unique_items {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(child) = schema.properties.get(name) {
                    find_duplicates(child, field, &FieldPath::Field(path, name), out);
                } else if let Additional::Schema(child) = &schema.additional {
                    find_duplicates(child, field, &FieldPath::Entry(path, name), out);
                }
            }
        }
        Value::Array(items) => {
            duplicate_items(schema, items, path, out);
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    find_duplicates(child, item, &FieldPath::Item(path, index), out);
                }
            }
        }
        _ => {}
    }
}

fn duplicate_items(schema: &Schema, items: &[Value], path: &FieldPath<'_>, out: &mut Vec<FieldError>) {
    let mut seen: Vec<(Value, usize)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match &schema.list_type {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map(keys) => {
                let held = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                Value::Object(held.collect())
            }
        };
        match seen.iter_mut().find(|(other, _)| *other == identity) {
            Some((_, times)) => {
                *times += 1;
                // Only the first repetition is reported, as on a server.
                if *times == 2 {
                    out.push(FieldError::duplicate(&format!("{path}[{index}]"), identity));
                }
            }
            None => seen.push((identity, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::validate::{Findings, validate};
    use super::*;

    /// Tests every type in a schema with a value of every type: by itself, in a list and in an
    /// object.
    #[test]
    fn an_object_has_the_structure_of_its_schema_unless_a_full_check_finds_it_untypable() {
        let types = ["object", "array", "string", "integer", "number", "boolean"];
        let mut schemas: Vec<Value> = types
            .iter()
            .map(|name| match *name {
                "array" => json!({"type": "array", "items": {"type": "string"}}),
                name => json!({"type": name}),
            })
            .collect();
        schemas.push(json!({"x-kubernetes-int-or-string": true}));
        schemas.push(json!({"x-kubernetes-preserve-unknown-fields": true}));
        schemas.push(json!({"type": "string", "format": "date-time", "maxLength": 1}));
        schemas.push(json!({"type": "integer", "allOf": [{"maximum": 0}]}));
        let values =
            [json!(null), json!(true), json!(1), json!(1.5), json!("a"), json!(["a"]), json!([1]), json!({"a": 1})];
        for schema in &schemas {
            let schema = crate::schema::loader::own(json!({"type": "object", "properties": {
                "itself": schema, "list": {"type": "array", "items": schema},
                "map": {"type": "object", "additionalProperties": schema}, "metadata": {"type": "object"},
            }}));
            for value in &values {
                for object in [
                    json!({"itself": value, "metadata": 1}),
                    json!({"list": [value]}),
                    json!({"list": value}),
                    json!({"map": {"a": value}}),
                    value.clone(),
                ] {
                    let mut found = Findings::default();
                    validate(&schema, &object, None, "", &mut found);
                    let untypable = found.errors.iter().any(is_untypable);
                    assert_eq!(has_structure(&schema, &object), !untypable, "{object}: {:?}", found.errors);
                }
            }
        }
    }
}
