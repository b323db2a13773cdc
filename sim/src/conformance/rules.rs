//! The differences that are known and justified: one table, of which `docs/fidelity.md` is made.

use serde_json::Value;

use super::difference::{Exchange, Leaf};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The Kubernetes API.
    Kubernetes,
    /// The S3 API.
    S3,
}

/// A difference that may be there.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A few words.
    pub name: &'static str,
    /// Of which of the two.
    pub system: System,
    /// Why it is there, and why it does no harm.
    pub reason: &'static str,
    /// Whether it is this difference.
    pub applies: fn(&Exchange, &Leaf) -> bool,
}

/// Every known difference.
pub const RULES: &[Rule] = &[
    Rule {
        name: "digits of a quantity",
        system: System::Kubernetes,
        reason: "kube-cel, which evaluates the rules in the simulator, holds 38 digits of a quantity; one with more is an \
                 error in the rule, not a false one. Refused all the same, in other words.",
        applies: |_, leaf| {
            let ours = leaf.simulated.as_str().unwrap_or_default();
            is_told(leaf) && (ours.contains("quantity overflow") || ours == "spec.quota")
        },
    },
    Rule {
        name: "conditions of a namespace",
        system: System::Kubernetes,
        reason: "The real namespace controller writes five conditions about how far it is, and owns them. Nothing of ours \
                 reads them; what is left of a namespace, and when it goes, is compared.",
        applies: |exchange, leaf| {
            let conditions = leaf.path.ends_with("status.conditions") && leaf.simulated.is_null();
            let written = leaf.path == "body.metadata.resourceVersion"
                && exchange.real["body"]["kind"] == "Namespace"
                && exchange.real["body"]["status"]["conditions"].is_array();
            conditions
                || written
                || (leaf.simulated.is_null()
                    && leaf.path.ends_with("managedFields.kube-controller-manager Update status"))
        },
    },
    Rule {
        name: "warnings of a refused request",
        system: System::Kubernetes,
        reason: "A real server tells of unknown fields also where it refuses the object for another reason. A client has \
                 the reason to go by.",
        applies: |exchange, leaf| {
            let refused = exchange.real["code"].as_u64().is_some_and(|code| code >= 400);
            leaf.path.starts_with("warnings.") && refused && leaf.simulated == "absent"
        },
    },
    Rule {
        name: "watch of an older etcd",
        system: System::Kubernetes,
        reason: "A server whose etcd has no progress notifications refuses `sendInitialEvents`, and can't tell whether \
                 its cache has all that a watch without a version is to begin with. The simulator plays one that has \
                 them. Clients fall back to a list and a version.",
        applies: |exchange, _| {
            let first = exchange.real["events"][0]["object"]["message"].as_str().unwrap_or_default();
            let without_version =
                exchange.operation.contains(" from now") && first.contains("Too large resource version");
            without_version || first.contains("RequestWatchProgress is disabled")
        },
    },
    Rule {
        name: "which of several unknown fields",
        system: System::Kubernetes,
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
        system: System::Kubernetes,
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
        system: System::Kubernetes,
        reason: "What doesn't decode is refused in the words of Go's decoders, which name Go types. Same code, same \
                 reason, and the same words up to there.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (leaf.simulated.as_str().unwrap_or_default(), leaf.real.as_str().unwrap_or_default());
            let marks = [" cannot be handled as a ", "failed to create typed patch object "];
            let beginning = marks.iter().find_map(|mark| {
                let from = ours.find(mark)? + mark.len();
                ours.get(..from + ours.get(from..)?.find(": ")? + 2)
            });
            let same_code = exchange.simulated["code"] == exchange.real["code"];
            leaf.path == "body.message" && same_code && beginning.is_some_and(|text| theirs.starts_with(text))
        },
    },
    Rule {
        name: "a patched object in a message",
        system: System::Kubernetes,
        reason: "A patch whose result doesn't decode is refused with that result as text: fields in the order of Go's \
                 structs, and Go's words for what is wrong with it. Same code, same reason.",
        applies: |exchange, leaf| {
            let start = "patch: Invalid value: \"{";
            let shown = |value: &Value| value.as_str().is_some_and(|text| text.contains(&start[7..]));
            let patch = |answer: &Value| answer["body"]["message"].as_str().is_some_and(|text| text.contains(start));
            let same_code = exchange.simulated["code"] == exchange.real["code"];
            let both = patch(&exchange.simulated) && patch(&exchange.real);
            is_told(leaf) && same_code && both && shown(&leaf.simulated) && shown(&leaf.real)
        },
    },
    Rule {
        name: "rules of an object of another kind",
        system: System::Kubernetes,
        reason: "A custom object that says it is of another kind is refused for that. A real server gives it no defaults \
                 then but runs the rules all the same, and tells of those that miss a default too.",
        applies: |exchange, leaf| {
            let of_kind = |answer: &Value| {
                let message = answer["body"]["message"].as_str();
                message.is_some_and(|text| text.contains("kind: Invalid value: ") && text.contains(": must be "))
            };
            is_told(leaf) && of_kind(&exchange.simulated) && of_kind(&exchange.real)
        },
    },
    Rule {
        name: "key of a dry run",
        system: System::Kubernetes,
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

/// Splits the places in which two answers differ into the names of rules that explain them, each once, and the rest.
pub fn sort(system: System, exchange: &Exchange, leaves: Vec<Leaf>) -> (Vec<&'static str>, Vec<Leaf>) {
    let mut names = Vec::new();
    let mut rest = Vec::new();
    for leaf in leaves {
        match RULES.iter().find(|rule| rule.system == system && (rule.applies)(exchange, &leaf)) {
            Some(rule) if names.contains(&rule.name) => {}
            Some(rule) => names.push(rule.name),
            None => rest.push(leaf),
        }
    }
    (names, rest)
}

/// What the two halves of the comparison leave out, and where the simulator's own list of limits stands.
const NOT_COMPARED: &[(&str, &str)] = &[
    (
        "nulls in an apply",
        "in a server-side apply a null is a value, which the server then refuses or stores; nobody has a use for one",
    ),
    ("writes to the status of a Namespace", "only its controller writes it"),
    ("which namespace controller is faster", "both sides are waited for until they hold the same objects"),
    (
        "the order of the errors in a status, and equal errors told twice",
        "a server's own order is random, and it looks at metadata up to three times",
    ),
    ("Events of the core group, authentication, admission webhooks, discovery", "not simulated"),
];

/// `docs/fidelity.md`.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    for (system, title) in [(System::Kubernetes, "Kubernetes API"), (System::S3, "S3")] {
        let rules: Vec<&Rule> = RULES.iter().filter(|rule| rule.system == system).collect();
        if rules.is_empty() {
            continue;
        }
        text += &format!("\n## Explained differences: {title}\n\n| difference | reason |\n|---|---|\n");
        for rule in rules {
            text += &format!("| {} | {} |\n", rule.name, rule.reason);
        }
    }
    text += "\n## Not compared\n\n| what | why |\n|---|---|\n";
    for (what, why) in NOT_COMPARED {
        text += &format!("| {what} | {why} |\n");
    }
    text
}

