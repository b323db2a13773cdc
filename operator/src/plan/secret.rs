//! Stored Secrets, and references to the version that a decision was made on.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AccessRef, BucketRecord, ClaimRef, ClaimUid, Endpoint, ObjectId, kept};

/// A Secret as it was read. Its `Debug` output contains no data.
#[derive(Clone, PartialEq)]
pub struct Stored(pub Arc<Secret>);

impl Stored {
    /// Name of the Secret.
    pub fn name(&self) -> &str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns a reference to the Secret in the version that was read.
    pub fn reference(&self) -> SecretRef {
        SecretRef {
            namespace: self.0.metadata.namespace.clone().unwrap_or_default(),
            name: self.name().to_owned(),
            id: ObjectId::of(self.0.as_ref()),
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns the generation from the label of a key, if it matches the key's name.
    pub(super) fn labelled_generation(&self, name: impl FnOnce(u64) -> String) -> Option<u64> {
        let generation = self.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        (name(generation) == self.name()).then_some(generation)
    }

    /// Returns the claim that labels and annotations name. They are not proof of ownership, and
    /// serve only to wake or query that claim. An annotation counts only if its label is the
    /// shortened form of it.
    pub fn claim(&self) -> Option<ClaimRef> {
        let whole = |key: &str| {
            let label = self.label(key);
            let fits = |long: &&str| label.is_none_or(|label| wire::label_value(long) == label);
            self.annotation(key).filter(fits).or(label).map(str::to_owned)
        };
        Some(ClaimRef { namespace: whole(wire::CLAIM_NAMESPACE)?, name: whole(wire::CLAIM_NAME)? })
    }

    /// Returns the access that labels and annotations name. They are not proof of ownership, and
    /// serve only to wake it.
    pub fn access(&self) -> Option<AccessRef> {
        let whole = |key: &str| {
            let label = self.label(key)?;
            let long = self.annotation(key).filter(|long| wire::label_value(long) == label);
            Some(long.unwrap_or(label).to_owned())
        };
        Some(AccessRef { namespace: whole(wire::ACCESS_NAMESPACE)?, name: whole(wire::ACCESS_NAME)? })
    }

    /// Returns the finalizers that keep a deleted Secret. None of them is the operator's.
    pub fn kept_by(&self) -> Option<String> {
        let metadata = &self.0.metadata;
        metadata.deletion_timestamp.as_ref().map(|_| metadata.finalizers.as_deref().unwrap_or_default().join(", "))
    }

    /// Returns a data field as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(&self.0.data.as_ref()?.get(key)?.0).ok()
    }

    /// Returns the access key id that a consumer Secret publishes. If a template left out the usual
    /// keys, it is taken from the label.
    pub(crate) fn published_key(&self) -> Option<&str> {
        let of_template = || self.annotation(wire::TEMPLATE).and_then(|_| self.label(wire::ACCESS_KEY_ID));
        self.text("AWS_ACCESS_KEY_ID").or_else(of_template)
    }

    /// Returns true if the cache left out large values written by a template. A live read has them.
    pub(super) fn is_kept_in_part(&self) -> bool {
        self.annotation(kept::TEMPLATE_LEFT_OUT).is_some()
    }

    /// Returns true if the controller owner reference has this UID, which makes a consumer Secret
    /// ours (spec §2).
    pub fn is_controlled_by(&self, uid: &ClaimUid) -> bool {
        self.is_controlled_by_uid(uid.as_str())
    }

    /// Like [`Self::is_controlled_by`], for any kind of object.
    pub(super) fn is_controlled_by_uid(&self, uid: &str) -> bool {
        let owners = self.0.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
    }

    /// Returns the endpoint that this credential or binding notes for its bucket. `None` if it is
    /// from an older version or the endpoint is invalid.
    pub fn endpoint(&self) -> Option<Endpoint> {
        Endpoint::parse(self.text(wire::ENDPOINT)?).ok()
    }

    /// Returns true if this credential or binding is for the record's bucket, at any endpoint.
    pub(super) fn names_bucket_of(&self, record: &BucketRecord) -> bool {
        self.text("backend") == Some(record.backend.as_str())
            && self.text("bucket_name") == Some(record.bucket.as_str())
    }

    /// Returns true if this credential or binding is for the record's bucket at the record's
    /// endpoint. Without an endpoint of its own, the name of the backend decides.
    pub(super) fn opens(&self, record: &BucketRecord) -> bool {
        self.names_bucket_of(record) && self.endpoint().is_none_or(|endpoint| endpoint == record.endpoint)
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reference())
    }
}

/// Returns the newest key of a claim that is not being retired, with its generation. Its name has
/// to match UID and generation.
pub(super) fn newest_key<'a>(uid: &ClaimUid, own: &'a [Stored]) -> Option<(u64, &'a Stored)> {
    let stays = |secret: &&Stored| secret.annotation(wire::EXPIRES_AT).is_none() && secret.kept_by().is_none();
    let generation = |secret: &Stored| secret.labelled_generation(|it| AccessKeyId::of(uid, it).secret_name());
    let staying = own.iter().filter(stays);
    staying.filter_map(|secret| Some((generation(secret)?, secret))).max_by_key(|(number, _)| *number)
}

/// Returns the record of the bucket that the newest key of a claim opens.
pub(crate) fn opened_record(uid: &ClaimUid, own: &[Stored]) -> Option<BucketRecord> {
    let (generation, key) = newest_key(uid, own)?;
    let records = own.iter().filter_map(|secret| BucketRecord::read(&secret.0).ok());
    let mut own = records.filter(|record| record.uid == *uid && generation > record.revoked_through);
    own.find(|record| key.opens(record))
}

/// Returns true if this is the name of a credential.
pub(super) fn is_credential(name: &str) -> bool {
    Role::of_internal(name) == Some(Role::VirtualCredential)
}

/// Returns true if this is the name of a bucket record.
pub(super) fn is_record(name: &str) -> bool {
    Role::of_internal(name) == Some(Role::BucketRecord)
}

/// A reference to a Secret, in the version that a decision was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID and resourceVersion.
    pub id: ObjectId,
}
