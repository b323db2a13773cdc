//! The contract with gateway and tenants: labels, annotations and data keys (spec §2).
//!
//! Labels are for selection only. They prove nothing, because tenants can forge them.

use sha2::{Digest, Sha256};

/// Prefix of all labels, annotations and bucket tags of Stowage.
pub const PREFIX: &str = "broker.stowage.io/";

/// Label: the role of a Secret, see [`Role`].
pub const ROLE: &str = "broker.stowage.io/role";
/// Label: namespace of the claim.
pub const CLAIM_NAMESPACE: &str = "broker.stowage.io/claim-namespace";
/// Label: name of the claim.
pub const CLAIM_NAME: &str = "broker.stowage.io/claim-name";
/// Label: UID of the claim. Also a bucket tag.
pub const CLAIM_UID: &str = "broker.stowage.io/claim-uid";
/// Label: name of the backend.
pub const BACKEND: &str = "broker.stowage.io/backend";
/// Label: name of the bucket.
pub const BUCKET: &str = "broker.stowage.io/bucket";
/// Label: access key id, on credentials.
pub const ACCESS_KEY_ID: &str = "broker.stowage.io/access-key-id";
/// Label: generation of the credential, on credentials.
pub const ROTATION_GENERATION: &str = "broker.stowage.io/rotation-generation";
/// Label: namespace of the access.
pub const ACCESS_NAMESPACE: &str = "broker.stowage.io/access-namespace";
/// Label: name of the access.
pub const ACCESS_NAME: &str = "broker.stowage.io/access-name";
/// Label: UID of the access. No Secret has both this label and [`CLAIM_UID`].
pub const ACCESS_UID: &str = "broker.stowage.io/access-uid";
/// Annotation on an internal Secret that is being retired: the RFC 3339 time from which its key
/// must be refused.
pub const EXPIRES_AT: &str = "broker.stowage.io/expires-at";

/// Annotation on a consumer Secret: the names of the labels, annotations and data written by
/// templates.
pub const TEMPLATE: &str = "broker.stowage.io/template";

/// Label: the purpose of a gateway's ConfigMap or Lease for the accounting of usage, see [`Usage`].
pub const USAGE: &str = "broker.stowage.io/usage";

/// Purpose of a gateway's object (label `broker.stowage.io/usage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Bytes written by one replica. A ConfigMap.
    Counters,
    /// Contents of a bucket, as found by a scan. A ConfigMap.
    Snapshot,
    /// Sign of life of a replica. A Lease.
    Replica,
}

impl Usage {
    /// Returns the value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Snapshot => "snapshot",
            Self::Replica => "replica",
        }
    }
}

/// Data key of the endpoint of the bucket's store: in records, and in credentials and bindings of
/// versions that record it.
pub const ENDPOINT: &str = "endpoint";

/// Label with the value `"true"` on a Secret whose owner allows backends to use it as credentials
/// of a store.
pub const BACKEND_CREDENTIALS: &str = "broker.stowage.io/backend-credentials";
/// Annotation on such a Secret: the endpoints to which its values may be sent.
pub const ENDPOINTS: &str = "broker.stowage.io/endpoints";

/// Name prefix of bucket records, in the operator's namespace.
pub const RECORD_PREFIX: &str = "br-";
/// Name prefix of virtual credentials, in the operator's namespace.
pub const CREDENTIAL_PREFIX: &str = "vc-";
/// Name prefix of anonymous bindings, in the operator's namespace.
pub const BINDING_PREFIX: &str = "ab-";

/// Name prefix of access records, in the operator's namespace.
pub const ACCESS_RECORD_PREFIX: &str = "ar-";
/// Name prefix of access credentials, in the operator's namespace.
pub const ACCESS_CREDENTIAL_PREFIX: &str = "va-";

/// Name prefixes of Secrets that are never used as credentials of a store, even if their labels
/// allow it.
pub const INTERNAL_PREFIXES: [&str; 5] =
    [RECORD_PREFIX, CREDENTIAL_PREFIX, BINDING_PREFIX, ACCESS_RECORD_PREFIX, ACCESS_CREDENTIAL_PREFIX];

/// Annotation on a claim: any new value requests a rotation.
pub const ROTATE: &str = "broker.stowage.io/rotate";
/// Annotation on a claim: any new value requests the immediate revocation of all keys of the claim.
pub const REVOKE: &str = "broker.stowage.io/revoke";
/// Annotation on a claim: with the value `"true"` the operator changes nothing but the status. If
/// the claim is deleted, access to its bucket ends nevertheless (spec §1).
pub const PAUSED: &str = "broker.stowage.io/paused";

/// Annotation on a backend and on a claim: the operator that serves it, as `namespace/installation`
/// (spec §1). Other operators leave the object alone.
pub const SERVED_BY: &str = "broker.stowage.io/served-by";

