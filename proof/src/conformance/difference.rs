//! Two answers to one operation, and their differences.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// Answers of both sides to one operation, in canonical form.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerPair {
    /// The simulator's answer.
    pub simulated: Value,
    /// The real server's answer.
    pub real: Value,
}

/// One operation and its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Description of the operation.
    pub operation: String,
    /// Earlier operations of the same sequence, in order.
    pub after: Vec<String>,
    /// Answers of both sides.
    pub answers: AnswerPair,
}

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leaf {
    /// Field names and indexes, joined by dots: `body.details.causes.0.message`.
    pub path: String,
    /// Value in the simulator's answer; `null` if absent.
    pub simulated: Value,
    /// Value in the real server's answer; `null` if absent.
    pub real: Value,
}

/// A difference that no rule explains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Number of the sequence.
    pub sequence: u64,
    /// Operation with different answers.
    pub operation: String,
    /// Operations that have to come before the difference, in order.
    pub after: Vec<String>,
    /// Places where the answers differ and that no rule explains.
    pub leaves: Vec<Leaf>,
    /// Command that plays the sequence again.
    pub replay: String,
}

/// Returns all places where two values differ, in order.
pub fn leaves(simulated: &Value, real: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    compare("", simulated, real, &mut found);
    found
}

fn compare(path: &str, simulated: &Value, real: &Value, out: &mut Vec<Leaf>) {
    let below = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
    match (simulated, real) {
        _ if simulated == real => {}
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                match (ours.get(name), theirs.get(name)) {
                    // Absent and null differ, but a leaf would show both as null.
                    (None, Some(Value::Null)) => out.push(leaf(&below(name), &"absent".into(), &Value::Null)),
                    (Some(Value::Null), None) => out.push(leaf(&below(name), &Value::Null, &"absent".into())),
                    (ours, theirs) => {
                        let (ours, theirs) = (ours.unwrap_or(&Value::Null), theirs.unwrap_or(&Value::Null));
                        compare(&below(name), ours, theirs, out);
                    }
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for index in 0..ours.len().max(theirs.len()) {
                match (ours.get(index), theirs.get(index)) {
                    (Some(ours), Some(theirs)) => compare(&below(&index.to_string()), ours, theirs, out),
                    // One of the lists is shorter.
                    (ours, theirs) => {
                        let shown = |item: Option<&Value>| item.cloned().unwrap_or_else(|| "absent".into());
                        out.push(leaf(&below(&index.to_string()), &shown(ours), &shown(theirs)));
                    }
                }
            }
        }
        _ => out.push(leaf(path, simulated, real)),
    }
}

fn leaf(path: &str, simulated: &Value, real: &Value) -> Leaf {
    Leaf { path: path.to_owned(), simulated: simulated.clone(), real: real.clone() }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for before in &self.after {
            writeln!(f, "  first  {before}")?;
        }
        writeln!(f, "  then   {}", self.operation)?;
        for leaf in &self.leaves {
            writeln!(f, "  {}", leaf.path)?;
            writeln!(f, "    - simulated {}", leaf.simulated)?;
            writeln!(f, "    + real      {}", leaf.real)?;
        }
        write!(f, "  again: {}", self.replay)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_told_once() {
        let ours = json!({"code": 409, "body": {"reason": "Conflict", "items": [1, 2], "same": true}});
        let theirs = json!({"code": 422, "body": {"reason": "Conflict", "items": [1, 3], "more": {}, "same": true}});
        let paths: Vec<String> = leaves(&ours, &theirs).into_iter().map(|leaf| leaf.path).collect();
        assert_eq!(paths, ["body.items.1", "body.more", "code"]);
        assert!(leaves(&ours, &ours).is_empty());
    }

    #[test]
    fn lists_of_another_length_and_null_for_absent_differ() {
        assert_eq!(leaves(&json!([1]), &json!([1, 2])).len(), 1);
        assert_eq!(leaves(&json!({"a": null}), &json!({})).len(), 1);
        assert_eq!(leaves(&json!({}), &json!({"a": null})).len(), 1);
    }
}
