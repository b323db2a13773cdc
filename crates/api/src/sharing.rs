//! Sharing rules as stored by the API server: for the bucket of a claim, and for a bucket that
//! belongs to no claim (spec §8).

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::word::Word;

/// Operations allowed on the objects of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// Current objects can be read, listed and copied from.
    ReadOnly,
    /// Objects can be stored, also by multipart uploads, forms and copies. They cannot be read,
    /// listed or deleted.
    WriteOnly,
    /// All operations that the claim's own key allows.
    #[default]
    ReadWrite,
}

impl AccessMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WriteOnly, Self::ReadWrite];

    /// Returns the value used in manifests, Secrets and the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::WriteOnly => "WriteOnly",
            Self::ReadWrite => "ReadWrite",
        }
    }

    /// Returns the operations that both modes allow; `None` if there are none.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::ReadWrite, mode) | (mode, Self::ReadWrite) => Some(mode),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// Returns the CEL rule that bounds the sum of the strings in a claim's rules, which a tenant
/// chooses and which are kept in memory.
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
    /// Maximum number of bytes in the namespaces, selectors and prefixes of all rules of a claim.
    pub const MOST_TEXT: usize = 4096;
}

/// Rule by which the owner of a bucket consents to accesses from other namespaces.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharingRule {
    /// Namespaces whose BucketAccesses may open the bucket.
    pub namespaces: SharedWith,
    /// Widest mode that their BucketAccesses may have: `ReadOnly`, `WriteOnly` or `ReadWrite`.
    pub max_mode: Word<AccessMode>,
    /// Prefixes of the object keys that their BucketAccesses may open, 1 to 8 of 2 to 256
    /// characters each, in the format of the prefix in a BucketAccess. If unset, all objects may be
    /// opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), inner(length(min = 2, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^([^/[:cntrl:]]+/)+$') && !it.matches('(^|/)[.][.]?/'))")
        .message("each of prefixes must end with a slash, and have no control character and no segment that is empty, . or .."))]
    pub prefixes: Option<Vec<String>>,
}

/// Namespaces listed in `names` and those matched by `selector`. At least one of the two must be
/// set.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.names) || has(self.selector)")
    .message("namespaces are named by names or by selector"))]
pub struct SharedWith {
    /// Names of namespaces, at most 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Option<Vec<String>>,
    /// Selector over the labels of namespaces. An empty selector matches all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = StructMerge::Atomic)]
    pub selector: Option<SharedSelector>,
}

/// A label selector like the one of Kubernetes, with tighter bounds because a tenant writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedSelector {
    /// Labels and the values that they must have, at most 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements, all of which must be satisfied, at most 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    pub match_expressions: Option<Vec<SharedRequirement>>,
}

/// A requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedRequirement {
    /// Key of the label.
    #[schemars(length(max = 317))]
    pub key: String,
    /// Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`. A selector with any other operator
    /// matches nothing.
    #[schemars(length(max = 16))]
    pub operator: String,
    /// Values for the operators `In` and `NotIn`, at most 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), inner(length(max = 63)))]
    pub values: Option<Vec<String>>,
}

/// A bucket that belongs to no claim and that an administrator shares.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedBucket {
    /// Name of the bucket, 3 to 63 characters.
    #[schemars(length(min = 3, max = 63))]
    pub name: String,
    /// Names of the namespaces whose BucketAccesses may open the bucket, 1 to 64.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub namespaces: Vec<String>,
    /// Widest mode that their BucketAccesses may have: `ReadOnly`, `WriteOnly` or `ReadWrite`.
    pub max_mode: Word<AccessMode>,
    /// Prefixes of the object keys that their BucketAccesses may open, 1 to 8 of 2 to 256
    /// characters each, in the format of the prefix in a BucketAccess. If unset, all objects may be
    /// opened.
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