/// Bucket tag: the installation that created the bucket.
pub const TAG_INSTALLATION: &str = "broker.stowage.io/installation";
/// Bucket tag: `namespace/name` of the claim.
pub const TAG_CLAIM: &str = "broker.stowage.io/claim";
/// Bucket tag: UID of the claim.
pub const TAG_CLAIM_UID: &str = CLAIM_UID;

/// Labels of Stowage's Secrets. If a value is too long for a label, an annotation of the same name
/// contains all of it.
pub const LABELS: [&str; 11] = [
    ROLE,
    CLAIM_NAMESPACE,
    CLAIM_NAME,
    CLAIM_UID,
    BACKEND,
    BUCKET,
    ACCESS_KEY_ID,
    ROTATION_GENERATION,
    ACCESS_NAMESPACE,
    ACCESS_NAME,
    ACCESS_UID,
];

/// Role of a Secret (label `broker.stowage.io/role`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Holder of a bucket, and the persistent state of its claim. In the operator's namespace.
    BucketRecord,
    /// A virtual credential. In the operator's namespace.
    VirtualCredential,
    /// Public access to a bucket. In the operator's namespace.
    AnonymousBinding,
    /// The connection for a tenant. In the namespace of the claim or access.
    ConsumerSecret,
    /// Persistent state of an access. In the operator's namespace.
    AccessRecord,
    /// A virtual credential of an access. In the operator's namespace.
    AccessCredential,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] = [
        Self::BucketRecord,
        Self::VirtualCredential,
        Self::AnonymousBinding,
        Self::ConsumerSecret,
        Self::AccessRecord,
        Self::AccessCredential,
    ];

    /// Returns the value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BucketRecord => "bucket-record",
            Self::VirtualCredential => "virtual-credential",
            Self::AnonymousBinding => "anonymous-binding",
            Self::ConsumerSecret => "consumer-secret",
            Self::AccessRecord => "access-record",
            Self::AccessCredential => "access-credential",
        }
    }

    /// Returns the role of an internal Secret with this name. The name alone proves nothing,
    /// because anyone may have created the Secret.
    pub fn of_internal(name: &str) -> Option<Self> {
        let roles = [
            (RECORD_PREFIX, Self::BucketRecord),
            (CREDENTIAL_PREFIX, Self::VirtualCredential),
            (BINDING_PREFIX, Self::AnonymousBinding),
            (ACCESS_RECORD_PREFIX, Self::AccessRecord),
            (ACCESS_CREDENTIAL_PREFIX, Self::AccessCredential),
        ];
        roles.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, role)| role)
    }
}

/// Returns true if the name has one of [`INTERNAL_PREFIXES`].
pub fn is_internal_name(name: &str) -> bool {
    INTERNAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns `value` if it fits into a label, otherwise its beginning and a hash. In that case an
/// annotation with the label's name contains all of it.
pub fn label_value(value: &str) -> String {
    shorten(value, 63)
}

/// Returns `value` if it fits into a bucket tag (256 characters, S3 API), otherwise its beginning
/// and a hash.
pub fn tag_value(value: &str) -> String {
    shorten(value, 256)
}

fn shorten(value: &str, limit: usize) -> String {
    if value.len() <= limit {
        return value.to_owned();
    }
    let digest = hex::encode(Sha256::digest(value));
    // Names of Kubernetes objects and buckets are ASCII. For other values, only whole characters
    // are kept, because slicing inside a character panics.
    let head: String = value.chars().take_while(char::is_ascii).take(limit - 17).collect();
    format!("{head}-{}", &digest[..16])
}

/// Returns the receipt of a rotate or revoke request: the value if it has at most 63 bytes,
/// otherwise its SHA-256 (spec §1, status).
pub fn receipt(value: &str) -> String {
    if value.len() <= 63 { value.to_owned() } else { hex::encode(Sha256::digest(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_stay_whole() {
        assert_eq!(label_value(&"x".repeat(63)), "x".repeat(63));
    }

    // covers: 2.labels.long
    #[test]
    fn longer_values_are_shortened_and_stay_apart() {
        let one = label_value(&format!("{}a", "x".repeat(70)));
        let two = label_value(&format!("{}b", "x".repeat(70)));
        assert_eq!((one.len(), two.len()), (63, 63));
        assert_ne!(one, two);
    }

    // covers: 1.status.handledRotateRequest, 1.status.handledRevokeRequest
    #[test]
    fn a_long_request_is_remembered_by_its_hash() {
        assert_eq!(receipt("2026-01-01"), "2026-01-01");
        assert_eq!(receipt(&"x".repeat(64)).len(), 64);
        assert_ne!(receipt(&"x".repeat(64)), "x".repeat(64));
    }
}
