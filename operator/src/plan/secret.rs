//! A Secret as it was read, and the version of it that a decision was made on.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AccessRef, BucketRecord, ClaimRef, ClaimUid, Endpoint, ObjectId, kept};

/// A Secret as it was read. Prints without its data.
#[derive(Clone, PartialEq)]
pub struct Stored(pub Arc<Secret>);

impl Stored {
    /// Name of the Secret.
    pub fn name(&self) -> &str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    /// The Secret, in the version that was read.
    pub fn reference(&self) -> SecretRef {
        SecretRef {
            namespace: self.0.metadata.namespace.clone().unwrap_or_default(),
            name: self.name().to_owned(),
            id: ObjectId::of(self.0.as_ref()),
        }
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The generation that the label of a key gives, if its name is the one that follows from it.
    pub(super) fn labelled_generation(&self, name: impl FnOnce(u64) -> String) -> Option<u64> {
        let generation = self.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        (name(generation) == self.name()).then_some(generation)
    }

    /// The claim that labels and annotations name: enough to wake that claim or to ask for it, and
    /// no more. An annotation counts only as what its label was shortened from.
    pub fn claim(&self) -> Option<ClaimRef> {
        let whole = |key: &str| {
            let label = self.label(key);
            let fits = |long: &&str| label.is_none_or(|label| wire::label_value(long) == label);
            self.annotation(key).filter(fits).or(label).map(str::to_owned)
        };
        Some(ClaimRef { namespace: whole(wire::CLAIM_NAMESPACE)?, name: whole(wire::CLAIM_NAME)? })
    }

    /// The access that labels and annotations name: enough to wake it, and no more.
    pub fn access(&self) -> Option<AccessRef> {
        let whole = |key: &str| {
            let label = self.label(key)?;
            let long = self.annotation(key).filter(|long| wire::label_value(long) == label);
            Some(long.unwrap_or(label).to_owned())
        };
        Some(AccessRef { namespace: whole(wire::ACCESS_NAMESPACE)?, name: whole(wire::ACCESS_NAME)? })
    }

    /// The finalizers that keep it although it is deleted; none of them is the operator's.
    pub fn kept_by(&self) -> Option<String> {
        let metadata = &self.0.metadata;
        metadata.deletion_timestamp.as_ref().map(|_| metadata.finalizers.as_deref().unwrap_or_default().join(", "))
    }

    /// A data field as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(&self.0.data.as_ref()?.get(key)?.0).ok()
    }

    /// The access key id that a consumer Secret publishes. Where a template has left the usual keys
    /// out, its label tells.
    pub(crate) fn published_key(&self) -> Option<&str> {
        let of_template = || self.annotation(wire::TEMPLATE).and_then(|_| self.label(wire::ACCESS_KEY_ID));
        self.text("AWS_ACCESS_KEY_ID").or_else(of_template)
    }

    /// True where a cache left out what templates wrote: it was too much, and a live read has all.
    pub(super) fn is_kept_in_part(&self) -> bool {
        self.annotation(kept::TEMPLATE_LEFT_OUT).is_some()
    }

    /// Whether the controller owner reference has this UID: what makes a consumer Secret ours
    /// (spec §2).
    pub fn is_controlled_by(&self, uid: &ClaimUid) -> bool {
        self.is_controlled_by_uid(uid.as_str())
    }

    /// The same of whichever object's UID.
    pub(super) fn is_controlled_by_uid(&self, uid: &str) -> bool {
        let owners = self.0.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
    }

    /// Where the bucket of this credential or binding is, as far as it notes that: one that an
    /// older version made doesn't, and what can't be read is no note.
    pub fn endpoint(&self) -> Option<Endpoint> {
        Endpoint::parse(self.text(wire::ENDPOINT)?).ok()
    }

    /// Whether this credential or binding is for the record's bucket, at whatever endpoint.
    pub(super) fn names_bucket_of(&self, record: &BucketRecord) -> bool {
        self.text("backend") == Some(record.backend.as_str())
            && self.text("bucket_name") == Some(record.bucket.as_str())
    }

    /// Whether it is for the record's bucket where the record has it. Without a note of its own it
    /// goes by the backend's name.
    pub(super) fn opens(&self, record: &BucketRecord) -> bool {
        self.names_bucket_of(record) && self.endpoint().is_none_or(|endpoint| endpoint == record.endpoint)
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reference())
    }
}

/// The newest key of a claim that is not to end, among its internal Secrets, and its generation:
/// one whose name follows from both.
pub(super) fn newest_key<'a>(uid: &ClaimUid, own: &'a [Stored]) -> Option<(u64, &'a Stored)> {
    let stays = |secret: &&Stored| secret.annotation(wire::EXPIRES_AT).is_none() && secret.kept_by().is_none();
    let generation = |secret: &Stored| secret.labelled_generation(|it| AccessKeyId::of(uid, it).secret_name());
    let staying = own.iter().filter(stays);
    staying.filter_map(|secret| Some((generation(secret)?, secret))).max_by_key(|(number, _)| *number)
}

/// The record of the bucket that a claim's newest key opens, among its internal Secrets.
pub(crate) fn opened_record(uid: &ClaimUid, own: &[Stored]) -> Option<BucketRecord> {
    let (generation, key) = newest_key(uid, own)?;
    let records = own.iter().filter_map(|secret| BucketRecord::read(&secret.0).ok());
    let mut own = records.filter(|record| record.uid == *uid && generation > record.revoked_through);
    own.find(|record| key.opens(record))
}

/// Whether an internal Secret of this name is a credential.
pub(super) fn is_credential(name: &str) -> bool {
    Role::of_internal(name) == Some(Role::VirtualCredential)
}

/// Whether an internal Secret of this name is a bucket record.
pub(super) fn is_record(name: &str) -> bool {
    Role::of_internal(name) == Some(Role::BucketRecord)
}

/// A Secret, in the version that a decision was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which object, in which version.
    pub id: ObjectId,
}
