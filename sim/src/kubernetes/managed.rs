//! Who owns which field: the sets behind `metadata.managedFields`
//! (the ideas of `sigs.k8s.io/structured-merge-diff`, over JSON values).
//!
//! A path is a list of steps in the notation of `fieldsV1`: `f:name`, `k:{"type":"Ready"}` for an
//! item of a keyed list, `v:"x"` for a member of a set. Ownership is per manager, operation and
//! subresource.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::builtin;
use super::kind::{Family, Kind};
use super::meta;
use super::schema::{ListType, Schema};
use super::validate::{self, Findings};

/// Steps from the root of an object to a field.
pub(crate) type Path = Vec<String>;

/// The paths that somebody owns.
pub(crate) type FieldSet = BTreeSet<Path>;

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// Who owns: one entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) operation: Operation,
    pub(crate) name: String,
    /// `status`, or empty for the object itself.
    pub(crate) subresource: String,
}

/// What a manager owns, and since when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) fields: FieldSet,
    /// RFC 3339; empty for who never changed anything.
    pub(crate) time: String,
}

/// All entries of an object.
pub(crate) type Managers = BTreeMap<Manager, Owned>;

/// Fields that nobody owns: the server's own.
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

/// A copy of the object with only the fields that can be owned, without those of its parts that a request can't change.
fn ownable(object: &Value, reset: &[&str]) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    let mut kept: Map<_, _> = fields
        .filter(|(name, _)| !reset.contains(&name.as_str()))
        .map(|(n, field)| (n.clone(), field.clone()))
        .collect();
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let metadata = metadata.filter(|(name, _)| !UNOWNED.contains(&name.as_str()));
    let metadata: Map<_, _> = metadata.map(|(name, field)| (name.clone(), field.clone())).collect();
    if !metadata.is_empty() {
        kept.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Value::Object(kept)
}

/// The paths of all leaves, list items and entries of maps of an object, but for the parts `reset`. A field that the
/// schema names and that holds others is not one of them (`ToFieldSet`).
pub(crate) fn fields_of(schema: &Schema, object: &Value, reset: &[&str]) -> FieldSet {
    let mut set = FieldSet::new();
    collect(schema, &ownable(object, reset), &mut Vec::new(), &mut set);
    set
}

fn collect(schema: &Schema, value: &Value, path: &mut Path, set: &mut FieldSet) {
    match children(schema, value) {
        Some(children) if !children.is_empty() || value.is_array() || path.is_empty() => {
            for (step, child_schema, child) in children {
                let named = step.strip_prefix("f:").is_some_and(|name| schema.properties.contains_key(name));
                path.push(step);
                if !named {
                    set.insert(path.clone());
                }
                collect(child_schema, child, path, set);
                path.pop();
            }
        }
        _ => {
            set.insert(path.clone());
        }
    }
}

/// The paths of a value and of everything below it (what `Compare` tells of a value that one side lacks).
fn collect_all(schema: &Schema, value: &Value, path: &mut Path, set: &mut FieldSet) {
    set.insert(path.clone());
    for (step, child_schema, child) in children(schema, value).into_iter().flatten() {
        path.push(step);
        collect_all(child_schema, child, path, set);
        path.pop();
    }
}

/// The set with all fields on the way to its members that the schema names (`EnsureNamedFieldsAreMembers`).
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

/// A node without a schema: everything below is free-form, and maps in it merge by key.
fn free_form<'a>() -> &'a Schema {
    static FREE: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(Schema::anything);
    &FREE
}

/// A part of a value: its step in a path, and what it is.
type Part<'a> = (String, &'a Schema, &'a Value);

