//! The CEL rules of a schema (`x-kubernetes-validations`), evaluated node by node.
//!
//! Evaluation is kube's (`kube::core::cel`). The walk is ours, because the server's has three things
//! that matter: items of keyed lists are compared with the old item of the same key, unchanged
//! values only warn (ratcheting), and errors show the node's type as their value.
//! Not modelled: CEL's type checker and cost budget, so a server may refuse a rule that passes here.
//! Otherwise than on a server, URLs are read as browsers read them, and quantities hold 38 digits; what that means
//! for objects stands in `tests/object_table.rs`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::core::cel::{CompiledSchema, ErrorKind, ValidationError, Validator, compile_schema};
use serde_json::Value;

use super::schema::{Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};
use super::validate::{Findings, child_path};

/// The compiled rules of one schema node.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    compiled: Option<CompiledSchema>,
}

impl RuleSet {
    /// Compiles the rules of this node (not those of its children).
    ///
    /// # Errors
    /// Index and text of the first rule that doesn't compile, and why.
    pub(crate) fn compile(props: &JSONSchemaProps) -> Result<Self, (usize, String, String)> {
        let Some(rules) = props.x_kubernetes_validations.as_ref().filter(|rules| !rules.is_empty()) else {
            return Ok(Self::default());
        };
        // The children's types and formats are needed to convert values, their rules are not:
        // every node evaluates its own.
        let mut json = serde_json::to_value(props).expect("a schema is JSON");
        strip(&mut json, true);
        let compiled = compile_schema(&json);
        for (index, result) in compiled.validations.iter().enumerate() {
            if let Err(error) = result {
                let rule = rules.get(index).map(|rule| rule.rule.clone()).unwrap_or_default();
                return Err((index, rule, error.to_string()));
            }
        }
        Ok(Self { compiled: Some(compiled) })
    }

    /// Whether the rule with this text compares with the old value.
    fn is_transition(&self, rule: &str) -> bool {
        let results = self.compiled.iter().flat_map(|compiled| &compiled.validations);
        results.flatten().any(|result| result.rule.rule == rule && result.is_transition_rule)
    }
}

/// Removes defaults everywhere and rules below the top node.
fn strip(schema: &mut Value, top: bool) {
    let Value::Object(fields) = schema else { return };
    fields.remove("default");
    if !top {
        fields.remove("x-kubernetes-validations");
    }
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        fields.remove(junctor);
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(|child| strip(child, false));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(name) {
            strip(child, false);
        }
    }
}

/// Runs every rule of `schema` over `value`; transition rules only where there is an old value.
pub(crate) fn evaluate(validator: &Validator, schema: &Schema, value: &Value, old: Option<&Value>, out: &mut Findings) {
    node(validator, schema, value, old, "", out);
}

fn node(validator: &Validator, schema: &Schema, value: &Value, old: Option<&Value>, path: &str, out: &mut Findings) {
    if value.is_null() {
        return;
    }
    own_rules(validator, schema, value, old, path, out);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let old_field = old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
                if let Some(child) = schema.properties.get(name) {
                    node(validator, child, field, old_field, &child_path(path, name), out);
                } else if let Some(child) = schema.field(name) {
                    node(validator, child, field, old_field, &format!("{path}[{name}]"), out);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let old_item = schema.matching_item(item, old);
                node(validator, child, item, old_item, &format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}

fn own_rules(
    validator: &Validator,
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut Findings,
) {
    let Some(compiled) = &schema.rules.compiled else { return };
    let Err(failures) = validator.validate_compiled(compiled, value, old) else { return };
    for failure in failures {
        let unchanged = old == Some(value) && !schema.rules.is_transition(&failure.rule);
        let error = field_error(schema, &failure, path);
        if unchanged {
            out.warnings.push(error.to_string());
        } else {
            out.errors.push(error);
        }
    }
}

fn field_error(schema: &Schema, failure: &ValidationError, path: &str) -> FieldError {
    let shown: Value = match schema.type_rule {
        TypeRule::Only(json_type) => json_type.name().into(),
        TypeRule::Any | TypeRule::IntOrString => "".into(),
    };
    let relative = failure.field_path.trim_start_matches('.');
    let full = if relative.is_empty() { path.to_owned() } else { child_path(path, relative) };
    if failure.kind != ErrorKind::ValidationFailure {
        let detail = format!("{} evaluating rule: {}", failure.message, failure.rule);
        return FieldError::invalid(path, shown, detail);
    }
    let kind = match failure.reason.as_deref() {
        Some("FieldValueForbidden") => FieldErrorKind::Forbidden,
        Some("FieldValueRequired") => FieldErrorKind::Required,
        Some("FieldValueDuplicate") => FieldErrorKind::Duplicate,
        _ => FieldErrorKind::Invalid,
    };
    FieldError::new(kind, &full, shown, failure.message.clone())
}
