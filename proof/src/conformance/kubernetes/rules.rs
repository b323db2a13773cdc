//! Known and justified differences from a real API server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::difference::{Exchange, Leaf};
use super::super::rule::{Consequence, Rule, System};

/// Every known difference.
pub(in crate::conformance) const RULES: &[Rule] = &[
    Rule {
        name: "digits of a quantity",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "kube-cel, which evaluates the rules in the simulator, holds 38 digits of a quantity; one with more is an \
                 error in the rule, not a false one. Refused all the same, in other words.",
        applies: |exchange, leaf| {
            let overflows = told(&exchange.answers.simulated).contains("quantity overflow");
            let refused = told(&exchange.answers.real).contains("hard must be a number of bytes");
            let field = leaf.simulated == "spec.quota" && leaf.real == "spec.quota.hard";
            overflows && refused && (is_message(leaf) || (field && leaf.path.ends_with(".field")))
        },
    },
    Rule {
        name: "conditions of a namespace",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "The real namespace controller writes five conditions about how far it is, and owns them. Nothing of ours \
                 reads them; what is left of a namespace, and when it goes, is compared.",
        applies: |exchange, leaf| {
            let of_namespace = |field: &str| {
                let path = leaf.path.strip_suffix(field)?;
                namespace_at(&exchange.answers.real, path.trim_end_matches('.'))
            };
            let written = of_namespace("metadata.resourceVersion")
                .is_some_and(|namespace| namespace["status"]["conditions"].is_array());
            let own = ["status.conditions", "metadata.managedFields.kube-controller-manager Update status"];
            written || (leaf.simulated.is_null() && own.iter().any(|field| of_namespace(field).is_some()))
        },
    },
    Rule {
        name: "order of a namespace's finalizers",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "The registry of namespaces puts the collector's finalizer among the others in the order of a Go map: \
                 chance. They are the same ones.",
        applies: |exchange, leaf| {
            let finalizers = |answer: &Value| {
                let (path, _) = leaf.path.split_once(".metadata.finalizers.")?;
                let namespace = namespace_at(answer, path)?;
                let mut names: Vec<String> =
                    serde_json::from_value(namespace["metadata"]["finalizers"].clone()).ok()?;
                names.sort_unstable();
                names.iter().any(|name| name == "orphan" || name == "foregroundDeletion").then_some(names)
            };
            finalizers(&exchange.answers.simulated).is_some_and(|ours| finalizers(&exchange.answers.real) == Some(ours))
        },
    },
    Rule {
        name: "warnings of a refused request",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "A real server tells of unknown fields also where it refuses the object for another reason. A client has \
                 the reason to go by.",
        applies: |exchange, leaf| {
            let refused = exchange.answers.real["code"].as_u64().is_some_and(|code| code >= 400);
            let told = leaf.real.as_str().is_some_and(|text| text.starts_with("299 - \"unknown field "));
            let alike = same_code(exchange) && leaf.path.starts_with("warnings.") && leaf.simulated == "absent";
            refused && told && alike
        },
    },
    Rule {
        name: "watch of an older etcd",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "A server whose etcd has no progress notifications refuses `sendInitialEvents`, and can't tell whether \
                 its cache has all that a watch without a version is to begin with. The simulator plays one that has \
                 them. Clients fall back to a list and a version.",
        applies: |exchange, _| {
            let first = &exchange.answers.real["events"][0];
            let says = |why: &str| {
                first["type"] == "ERROR" && first["object"]["message"].as_str().is_some_and(|text| text.contains(why))
            };
            let with_list = exchange.operation.ends_with(" with a list first");
            (exchange.operation.contains(" from now") && says("Too large resource version"))
                || (with_list && says("RequestWatchProgress is disabled"))
        },
    },
    Rule {
        name: "which of several unknown fields",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "An apply is refused for the first field that the schema doesn't know, in the order of a Go map: chance.",
        applies: |exchange, leaf| {
            let told = |value: &Value| {
                let text = value.as_str()?.strip_suffix(": field not declared in schema")?;
                let (before, field) = text.rsplit_once(": ")?;
                let name = field.rsplit_once('.')?.1;
                exchange.operation.contains(&format!("{name:?}")).then(|| before.to_owned())
            };
            leaf.path == "body.message" && told(&leaf.simulated).is_some_and(|text| told(&leaf.real) == Some(text))
        },
    },
    Rule {
        name: "an Event's reference in a message",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "A refused change of `regarding` is shown in the names of the server's internal struct. Same code, same \
                 field, same reason.",
        applies: |_, leaf| {
            let shown = |value: &Value| {
                let text = value.as_str()?;
                let (start, end) = (text.find("Invalid value: {")? + 15, text.find("}: field is immutable")? + 1);
                let object: BTreeMap<String, String> = serde_json::from_str(text.get(start..end)?).ok()?;
                let fields = object.into_iter().filter(|(_, value)| !value.is_empty());
                let fields: BTreeMap<_, _> = fields.map(|(name, value)| (name.to_lowercase(), value)).collect();
                Some((text[..start].to_owned(), fields, text[end..].to_owned()))
            };
            is_message(leaf) && shown(&leaf.simulated).is_some_and(|ours| shown(&leaf.real) == Some(ours))
        },
    },
    Rule {
        name: "words of the decoder",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "What doesn't decode is refused in the words of Go's decoders, which name Go types. Same code, same \
                 reason, and the same words up to there.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (leaf.simulated.as_str().unwrap_or_default(), leaf.real.as_str().unwrap_or_default());
            leaf.path == "body.message"
                && same_code(exchange)
                && (is_untyped(ours, theirs) || is_undecoded(ours, theirs))
        },
    },
    Rule {
        name: "a patched object in a message",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "A patch whose result doesn't decode is refused with that result as text: fields in the order of Go's \
                 structs, and Go's words for what is wrong with it. Same code, same reason.",
        applies: |exchange, leaf| {
            let shown = |value: &Value| -> Option<Value> {
                let (_, quoted) = value.as_str()?.split_once("Invalid value: ")?;
                let object = serde_json::Deserializer::from_str(quoted).into_iter::<String>().next()?.ok()?;
                serde_json::from_str(&object).ok()
            };
            let is_patch = told(&exchange.answers.real).contains("patch: Invalid value: \"{");
            let same = shown(&leaf.simulated).is_some_and(|object| shown(&leaf.real) == Some(object));
            is_message(leaf) && same_code(exchange) && is_patch && same
        },
    },
    Rule {
        name: "rules of an object of another kind",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "A custom object that says it is of another kind is refused for that. A real server gives it no defaults \
                 then but runs the rules all the same, and tells of those that miss a default too.",
        applies: |exchange, leaf| {
            let of_kind = |answer: &Value| {
                let message = told(answer);
                message.contains("kind: Invalid value: ") && message.contains(": must be ")
            };
            let both = of_kind(&exchange.answers.simulated) && of_kind(&exchange.answers.real);
            let missed = |value: &Value| value.as_str().is_some_and(|text| text.contains(": no such key: "));
            let more = leaf.simulated == "absent" && missed(&leaf.real["message"]);
            both && same_code(exchange) && (more || (leaf.path == "body.message" && missed(&leaf.real)))
        },
    },
    Rule {
        name: "key of a dry run",
        systems: &[System::Kubernetes],
        then: Consequence::GoesOn,
        reason: "The key in the message about a UID that doesn't fit lacks its beginning in a dry run.",
        applies: |exchange, leaf| {
            let ours = leaf.simulated.as_str().map(|text| text.replace("Key: /registry/", "Key: /"));
            let dry = exchange.operation.contains("dryRun=All");
            dry && leaf.path == "body.message" && ours.as_deref() == leaf.real.as_str()
        },
    },
];

