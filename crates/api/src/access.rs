//! `BucketAccess` as the API server stores it (spec §8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packed::Packed;
use super::rotation::RotationPolicy;
use super::schema;
use super::secret_template::{Binding, SecretTemplate};
use super::sharing::AccessMode;
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

impl BucketAccessSpec {
    /// Most bytes of the names and prefixes of all entries.
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
