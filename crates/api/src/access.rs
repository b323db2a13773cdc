//! `BucketAccess` as stored by the API server (spec §8).

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

/// Buckets to open, the mode for each, and the Secret that receives the credentials.
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
    /// Buckets to open, 1 to 64. Each bucket may be listed once, and no two may have the same name.
    /// The names and prefixes of all entries may have at most 4096 bytes in total.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new(entries_rule())
        .message("the names and prefixes of buckets have more than 4096 bytes together"))]
    pub buckets: Packed<Vec<AccessEntry>>,
    /// Secret that receives the connection, in the namespace of the BucketAccess.
    pub write_connection_secret_to_ref: AccessSecretRef,
    /// Additional or replacement contents of that Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<Packed<SecretTemplate>>,
    /// Schedule on which the credentials are replaced, and the time for which the old ones remain
    /// valid.
    #[serde(default)]
    pub rotation_policy: RotationPolicy,
}

/// Returns the CEL rule that bounds the sum of the strings chosen by a tenant, because every access
/// is kept in memory.
fn entries_rule() -> String {
    let claim = "(has(e.claimRef) ? e.claimRef.name.size() + (has(e.claimRef.namespace) ? e.claimRef.namespace.size() : 0) : 0)";
    let bucket = "(has(e.bucketRef) ? e.bucketRef.backend.size() + e.bucketRef.name.size() : 0)";
    let prefix = "(has(e.prefix) ? size(bytes(e.prefix)) : 0)";
    format!("self.map(e, {claim} + {bucket} + {prefix}).sum() <= {}", BucketAccessSpec::MOST_TEXT)
}

impl BucketAccessSpec {
    /// Maximum number of bytes in the names and prefixes of all entries.
    pub const MOST_TEXT: usize = 4096;
}

/// A bucket to open. Exactly one of `claimRef` and `bucketRef` must be set.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.claimRef) != has(self.bucketRef)")
    .message("an entry has either claimRef or bucketRef"))]
#[serde(rename_all = "camelCase")]
pub struct AccessEntry {
    /// BucketClaim that owns the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<AccessClaimRef>,
    /// Bucket that belongs to no claim and is shared by an administrator in `sharedBuckets` of an
    /// S3Backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_ref: Option<AccessBucketRef>,
    /// Operations allowed on the objects of the bucket. `ReadOnly` allows reading, listing and
    /// copying current objects. `WriteOnly` allows storing objects, but not reading, listing or
    /// deleting them. `ReadWrite` allows everything that a claim's own credentials allow.
    /// Defaults to `ReadWrite`.
    #[serde(default)]
    pub mode: Word<AccessMode>,
    /// Prefix of the object keys to open, 2 to 512 bytes. It must end with a slash, and must not
    /// contain a control character or a segment that is empty, `.` or `..`. If unset, all objects
    /// are opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 512))]
    #[x_kube(validation = Rule::new("self.size() < 2 || self.matches('^([^/[:cntrl:]]+/)+$')")
        .message("prefix must end with a slash, and have no empty segment and no control character"))]
    #[x_kube(validation = Rule::new("!self.matches('(^|/)[.][.]?/')")
        .message("no segment of prefix may be . or .."))]
    pub prefix: Option<String>,
}

/// Reference to a BucketClaim.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessClaimRef {
    /// Name of the BucketClaim.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("name must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub name: String,
    /// Namespace of the BucketClaim. Defaults to the namespace of the BucketAccess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("namespace must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub namespace: Option<String>,
}

/// Reference to a bucket of an S3Backend.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessBucketRef {
    /// Name of the S3Backend.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("backend must be of a-z 0-9 - . and begin and end with a letter or digit"))]
    pub backend: String,
    /// Name of the bucket, 3 to 63 characters.
    #[schemars(length(min = 3, max = 63))]
    pub name: String,
}

/// Reference to the Secret that receives the connection.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessSecretRef {
    /// Name of the Secret, in the namespace of the BucketAccess.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(
        "self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')"
    ).message("name must be that of a Secret: parts of a-z 0-9 - between dots, which begin and end with a letter or digit"))]
    pub name: String,
}

/// Most recently observed state of a BucketAccess, for people and tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketAccessStatus {
    /// Generation of the spec that this status describes. -1 until the operator has processed the
    /// BucketAccess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the Secret that holds the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_secret_name: Option<String>,
    /// Reference to the same Secret, as required by the Service Binding specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// Access key id of the current credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Generation of the current credential. It increases with every rotation; numbers may be
    /// skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_generation: Option<i64>,
    /// Time at which the current credential was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub rotated_at: Option<Time>,
    /// Time at which the next rotation is due. Unset unless `rotationPolicy.mode` is `TimeBased`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub next_rotation_at: Option<Time>,
    /// State of each entry of `spec.buckets`, in the same order.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub buckets: Packed<Vec<AccessEntryStatus>>,
    /// Conditions of the BucketAccess: `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

/// State of an entry of `spec.buckets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessEntryStatus {
    /// Name of the bucket. Set only if its owner consents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Name of the S3Backend that has the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Operations that the credential allows on the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `Open` while the credential opens the bucket, otherwise `Closed`.
    #[serde(default)]
    pub state: String,
    /// Reason why the entry is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
