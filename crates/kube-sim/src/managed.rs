//! Field ownership: the entries of `metadata.managedFields`, one per manager, operation and
//! subresource.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::builtin;
use super::fields::{FieldSet, Path, difference};
use super::kind::{Family, Kind};
use super::meta;
use super::structure;

/// Marks a node with children in a tree of fields as a member itself. A leaf is a member without
/// it.
const MEMBER: &str = ".";

/// Operation by which a manager became the owner of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// Identity of an entry in `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) operation: Operation,
    pub(crate) name: String,
    /// `status`, or empty for the object itself.
    pub(crate) subresource: String,
}

/// Fields that a manager owns, and the time of its last change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) fields: FieldSet,
    /// RFC 3339; empty for a manager that never changed a field.
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
    if steps.is_empty() || steps.contains_key(MEMBER) {
        set.insert(path.clone());
    }
    for (step, below) in steps.iter().filter(|(step, _)| *step != MEMBER) {
        path.push(step.clone());
        read_fields(below, path, set);
        path.pop();
    }
}

/// Writes `managedFields`.
pub(crate) fn set_managers(kind: &Kind, object: &mut Value, managers: &Managers) {
    let entries = managers.iter().map(|(manager, owned)| {
        let mut entry = entry(kind, &manager.name, manager.operation, &manager.subresource);
        entry["fieldsV1"] = write_fields(&owned.fields);
        if !owned.time.is_empty() {
            entry["time"] = owned.time.clone().into();
        }
        entry
    });
    set_entries(object, entries.collect());
}

/// Writes `managedFields`, without managers that own nothing. The order is the server's: applies
/// first, then by time, then by name (`sortEncodedManagedFields`).
fn set_entries(object: &mut Value, mut entries: Vec<Value>) {
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    entries.sort_by(|one, other| order(one).cmp(&order(other)));
    let value = if entries.is_empty() { Value::Null } else { Value::Array(entries) };
    meta::set(object, "managedFields", value);
}

fn order(entry: &Value) -> (bool, [&str; 3]) {
    let texts = ["time", "manager", "subresource"].map(|field| entry[field].as_str().unwrap_or_default());
    (entry["operation"] != "Apply", texts)
}

/// Returns an entry without fields.
fn entry(kind: &Kind, manager: &str, operation: Operation, subresource: &str) -> Value {
    let mut entry = json!({
        "manager": manager,
        "operation": match operation { Operation::Apply => "Apply", Operation::Update => "Update" },
        "apiVersion": kind.api_version(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    });
    if !subresource.is_empty() {
        entry["subresource"] = subresource.into();
    }
    entry
}

fn write_fields(fields: &FieldSet) -> Value {
    let mut tree = Map::new();
    fields.iter().for_each(|path| own(&mut tree, path));
    Value::Object(tree)
}

/// Adds a path to a tree of fields (`fieldsV1`), if it is absent.
fn own(tree: &mut Map<String, Value>, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    let below = tree.get_mut(step).and_then(Value::as_object_mut);
    let Some(below) = below else {
        let mut below = Map::new();
        own(&mut below, rest);
        tree.insert(step.clone(), Value::Object(below));
        return;
    };
    if below.is_empty() != rest.is_empty() {
        below.insert(MEMBER.to_owned(), json!({}));
    }
    own(below, rest);
}

/// Removes a path from a tree of fields, if it is present, and the nodes that become empty.
fn disown(tree: &mut Map<String, Value>, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    let Some(below) = tree.get_mut(step).and_then(Value::as_object_mut) else { return };
    match (below.is_empty(), rest.is_empty()) {
        (true, true) => {}
        (true, false) => return,
        (false, true) => {
            below.remove(MEMBER);
            return;
        }
        (false, false) => disown(below, rest),
    }
    if below.is_empty() {
        tree.remove(step);
    } else if below.len() == 1 && below.contains_key(MEMBER) {
        below.clear();
    }
}

/// Returns true if the entries of `managedFields` are equal and in the same order, ignoring times.
pub(crate) fn are_alike_but_for_times(one: &Value, other: &Value) -> bool {
    let [one, other] =
        [one, other].map(|object| object["metadata"]["managedFields"].as_array().map_or(&[][..], |it| it));
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| timeless(one).eq(timeless(other)))
}

