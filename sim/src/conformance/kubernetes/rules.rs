//! What is known to differ from a real API server, and why that is as well.

use serde_json::Value;

use super::super::difference::Leaf;
use super::super::rules::{Rule, System, Then};

/// Every known difference.
pub(in crate::conformance) const RULES: &[Rule] = &[
    Rule {
        name: "digits of a quantity",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "kube-cel, which evaluates the rules in the simulator, holds 38 digits of a quantity; one with more is an \
                 error in the rule, not a false one. Refused all the same, in other words.",
        applies: |_, leaf| {
            let ours = leaf.simulated.as_str().unwrap_or_default();
            is_told(leaf) && (ours.contains("quantity overflow") || ours == "spec.quota")
        },
    },
    Rule {
        name: "conditions of a namespace",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "The real namespace controller writes five conditions about how far it is, and owns them. Nothing of ours \
                 reads them; what is left of a namespace, and when it goes, is compared.",
        applies: |exchange, leaf| {
            let conditions = leaf.path.ends_with("status.conditions") && leaf.simulated.is_null();
            let written = leaf.path == "body.metadata.resourceVersion"
                && exchange.answers.real["body"]["kind"] == "Namespace"
                && exchange.answers.real["body"]["status"]["conditions"].is_array();
            conditions
                || written
                || (leaf.simulated.is_null()
                    && leaf.path.ends_with("managedFields.kube-controller-manager Update status"))
        },
    },
    Rule {
        name: "warnings of a refused request",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "A real server tells of unknown fields also where it refuses the object for another reason. A client has \
                 the reason to go by.",
        applies: |exchange, leaf| {
            let refused = exchange.answers.real["code"].as_u64().is_some_and(|code| code >= 400);
            leaf.path.starts_with("warnings.") && refused && leaf.simulated == "absent"
        },
    },
    Rule {
        name: "watch of an older etcd",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "A server whose etcd has no progress notifications refuses `sendInitialEvents`, and can't tell whether \
                 its cache has all that a watch without a version is to begin with. The simulator plays one that has \
                 them. Clients fall back to a list and a version.",
        applies: |exchange, _| {
            let first = exchange.answers.real["events"][0]["object"]["message"].as_str().unwrap_or_default();
            let without_version =
                exchange.operation.contains(" from now") && first.contains("Too large resource version");
            without_version || first.contains("RequestWatchProgress is disabled")
        },
    },
    Rule {
        name: "which of several unknown fields",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "An apply is refused for the first field that the schema doesn't know, in the order of a Go map: chance.",
        applies: |_, leaf| {
            let told = |value: &Value| {
                let text = value.as_str()?.strip_suffix(": field not declared in schema")?;
                text.rsplit_once(": ").map(|(before, _)| before.to_owned())
            };
            leaf.path == "body.message" && told(&leaf.simulated).is_some_and(|text| told(&leaf.real) == Some(text))
        },
    },
    Rule {
        name: "an Event's reference in a message",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "A refused change of `regarding` is shown in the names of the server's internal struct. Same code, same \
                 field, same reason.",
        applies: |_, leaf| {
            let shown = |value: &Value| {
                let text = value.as_str().unwrap_or_default();
                let (start, end) = (text.find("Invalid value: {")?, text.find("}: field is immutable")?);
                Some(format!("{}{}", &text[..start], text.get(end..)?))
            };
            is_told(leaf) && shown(&leaf.simulated).is_some_and(|text| shown(&leaf.real) == Some(text))
        },
    },
    Rule {
        name: "words of the decoder",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "What doesn't decode is refused in the words of Go's decoders, which name Go types. Same code, same \
                 reason, and the same words up to there.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (leaf.simulated.as_str().unwrap_or_default(), leaf.real.as_str().unwrap_or_default());
            let marks = [" cannot be handled as a ", "failed to create typed patch object "];
            let beginning = marks.iter().find_map(|mark| {
                let from = ours.find(mark)? + mark.len();
                ours.get(..from + ours.get(from..)?.find(": ")? + 2)
            });
            let same_code = exchange.answers.simulated["code"] == exchange.answers.real["code"];
            leaf.path == "body.message" && same_code && beginning.is_some_and(|text| theirs.starts_with(text))
        },
    },
    Rule {
        name: "a patched object in a message",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "A patch whose result doesn't decode is refused with that result as text: fields in the order of Go's \
                 structs, and Go's words for what is wrong with it. Same code, same reason.",
        applies: |exchange, leaf| {
            let start = "patch: Invalid value: \"{";
            let shown = |value: &Value| value.as_str().is_some_and(|text| text.contains(&start[7..]));
            let patch = |answer: &Value| answer["body"]["message"].as_str().is_some_and(|text| text.contains(start));
            let same_code = exchange.answers.simulated["code"] == exchange.answers.real["code"];
            let both = patch(&exchange.answers.simulated) && patch(&exchange.answers.real);
            is_told(leaf) && same_code && both && shown(&leaf.simulated) && shown(&leaf.real)
        },
    },
    Rule {
        name: "rules of an object of another kind",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "A custom object that says it is of another kind is refused for that. A real server gives it no defaults \
                 then but runs the rules all the same, and tells of those that miss a default too.",
        applies: |exchange, leaf| {
            let of_kind = |answer: &Value| {
                let message = answer["body"]["message"].as_str();
                message.is_some_and(|text| text.contains("kind: Invalid value: ") && text.contains(": must be "))
            };
            is_told(leaf) && of_kind(&exchange.answers.simulated) && of_kind(&exchange.answers.real)
        },
    },
    Rule {
        name: "key of a dry run",
        systems: &[System::Kubernetes],
        then: Then::GoesOn,
        reason: "The key in the message about a UID that doesn't fit lacks its beginning in a dry run.",
        applies: |_, leaf| {
            let ours = leaf.simulated.as_str().map(|text| text.replace("Key: /registry/", "Key: /"));
            leaf.path == "body.message" && ours.as_deref() == leaf.real.as_str()
        },
    },
];

/// Whether the place is one that tells people what is wrong.
fn is_told(leaf: &Leaf) -> bool {
    leaf.path == "body.message" || leaf.path.starts_with("body.details.causes.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::difference::{Answers, Exchange, leaves};
    use super::super::super::rules::sort;
    use super::*;

    fn rest_of(simulated: serde_json::Value, real: serde_json::Value) -> usize {
        let found = leaves(&simulated, &real);
        let exchange =
            Exchange { operation: "GET /x".to_owned(), after: Vec::new(), answers: Answers { simulated, real } };
        sort(System::Kubernetes, &exchange, found).rest.len()
    }

    #[test]
    fn what_no_rule_knows_stays() {
        assert_eq!(rest_of(json!({"code": 200}), json!({"code": 409})), 1);
        let told = |why: &str| json!({"code": 400, "body": {"message": why}});
        assert_eq!(rest_of(told("one"), told("another")), 1);
    }

    #[test]
    fn words_of_the_decoder_are_explained_only_if_the_code_is_the_same() {
        let answer = |code: u16, why: &str| json!({"code": code, "body": {"message": format!("Secret in version \"v1\" cannot be handled as a Secret: {why}")}});
        assert_eq!(rest_of(answer(400, "it is none"), answer(400, "unknown conversion")), 0);
        assert_eq!(rest_of(answer(400, "it is none"), answer(422, "unknown conversion")), 2);
        let other = json!({"code": 400, "body": {"message": "something else"}});
        assert_eq!(rest_of(answer(400, "it is none"), other), 1);
    }
}
