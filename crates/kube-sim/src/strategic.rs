//! Strategic merge patches of built-in kinds (`k8s.io/apimachinery/pkg/util/strategicpatch`).
//!
//! They are like merge patches, but keyed lists and sets are merged item by item, and directives
//! (`$patch`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`) request other
//! operations.
//!
//! The strategy for a list is derived from its type in the schema, and the merge key is the first
//! of its keys. For the served kinds this matches the server for every field, except for those
//! listed under the limits of this crate.

use serde_json::{Map, Value};

use super::schema::{ListType, Schema};
use super::status::{Failure, bad_request, unclassified};

/// Key of a directive for a map or an item of a list.
const DIRECTIVE: &str = "$patch";
/// Key of the list of fields to keep.
const RETAIN: &str = "$retainKeys";
/// Prefix of a set's name, for the items to delete.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
/// Prefix of a list's name, for its order.
const ORDER: &str = "$setElementOrder/";

/// Merges the patch of a map into it.
///
/// # Errors
/// 400 for invalid directives; 500, as on a server, for those that do not apply to a list.
pub(crate) fn merge(
    schema: &Schema,
    original: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<(), Failure> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        let replaces = match directive.as_str() {
            Some("replace") => true,
            Some("delete") => false,
            _ => return Err(unknown_directive(directive, patch.clone())),
        };
        patch.remove(DIRECTIVE);
        *original = if replaces { patch } else { Map::new() };
        return Ok(());
    }
    retain_keys(original, &mut patch)?;
    order_lists(schema, original, &mut patch)?;
    for (name, value) in patch {
        match name.strip_prefix(DELETE_FROM) {
            Some(name) => delete_from(original, name, &value),
            None => merge_field(schema, original, name, value)?,
        }
    }
    Ok(())
}

fn unknown_directive(directive: &Value, of: Map<String, Value>) -> Failure {
    unclassified(&format!("unknown patch type: {} in map: {}", as_go(directive), as_go(&Value::Object(of))))
}

fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Failure> {
    let Some(keys) = patch.remove(RETAIN) else { return Ok(()) };
    let is_directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(ORDER);
    let keys = keys.as_array().filter(|keys| {
        let has = |name: &str| keys.iter().any(|key| key == name);
        patch.iter().all(|(name, value)| value.is_null() || is_directive(name) || has(name))
    });
    let keys = keys.ok_or_else(|| bad_request("invalid patch format of retainKeys"))?;
    original.retain(|name, _| keys.iter().any(|key| key == name.as_str()));
    Ok(())
}

fn merge_field(
    schema: &Schema,
    original: &mut Map<String, Value>,
    name: String,
    mut value: Value,
) -> Result<(), Failure> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let anything = Schema::anything();
    let field = schema.field(&name).unwrap_or(&anything);
    match (original.get_mut(&name), &mut value) {
        (Some(Value::Object(old)), Value::Object(new)) => merge(field, old, std::mem::take(new)),
        (Some(Value::Array(old)), Value::Array(new)) => {
            *old = merge_list(field, std::mem::take(old), std::mem::take(new))?;
            Ok(())
        }
        _ => {
            discard_nulls(&mut value);
            match without_directives(value) {
                Some(value) => original.insert(name, value),
                None => original.remove(&name),
            };
            Ok(())
        }
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Removes maps that are directives from a value; `None` if the value is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, field)| Some((name, without_directives(field)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

fn delete_from(original: &mut Map<String, Value>, name: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Some(gone)) = (original.get_mut(name), gone.as_array()) {
        items.retain(|item| !gone.contains(item));
    }
}

/// Returns the field that identifies the items of a list of maps; `None` for a set, whose items are
/// identified by their value.
fn merge_key(schema: &Schema) -> Option<&str> {
    match &schema.list_type {
        ListType::Map(keys) => keys.first().map(String::as_str),
        ListType::Set | ListType::Atomic => None,
    }
}

/// Returns the identity of an item.
fn identity<'a>(key: Option<&str>, item: &'a Value) -> &'a Value {
    key.map_or(item, |key| &item[key])
}

