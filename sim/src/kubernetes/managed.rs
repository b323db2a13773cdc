//! Who owns which field: the entries of `metadata.managedFields`. Ownership is per manager, operation and subresource.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::builtin;
use super::fields::{FieldSet, Path, difference};
use super::kind::{Family, Kind};
use super::meta;
use super::validate::{self, Findings};

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
    use super::super::fields::fields_of;
    use super::super::schema::Schema;
    use super::*;

    #[test]
    fn sets_survive_the_wire() {
        let object = json!({"spec": {"set": ["x", "y"]}, "status": {"conditions": [{"type": "A", "status": "B"}]}});
        let fields = fields_of(&Schema::anything(), &object, &[]);
        let mut back = FieldSet::new();
        read_fields(&write_fields(&fields), &mut Vec::new(), &mut back);
        assert_eq!(back, fields);
    }
}
