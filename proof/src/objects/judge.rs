//! Comparison of an answer with the expectation of a case. No I/O.

use std::collections::BTreeMap;

use serde_json::Value;

use super::table::{Case, Expected, Refusal, Request, Rules};

/// Answer of a server to the last request that was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseAnswer {
    /// The request.
    pub on: Request,
    /// HTTP status.
    pub code: u16,
    /// Texts of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The object, or a `Status`.
    pub body: Value,
}

/// Difference between an answer and the expectation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Accepted instead of refused or the other way round, or refused with another code.
    #[error("{on} was answered {code}, expected {expected}: {message}")]
    Code {
        /// The request.
        on: Request,
        /// HTTP status.
        code: u16,
        /// Description of the expectation.
        expected: String,
        /// The server's message, if any.
        message: String,
    },
    /// The stored object differs.
    #[error("{0}")]
    Stored(String),
    /// The warnings are not the expected ones.
    #[error("the warnings are {0:?}")]
    Warnings(Vec<String>),
    /// A 400 with another message.
    #[error("the message is {0:?}")]
    Message(String),
    /// The causes are not the expected ones; each has a field and a message.
    #[error("the causes are {0:?}")]
    Causes(Vec<(String, String)>),
    /// No answer that can be judged.
    #[error("{0}")]
    NoAnswer(String),
}

impl Case {
    /// Compares the answer to the last request with the expectation.
    ///
    /// # Errors
    /// Returns the first difference.
    pub fn judge(&self, rules: Rules, answer: &CaseAnswer) -> Result<(), Mismatch> {
        let accepted = matches!(answer.code, 200 | 201);
        match &self.expected {
            Expected::Accepted { stored, absent, warnings } => {
                if !accepted || answer.on != self.last() {
                    return Err(answer.other_code("success"));
                }
                if let Some(difference) = first_difference(stored, &answer.body, "") {
                    return Err(Mismatch::Stored(difference));
                }
                if let Some(path) = absent.iter().find(|path| has(&answer.body, path)) {
                    return Err(Mismatch::Stored(format!("{path} is present")));
                }
                let missing = warnings.iter().any(|part| !answer.warnings.iter().any(|text| text.contains(part)));
                if missing || warnings.len() != answer.warnings.len() {
                    return Err(Mismatch::Warnings(answer.warnings.clone()));
                }
                Ok(())
            }
            Expected::Refused { on, code, field, project, reference } => {
                if answer.on != *on || answer.code != *code {
                    return Err(answer.other_code(&format!("{code} on {on}")));
                }
                let refusal = match rules {
                    Rules::Project => project,
                    Rules::Reference => reference,
                };
                answer.refused_as(field, refusal)
            }
        }
    }
}

impl CaseAnswer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    fn other_code(&self, expected: &str) -> Mismatch {
        let (expected, message) = (expected.to_owned(), self.message().to_owned());
        Mismatch::Code { on: self.on, code: self.code, expected, message }
    }

    /// Returns field and message of every cause.
    fn causes(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = self.body["details"]["causes"].as_array().into_iter().flatten();
        causes.map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
    }

    fn refused_as(&self, field: &str, refusal: &Refusal) -> Result<(), Mismatch> {
        if self.code != 422 {
            let told = self.message().contains(field) && self.message().contains(&refusal.message);
            return if told { Ok(()) } else { Err(Mismatch::Message(self.message().to_owned())) };
        }
        let mut rest = self.causes();
        let wrong = || Mismatch::Causes(self.causes());
        let found = rest.iter().position(|(at, message)| at == field && message.contains(&refusal.message));
        rest.remove(found.ok_or_else(wrong)?);
        let counted = |fields: &mut dyn Iterator<Item = &String>| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            fields.for_each(|field| *counts.entry(field.clone()).or_default() += 1);
            counts
        };
        let same = counted(&mut rest.iter().map(|(at, _)| at)) == counted(&mut refusal.also.iter());
        if same { Ok(()) } else { Err(wrong()) }
    }
}

