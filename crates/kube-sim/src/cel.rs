//! Evaluation of the CEL rules in a schema (`x-kubernetes-validations`), node by node.
//!
//! Rules are evaluated by kube (`kube::core::cel`), and the tree is walked here, because three
//! properties of an API server matter. Items of keyed lists are compared with the old item of the
//! same key. Failures for unchanged values are only warnings (ratcheting). Errors report the type
//! of the node as its value. As in an API server, rules on the whole object see only the name in
//! its metadata. Results of successful rules are cached (`schema/rules.rs`).
//!
//! Not modelled: CEL's type checker and cost budget, so an API server may reject a rule that is
//! accepted here. URLs are parsed as in browsers, and quantities have 38 digits, unlike in an API
//! server; `proof/tests/tables/object_table.rs` shows the consequences for objects.

use kube::core::cel::{ErrorKind, ValidationError, ValidationErrors};
use serde_json::Value;

use super::path::FieldPath;
use super::schema::{Additional, Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};
use super::validate::Findings;

/// Evaluates every rule of `schema` on an object. Transition rules need an old object.
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

/// Evaluates the rules of everything inside a value.
fn below(schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
    match value {
        Value::Object(fields) => {
            let old_field = |name: &str| old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
            // A structural schema has either named fields or additional ones, never both.
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

/// Records failures. For an unchanged value they are warnings, unless the rule is a transition
/// rule.
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