/// The separately owned parts of a value; `None` for a value that is owned as a whole.
fn children<'a>(schema: &'a Schema, value: &'a Value) -> Option<Vec<Part<'a>>> {
    match value {
        Value::Object(_) if schema.atomic_map => None,
        Value::Object(fields) => Some(
            fields
                .iter()
                .map(|(name, field)| (format!("f:{name}"), schema.field(name).unwrap_or_else(free_form), field))
                .collect(),
        ),
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

/// How an item of a keyed list or a set is named in a path.
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

/// What differs between two states of an object.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Paths that are new or have another value.
    pub(crate) changed: FieldSet,
    /// Paths that are gone.
    pub(crate) removed: FieldSet,
}

impl Difference {
    /// Whether nothing differs.
    pub(crate) fn is_none(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The difference between two states, but for the parts `reset`.
pub(crate) fn difference(schema: &Schema, old: &Value, new: &Value, reset: &[&str]) -> Difference {
    let mut found = Difference::default();
    compare(schema, Some(&ownable(old, reset)), Some(&ownable(new, reset)), &mut Vec::new(), &mut found);
    // Every object has metadata, so nobody brings it along.
    let metadata = vec!["f:metadata".to_owned()];
    found.changed.remove(&metadata);
    found.removed.remove(&metadata);
    found
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
        (Some(old), Some(new)) => (old, new),
    };
    let (Some(old_parts), Some(new_parts)) = (children(schema, old), children(schema, new)) else {
        out.changed.insert(path.clone());
        return;
    };
    let mut seen = BTreeSet::new();
    for (step, child_schema, _) in new_parts.iter().chain(&old_parts) {
        if !seen.insert(step) {
            continue;
        }
        let there = |parts: &[Part<'a>]| -> Vec<&'a Value> {
            parts.iter().filter(|part| part.0 == *step).map(|part| part.2).collect()
        };
        path.push(step.clone());
        compare_items(child_schema, &there(&old_parts), &there(&new_parts), path, out);
        path.pop();
    }
}

/// Compares what stands at one step. Items that are there more than once are one thing together, and another one than
/// a single item.
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

/// Reads `managedFields`.
pub(crate) fn managers(object: &Value) -> Managers {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let operation = if entry["operation"] == "Apply" { Operation::Apply } else { Operation::Update };
            let manager = Manager { operation, name: text("manager"), subresource: text("subresource") };
            let mut fields = FieldSet::new();
            read_fields(&entry["fieldsV1"], &mut Vec::new(), &mut fields);
            (manager, Owned { fields, time: text("time") })
        })
        .collect()
}

fn read_fields(node: &Value, path: &mut Path, set: &mut FieldSet) {
    let Value::Object(steps) = node else { return };
    if steps.is_empty() || steps.contains_key(".") {
        set.insert(path.clone());
    }
    for (step, below) in steps.iter().filter(|(step, _)| *step != ".") {
        path.push(step.clone());
        read_fields(below, path, set);
        path.pop();
    }
}

/// Writes `managedFields`; managers that own nothing are left out. They stand in the server's order: applies first, then
/// by time, and only then by name (`sortEncodedManagedFields`).
pub(crate) fn set_managers(kind: &Kind, object: &mut Value, managers: &Managers) {
    let mut sorted: Vec<_> = managers.iter().filter(|(_, owned)| !owned.fields.is_empty()).collect();
    sorted.sort_by_key(|(manager, owned)| (manager.operation, &owned.time, &manager.name, &manager.subresource));
    let entries: Vec<Value> = sorted
        .into_iter()
        .map(|(manager, owned)| {
            let mut entry = json!({
                "manager": manager.name,
                "operation": match manager.operation { Operation::Apply => "Apply", Operation::Update => "Update" },
                "apiVersion": kind.api_version(),
                "fieldsType": "FieldsV1",
                "fieldsV1": write_fields(&owned.fields),
            });
            if !owned.time.is_empty() {
                entry["time"] = owned.time.clone().into();
            }
            if !manager.subresource.is_empty() {
                entry["subresource"] = manager.subresource.clone().into();
            }
            entry
        })
        .collect();
    let value = if entries.is_empty() { Value::Null } else { Value::Array(entries) };
    meta::set(object, "managedFields", value);
}

fn write_fields(fields: &FieldSet) -> Value {
    let mut root = json!({});
    for path in fields {
        let mut at = &mut root;
        for step in path {
            at = &mut at[step];
            if at.is_null() {
                *at = json!({});
            }
        }
    }
    // A set member with paths below it says so with a dot.
    for path in fields {
        let node = path.iter().fold(&mut root, |at, step| &mut at[step]);
        if node.as_object().is_some_and(|steps| !steps.is_empty()) {
            node["."] = json!({});
        }
    }
    root
}

/// The entries of `managedFields` without their times, in order.
pub(crate) fn timeless(object: &Value) -> Vec<Value> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    entries
}

