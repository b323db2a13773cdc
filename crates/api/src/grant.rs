//! An access as downstream code relies on it (spec §8).

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::access::{AccessEntry, BucketAccess, BucketAccessStatus};
use super::consent::Prefix;
use super::identity::{AccessRef, AccessUid, ClaimRef, ObjectId, ServedBy};
use super::invalid::{InvalidSpec, word};
use super::names::{BucketName, is_object_name};
use super::packed::Packed;
use super::rotation::Rotation;
use super::secrets::SecretShape;
use super::sharing::AccessMode;
use super::{ACCESS_FINALIZER, kept, wire};

/// An access.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which object, in which version.
    pub id: ObjectId,
    /// Namespace and name.
    pub at: AccessRef,
    /// UID.
    pub uid: AccessUid,
    /// Generation of the spec.
    pub generation: i64,
    /// When it was made, by the API server's clock.
    pub created: Option<Timestamp>,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// Every finalizer, in order, as far as they are kept.
    pub finalizers: Vec<String>,
    /// Which operator serves it, if that is noted.
    pub served_by: Option<ServedBy>,
    /// Has annotations at all: a patch adds to them, or all of them.
    pub annotated: bool,
    /// Carries `broker.stowage.io/paused: "true"`.
    pub paused: bool,
    /// What `broker.stowage.io/rotate` asks for, as it is remembered.
    pub rotate_request: Option<String>,
    /// The same of `broker.stowage.io/revoke`.
    pub revoke_request: Option<String>,
    /// Name of the consumer Secret.
    pub consumer_secret: String,
    /// What that Secret has besides; `None` where a cache has a digest of it, and a live read has
    /// all.
    pub shape: Result<Option<SecretShape>, InvalidSpec>,
    /// When credentials are replaced.
    pub rotation: Result<Rotation, InvalidSpec>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The status as it stands.
    pub status: BucketAccessStatus,
}

/// An entry of an access; `scope` says how far it is to open its bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Whose bucket it is about.
    pub of: Result<EntryOf, InvalidSpec>,
    /// What it asks for: mode and prefix.
    pub wants: Result<(AccessMode, Option<Prefix>), InvalidSpec>,
}

/// What an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOf {
    /// The bucket of a claim.
    Claim(ClaimRef),
    /// A bucket that no claim has: the name of an S3Backend, and its own.
    Bucket(String, BucketName),
}

impl Access {
    /// Parses an access. Never fails as a whole: what can't be read closes its entry.
    pub fn parse(raw: &BucketAccess) -> Self {
        let at = AccessRef { namespace: raw.namespace().unwrap_or_default(), name: raw.name_any() };
        Self {
            id: ObjectId::of(raw),
            uid: AccessUid::new(raw.uid().unwrap_or_default()),
            generation: raw.metadata.generation.unwrap_or_default(),
            created: raw.metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            served_by: ServedBy::noted(raw.annotations()),
            annotated: raw.metadata.annotations.is_some(),
            paused: raw.annotations().get(wire::PAUSED).map(String::as_str) == Some("true"),
            rotate_request: kept::receipt(raw.annotations(), wire::ROTATE),
            revoke_request: kept::receipt(raw.annotations(), wire::REVOKE),
            consumer_secret: raw.spec.write_connection_secret_to_ref.name.clone(),
            shape: SecretShape::of(raw.spec.secret_template.as_ref()),
            rotation: Rotation::parse(&raw.spec.rotation_policy),
            entries: Entry::all(&raw.spec.buckets, &at.namespace),
            status: raw.status.clone().unwrap_or_default(),
            at,
        }
    }

    /// Whether our finalizer is on it.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == ACCESS_FINALIZER)
    }

    /// The claims that its entries name.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimRef> {
        self.entries.iter().filter_map(Entry::claim)
    }
}

impl Entry {
    /// Parses the entries of an access in this namespace.
    pub fn all(raw: &Packed<Vec<AccessEntry>>, namespace: &str) -> Vec<Self> {
        raw.get().into_iter().flatten().map(|entry| Self::parse(&entry, namespace)).collect()
    }

    /// The claim that it names.
    pub fn claim(&self) -> Option<&ClaimRef> {
        match &self.of {
            Ok(EntryOf::Claim(claim)) => Some(claim),
            Ok(EntryOf::Bucket(..)) | Err(_) => None,
        }
    }

    fn parse(raw: &AccessEntry, namespace: &str) -> Self {
        Self { of: Self::of(raw, namespace), wants: Self::wants(raw) }
    }

    fn of(raw: &AccessEntry, namespace: &str) -> Result<EntryOf, InvalidSpec> {
        match (&raw.claim_ref, &raw.bucket_ref) {
            (Some(claim), None) => {
                let namespace = claim.namespace.clone().unwrap_or_else(|| namespace.to_owned());
                if !is_object_name(&namespace) || !is_object_name(&claim.name) {
                    return Err(InvalidSpec::of("spec.buckets[].claimRef", &"no claim is called so"));
                }
                Ok(EntryOf::Claim(ClaimRef { namespace, name: claim.name.clone() }))
            }
            (None, Some(bucket)) => {
                let name = BucketName::parse(&bucket.name);
                let name = name.map_err(|error| InvalidSpec::of("spec.buckets[].bucketRef.name", &error))?;
                Ok(EntryOf::Bucket(bucket.backend.clone(), name))
            }
            (Some(_), Some(_)) | (None, None) => {
                Err(InvalidSpec::of("spec.buckets[]", &"an entry has either claimRef or bucketRef"))
            }
        }
    }

    fn wants(raw: &AccessEntry) -> Result<(AccessMode, Option<Prefix>), InvalidSpec> {
        let mode = word("spec.buckets[].mode", raw.mode)?;
        let prefix = raw.prefix.as_deref().map(Prefix::parse).transpose();
        Ok((mode, prefix.map_err(|error| InvalidSpec::of("spec.buckets[].prefix", &error))?))
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
