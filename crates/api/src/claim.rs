//! `BucketClaim` as stored by the API server (spec §1).

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

/// Bucket to provision on a backend, the credentials to it, and their lifecycle.
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
    /// S3Backend on which the bucket is created.
    pub backend_ref: BackendRef,
    /// Name of the bucket: 3 to 63 lower case letters, digits, dots and hyphens, beginning and
    /// ending with a letter or digit. If unset, the backend's `bucketNameTemplate` determines it.
    /// Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 63))]
    // A rule instead of a pattern, so that the message contains no regular expression. Shorter
    // names are reported by minLength.
    #[x_kube(validation = Rule::new("self.size() < 3 || self.matches('^[a-z0-9][a-z0-9.-]*[a-z0-9]$')")
        .message("bucketName must be of a-z 0-9 . - and begin and end with a letter or digit"))]
    #[x_kube(validation = Rule::new("!self.contains('..') && !self.matches('^[0-9]+([.][0-9]+){3}$')")
        .message("bucketName must not contain two dots in a row or look like an IP address"))]
    pub bucket_name: Option<String>,
    /// Policy for the bucket when the claim is deleted. `Retain` keeps it with its contents.
    /// `Delete` deletes it if it is proved to belong to the claim and is empty, or if `forceDelete`
    /// is true. Defaults to `Retain`.
    #[serde(default)]
    pub deletion_policy: Word<DeletionPolicy>,
    /// If true, the bucket is emptied before it is deleted. Requires `deletionPolicy: Delete`. May
    /// be edited while the claim is being deleted. Defaults to false.
    #[serde(default)]
    pub force_delete: bool,
    /// Secret that receives the connection. Its name defaults to `<claim>-s3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<ConnectionSecretRef>,
    /// Additional or replacement contents of that Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<Packed<SecretTemplate>>,
    /// Schedule on which the credentials are replaced, and the time for which the old ones remain
    /// valid.
    #[serde(default)]
    pub rotation_policy: RotationPolicy,
    /// Access to the bucket without credentials, through the gateway.
    #[serde(default)]
    pub anonymous_access: AnonymousAccess,
    /// Limits on the number of bytes stored, enforced by the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// Versioning of the bucket: `Enabled` or `Suspended`. If unset, versioning is not changed. It
    /// is never applied to an adopted bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versioning: Option<Word<Versioning>>,
    /// Rules by which BucketAccesses from other namespaces may open the bucket, at most 8. The
    /// first rule that matches a namespace applies. BucketAccesses from the claim's namespace need
    /// no consent. The namespaces, selectors and prefixes of all rules may have at most 4096 bytes
    /// in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new(sharing_rule())
        .message("the namespaces, selectors and prefixes of sharing have more than 4096 bytes together"))]
    pub sharing: Option<Packed<Vec<SharingRule>>>,
}

/// Reference to an S3Backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendRef {
    /// Name of the S3Backend.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Policy for the bucket when the claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The bucket and its contents are kept.
    #[default]
    Retain,
    /// The bucket is deleted if it is proved to belong to the claim. `forceDelete` applies if it is
    /// not empty.
    Delete,
}

/// Reference to the Secret that receives the connection.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSecretRef {
    /// Name of the Secret, in the namespace of the claim. Defaults to `<claim>-s3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(
        "self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')"
    ).message("name must be that of a Secret: parts of a-z 0-9 - between dots, which begin and end with a letter or digit"))]
    pub name: Option<String>,
}

/// Access to the bucket without credentials, through the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnonymousAccess {
    /// Operations allowed without credentials: `None` or `ReadOnly`. Defaults to `None`.
    #[serde(default)]
    pub mode: Word<AnonymousMode>,
    /// Maximum number of requests per second from one source address. 0 means the default of the
    /// gateway. Defaults to 0.
    #[serde(default, rename = "perSourceIPRPS")]
    #[schemars(range(min = 0))]
    pub per_source_ip_rps: i64,
}

/// Operations allowed without credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AnonymousMode {
    /// No operation is allowed.
    #[default]
    None,
    /// Objects can be read and listed.
    ReadOnly,
}

const QUANTITY: &str = "^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$";

fn quantity_rule(field: &str) -> String {
    format!(
        "!has(self.{field}) || (string(self.{field}).matches('{QUANTITY}') && !quantity(string(self.{field})).isGreaterThan(quantity('7Ei')))"
    )
}

