//! The compiled CEL rules of a schema node (`x-kubernetes-validations`), with a cache of values
//! that passed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::core::cel::{CompiledSchema, ValidationErrors, Validator, compile_schema};
use parking_lot::{Mutex, MutexGuard};
use regex::Regex;
use serde_json::Value;

/// The compiled rules of a schema node.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    compiled: Option<CompiledSchema>,
    /// Fields of the node's value that its rules refer to; `None` if they may read all of it.
    named: Option<BTreeSet<String>>,
    passed: Passed,
}

/// Maximum number of cached pairs for a node. After that the cache is cleared.
const REMEMBERED: usize = 1024;

/// Pairs of a value and its old value that have passed the rules of a node, keyed by a hash of
/// both.
///
/// A rule is a function of the two values. Evaluation takes long, because patterns are compiled
/// each time, and the same objects recur: in the writes of one cluster, and in clusters that share
/// their definitions.
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

    /// Locks the map, which is consistent even if a thread panicked while holding the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Value, Option<Value>)>> {
        self.0.lock()
    }
}

impl RuleSet {
    /// Compiles the rules of this node, without those of its children.
    ///
    /// # Errors
    /// Index, source and error of the first rule that does not compile.
    pub(crate) fn compile(props: &JSONSchemaProps) -> Result<Self, (usize, String, String)> {
        let Some(rules) = props.x_kubernetes_validations.as_ref().filter(|rules| !rules.is_empty()) else {
            return Ok(Self::default());
        };
        // The children's types and formats are needed to convert values. Their rules are not,
        // because every node evaluates its own.
        let mut json = serde_json::to_value(props).expect("a schema is JSON");
        strip(&mut json, true);
        let compiled = compile_schema(&json);
        for (index, result) in compiled.validations.iter().enumerate() {
            if let Err(error) = result {
                let rule = rules.get(index).map(|rule| rule.rule.clone()).unwrap_or_default();
                return Err((index, rule, error.to_string()));
            }
        }
        let texts = rules.iter().flat_map(|rule| [Some(rule.rule.as_str()), rule.message_expression.as_deref()]);
        Ok(Self { compiled: Some(compiled), named: named_fields(texts.flatten()), passed: Passed::default() })
    }

    /// Returns true if there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.compiled.is_none()
    }

    /// Evaluates the rules on a value. This runs on a separate thread, because the random state of
    /// the evaluator's hash maps must not depend on earlier evaluations in the same process.
    pub(crate) fn judge(&self, value: &Value, old: Option<&Value>) -> Result<(), ValidationErrors> {
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

    /// Returns the part of an object that its rules can see. A change of the status therefore does
    /// not cause a rule on the spec to be evaluated again.
    pub(crate) fn visible(&self, object: &Value) -> Value {
        let looks_at = |name: &str| self.named.as_ref().is_none_or(|named| named.contains(name));
        let fields = object.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| *name != "metadata" && looks_at(name));
        let mut seen: Value = fields.map(|(name, field)| (name.clone(), field.clone())).collect();
        let metadata = object["metadata"].as_object().into_iter().flatten();
        let named = metadata.filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
        seen["metadata"] = named.map(|(name, field)| (name.clone(), field.clone())).collect();
        seen
    }

    /// Returns true if the rule with this source uses the old value.
    pub(crate) fn is_transition(&self, rule: &str) -> bool {
        let results = self.compiled.iter().flat_map(|compiled| &compiled.validations);
        results.flatten().any(|result| result.rule.rule == rule && result.is_transition_rule)
    }
}

/// Returns the fields that rules read by `self.field` and `oldSelf.field`; `None` if a rule uses
/// the value in any other way.
fn named_fields<'a>(texts: impl Iterator<Item = &'a str>) -> Option<BTreeSet<String>> {
    static USE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:self|oldSelf)\b(?:[.]([A-Za-z_][A-Za-z0-9_]*)(\s*[(])?)?").expect("a pattern of this crate")
    });
    let mut named = BTreeSet::new();
    for text in texts {
        for found in USE.captures_iter(text) {
            // With a parenthesis it is a function of the whole value.
            let field = found.get(1).filter(|_| found.get(2).is_none())?;
            named.insert(field.as_str().to_owned());
        }
    }
    Some(named)
}

/// Removes all defaults, and the rules below the top node.
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

    #[test]
    fn rules_are_shown_the_fields_that_they_name() {
        let named =
            |texts: &[&str]| named_fields(texts.iter().copied()).map(|named| named.into_iter().collect::<Vec<_>>());
        let rule = "self.metadata.name.size() <= 250 || (has(self.spec.ref) && oldSelf.mode == 'a')";
        assert_eq!(named(&[rule]), Some(vec!["metadata".into(), "mode".into(), "spec".into()]));
        for whole in ["self == oldSelf", "self.all(key, key != 'a')", "self['a'] == 1", "self.?a.hasValue()", "f(self)"]
        {
            assert_eq!(named(&["self.spec.x", whole]), None, "{whole}");
        }
    }
}