/// Returns true if the place is a message for people.
fn is_message(leaf: &Leaf) -> bool {
    let cause = leaf.path.strip_prefix("body.details.causes.");
    leaf.path == "body.message" || cause.is_some_and(|cause| cause.ends_with(".message"))
}

/// Returns the message of a refusal.
fn told(answer: &Value) -> &str {
    answer["body"]["message"].as_str().unwrap_or_default()
}

fn same_code(exchange: &Exchange) -> bool {
    exchange.answers.simulated["code"] == exchange.answers.real["code"]
}

/// Returns the namespace at a path of an answer.
fn namespace_at<'a>(answer: &'a Value, path: &str) -> Option<&'a Value> {
    let found = answer.pointer(&format!("/{}", path.replace('.', "/")))?;
    // Items of a list have no `kind`.
    let listed = path.starts_with("body.items.") && answer["body"]["kind"] == "NamespaceList";
    (listed || found["kind"] == "Namespace").then_some(found)
}

/// Returns true if both report that the body of an apply does not fit the schema, in the same
/// field.
fn is_untyped(ours: &str, theirs: &str) -> bool {
    let Some((start, why)) = ours.split_once("): ") else { return false };
    let field = why.split_once(": ").map_or(why, |(field, _)| field);
    start.starts_with("failed to create typed patch object (")
        && theirs.strip_prefix(start).is_some_and(|rest| rest.contains(&format!(" {field}: ")))
}

