//! Sets of fields of an object, and the differences between two states of it, field by field (the
//! concepts of `sigs.k8s.io/structured-merge-diff`, on JSON values).
//!
//! A path is a list of steps in the notation of `fieldsV1`: `f:name`, `k:{"type":"Ready"}` for an
//! item of a keyed list, `v:"x"` for a member of a set.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::schema::{ListType, Schema};

/// Steps from the root of an object to a field.
pub(crate) type Path = Vec<String>;

/// The paths that a manager owns.
pub(crate) type FieldSet = BTreeSet<Path>;

/// Metadata fields that are set by the server and have no owner.
const UNOWNED: [&str; 11] = [
    "name",
    "namespace",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "resourceVersion",
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Returns the fields of an object's metadata that can have owners; `None` if there are none.
fn ownable_metadata(object: &Value) -> Option<Value> {
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let ownable: Map<_, _> = metadata
        .filter(|(name, _)| !UNOWNED.contains(&name.as_str()))
        .map(|(name, field)| (name.clone(), field.clone()))
        .collect();
    (!ownable.is_empty()).then_some(Value::Object(ownable))
}

/// Returns the top-level fields of an object that can have owners, without those in `reset`, which
/// a request cannot change.
fn ownable<'a>(schema: &'a Schema, object: &'a Value, metadata: Option<&'a Value>, reset: &[&str]) -> Vec<Part<'a>> {
    let own = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata") && !reset.contains(&name);
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| own(name));
    let fields = fields.map(|(name, field)| (name.as_str(), field)).chain(metadata.map(|own| ("metadata", own)));
    fields.map(|(name, field)| named_part(schema, name, field)).collect()
}

/// Returns the paths of all leaves, list items and map entries of an object, without the fields in
/// `reset`. Fields that are defined in the schema and contain other fields are not included
/// (`ToFieldSet`).
pub(crate) fn fields_of(schema: &Schema, object: &Value, reset: &[&str]) -> FieldSet {
    let mut set = FieldSet::new();
    let metadata = ownable_metadata(object);
    collect_parts(schema, ownable(schema, object, metadata.as_ref(), reset), &mut Vec::new(), &mut set);
    set
}

fn collect(schema: &Schema, value: &Value, path: &mut Path, set: &mut FieldSet) {
    match children(schema, value) {
        Some(children) if !children.is_empty() || value.is_array() => collect_parts(schema, children, path, set),
        _ => {
            set.insert(path.clone());
        }
    }
}

fn collect_parts(schema: &Schema, parts: Vec<Part<'_>>, path: &mut Path, set: &mut FieldSet) {
    for (step, child_schema, child) in parts {
        let named = step.strip_prefix("f:").is_some_and(|name| schema.properties.contains_key(name));
        path.push(step);
        if !named {
            set.insert(path.clone());
        }
        collect(child_schema, child, path, set);
        path.pop();
    }
}

/// Collects the paths of a value and of everything below it, as `Compare` does for a value that
/// exists on one side only.
fn collect_all(schema: &Schema, value: &Value, path: &mut Path, set: &mut FieldSet) {
    set.insert(path.clone());
    for (step, child_schema, child) in children(schema, value).into_iter().flatten() {
        path.push(step);
        collect_all(child_schema, child, path, set);
        path.pop();
    }
}

/// Returns the set with all ancestors of its members that are fields defined in the schema
/// (`EnsureNamedFieldsAreMembers`).
pub(crate) fn with_named_fields(schema: &Schema, fields: &FieldSet) -> FieldSet {
    let mut whole = fields.clone();
    for path in fields {
        let mut at = Some(schema);
        for (index, step) in path.iter().enumerate() {
            let Some(here) = at else { break };
            at = match step.strip_prefix("f:") {
                Some(name) => {
                    if here.properties.contains_key(name) {
                        whole.insert(path[..=index].to_vec());
                    }
                    here.field(name)
                }
                None => here.items.as_deref(),
            };
        }
    }
    whole
}

