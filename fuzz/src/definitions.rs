//! Validation rules of the CustomResourceDefinitions, extracted from the definitions, so that
//! targets use exactly the rules that the API server applies.

use regex::Regex;
use serde_json::Value;
use stowage_api::{bucket_claim_crd, s3_backend_crd};

/// Rules for a text. Of a rule in CEL, only the calls of `matches` and `contains` are evaluated,
/// each with or without a `!`.
pub(crate) struct Rules {
    calls: Vec<Call>,
}

struct Call {
    expected: bool,
    pattern: Regex,
}

impl Rules {
    /// Returns the rules for a field of a claim's spec.
    pub(crate) fn of_claim(field: &str) -> Self {
        Self::of(&serde_json::to_value(bucket_claim_crd()), field)
    }

    /// Returns the rules for a field of a backend's spec.
    pub(crate) fn of_backend(field: &str) -> Self {
        Self::of(&serde_json::to_value(s3_backend_crd()), field)
    }

    fn of(definition: &serde_json::Result<Value>, field: &str) -> Self {
        let definition = definition.as_ref().expect("a definition is plain data");
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let rules = spec["properties"][field]["x-kubernetes-validations"].as_array();
        let rules = rules.unwrap_or_else(|| panic!("there is no rule on {field}"));
        let calls: Vec<Call> = rules.iter().flat_map(|rule| calls(rule["rule"].as_str().unwrap_or_default())).collect();
        assert!(!calls.is_empty(), "no rule on {field} looks at the text: {rules:?}");
        Self { calls }
    }

    /// True if a text satisfies all rules.
    pub(crate) fn allow(&self, text: &str) -> bool {
        self.calls.iter().all(|call| call.pattern.is_match(text) == call.expected)
    }
}

fn calls(rule: &str) -> Vec<Call> {
    let of = |name: &str, quoted: fn(&str) -> String| {
        let opening = format!("{name}('");
        let before_and_after = rule.split(&opening).zip(rule.split(&opening).skip(1));
        let call = |(before, after): (&str, &str)| {
            let (argument, _) = after.split_once("')").expect("the call is closed");
            let pattern = Regex::new(&quoted(argument)).expect("CEL's patterns are those of RE2");
            let receiver = before.rsplit(' ').next().unwrap_or_default();
            Call { expected: !receiver.starts_with('!'), pattern }
        };
        before_and_after.map(call).collect::<Vec<_>>()
    };
    let mut calls = of("matches", str::to_owned);
    calls.extend(of("contains", regex::escape));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_meant() {
        let calls = calls("self.size() < 3 || self.matches('^a') && !self.contains('..')");
        let told: Vec<_> = calls.iter().map(|call| (call.expected, call.pattern.as_str())).collect();
        assert_eq!(told, [(true, "^a"), (false, r"\.\.")]);
        assert!(Rules::of_claim("bucketName").allow("photos"));
        assert!(!Rules::of_claim("bucketName").allow("1.2.3.4"));
    }
}
