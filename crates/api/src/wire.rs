//! The wire contract with gateway and tenants: labels, annotations and data keys (spec §2).
//!
//! Labels select, they prove nothing: tenants can forge them.

use sha2::{Digest, Sha256};

/// Prefix of every label, annotation and bucket tag of ours.
pub const PREFIX: &str = "broker.stowage.io/";

/// Label: what a Secret of ours is for; see [`Role`].
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
/// Label: UID of the access. No Secret has it beside [`CLAIM_UID`].
pub const ACCESS_UID: &str = "broker.stowage.io/access-uid";
/// Annotation of an internal Secret on its way out: RFC 3339 time from which it must not be
/// accepted.
pub const EXPIRES_AT: &str = "broker.stowage.io/expires-at";

/// Annotation of a consumer Secret: the names of what templates have written into it.
pub const TEMPLATE: &str = "broker.stowage.io/template";

/// Label: what a gateway's ConfigMap or Lease is for, by which it keeps count of what is stored;
/// see [`Usage`].
pub const USAGE: &str = "broker.stowage.io/usage";

/// What a gateway's object is for (label `broker.stowage.io/usage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// What one replica has written. A ConfigMap.
    Counters,
    /// What a bucket was found to hold. A ConfigMap.
    Snapshot,
    /// That a replica lives. A Lease.
    Replica,
}

impl Usage {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Snapshot => "snapshot",
            Self::Replica => "replica",
        }
    }
}

/// Data key of records, and of credentials and bindings where it is noted: the endpoint of the
/// store that has the bucket.
pub const ENDPOINT: &str = "endpoint";

/// Label of a Secret whose owner lets backends name it for the credentials of a store: `"true"`.
pub const BACKEND_CREDENTIALS: &str = "broker.stowage.io/backend-credentials";
/// Annotation of such a Secret: the endpoints that its values may be sent to.
pub const ENDPOINTS: &str = "broker.stowage.io/endpoints";

/// What the names of bucket records begin with, in the operator's namespace.
pub const RECORD_PREFIX: &str = "br-";
/// What the names of virtual credentials begin with, in the operator's namespace.
pub const CREDENTIAL_PREFIX: &str = "vc-";
/// What the names of anonymous bindings begin with, in the operator's namespace.
pub const BINDING_PREFIX: &str = "ab-";

/// What the names of access records begin with, in the operator's namespace.
pub const ACCESS_RECORD_PREFIX: &str = "ar-";
/// What the names of access credentials begin with, in the operator's namespace.
pub const ACCESS_CREDENTIAL_PREFIX: &str = "va-";

/// What the names of Secrets begin with that are no store's credentials, whoever says so.
pub const INTERNAL_PREFIXES: [&str; 5] =
    [RECORD_PREFIX, CREDENTIAL_PREFIX, BINDING_PREFIX, ACCESS_RECORD_PREFIX, ACCESS_CREDENTIAL_PREFIX];

/// Annotation on a claim: any new value asks for one rotation.
pub const ROTATE: &str = "broker.stowage.io/rotate";
/// Annotation on a claim: any new value ends every key that the claim has, at once.
pub const REVOKE: &str = "broker.stowage.io/revoke";
/// Annotation on a claim: `"true"` = the operator touches nothing of the claim but its status;
/// where the claim is deleted, access to its bucket ends nevertheless (spec §1).
pub const PAUSED: &str = "broker.stowage.io/paused";

/// Annotation on a backend and on a claim: which operator serves it, as `namespace/installation`
/// (spec §1). Another one leaves it alone.
pub const SERVED_BY: &str = "broker.stowage.io/served-by";

/// Bucket tag: the installation that made the bucket.
pub const TAG_INSTALLATION: &str = "broker.stowage.io/installation";
/// Bucket tag: `namespace/name` of the claim.
pub const TAG_CLAIM: &str = "broker.stowage.io/claim";
/// Bucket tag: UID of the claim.
pub const TAG_CLAIM_UID: &str = CLAIM_UID;

/// The labels of Secrets of ours. Of a value that is too long for a label the whole is an
/// annotation of the same name.
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

/// What a Secret of ours is for (label `broker.stowage.io/role`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Who holds a bucket, and what the operator remembers of a claim. Operator namespace.
    BucketRecord,
    /// One virtual credential. Operator namespace.
    VirtualCredential,
    /// Public access to a bucket. Operator namespace.
    AnonymousBinding,
    /// The connection. The claim's namespace, or the access's.
    ConsumerSecret,
    /// What the operator remembers of an access. Operator namespace.
    AccessRecord,
    /// One virtual credential of an access. Operator namespace.
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

    /// The label's value.
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

    /// Of which role an internal Secret of this name is. The name alone proves nothing: it may be a
    /// stranger's.
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

/// Whether a Secret of this name is one of [`INTERNAL_PREFIXES`].
pub fn is_internal_name(name: &str) -> bool {
    INTERNAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// `value` if it fits into a label, else its beginning and a hash: then it stands whole in an
/// annotation of the label's name.
pub fn label_value(value: &str) -> String {
    shorten(value, 63)
}

/// `value` if it fits into a bucket tag (256 characters, S3 API), else its beginning and a hash.
pub fn tag_value(value: &str) -> String {
    shorten(value, 256)
}

fn shorten(value: &str, limit: usize) -> String {
    if value.len() <= limit {
        return value.to_owned();
    }
    let digest = hex::encode(Sha256::digest(value));
    // Names of Kubernetes objects and buckets are ASCII, but a cut inside a character must not
    // panic.
    let head: String = value.chars().take_while(char::is_ascii).take(limit - 17).collect();
    format!("{head}-{}", &digest[..16])
}

/// How a request is remembered, to rotate or to revoke: the value up to 63 characters, else its
/// SHA-256 (spec §1, status).
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
