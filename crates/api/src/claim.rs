//! `BucketClaim` as the API server stores it (spec §1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::packed::Packed;
use super::quantity::Quantity;
use super::rotation::RotationPolicy;
use super::schema;
use super::secret_template::{Binding, SecretTemplate};
use super::sharing::{SharingRule, sharing_rule};
use super::word::Word;

/// What a claim asks for: a bucket on a backend, credentials to it, and what becomes of them.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "broker.stowage.io",
    version = "v1alpha1",
    kind = "BucketClaim",
    doc = "Asks for an S3 bucket on a backend, and for a Secret with scoped, rotating credentials to it.",
    plural = "bucketclaims",
    singular = "bucketclaim",
    shortname = "bc",
    category = "stowage",
    namespaced,
    status = "BucketClaimStatus",
    derive = "PartialEq",
    selectable = ".spec.backendRef.name",
    selectable = ".status.bucketName",
    printcolumn(name = "Bucket", type_ = "string", json_path = ".status.bucketName"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Backend", type_ = "string", json_path = ".spec.backendRef.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "SecretName", type_ = "string", json_path = ".status.boundSecretName", priority = 1),
    printcolumn(name = "AccessKey", type_ = "string", json_path = ".status.accessKeyId", priority = 1),
    printcolumn(name = "Rotated", type_ = "date", json_path = ".status.rotatedAt", priority = 1),
    validation = Rule::new(
        "self.metadata.name.size() <= 250 || (has(self.spec.writeConnectionSecretToRef) && has(self.spec.writeConnectionSecretToRef.name))"
    ).message("a claim name over 250 characters needs spec.writeConnectionSecretToRef.name"),
)]
#[x_kube(
    validation = Rule::new(
        "has(self.bucketName) == has(oldSelf.bucketName) && (!has(self.bucketName) || self.bucketName == oldSelf.bucketName)"
    )
    .message("bucketName is immutable: it can't be set, changed or removed after creation")
    .field_path(".bucketName"),
    validation = Rule::new("!self.forceDelete || self.deletionPolicy == 'Delete'")
        .message("forceDelete: true requires deletionPolicy: Delete")
        .field_path(".forceDelete"),
)]
#[serde(rename_all = "camelCase")]
pub struct BucketClaimSpec {
    /// The S3Backend that the bucket is made on.
    pub backend_ref: BackendRef,
    /// Name of the bucket; when absent, the backend's template gives it. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 63))]
    // A rule rather than a pattern, for a message without a regular expression. minLength speaks
    // for shorter ones.
    #[x_kube(validation = Rule::new("self.size() < 3 || self.matches('^[a-z0-9][a-z0-9.-]*[a-z0-9]$')")
        .message("bucketName must be of a-z 0-9 . - and begin and end with a letter or digit"))]
    #[x_kube(validation = Rule::new("!self.contains('..') && !self.matches('^[0-9]+([.][0-9]+){3}$')")
        .message("bucketName must not contain two dots in a row or look like an IP address"))]
    pub bucket_name: Option<String>,
    /// What becomes of the bucket when the claim is deleted.
    #[serde(default)]
    pub deletion_policy: Word<DeletionPolicy>,
    /// Empty the bucket before it is deleted. May be edited while the claim is being deleted.
    #[serde(default)]
    pub force_delete: bool,
    /// The Secret that receives the connection; `<claim>-s3` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<ConnectionSecretRef>,
    /// What that Secret has besides the connection, or in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<Packed<SecretTemplate>>,
    /// When the credentials are replaced, and how long the old ones go on working.
    #[serde(default)]
    pub rotation_policy: RotationPolicy,
    /// Access without credentials, through the gateway.
    #[serde(default)]
    pub anonymous_access: AnonymousAccess,
    /// Limits on the bytes stored, enforced by the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// Versioning of the bucket; left alone when unset, never applied to an adopted bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versioning: Option<Word<Versioning>>,
    /// Which namespaces' accesses the bucket is open to besides those of the claim's own, which
    /// need no consent, and how far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new(sharing_rule())
        .message("the namespaces, selectors and prefixes of sharing have more than 4096 bytes together"))]
    pub sharing: Option<Packed<Vec<SharingRule>>>,
}

/// Names an S3Backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendRef {
    /// Name of the S3Backend.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What becomes of the bucket when the claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The bucket stays, with all it holds.
    #[default]
    Retain,
    /// The bucket is deleted, if it is proved ours; see `forceDelete` for one that isn't empty.
    Delete,
}

/// Names the Secret that receives the connection.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSecretRef {
    /// Name of the Secret, in the claim's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(
        "self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')"
    ).message("name must be that of a Secret: parts of a-z 0-9 - between dots, which begin and end with a letter or digit"))]
    pub name: Option<String>,
}

/// Access without credentials, through the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnonymousAccess {
    /// What may be done without credentials.
    #[serde(default)]
    pub mode: Word<AnonymousMode>,
    /// Requests per second that one source address may make; 0 = the gateway's default.
    #[serde(default, rename = "perSourceIPRPS")]
    #[schemars(range(min = 0))]
    pub per_source_ip_rps: i64,
}

/// What may be done without credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AnonymousMode {
    /// Nothing.
    #[default]
    None,
    /// Objects may be read and listed.
    ReadOnly,
}

const QUANTITY: &str = "^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$";