/// Returns the first place where `found` lacks something that `wanted` has.
fn first_difference(wanted: &Value, found: &Value, path: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Null, _) if path.is_empty() => None,
        (Value::Object(fields), Value::Object(others)) => {
            if fields.is_empty() && !others.is_empty() {
                return Some(format!("{path} is {found}, expected an empty object"));
            }
            fields.iter().find_map(|(name, value)| match others.get(name) {
                None => Some(format!("{path}.{name} is absent")),
                Some(other) => first_difference(value, other, &format!("{path}.{name}")),
            })
        }
        _ if wanted == found => None,
        _ => Some(format!("{path} is {found}, expected {wanted}")),
    }
}

fn has(object: &Value, path: &str) -> bool {
    path.split('.').try_fold(object, |value, name| value.get(name)).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::table::parse;
    use super::*;

    fn case(rest: &str) -> Case {
        parse(&format!("- {{name: x, kind: S3Backend, create: {{}}, {rest}}}")).unwrap().remove(0)
    }

    fn answer(code: u16, body: Value) -> CaseAnswer {
        CaseAnswer { on: Request::Create, code, warnings: Vec::new(), body }
    }

    fn invalid(causes: &[(&str, &str)]) -> CaseAnswer {
        let causes: Vec<Value> =
            causes.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
        answer(422, json!({"message": "invalid", "details": {"causes": causes}}))
    }

    #[test]
    fn an_accepted_object_is_compared_by_what_the_case_names() {
        let case = case("accepted: true, stored: {spec: {a: 1, b: {}}}, absent: [spec.c]");
        let judge = |body| case.judge(Rules::Project, &answer(201, body));
        assert_eq!(judge(json!({"spec": {"a": 1, "b": {}, "d": 2}})), Ok(()));
        assert!(judge(json!({"spec": {"a": 1.0, "b": {}}})).is_err());
        assert!(judge(json!({"spec": {"a": 1, "b": {"x": 1}}})).is_err());
        assert!(judge(json!({"spec": {"a": 1, "b": {}, "c": null}})).is_err());
        assert!(judge(json!({"spec": {"a": 1}})).is_err());
    }

    #[test]
    fn every_warning_must_be_expected() {
        let case = case("accepted: true, warnings: [unknown field]");
        let with = |warnings: &[&str]| {
            let warnings = warnings.iter().map(ToString::to_string).collect();
            case.judge(Rules::Project, &CaseAnswer { warnings, ..answer(201, json!({})) })
        };
        assert_eq!(with(&["unknown field \"x\""]), Ok(()));
        assert!(with(&[]).is_err());
        assert!(with(&["unknown field \"x\"", "another"]).is_err());
    }

    #[test]
    fn all_causes_are_compared_in_any_order() {
        let case = case("refused: {on: create, code: 422, field: a, message: bad, also: [b, b]}");
        let judge = |causes: &[(&str, &str)]| case.judge(Rules::Project, &invalid(causes));
        assert_eq!(judge(&[("b", "1"), ("a", "is bad"), ("b", "2")]), Ok(()));
        assert!(judge(&[("a", "is bad"), ("b", "1")]).is_err());
        assert!(judge(&[("a", "is good"), ("b", "1"), ("b", "2")]).is_err());
        assert!(judge(&[("a", "is bad"), ("b", "1"), ("c", "2")]).is_err());
        assert!(case.judge(Rules::Project, &answer(400, json!({"message": "a bad"}))).is_err());
        assert!(case.judge(Rules::Project, &answer(201, json!({}))).is_err());
    }

    #[test]
    fn the_reference_may_use_other_words() {
        let words = "reference: {message: should match, also: [a]}";
        let case = case(&format!("refused: {{on: create, code: 422, field: a, message: lower-case, {words}}}"));
        assert_eq!(case.judge(Rules::Project, &invalid(&[("a", "use lower-case")])), Ok(()));
        assert!(case.judge(Rules::Reference, &invalid(&[("a", "use lower-case")])).is_err());
        assert_eq!(case.judge(Rules::Reference, &invalid(&[("a", "should match x"), ("a", "y")])), Ok(()));
    }
}
