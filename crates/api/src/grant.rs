//! Parsed form of a `BucketAccess` (spec §8).

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

/// A parsed `BucketAccess`.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Namespace and name.
    pub at: AccessRef,
    /// UID.
    pub uid: AccessUid,
    /// Generation of the spec.
    pub generation: i64,
    /// Creation timestamp, by the API server's clock.
    pub created: Option<Timestamp>,
    /// True if the object has a deletion timestamp.
    pub deleting: bool,
    /// Finalizers in order, as far as they are kept.
    pub finalizers: Vec<String>,
    /// Operator noted as serving the access, if any.
    pub served_by: Option<ServedBy>,
    /// True if `metadata.annotations` exists; otherwise a JSON patch has to create the map.
    pub annotated: bool,
    /// True if the annotation `broker.stowage.io/paused` is `"true"`.
    pub paused: bool,
    /// Receipt of the value of the annotation `broker.stowage.io/rotate`.
    pub rotate_request: Option<String>,
    /// Receipt of the value of the annotation `broker.stowage.io/revoke`.
    pub revoke_request: Option<String>,
    /// Name of the consumer Secret.
    pub consumer_secret: String,
    /// Parsed `spec.secretTemplate`. `None` if a cache kept only its digest; a live read has all of
    /// it.
    pub shape: Result<Option<SecretShape>, InvalidSpec>,
    /// Schedule on which credentials are replaced.
    pub rotation: Result<Rotation, InvalidSpec>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// Current status.
    pub status: BucketAccessStatus,
}

/// An entry of an access.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Bucket that the entry names.
    pub of: Result<EntryOf, InvalidSpec>,
    /// Mode and prefix that the entry requests.
    pub wants: Result<(AccessMode, Option<Prefix>), InvalidSpec>,
}

/// Bucket that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOf {
    /// The bucket of a claim.
    Claim(ClaimRef),
    /// A bucket that belongs to no claim: the name of its S3Backend, and its own name.
    Bucket(String, BucketName),
}

impl Access {
    /// Parses an access. Parsing never fails as a whole: an entry that is invalid is closed.
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

    /// Returns true if the object has the operator's finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == ACCESS_FINALIZER)
    }

    /// Returns the claims that the entries name.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimRef> {
        self.entries.iter().filter_map(Entry::claim)
    }
}

impl Entry {
    /// Parses the entries of an access in `namespace`.
    pub fn all(raw: &Packed<Vec<AccessEntry>>, namespace: &str) -> Vec<Self> {
        raw.get().into_iter().flatten().map(|entry| Self::parse(&entry, namespace)).collect()
    }

    /// Returns the claim that the entry names.
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