/// Returns true if both report that a body is not of its kind, the real one with the messages of
/// Go's decoders.
fn is_undecoded(ours: &str, theirs: &str) -> bool {
    let mark = " cannot be handled as a ";
    let why = |text: &str| {
        let (start, rest) = text.split_once(mark)?;
        let (kind, why) = rest.split_once(": ")?;
        Some((format!("{start}{mark}{kind}"), why.to_owned()))
    };
    let words = ["no kind ", "converting (", "json: ", "illegal base64 ", "parsing time "];
    why(ours).zip(why(theirs)).is_some_and(|((our_start, ours), (their_start, theirs))| {
        let known = if ours.starts_with(words[0]) { &words[..1] } else { &words[..] };
        our_start == their_start && known.iter().any(|word| theirs.starts_with(word))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::difference::{AnswerPair, Exchange, leaves};
    use super::super::super::rules::sort;
    use super::*;

    fn rest_of(simulated: serde_json::Value, real: serde_json::Value) -> usize {
        let found = leaves(&simulated, &real);
        let exchange =
            Exchange { operation: "GET /x".to_owned(), after: Vec::new(), answers: AnswerPair { simulated, real } };
        sort(System::Kubernetes, &exchange, found).rest.len()
    }

    #[test]
    fn what_no_rule_knows_stays() {
        assert_eq!(rest_of(json!({"code": 200}), json!({"code": 409})), 1);
        let told = |why: &str| json!({"code": 400, "body": {"message": why}});
        assert_eq!(rest_of(told("one"), told("another")), 1);
    }

    fn refusal(code: u16, why: &str) -> Value {
        json!({"code": code, "body": {"message": why}})
    }

    #[test]
    fn words_of_the_decoder_are_explained_only_where_all_else_is_the_same() {
        let answer = |code: u16, why: &str| {
            refusal(code, &format!("Pod in version \"v1\" cannot be handled as a Secret: {why}"))
        };
        let (ours, theirs) = ("the object is a Pod", "converting (v1.Pod) to (core.Secret): unknown conversion");
        assert_eq!(rest_of(answer(400, ours), answer(400, theirs)), 0);
        assert_eq!(rest_of(answer(400, ours), answer(422, theirs)), 2);
        assert_eq!(rest_of(answer(400, ours), answer(400, "it is Tuesday")), 1);
        assert_eq!(rest_of(answer(400, ours), refusal(400, "something else")), 1);
        let untyped =
            |why: &str| refusal(500, &format!("failed to create typed patch object (/a; g/v1, Kind=T): {why}"));
        let ours = ".spec.a: spec.a in body must be of type string: \"integer\"";
        assert_eq!(rest_of(untyped(ours), untyped(".spec.a: expected string, got &{7}")), 0);
        assert_eq!(rest_of(untyped(ours), untyped("errors:\n  .spec.a: expected string\n  .spec.c: expected map")), 0);
        assert_eq!(rest_of(untyped(ours), untyped(".spec.b: expected string, got &{7}")), 1);
    }

    #[test]
    fn only_a_namespace_has_conditions_that_nobody_else_writes() {
        let answer = |kind: &str, status: Value| json!({"code": 200, "body": {"kind": kind, "status": status}});
        let conditions = || json!({"conditions": [{"type": "Ready"}]});
        assert_eq!(rest_of(answer("Namespace", json!({})), answer("Namespace", conditions())), 0);
        assert_eq!(rest_of(answer("BucketClaim", json!({})), answer("BucketClaim", conditions())), 1);
        assert_eq!(rest_of(answer("Namespace", conditions()), answer("Namespace", json!({}))), 1);
    }

    #[test]
    fn finalizers_of_a_namespace_are_the_same_in_any_order() {
        let answer = |kind: &str, names: Value| json!({"body": {"kind": kind, "metadata": {"finalizers": names}}});
        let of = |kind: &str, ours: Value, theirs: Value| rest_of(answer(kind, ours), answer(kind, theirs));
        assert_eq!(of("Namespace", json!(["a/b", "orphan"]), json!(["orphan", "a/b"])), 0);
        assert_eq!(of("Namespace", json!(["a/b", "orphan"]), json!(["orphan", "a/c"])), 2);
        assert_eq!(of("Namespace", json!(["a/b", "c/d"]), json!(["c/d", "a/b"])), 2);
        assert_eq!(of("Secret", json!(["a/b", "orphan"]), json!(["orphan", "a/b"])), 2);
    }

    #[test]
    fn a_patched_object_is_explained_only_if_it_is_the_same() {
        let answer = |object: &str, why: &str| {
            refusal(422, &format!(" \"\" is invalid: patch: Invalid value: {object:?}: {why}"))
        };
        let (one, same, other) = (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":1,"b":3}"#);
        assert_eq!(rest_of(answer(one, "no"), answer(same, "never")), 0);
        assert_eq!(rest_of(answer(one, "no"), answer(other, "no")), 1);
    }

    #[test]
    fn a_reference_is_explained_only_if_it_is_the_same() {
        let answer = |shown: &str| refusal(422, &format!("involvedObject: Invalid value: {shown}: field is immutable"));
        let theirs = r#"{"Kind":"Secret","APIVersion":"v1","UID":""}"#;
        assert_eq!(rest_of(answer(r#"{"apiVersion":"v1","kind":"Secret"}"#), answer(theirs)), 0);
        assert_eq!(rest_of(answer(r#"{"apiVersion":"v1","kind":"Lease"}"#), answer(theirs)), 1);
    }

    #[test]
    fn warnings_are_explained_only_if_they_are_about_unknown_fields() {
        let answer = |code: u16, warnings: Value| json!({"code": code, "warnings": warnings});
        let unknown = || json!(["299 - \"unknown field \\\"spec.x\\\"\""]);
        assert_eq!(rest_of(answer(422, json!([])), answer(422, unknown())), 0);
        assert_eq!(rest_of(answer(201, json!([])), answer(201, unknown())), 1);
        assert_eq!(rest_of(answer(422, json!([])), answer(422, json!(["299 - \"deprecated\""]))), 1);
    }
}
