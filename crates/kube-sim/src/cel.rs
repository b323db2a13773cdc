//! The CEL rules of a schema (`x-kubernetes-validations`), evaluated node by node.
//!
//! Evaluation is kube's (`kube::core::cel`). The walk is ours, because the server's has three
//! things that matter: items of keyed lists are compared with the old item of the same key,
//! unchanged values only warn (ratcheting), and errors show the node's type as their value. As on a
//! server, rules of a whole object see of its metadata no more than the name. What passed is
//! remembered (`schema/rules.rs`). Not modelled: CEL's type checker and cost budget, so a server
//! may refuse a rule that passes here. Otherwise than on a server, URLs are read as browsers read
//! them, and quantities hold 38 digits; what that means for objects stands in
//! `proof/tests/tables/object_table.rs`.

use kube::core::cel::{ErrorKind, ValidationError, ValidationErrors};
use serde_json::Value;

use super::path::FieldPath;
use super::schema::{Additional, Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};
use super::validate::Findings;

/// Runs every rule of `schema` over an object; transition rules only where there is an old one.
pub(crate) fn evaluate(schema: &Schema, object: &Value, old: Option<&Value>, out: &mut Findings) {
    if !schema.rules.is_empty()
        && let Err(failures) =
            schema.rules.judge(&schema.rules.visible(object), old.map(|old| schema.rules.visible(old)).as_ref())
    {
        report(schema, &failures, old == Some(object), &FieldPath::ROOT, out);
    }
    below(schema, object, old, &FieldPath::ROOT, out);
}

fn node(schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
    if value.is_null() || !schema.holds.rules {
        return;
    }
    if let Err(failures) = schema.rules.judge(value, old) {
        report(schema, &failures, old == Some(value), path, out);
    }
    below(schema, value, old, path, out);
}

/// The rules of all that a value holds.
fn below(schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
    match value {
        Value::Object(fields) => {
            let old_field = |name: &str| old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
            // A structure has named fields or entries, never both.
            for (name, child) in schema.properties.iter().filter(|(_, child)| child.holds.rules) {
                if let Some(field) = fields.get(name) {
                    node(child, field, old_field(name), &FieldPath::Field(path, name), out);
                }
            }
            let Additional::Schema(child) = &schema.additional else { return };
            for (name, field) in fields.iter().filter(|(name, _)| !schema.properties.contains_key(*name)) {
                node(child, field, old_field(name), &FieldPath::Entry(path, name), out);
            }
        }
        Value::Array(items) => {
            let Some(child) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let old_item = schema.matching_item(item, old);
                node(child, item, old_item, &FieldPath::Item(path, index), out);
            }
        }
        _ => {}
    }
}

/// Failures of a value that hasn't changed only warn, but for those of rules that compare with the
/// old one.
fn report(schema: &Schema, failures: &ValidationErrors, unchanged: bool, path: &FieldPath<'_>, out: &mut Findings) {
    for failure in failures {
        let error = field_error(schema, failure, path);
        if unchanged && !schema.rules.is_transition(&failure.rule) {
            out.warnings.push(error.to_string());
        } else {
            out.errors.push(error);
        }
    }
}

fn field_error(schema: &Schema, failure: &ValidationError, path: &FieldPath<'_>) -> FieldError {
    let shown: Value = match schema.type_rule {
        TypeRule::Only(json_type) => json_type.name().into(),
        TypeRule::Any | TypeRule::IntOrString => "".into(),
    };
    let relative = failure.field_path.trim_start_matches('.');
    let full = if relative.is_empty() { path.to_string() } else { FieldPath::Field(path, relative).to_string() };
    if failure.kind != ErrorKind::ValidationFailure {
        let detail = format!("{} evaluating rule: {}", failure.message, failure.rule);
        return FieldError::invalid(&path.to_string(), shown, detail);
    }
    let kind = match failure.reason.as_deref() {
        Some("FieldValueForbidden") => FieldErrorKind::Forbidden,
        Some("FieldValueRequired") => FieldErrorKind::Required,
        Some("FieldValueDuplicate") => FieldErrorKind::Duplicate,
        _ => FieldErrorKind::Invalid,
    };
    FieldError::new(kind, &full, shown, failure.message.clone())
}
