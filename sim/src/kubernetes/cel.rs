//! The CEL rules of a schema (`x-kubernetes-validations`), evaluated node by node.
//!
//! Evaluation is kube's (`kube::core::cel`). The walk is ours, because the server's has three things
//! that matter: items of keyed lists are compared with the old item of the same key, unchanged
//! values only warn (ratcheting), and errors show the node's type as their value.
//! As on a server, rules of a whole object see of its metadata no more than the name.
//! What passed is remembered, see [`Passed`].
//! Not modelled: CEL's type checker and cost budget, so a server may refuse a rule that passes here.
//! Otherwise than on a server, URLs are read as browsers read them, and quantities hold 38 digits; what that means
//! for objects stands in `tests/object_table.rs`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::core::cel::{CompiledSchema, ErrorKind, ValidationError, ValidationErrors, Validator, compile_schema};
use serde_json::Value;

use super::schema::{Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};
use super::validate::{Findings, child_path};

/// The compiled rules of one schema node.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    compiled: Option<CompiledSchema>,
    passed: Passed,
}

/// Most pairs that a node remembers; then it begins anew.
const REMEMBERED: usize = 1024;

/// Pairs of a value and its old value that have passed the rules of a node, by a hash of both.
///
/// A rule is a function of the two, takes long (it compiles its patterns each time), and sees the same objects again
/// and again: in the writes of one cluster, and in clusters that share their definitions.
#[derive(Debug, Default)]
struct Passed(Mutex<BTreeMap<u64, (Value, Option<Value>)>>);

impl Passed {
    fn key(value: &Value, old: Option<&Value>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (value, old).hash(&mut hasher);
        hasher.finish()
    }

    fn contains(&self, key: u64, value: &Value, old: Option<&Value>) -> bool {
        self.lock().get(&key).is_some_and(|(one, other)| one == value && other.as_ref() == old)
    }

    fn insert(&self, key: u64, value: &Value, old: Option<&Value>) {
        let mut pairs = self.lock();
        if pairs.len() >= REMEMBERED {
            pairs.clear();
        }
        pairs.insert(key, (value.clone(), old.cloned()));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Value, Option<Value>)>> {
        // The map is whole whatever happened to a thread that held it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        Ok(Self { compiled: Some(compiled), passed: Passed::default() })
    }

    /// Whether a value passes. On a thread of its own: what evaluation draws for its hash maps must not depend on what
    /// was evaluated before, in other runs of the process.
    fn judge(&self, value: &Value, old: Option<&Value>) -> Result<(), ValidationErrors> {
        let Some(compiled) = &self.compiled else { return Ok(()) };
        let key = Passed::key(value, old);
        if self.passed.contains(key, value, old) {
            return Ok(());
        }
        let evaluate = || Validator::new().validate_compiled(compiled, value, old);
        std::thread::scope(|scope| scope.spawn(evaluate).join()).unwrap_or_else(|panic| resume_unwind(panic))?;
        self.passed.insert(key, value, old);
        Ok(())
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

/// Runs every rule of `schema` over an object; transition rules only where there is an old one.
pub(crate) fn evaluate(schema: &Schema, object: &Value, old: Option<&Value>, out: &mut Findings) {
    if schema.rules.compiled.is_some()
        && let Err(failures) = schema.rules.judge(&visible(object), old.map(visible).as_ref())
    {
        report(schema, &failures, old == Some(object), "", out);
    }
    below(schema, object, old, "", out);
}

/// What the rules of a whole object see of it.
fn visible(object: &Value) -> Value {
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    let mut seen: Value = fields.map(|(name, field)| (name.clone(), field.clone())).collect();
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let named = metadata.filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    seen["metadata"] = named.map(|(name, field)| (name.clone(), field.clone())).collect();
    seen
}

fn node(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, out: &mut Findings) {
    if value.is_null() {
        return;
    }
    if let Err(failures) = schema.rules.judge(value, old) {
        report(schema, &failures, old == Some(value), path, out);
    }
    below(schema, value, old, path, out);
}

/// The rules of all that a value holds.
fn below(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, out: &mut Findings) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let old_field = old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
                if let Some(child) = schema.properties.get(name) {
                    node(child, field, old_field, &child_path(path, name), out);
                } else if let Some(child) = schema.field(name) {
                    node(child, field, old_field, &format!("{path}[{name}]"), out);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let old_item = schema.matching_item(item, old);
                node(child, item, old_item, &format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}

/// Failures of a value that hasn't changed only warn, but for those of rules that compare with the old one.
fn report(schema: &Schema, failures: &ValidationErrors, unchanged: bool, path: &str, out: &mut Findings) {
    for failure in failures {
        let error = field_error(schema, failure, path);
        if unchanged && !schema.rules.is_transition(&failure.rule) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> RuleSet {
        let schema = json!({"type": "integer", "x-kubernetes-validations": [
            {"rule": "self < 10", "message": "too large"},
            {"rule": "self >= oldSelf", "message": "must not shrink"},
        ]});
        RuleSet::compile(&serde_json::from_value(schema).unwrap()).unwrap()
    }

    #[test]
    fn what_passed_is_remembered_with_what_it_replaced() {
        let rules = rules();
        let judge =
            |value: i64, old: Option<i64>| rules.judge(&json!(value), old.map(|old| json!(old)).as_ref()).is_ok();
        for _ in 0..2 {
            assert!(judge(5, None));
            assert!(judge(5, Some(4)));
            assert!(!judge(5, Some(6)));
            assert!(!judge(12, Some(4)));
        }
        assert_eq!(rules.passed.lock().len(), 2, "only what passed");
    }

    #[test]
    fn no_more_is_remembered_than_fits() {
        let (passed, value) = (Passed::default(), json!(1));
        for key in 0..=REMEMBERED as u64 {
            passed.insert(key, &value, None);
        }
        assert_eq!(passed.lock().len(), 1);
        assert!(passed.contains(REMEMBERED as u64, &value, None));
        assert!(!passed.contains(REMEMBERED as u64, &value, Some(&value)));
    }
}
