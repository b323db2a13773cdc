//! Server-side apply: merges the fields that a manager wants, removes those that it no longer
//! wants, and rejects conflicts with other managers unless forced.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::core::Status;
use kube::core::response::{StatusCause, reason};
use serde_json::{Map, Value};

use super::fields::{self, FieldSet, Path};
use super::kind::Kind;
use super::managed::{self, Manager, Managers, Operation, Owned};
use super::meta;
use super::schema::{ListType, Schema};
use super::status::{Failure, no_details};
use super::upgrade;

/// Manager of the fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Manager and options of an apply.
pub(crate) struct Applier<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) force: bool,
    /// Current time in RFC 3339.
    pub(crate) now: &'a str,
}

/// Returns the object after the apply, including `managedFields`. For a create, `live` is an empty
/// object.
///
/// # Errors
/// 409 with a cause for each field that another manager owns and this apply would change.
pub(crate) fn apply(kind: &Kind, live: &Value, config: &Value, applier: &Applier<'_>) -> Result<Value, Failure> {
    let live = &with_owners(kind, live, applier);
    let schema = &kind.schema;
    let wanted = fields::fields_of(schema, config, managed::reset_fields(kind, applier.subresource));
    let me = Manager {
        operation: Operation::Apply,
        name: applier.manager.to_owned(),
        subresource: applier.subresource.to_owned(),
    };
    let mut managers = managed::managers(live);
    let before = managers.remove(&me);

    let mut merged = merge(schema, live, config);
    let others: FieldSet = managers.values().flat_map(|owned| owned.fields.iter().cloned()).collect();
    if let Some(before) = &before {
        let owned: FieldSet = others.union(&wanted).cloned().collect();
        merged = prune(schema, &merged, &before.fields, &owned);
    }

    let found = fields::difference(schema, live, &merged, managed::reset_fields(kind, applier.subresource));
    let yielded = upgrade::yielded(kind, live, applier.manager, applier.subresource);
    let yields = !yielded.is_empty()
        && found.changed.iter().filter(|path| others.contains(*path)).all(|path| yielded.contains(path));
    settle_conflicts(&mut managers, &found.changed, applier.force || yields, &kind.api_version())?;
    for owned in managers.values_mut() {
        owned.fields.retain(|path| !found.removed.contains(path));
    }
    // An apply that changes nothing has no time of its own. It keeps the time of the last apply
    // that changed something, if any.
    let time = match before {
        _ if !fields::difference(schema, live, &merged, &[]).is_none() => applier.now.to_owned(),
        Some(owned) => owned.time,
        None => String::new(),
    };
    managers.insert(me, Owned { fields: wanted, time });
    managed::set_managers(kind, &mut merged, &managers);
    upgrade::note(&mut merged, live, config, applier.manager, applier.subresource);
    Ok(merged)
}

/// Returns the live object with field owners. If they were removed, `before-first-apply` becomes
/// the owner of all fields (`skipNonAppliedManager`).
fn with_owners<'a>(kind: &Kind, live: &'a Value, applier: &Applier<'_>) -> Cow<'a, Value> {
    if meta::uid(live).is_empty() || !live["metadata"]["managedFields"].is_null() {
        return Cow::Borrowed(live);
    }
    let nothing = blank(kind, meta::text(live, "namespace"), meta::name(live));
    let mut owned = live.clone();
    managed::record_update(kind, &nothing, &mut owned, BEFORE_FIRST_APPLY, applier.subresource, applier.now);
    Cow::Owned(owned)
}

/// Merges by schema: maps by key, keyed lists by item, sets by union; all other values are
/// replaced.
fn merge(schema: &Schema, live: &Value, config: &Value) -> Value {
    match (live, config) {
        (Value::Object(old), Value::Object(new)) if !schema.atomic_map => {
            let mut merged = old.clone();
            for (name, value) in new {
                let below = match (schema.field(name), merged.get(name)) {
                    (Some(child), Some(current)) => merge(child, current, value),
                    (None, Some(current)) => merge(&Schema::anything(), current, value),
                    (_, None) => value.clone(),
                };
                merged.insert(name.clone(), below);
            }
            Value::Object(merged)
        }
        (Value::Array(old), Value::Array(new)) if schema.list_type != ListType::Atomic => {
            Value::Array(merge_items(schema, old, new))
        }
        _ => config.clone(),
    }
}

/// Merges lists item by item (`visitListItems`). The items of `new` keep their order. An item that
/// is only in `old` precedes the item that it preceded before.
fn merge_items(schema: &Schema, old: &[Value], new: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| fields::item_step(schema, &schema.list_type, item)).collect()
    };
    let (lefts, rights) = (steps(old), steps(new));
    let merged = |right: usize| {
        let mut same = lefts.iter().zip(old).filter(|(step, _)| **step == rights[right]).map(|(_, item)| item);
        match (same.next(), same.next(), &schema.items) {
            (Some(item), None, Some(child)) => merge(child, item, &new[right]),
            // Duplicate items are not merged.
            _ => new[right].clone(),
        }
    };
    let mut shared = rights.iter().filter(|step| lefts.contains(step)).peekable();
    let (mut left, mut right) = (0, 0);
    let mut all = Vec::new();
    while left < lefts.len() || right < rights.len() {
        let (ours, theirs) = (lefts.get(left), rights.get(right));
        let known = ours.is_some_and(|step| rights.contains(step));
        let later = theirs.is_some() && ours != theirs && shared.peek().is_some_and(|next| Some(*next) != ours);
        if ours.is_some() && !known {
            all.push(old[left].clone());
            left += 1;
        } else if known && later {
            left += 1;
        } else {
            // An item of the old list is skipped if it is merged now or was merged before.
            left += usize::from(ours.is_some_and(|step| ours == theirs || rights[..right].contains(step)));
            if theirs.is_some() {
                all.push(merged(right));
                shared.next_if(|next| Some(*next) == theirs);
                right += 1;
            }
        }
    }
    all
}