fn quantity_rule(field: &str) -> String {
    format!(
        "!has(self.{field}) || (string(self.{field}).matches('{QUANTITY}') && !quantity(string(self.{field})).isGreaterThan(quantity('7Ei')))"
    )
}

/// Limits on the bytes stored: digits, optional fraction, optional suffix (`Ki…Ei` or `k…E`), 0 to
/// 7Ei.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new(quantity_rule("soft"))
        .message("soft must be a number of bytes from 0 to 7Ei, such as 1.5Gi or 500M").field_path(".soft"),
    validation = Rule::new(quantity_rule("hard"))
        .message("hard must be a number of bytes from 0 to 7Ei, such as 1.5Gi or 500M").field_path(".hard"),
    validation = Rule::new(
        "!has(self.soft) || !has(self.hard) || !isQuantity(string(self.soft)) || !isQuantity(string(self.hard)) || quantity(string(self.soft)).compareTo(quantity(string(self.hard))) <= 0"
    ).message("soft must not be above hard").field_path(".soft"),
)]
pub struct Quota {
    /// Bytes above which the gateway warns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<Quantity>,
    /// Bytes above which the gateway refuses to store more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<Quantity>,
}

/// Versioning of a bucket, in S3's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Versioning {
    /// Overwritten and deleted objects are kept as versions.
    Enabled,
    /// No new versions are made.
    Suspended,
}

/// How far the operator has come with a claim: for people and tools. What it must remember to be
/// safe stands in its own Secrets, never here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketClaimStatus {
    /// The generation that this status speaks of; -1 = nobody has looked at the claim yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where in its life the claim is; a summary of the conditions.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Name of the bucket, once it is held for this claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_name: Option<String>,
    /// The backend that the bucket is on, as it was when the bucket was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<PinnedBackend>,
    /// Whether the bucket was made for this claim or taken over.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub bucket_origin: Option<BucketOrigin>,
    /// URL of the gateway that the credentials work at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_endpoint: Option<String>,
    /// The Secret that holds the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_secret_name: Option<String>,
    /// The same Secret, where Service Binding looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// Access key id of the current credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Generation of the current credential, or of the last one; grows with every rotation, numbers
    /// may be skipped.
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
    /// The last value of the rotate annotation that was acted on (a SHA-256 of one over 63
    /// characters).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_rotate_request: Option<String>,
    /// The last value of the revoke annotation that was acted on (a SHA-256 of one over 63
    /// characters).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_revoke_request: Option<String>,
    /// Progress while the bucket is being emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<PurgeProgress>,
    /// What the bucket held when a gateway last measured it; absent without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<BucketUsage>,
    /// The accesses that the bucket is open to; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accesses: Option<ClaimAccesses>,
    /// `Ready`, `BucketCreated`, `CredentialsProvisioned`, and `Reconciling` or `Stalled` while
    /// true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

impl BucketClaimStatus {
    /// The generation of the last credential that this status showed, unless that is no number of
    /// one.
    pub fn shown_generation(&self) -> Option<u64> {
        self.rotation_generation.and_then(|shown| u64::try_from(shown).ok())
    }
}

/// A word that this version of the operator doesn't know counts as none: a newer one may have
/// written it before it was rolled back, and what the status says must not keep a claim from being
/// served.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let word = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(word.and_then(|word| serde_json::from_value(word).ok()))
}

/// Where in its life a claim is. The first that fits: `Deleting`, `Bound`, `Failed`, `Creating`,
/// `Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Waits for something, or nobody has looked yet.
    Pending,
    /// The bucket's name is held for this claim.
    Creating,
    /// Bucket and credentials are there.
    Bound,
    /// Is being deleted.
    Deleting,
    /// Can't go on until somebody changes something.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Creating, Self::Bound, Self::Deleting, Self::Failed];

    /// The word that stands in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Creating => "Creating",
            Self::Bound => "Bound",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }
}

/// The backend that a bucket is on, as it was when the bucket was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PinnedBackend {
    /// Name of the S3Backend.
    pub name: String,
    /// Its endpoint.
    pub endpoint: String,
}

/// Whether a bucket was made for its claim or taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BucketOrigin {
    /// Made for this claim.
    Created,
    /// Was there before, or was left by the claim; never emptied, never deleted.
    Adopted,
}

/// Progress while a bucket is being emptied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PurgeProgress {
    /// Versions, delete markers and unfinished uploads removed so far.
    pub objects_deleted: i64,
    /// When the first slice began.
    #[schemars(with = "schema::Time")]
    pub started_at: Time,
}

/// What a bucket holds, as gateways measure it for a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketUsage {
    /// Bytes of all objects, their versions and the parts of unfinished uploads.
    pub bytes: i64,
    /// Objects, their versions included.
    pub objects: i64,
    /// When the measuring began, by the clock of the gateway that did it.
    #[schemars(with = "schema::Time")]
    pub measured_at: Time,
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_in_the_status_that_a_newer_version_wrote_keeps_nothing_from_being_read() {
        let status = json!({"phase": "Hibernating", "bucketOrigin": "Cloned", "bucketName": "photos"});
        let status: BucketClaimStatus = serde_json::from_value(status).unwrap();
        assert_eq!((status.phase, status.bucket_origin), (None, None));
        assert_eq!(status.bucket_name.as_deref(), Some("photos"));
        let status: BucketClaimStatus = serde_json::from_value(json!({"phase": "Bound"})).unwrap();
        assert_eq!(status.phase, Some(Phase::Bound));
    }
}