/// Returns an entry of `managedFields` without its time.
fn timeless(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry.as_object().into_iter().flatten().filter(|(name, _)| *name != "time")
}

/// Records the changes of an update that is not an apply: the manager becomes the only owner of the
/// changed fields.
///
/// `object` is the new state, and its `managedFields` are replaced.
pub(crate) fn record_update(kind: &Kind, old: &Value, object: &mut Value, manager: &str, subresource: &str, now: &str) {
    // Once removed, owners are tracked again only from the next apply on.
    let forgotten = !meta::uid(old).is_empty() && old["metadata"]["managedFields"].is_null();
    let forgets = subresource.is_empty() && forgets_owners(object);
    // If an object does not have the structure of its schema, a server cannot determine the owners
    // and removes all of them.
    if forgotten || forgets || !structure::has_structure(&kind.schema, object) {
        return meta::set(object, "managedFields", Value::Null);
    }
    let found = difference(&kind.schema, &full(kind, old), &full(kind, object), reset_fields(kind, subresource));
    let mut entries = old["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for fields in entries.iter_mut().filter_map(|entry| entry["fieldsV1"].as_object_mut()) {
        found.changed.iter().chain(&found.removed).for_each(|path| disown(fields, path));
    }
    if !found.changed.is_empty() {
        let mine = updated_by(&mut entries, kind, manager, subresource);
        mine["time"] = now.into();
        if let Some(fields) = mine["fieldsV1"].as_object_mut() {
            found.changed.iter().for_each(|path| own(fields, path));
        }
    }
    set_entries(object, entries);
}

/// Returns the entry of a manager that updates, adding it if it is absent.
fn updated_by<'a>(entries: &'a mut Vec<Value>, kind: &Kind, manager: &str, subresource: &str) -> &'a mut Value {
    let is_mine = |entry: &Value| {
        let part = entry["subresource"].as_str().unwrap_or_default();
        entry["operation"] == "Update" && entry["manager"] == manager && part == subresource
    };
    let place = entries.iter().position(is_mine).unwrap_or(entries.len());
    if place == entries.len() {
        entries.push(entry(kind, manager, Operation::Update, subresource));
    }
    &mut entries[place]
}

/// Returns an object in the form in which a server has it before it is written.
fn full<'a>(kind: &Kind, object: &'a Value) -> Cow<'a, Value> {
    if !builtin::has_own_form(kind, object) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    builtin::fill_in_structs(kind, &mut object);
    builtin::omit_empty(kind, &mut object);
    Cow::Owned(object)
}

/// Returns true if the client requests that all owners be removed (`isResetManagedFields`).
fn forgets_owners(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.is_some_and(|entries| entries.iter().all(|entry| entries.len() == 1 && *entry == Value::Object(Map::new())))
}

/// Returns the parts of an object that a request to this subresource cannot change.
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

    /// Builds a tree from a set of paths.
    fn tree(paths: &[&str]) -> Map<String, Value> {
        let mut tree = Map::new();
        paths.iter().for_each(|path| own(&mut tree, &steps(path)));
        tree
    }

    fn steps(path: &str) -> Vec<String> {
        path.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_tree_holds_what_a_set_would() {
        let paths = ["a", "a b", "a b c", "a d", "e f", "g"];
        for chosen in 0..1_u32 << paths.len() {
            let set: FieldSet =
                (0..paths.len()).filter(|at| chosen & (1 << at) != 0).map(|at| steps(paths[at])).collect();
            let written = write_fields(&set);
            let mut backwards = Map::new();
            set.iter().rev().for_each(|path| own(&mut backwards, path));
            assert_eq!(Value::Object(backwards), written, "in whichever order");
            for gone in paths.iter().map(|path| steps(path)) {
                let (mut left, mut fields) = (set.clone(), written.as_object().cloned().unwrap_or_default());
                left.remove(&gone);
                disown(&mut fields, &gone);
                assert_eq!(Value::Object(fields), write_fields(&left), "{set:?} without {gone:?}");
            }
        }
    }

    #[test]
    fn what_is_above_others_is_marked() {
        assert_eq!(Value::Object(tree(&["a b"])), json!({"a": {"b": {}}}));
        assert_eq!(Value::Object(tree(&["a b", "a"])), json!({"a": {".": {}, "b": {}}}));
    }
}
