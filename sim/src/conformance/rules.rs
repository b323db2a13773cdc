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
        applies: |_, leaf| {
            let conditions = leaf.path.ends_with("status.conditions") && leaf.simulated.is_null();
            conditions || managed_beside(leaf, "kube-controller-manager")
        },
    },
    Rule {
        name: "warnings of a refused request",
        system: System::Kubernetes,
        reason: "A real server tells of unknown fields also where it refuses the object for another reason. A client has \
                 the reason to go by.",
        applies: |exchange, leaf| {
            let refused = exchange.real["code"].as_u64().is_some_and(|code| code >= 400);
            leaf.path.starts_with("warnings") && refused && leaf.simulated == Value::Array(Vec::new())
        },
    },
    Rule {
        name: "streamed list of an older etcd",
        system: System::Kubernetes,
        reason: "A server whose etcd has no progress notifications refuses `sendInitialEvents`; the simulator plays one \
                 that has them. Clients fall back to a list.",
        applies: |exchange, _| {
            let first = exchange.real["events"][0]["object"]["message"].as_str();
            first.is_some_and(|message| message.contains("RequestWatchProgress is disabled"))
        },
    },
];

/// Whether the place is one that tells people what is wrong.
fn is_told(leaf: &Leaf) -> bool {
    leaf.path == "body.message" || leaf.path.starts_with("body.details.causes.")
}

/// Whether the real server knows this manager beside those that the simulator knows, and nothing else differs.
fn managed_beside(leaf: &Leaf, manager: &str) -> bool {
    let entries = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut real = entries(&leaf.real);
    real.retain(|entry| entry["manager"] != manager);
    leaf.path.ends_with("managedFields") && leaf.real.is_array() && real == entries(&leaf.simulated)
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
