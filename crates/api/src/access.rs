//! `BucketAccess` as the API server stores it, and consent to it (spec §8).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::RotationPolicy;
use super::packed::Packed;
use super::schema;
use super::secret_template::{Binding, SecretTemplate};
use super::word::Word;

/// Which buckets are to be opened, how far, and where the key to them goes.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "broker.stowage.io",
    version = "v1alpha1",
    kind = "BucketAccess",
    doc = "Asks for a key of its own to buckets that others have, as far as their owners consent.",
    plural = "bucketaccesses",
    singular = "bucketaccess",
    shortname = "ba",
    category = "stowage",
    namespaced,
    status = "BucketAccessStatus",
    derive = "PartialEq",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Reason", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].reason"#),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.boundSecretName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "AccessKey", type_ = "string", json_path = ".status.accessKeyId", priority = 1),
    printcolumn(name = "Rotated", type_ = "date", json_path = ".status.rotatedAt", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct BucketAccessSpec {
    /// The buckets, each at most once, and no two of one name.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new(entries_rule())
        .message("the names and prefixes of buckets have more than 4096 bytes together"))]
    pub buckets: Packed<Vec<AccessEntry>>,
    /// The Secret that receives the connection, in the namespace of the access.
    pub write_connection_secret_to_ref: AccessSecretRef,
    /// What that Secret has besides the connection, or in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<Packed<SecretTemplate>>,
    /// When the credentials are replaced, and how long the old ones go on working.
    #[serde(default)]
    pub rotation_policy: RotationPolicy,
}

/// Sums the bytes of the texts that a tenant chooses: they are kept in memory, for every access.
fn entries_rule() -> String {
    let claim = "(has(e.claimRef) ? e.claimRef.name.size() + (has(e.claimRef.namespace) ? e.claimRef.namespace.size() : 0) : 0)";
    let bucket = "(has(e.bucketRef) ? e.bucketRef.backend.size() + e.bucketRef.name.size() : 0)";
    let prefix = "(has(e.prefix) ? size(bytes(e.prefix)) : 0)";
    format!("self.map(e, {claim} + {bucket} + {prefix}).sum() <= {}", BucketAccessSpec::MOST_TEXT)
}

/// The same of the rules of a claim.
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

impl BucketAccessSpec {
    /// Most bytes of the names and prefixes of all entries.
    pub const MOST_TEXT: usize = 4096;
}

impl SharingRule {
    /// Most bytes of the namespaces, selectors and prefixes of all rules of a claim.
    pub const MOST_TEXT: usize = 4096;
}

/// One bucket that is to be opened.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.claimRef) != has(self.bucketRef)")
    .message("an entry has either claimRef or bucketRef"))]
#[serde(rename_all = "camelCase")]
pub struct AccessEntry {
    /// The claim whose bucket it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<AccessClaimRef>,
    /// A bucket that no claim has, and that an administrator shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_ref: Option<AccessBucketRef>,
    /// What may be done with the objects of the bucket.
    #[serde(default)]
    pub mode: Word<AccessMode>,
    /// What the keys of objects begin with that it is for: it ends with a slash. Absent = all of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 512))]
    #[x_kube(validation = Rule::new("self.size() < 2 || self.matches('^([^/[:cntrl:]]+/)+$')")
        .message("prefix must end with a slash, and have no empty segment and no control character"))]
    #[x_kube(validation = Rule::new("!self.matches('(^|/)[.][.]?/')")
        .message("no segment of prefix may be . or .."))]
    pub prefix: Option<String>,
}

/// Names a BucketClaim.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessClaimRef {
    /// Name of the BucketClaim.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("name must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub name: String,
    /// Its namespace; that of the access when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("namespace must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub namespace: Option<String>,
}

/// Names a bucket of a backend.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessBucketRef {
    /// Name of the S3Backend.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("backend must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub backend: String,
    /// Name of the bucket.
    #[schemars(length(min = 3, max = 63))]
    pub name: String,
}

/// Names the Secret that receives the connection.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessSecretRef {
    /// Name of the Secret, in the namespace of the access.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(
        "self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')"
    ).message("name must be that of a Secret: parts of a-z 0-9 - between dots, which begin and end with a letter or digit"))]
    pub name: String,
}

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

/// How far the operator has come with an access: for people and tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketAccessStatus {
    /// The generation that this status speaks of; -1 = nobody has looked at the access yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The Secret that holds the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_secret_name: Option<String>,
    /// The same Secret, where Service Binding looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// Access key id of the current credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Generation of the current credential; grows with every rotation, numbers may be skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_generation: Option<i64>,
    /// When the current credential was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub rotated_at: Option<Time>,
    /// When the next rotation is due; absent unless rotation is TimeBased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub next_rotation_at: Option<Time>,
    /// The entries, in their order.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub buckets: Packed<Vec<AccessEntryStatus>>,
    /// `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

/// What has come of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessEntryStatus {
    /// Name of the bucket, where its owner consents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Name of the S3Backend that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// What the key may do there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `Open` while the key opens the bucket, else `Closed`.
    #[serde(default)]
    pub state: String,
    /// Why it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The accesses that a claim's bucket is open to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimAccesses {
    /// How many there are.
    pub count: i64,
    /// The first of them, as namespace and name, in that order: twenty, or as many as have 2 KiB.
    pub first: Vec<String>,
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