/// Limits on the number of bytes stored. Each is a number from 0 to 7Ei: digits, an optional
/// fraction and an optional suffix (`Ki` to `Ei` or `k` to `E`).
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
    /// Number of bytes above which the gateway warns. Must not be greater than `hard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<Quantity>,
    /// Number of bytes above which the gateway refuses to store more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<Quantity>,
}

/// Versioning state of a bucket, as defined by S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Versioning {
    /// Overwritten and deleted objects are kept as versions.
    Enabled,
    /// No new versions are created.
    Suspended,
}

/// Most recently observed state of a BucketClaim, for people and tools. The state on which the
/// operator's safety depends is stored in its internal Secrets, never here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketClaimStatus {
    /// Generation of the spec that this status describes. -1 until the operator has processed the
    /// BucketClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Phase of the claim's lifecycle, a summary of the conditions.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Name of the bucket, once it is reserved for this claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_name: Option<String>,
    /// Backend of the bucket, as it was when the bucket was reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<PinnedBackend>,
    /// Origin of the bucket: `Created` for this claim, or `Adopted`.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub bucket_origin: Option<BucketOrigin>,
    /// URL of the gateway at which the credentials are valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_endpoint: Option<String>,
    /// Name of the Secret that holds the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_secret_name: Option<String>,
    /// Reference to the same Secret, as required by the Service Binding specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// Access key id of the current credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Generation of the current credential, or of the last one if there is none. It increases with
    /// every rotation; numbers may be skipped.
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
    /// Last value of the annotation `broker.stowage.io/rotate` that was handled. A value longer
    /// than 63 characters is recorded as its SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_rotate_request: Option<String>,
    /// Last value of the annotation `broker.stowage.io/revoke` that was handled. A value longer
    /// than 63 characters is recorded as its SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_revoke_request: Option<String>,
    /// Progress while the bucket is being emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<PurgeProgress>,
    /// Contents of the bucket when a gateway last measured them. Unset if the claim has no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<BucketUsage>,
    /// BucketAccesses to which the bucket is open. Unset if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accesses: Option<ClaimAccesses>,
    /// Conditions of the claim: `Ready`, `BucketCreated`, `CredentialsProvisioned`, and
    /// `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

impl BucketClaimStatus {
    /// Returns the generation of the last credential that this status reported. A negative number
    /// counts as none.
    pub fn shown_generation(&self) -> Option<u64> {
        self.rotation_generation.and_then(|shown| u64::try_from(shown).ok())
    }
}

/// Deserializes a value that this version of the operator does not know as `None`.
///
/// A newer version may have written it before a rollback, and the status must not keep a claim from
/// being served.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let word = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(word.and_then(|word| serde_json::from_value(word).ok()))
}

/// Phase of a claim's lifecycle. The first of these that applies: `Deleting`, `Bound`, `Failed`,
/// `Creating`, `Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The claim waits for something, or has not been processed yet.
    Pending,
    /// The name of the bucket is reserved for this claim.
    Creating,
    /// Bucket and credentials exist.
    Bound,
    /// The claim is being deleted.
    Deleting,
    /// The claim cannot proceed until a user changes something.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Creating, Self::Bound, Self::Deleting, Self::Failed];

    /// Returns the value used in the status.
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

/// Backend of a bucket, as it was when the bucket was reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PinnedBackend {
    /// Name of the S3Backend.
    pub name: String,
    /// Endpoint of the S3Backend.
    pub endpoint: String,
}

/// Origin of a claim's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BucketOrigin {
    /// The bucket was created for this claim.
    Created,
    /// The bucket existed before, or the claim has moved away from it. It is never emptied or
    /// deleted.
    Adopted,
}

/// Progress while a bucket is being emptied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PurgeProgress {
    /// Number of versions, delete markers and unfinished uploads removed so far.
    pub objects_deleted: i64,
    /// Time at which the first slice began.
    #[schemars(with = "schema::Time")]
    pub started_at: Time,
}

/// Contents of a bucket, as measured by gateways for a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketUsage {
    /// Number of bytes in all objects, their versions and the parts of unfinished uploads.
    pub bytes: i64,
    /// Number of objects, including their versions.
    pub objects: i64,
    /// Time at which the measurement began, by the clock of the gateway that made it.
    #[schemars(with = "schema::Time")]
    pub measured_at: Time,
}

/// BucketAccesses to which a claim's bucket is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimAccesses {
    /// Number of BucketAccesses.
    pub count: i64,
    /// First BucketAccesses in order of namespace and name, as `<namespace>/<name>`: at most 20,
    /// and at most 2 KiB in total.
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