/// Removes the fields that the manager owned and that no manager owns any more (`Updater.prune`).
///
/// First all fields that the manager owned are removed. Then two groups of fields are restored:
/// those that have an owner, and those that were removed with a parent but were not the manager's.
fn prune(schema: &Schema, merged: &Value, last: &FieldSet, owned: &FieldSet) -> Value {
    let whole = |fields: &FieldSet| fields::with_named_fields(schema, fields);
    let fields_of = |object: &Value| whole(&fields::fields_of(schema, object, &[]));
    let (last, owned, all) = (whole(last), whole(owned), fields_of(merged));
    let left = fields_of(&without(schema, merged, &last));
    let unowned: FieldSet =
        all.iter().filter(|path| !left.contains(*path) && !owned.contains(*path)).cloned().collect();
    let left = fields_of(&without(schema, merged, &unowned));
    let own: FieldSet = all.iter().filter(|path| !left.contains(*path) && last.contains(*path)).cloned().collect();
    without(schema, merged, &own)
}

/// Returns the object without the values at these paths.
fn without(schema: &Schema, object: &Value, paths: &FieldSet) -> Value {
    let mut object = object.clone();
    // In the order of paths an item of a keyed list is removed before its key fields. Without these
    // it could not be found.
    for path in paths.iter().filter(|path| path.as_slice() != ["f:metadata"]) {
        remove(schema, &mut object, path);
    }
    object
}

/// Removes the value at `path`.
fn remove(schema: &Schema, value: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    match value {
        Value::Object(fields) => {
            let Some(name) = step.strip_prefix("f:") else { return };
            if rest.is_empty() {
                fields.remove(name);
            } else if let Some(child) = fields.get_mut(name) {
                let free = Schema::anything();
                remove(schema.field(name).unwrap_or(&free), child, rest);
            }
        }
        Value::Array(items) => {
            let found = items.iter().position(|item| fields::item_step(schema, &schema.list_type, item) == *step);
            let Some(index) = found else { return };
            if rest.is_empty() {
                items.remove(index);
            } else if let Some(child) = &schema.items {
                remove(child, &mut items[index], rest);
            }
        }
        _ => {}
    }
}

/// Takes the changed fields from their owners if forced, otherwise fails if there are any.
fn settle_conflicts(
    managers: &mut Managers,
    changed: &FieldSet,
    force: bool,
    api_version: &str,
) -> Result<(), Failure> {
    // The order of an API server: by name, operation and time; entries of a subresource come before
    // the others.
    let mut conflicts: BTreeMap<_, (String, Vec<Path>)> = BTreeMap::new();
    for (manager, owned) in managers.iter_mut() {
        let taken: Vec<Path> = owned.fields.intersection(changed).cloned().collect();
        if taken.is_empty() {
            continue;
        }
        if force {
            owned.fields.retain(|path| !taken.contains(path));
        } else {
            let order = (manager.name.clone(), manager.operation, owned.time.clone(), manager.subresource.is_empty());
            conflicts.insert(order, (describe(manager, api_version), taken));
        }
    }
    let conflicts: Vec<(String, Vec<Path>)> = conflicts.into_values().collect();
    if conflicts.is_empty() { Ok(()) } else { Err(refusal(&conflicts)) }
}

fn describe(manager: &Manager, api_version: &str) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", manager.subresource));
    }
    match manager.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {api_version}"),
    }
}

fn refusal(conflicts: &[(String, Vec<Path>)]) -> Failure {
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for (manager, paths) in conflicts {
        let mut paths = paths.clone();
        // An API server lists the fields of a struct before those of nested structs.
        paths.sort_by_cached_key(|path| -> Vec<(bool, String)> {
            path.iter().enumerate().map(|(at, step)| (at + 1 < path.len(), step.clone())).collect()
        });
        lines.push(format!("conflicts with {manager}:"));
        for path in paths {
            let field = fields::display(&path);
            lines.push(format!("- {field}"));
            causes.push(StatusCause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {manager}"),
                field,
            });
        }
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n")),
    };
    let mut details = no_details();
    details.causes = causes;
    Status::failure(&message, reason::CONFLICT).with_code(409).with_details(details).boxed()
}

/// Removes nulls from an applied configuration, where they have no meaning.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, field)| !field.is_null());
            Value::Object(kept.map(|(name, field)| (name, without_nulls(field))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Returns an object with only type, namespace and name: the initial state of an apply that
/// creates.
pub(crate) fn blank(kind: &Kind, namespace: &str, name: &str) -> Value {
    let mut object = Value::Object(Map::new());
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
    meta::set(&mut object, "name", name.into());
    if !namespace.is_empty() {
        meta::set(&mut object, "namespace", namespace.into());
    }
    object
}