fn merge_list(schema: &Schema, mut original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, Failure> {
    if schema.list_type == ListType::Atomic || (original.is_empty() && patch.is_empty()) {
        return Ok(patch);
    }
    require_one_type(&original, &patch)?;
    let Some(key) = merge_key(schema) else {
        let mut merged: Vec<Value> = Vec::new();
        for item in original.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(in_order(None, merged, &patch, &original));
    };
    let patch = follow_directives(key, &mut original, patch)?;
    let mut merged = original.clone();
    for item in &patch {
        if item.get(key).is_none() {
            return Err(no_merge_key(item, key));
        }
        match (merged.iter_mut().find(|other| other[key] == item[key]), item) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let anything = Schema::anything();
                merge(schema.items.as_deref().unwrap_or(&anything), old, new.clone())?;
            }
            _ => merged.push(item.clone()),
        }
    }
    Ok(in_order(Some(key), merged, &patch, &original))
}

fn require_one_type(original: &[Value], patch: &[Value]) -> Result<(), Failure> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Err(unclassified("no elements in any of the given slices")) };
    if items.all(|item| std::mem::discriminant(item) == std::mem::discriminant(first)) {
        return Ok(());
    }
    let (original, patch) = (as_go(&original.into()), as_go(&patch.into()));
    Err(unclassified(&format!("list element types are not identical: [{original} {patch}]")))
}

fn no_merge_key(item: &Value, key: &str) -> Failure {
    unclassified(&format!("map: {} does not contain declared merge key: {key}", as_go(item)))
}

/// Executes the items that are directives, and returns the others.
fn follow_directives(key: &str, original: &mut Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, Failure> {
    let mut plain = Vec::new();
    let mut replaces = false;
    for item in patch {
        match item.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            None => plain.push(item),
            Some("replace") => replaces = true,
            Some("delete") => match item.get(key) {
                Some(gone) => original.retain(|other| other[key] != *gone),
                None => return Err(no_merge_key(&item, key)),
            },
            Some("merge") => return Err(unclassified("merging lists cannot yet be specified in the patch")),
            Some(_) => return Err(unknown_directive(&item[DIRECTIVE], item.as_object().cloned().unwrap_or_default())),
        }
    }
    if replaces {
        *original = std::mem::take(&mut plain);
    }
    Ok(plain)
}

/// Merges the lists for which the patch specifies an order, and removes them from the patch.
fn order_lists(
    schema: &Schema,
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let ordered: Vec<String> = patch.keys().filter_map(|name| name.strip_prefix(ORDER)).map(str::to_owned).collect();
    for name in ordered {
        let order = patch.remove(&format!("{ORDER}{name}")).map(list).transpose()?.unwrap_or_default();
        let old = original.get(&name).cloned().map(list).transpose()?;
        let new = patch.remove(&name).map(list).transpose()?;
        let anything = Schema::anything();
        let field = schema.field(&name).unwrap_or(&anything);
        let key = merge_key(field);
        require_same_order(key, new.as_deref().unwrap_or_default(), &order)?;
        let merged = match (old.clone(), new.clone()) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_list(field, old, new)?,
        };
        let old = old.unwrap_or_default();
        require_one_type(&old, new.as_deref().unwrap_or_default())?;
        original.insert(name, in_order(key, merged, &order, &old).into());
    }
    Ok(())
}

/// Returns the items of a value that must be a list.
fn list(value: Value) -> Result<Vec<Value>, Failure> {
    let found = match value {
        Value::Array(items) => return Ok(items),
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Object(_) => "map[string]interface {}",
    };
    Err(unclassified(&format!("expected a []interface {{}}, but received a {found}")))
}

/// Checks that the items of a patch are in the order that it specifies.
fn require_same_order(key: Option<&str>, patch: &[Value], order: &[Value]) -> Result<(), Failure> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    let mut plain = patch.iter().filter(|item| item.get(DIRECTIVE).is_none());
    if plain.all(|item| rest.any(|other| identity(key, other) == identity(key, item))) {
        return Ok(());
    }
    let (patch, order) = (as_go(&patch.into()), as_go(&order.into()));
    let why = format!("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n");
    Err(unclassified(&why))
}

/// Sorts the items named in `order` accordingly, and inserts the others between them according to
/// their position in `before` (`normalizeElementOrder`).
fn in_order(key: Option<&str>, items: Vec<Value>, order: &[Value], before: &[Value]) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|it| identity(key, it) == identity(key, item));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(name), Some(other)) = (named.peek(), others.peek()) {
        let comes_first = place(before, other).zip(place(before, name)).is_some_and(|(other, name)| other < name);
        all.extend(if comes_first { others.next() } else { named.next() });
    }
    all.extend(named.chain(others));
    all
}

/// Formats a value like Go (`%v`).
fn as_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(as_go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| format!("{name}:{}", as_go(field)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}