const INTRODUCTION: &str = "\
# How true the simulator is

`stowage-sim conformance` asks a real server and the simulator the same, at random, and compares the answers whole: code,
content type, warnings, body. UIDs, versions and times of the run are replaced by the order in which they appear. A
difference is either mended in the simulator or stands here with its reason; anything else fails the run.

How far that is: seed 10, 4,001 operations in 142 sequences against kube-apiserver 1.34, nothing unexplained. Fresh seeds
still find a few oddities in a thousand operations; two are known and open. Applying to an object whose owners were forgotten
makes a manager `before-first-apply` on a real server only; and a PUT to `/status` that shows no change now and then gets a
new resourceVersion there only. S3 stores are not compared yet.

This file is made from the table in `sim/src/conformance/rules.rs` (a test compares): write it anew with
`UPDATE_DOCS=1 cargo test --workspace --lib -- fidelity`.
";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::difference::leaves;
    use super::*;

    #[test]
    fn fidelity_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fidelity.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, document()).expect("the document can be written");
        }
        let stored = std::fs::read_to_string(path).expect("the document is there");
        assert_eq!(stored, document(), "docs/fidelity.md is not that of the table");
    }

    fn rest_of(simulated: serde_json::Value, real: serde_json::Value) -> usize {
        let found = leaves(&simulated, &real);
        let exchange = Exchange { operation: "GET /x".to_owned(), simulated, real };
        sort(System::Kubernetes, &exchange, found).1.len()
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