/// Returns a schema for free-form values, whose maps are merged by key.
fn free_form<'a>() -> &'a Schema {
    static FREE: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(Schema::anything);
    &FREE
}

/// A part of a value: its path step, schema and value.
type Part<'a> = (String, &'a Schema, &'a Value);

fn named_part<'a>(schema: &'a Schema, name: &str, field: &'a Value) -> Part<'a> {
    (["f:", name].concat(), schema.field(name).unwrap_or_else(free_form), field)
}

/// Returns the parts of a value that have separate owners; `None` if the value has one owner as a
/// whole.
fn children<'a>(schema: &'a Schema, value: &'a Value) -> Option<Vec<Part<'a>>> {
    match value {
        Value::Object(_) if schema.atomic_map => None,
        Value::Object(fields) => Some(fields.iter().map(|(name, field)| named_part(schema, name, field)).collect()),
        Value::Array(items) => match &schema.list_type {
            ListType::Atomic => None,
            list_type => {
                let item_schema = schema.items.as_deref().unwrap_or_else(free_form);
                Some(items.iter().map(|item| (item_step(schema, list_type, item), item_schema, item)).collect())
            }
        },
        _ => None,
    }
}

/// Returns the path step of an item in a keyed list or a set.
pub(crate) fn item_step(schema: &Schema, list_type: &ListType, item: &Value) -> String {
    match list_type {
        ListType::Map(keys) => {
            let values = schema.item_key(keys, item);
            let pairs = keys.iter().cloned().zip(values).filter_map(|(key, value)| Some((key, value?)));
            format!("k:{}", Value::Object(pairs.collect::<Map<_, _>>()))
        }
        ListType::Set | ListType::Atomic => format!("v:{item}"),
    }
}

/// Differences between two states of an object.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Paths that are new or have another value.
    pub(crate) changed: FieldSet,
    /// Paths that were removed.
    pub(crate) removed: FieldSet,
}

