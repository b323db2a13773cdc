//! Rules of sharing as the API server stores them: of a claim's bucket, and of one that no claim
//! has (spec §8).

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::word::Word;

/// What may be done with the objects of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// Present objects are read, listed and copied from.
    ReadOnly,
    /// Objects are stored, also in parts, by forms and by copies, and none is read, listed or
    /// deleted.
    WriteOnly,
    /// All that the claim's own key is for.
    #[default]
    ReadWrite,
}

impl AccessMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WriteOnly, Self::ReadWrite];

    /// The word that stands in manifests, Secrets and the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::WriteOnly => "WriteOnly",
            Self::ReadWrite => "ReadWrite",
        }
    }

    /// What both allow; `None` where that is nothing.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::ReadWrite, mode) | (mode, Self::ReadWrite) => Some(mode),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// Sums the bytes of the texts that a tenant chooses in the rules of a claim: they are kept in
/// memory.
pub(super) fn sharing_rule() -> String {
    let sum = |of: &str, each: &str| format!("(has({of}) ? {of}.map({each}).sum() : 0)");
    let labels = "r.namespaces.selector.matchLabels";
    let names = sum("r.namespaces.names", "n, n.size()");
    let prefixes = sum("r.prefixes", "p, size(bytes(p))");
    let matches = sum(labels, &format!("k, k.size() + {labels}[k].size()"));
    let values = sum("e.values", "v, v.size()");
    let expressions = sum("r.namespaces.selector.matchExpressions", &format!("e, e.key.size() + {values}"));
    let selector = format!("(has(r.namespaces.selector) ? {matches} + {expressions} : 0)");
    format!("self.map(r, {names} + {prefixes} + {selector}).sum() <= {}", SharingRule::MOST_TEXT)
}

impl SharingRule {
    /// Most bytes of the namespaces, selectors and prefixes of all rules of a claim.
    pub const MOST_TEXT: usize = 4096;
}

/// Whom the owner of a bucket lets have accesses to it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharingRule {
    /// The namespaces whose accesses are let in.
    pub namespaces: SharedWith,
    /// The most that they may be let do.
    pub max_mode: Word<AccessMode>,
    /// What the keys of objects begin with that they may be let at, each as the prefix of an
    /// access. Absent = all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), inner(length(min = 2, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^([^/[:cntrl:]]+/)+$') && !it.matches('(^|/)[.][.]?/'))")
        .message("each of prefixes must end with a slash, and have no control character and no segment that is empty, . or .."))]
    pub prefixes: Option<Vec<String>>,
}

/// Namespaces: those that `names` lists *or* `selector` matches.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.names) || has(self.selector)")
    .message("namespaces are named by names or by selector"))]
pub struct SharedWith {
    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Option<Vec<String>>,
    /// Namespaces by label. A present but empty selector matches every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = StructMerge::Atomic)]
    pub selector: Option<SharedSelector>,
}

/// A label selector as Kubernetes has it, with closer bounds: a tenant writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedSelector {
    /// Labels that must have just these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    pub match_expressions: Option<Vec<SharedRequirement>>,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedRequirement {
    /// The label's key.
    #[schemars(length(max = 317))]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`. A selector with any other word matches nothing.
    #[schemars(length(max = 16))]
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), inner(length(max = 63)))]
    pub values: Option<Vec<String>>,
}

/// A bucket that no claim has and that an administrator shares.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedBucket {
    /// Name of the bucket.
    #[schemars(length(min = 3, max = 63))]
    pub name: String,
    /// The namespaces whose accesses are let in, by name.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub namespaces: Vec<String>,
    /// The most that they may be let do.
    pub max_mode: Word<AccessMode>,
    /// What the keys of objects begin with that they may be let at, each as the prefix of an
    /// access. Absent = all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), inner(length(min = 2, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^([^/[:cntrl:]]+/)+$') && !it.matches('(^|/)[.][.]?/'))")
        .message("each of prefixes must end with a slash, and have no control character and no segment that is empty, . or .."))]
    pub prefixes: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::AccessMode::{self, ReadOnly, ReadWrite, WriteOnly};

    #[rstest]
    #[case(ReadWrite, ReadWrite, Some(ReadWrite))]
    #[case(ReadWrite, ReadOnly, Some(ReadOnly))]
    #[case(WriteOnly, ReadWrite, Some(WriteOnly))]
    #[case(ReadOnly, ReadOnly, Some(ReadOnly))]
    #[case(ReadOnly, WriteOnly, None)]
    #[case(WriteOnly, ReadOnly, None)]
    fn of_two_modes_what_both_allow_is_allowed(
        #[case] one: AccessMode,
        #[case] other: AccessMode,
        #[case] both: Option<AccessMode>,
    ) {
        assert_eq!(one.and(other), both);
    }
}