/// A path as messages show it: `.status.conditions[type="Ready"].status`.
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

/// Records what an update that isn't an apply changed: the manager owns it now, nobody else does.
/// `object` is the new state and gets the new `managedFields`.
pub(crate) fn record_update(kind: &Kind, old: &Value, object: &mut Value, manager: &str, subresource: &str, now: &str) {
    let is_new = meta::uid(old).is_empty();
    if !is_new && old["metadata"]["managedFields"].is_null() {
        // Once forgotten, owners are kept again only from the next apply on.
        return meta::set(object, "managedFields", Value::Null);
    }
    if subresource.is_empty() && forgets_owners(object) {
        return meta::set(object, "managedFields", Value::Null);
    }
    if is_untypable(kind, object) {
        // A server can't tell who owns what in such an object, and forgets what it knew.
        return meta::set(object, "managedFields", Value::Null);
    }
    let mut before = old.clone();
    builtin::fill_in_structs(kind, &mut before);
    let mut after = object.clone();
    builtin::fill_in_structs(kind, &mut after);
    builtin::omit_empty(kind, &mut after);
    let found = difference(&kind.schema, &before, &after, reset_fields(kind, subresource));
    let mut all = managers(old);
    for owned in all.values_mut() {
        owned.fields.retain(|path| !found.changed.contains(path) && !found.removed.contains(path));
    }
    if !found.changed.is_empty() {
        let me =
            Manager { operation: Operation::Update, name: manager.to_owned(), subresource: subresource.to_owned() };
        let mine = all.entry(me).or_insert_with(|| Owned { fields: FieldSet::new(), time: String::new() });
        mine.fields.extend(found.changed);
        mine.time = now.to_owned();
    }
    set_managers(kind, object, &all);
}

/// Whether whoever wrote the object asks that all owners be forgotten (`isResetManagedFields`).
fn forgets_owners(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.is_some_and(|entries| entries.iter().all(|entry| entries.len() == 1 && *entry == Value::Object(Map::new())))
}

/// Whether the object doesn't have the structure of its schema: a list for a text, say. The
/// server's typed form of objects knows numbers of one sort, and takes null for anything.
fn is_untypable(kind: &Kind, object: &Value) -> bool {
    let mut found = Findings::default();
    validate::validate(&kind.schema, object, None, "", &mut found);
    found.errors.iter().any(validate::is_untypable)
}

/// The parts of an object that a request to this (sub)resource can't change.
pub(crate) fn reset_fields(kind: &Kind, subresource: &str) -> &'static [&'static str] {
    match (subresource, kind.status_subresource, kind.family) {
        ("status", _, _) => &["spec"],
        (_, true, Family::Namespace) => &["spec", "status"],
        (_, false, Family::Namespace) => &["spec"],
        (_, true, _) => &["status"],
        (_, false, _) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::own(json!({"type": "object", "properties": {
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
    fn sets_survive_the_wire() {
        let object = json!({"spec": {"set": ["x", "y"]}, "status": {"conditions": [{"type": "A", "status": "B"}]}});
        let fields = fields_of(&schema(), &object, &[]);
        let mut back = FieldSet::new();
        read_fields(&write_fields(&fields), &mut Vec::new(), &mut back);
        assert_eq!(back, fields);
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