impl Difference {
    /// Returns true if there are no differences.
    pub(crate) fn is_none(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Returns the differences between two states, without the fields in `reset`. The field `metadata`
/// itself is never one of them, because every object has it.
pub(crate) fn difference(schema: &Schema, old: &Value, new: &Value, reset: &[&str]) -> Difference {
    let mut found = Difference::default();
    let own = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata") && !reset.contains(&name);
    let mut path = Vec::new();
    compare_fields(schema, old.as_object(), new.as_object(), own, &mut path, &mut found);
    path.push("f:metadata".to_owned());
    let metadata = schema.field("metadata").unwrap_or_else(free_form);
    let ownable = |name: &str| !UNOWNED.contains(&name);
    let [old, new] = [old, new].map(|object| object["metadata"].as_object());
    compare_fields(metadata, old, new, ownable, &mut path, &mut found);
    found
}

/// Compares those fields of two objects that can have owners. No paths are allocated for unchanged
/// fields, which are the majority.
fn compare_fields(
    schema: &Schema,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    own: impl Fn(&str) -> bool,
    path: &mut Path,
    out: &mut Difference,
) {
    let before = |name: &str| old.and_then(|old| old.get(name));
    let gone = old.into_iter().flatten().filter(|(name, _)| new.is_none_or(|new| !new.contains_key(*name)));
    let gone = gone.map(|(name, field)| (name, Some(field), None));
    let there = new.into_iter().flatten().map(|(name, field)| (name, before(name), Some(field)));
    for (name, old, new) in there.chain(gone).filter(|(name, old, new)| own(name) && old != new) {
        path.push(["f:", name].concat());
        compare(schema.field(name).unwrap_or_else(free_form), old, new, path, out);
        path.pop();
    }
}

fn compare<'a>(
    schema: &'a Schema,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    path: &mut Path,
    out: &mut Difference,
) {
    let (old, new) = match (old, new) {
        (None, None) => return,
        (None, Some(new)) => return collect_all(schema, new, path, &mut out.changed),
        (Some(old), None) => return collect_all(schema, old, path, &mut out.removed),
        (Some(old), Some(new)) if old == new => return,
        (Some(Value::Object(old)), Some(Value::Object(new))) if !schema.atomic_map => {
            return compare_fields(schema, Some(old), Some(new), |_| true, path, out);
        }
        (Some(old), Some(new)) => (old, new),
    };
    let (Some(old_parts), Some(new_parts)) = (children(schema, old), children(schema, new)) else {
        out.changed.insert(path.clone());
        return;
    };
    compare_parts(&old_parts, &new_parts, path, out);
}

fn compare_parts<'a>(old: &[Part<'a>], new: &[Part<'a>], path: &mut Path, out: &mut Difference) {
    let mut seen = BTreeSet::new();
    for (step, child_schema, _) in new.iter().chain(old) {
        if !seen.insert(step) {
            continue;
        }
        let there = |parts: &[Part<'a>]| -> Vec<&'a Value> {
            parts.iter().filter(|part| part.0 == *step).map(|part| part.2).collect()
        };
        path.push(step.clone());
        compare_items(child_schema, &there(old), &there(new), path, out);
        path.pop();
    }
}

/// Compares the items at one path step. Several items with the same step are treated as one value,
/// which differs from a single item.
fn compare_items(schema: &Schema, old: &[&Value], new: &[&Value], path: &mut Path, out: &mut Difference) {
    match (old, new) {
        ([_, _, ..], [_, _, ..]) if old == new => {}
        ([_, _, ..], [_, _, ..]) => {
            out.changed.insert(path.clone());
        }
        ([_, _, ..], _) => {
            compare(schema, None, new.first().copied(), path, out);
            out.removed.insert(path.clone());
        }
        (_, [_, _, ..]) => {
            compare(schema, old.first().copied(), None, path, out);
            out.changed.insert(path.clone());
        }
        _ => compare(schema, old.first().copied(), new.first().copied(), path, out),
    }
}

/// Formats a path as in messages: `.status.conditions[type="Ready"].status`.
pub(crate) fn display(path: &Path) -> String {
    let mut text = String::new();
    for step in path {
        if let Some(name) = step.strip_prefix("f:") {
            text.push('.');
            text.push_str(name);
        } else if let Some(key) = step.strip_prefix("k:") {
            let key: Value = serde_json::from_str(key).unwrap_or_default();
            let pairs = key.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={value}"));
            text.push_str(&format!("[{}]", pairs.collect::<Vec<_>>().join(",")));
        } else if let Some(value) = step.strip_prefix("v:") {
            text.push_str(&format!("[={value}]"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        crate::schema::loader::own(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "plain": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            }},
            "status": {"type": "object", "properties": {"conditions": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "string"},
                }},
            }}},
        }}))
    }

    fn shown(set: &FieldSet) -> Vec<String> {
        set.iter().map(display).collect()
    }

    #[test]
    fn leaves_are_owned_lists_by_their_kind() {
        let object = json!({
            "apiVersion": "v1", "kind": "X", "metadata": {"name": "x"},
            "spec": {"a": "1", "plain": ["x", "y"], "set": ["x"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(
            shown(&fields_of(&schema(), &object, &[])),
            [
                ".spec.a",
                ".spec.plain",
                ".spec.set[=\"x\"]",
                ".status.conditions[type=\"Ready\"]",
                ".status.conditions[type=\"Ready\"].status",
                ".status.conditions[type=\"Ready\"].type",
            ]
        );
    }

    #[test]
    fn a_difference_tells_changes_from_removals() {
        let old = json!({"spec": {"a": "1", "plain": ["x"], "set": ["x", "y"]}});
        let new = json!({"spec": {"a": "2", "plain": ["x"], "set": ["y", "z"]}});
        let found = difference(&schema(), &old, &new, &[]);
        assert_eq!(shown(&found.changed), [".spec.a", ".spec.set[=\"z\"]"]);
        assert_eq!(shown(&found.removed), [".spec.set[=\"x\"]"]);
    }
}
