//! State of the store, and the rules of versioning: a plain value without I/O or clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use s3s::auth::SecretKey;
use s3s::dto::Checksum;
use s3s::{S3ErrorCode, S3Result};
use serde::{Deserialize, Serialize};

use super::data::{Data, Piece};
use super::errors::{refuse, refuse_marker};
use super::lock::{LockConfiguration, Protection, Release};

/// The complete state of a store.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Access key ids, and the accounts for which they sign.
    pub(super) keys: BTreeMap<String, AccountKey>,
    /// Buckets by name. All accounts share one namespace.
    pub(super) buckets: BTreeMap<String, Bucket>,
    sequence: u64,
}

impl State {
    /// Returns the next number for a version or an upload. Numbers are unique.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the last number assigned.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Ensures that later numbers are higher than this one.
    pub(super) fn reach(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// Iterates over every referenced piece of a blob.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let buckets = || self.buckets.values();
        let versions = buckets().flat_map(|bucket| bucket.keys.values().flatten());
        let objects = versions.filter_map(|version| version.object().map(|object| &object.data));
        let uploads = buckets().flat_map(|bucket| bucket.uploads.values());
        let parts = uploads.flat_map(|upload| upload.parts.values().map(|part| &part.data));
        objects.chain(parts).flat_map(|data| match data {
            Data::Kept(pieces) => pieces.as_slice(),
            Data::Memory(_) => &[],
        })
    }
}

/// Owner and secret of an access key.
#[derive(Clone)]
pub(super) struct AccountKey {
    pub(super) account: String,
    pub(super) secret: SecretKey,
}

/// The versioning state of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versioning {
    /// Versioning was never enabled.
    #[default]
    Unversioned,
    /// Each write creates a version, and each delete a delete marker.
    Enabled,
    /// Writes and deletes replace the version `null`; older versions are kept.
    Suspended,
}

/// State of a bucket.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) owner: String,
    /// Another account that has full access by a policy.
    pub(super) guest: Option<String>,
    pub(super) region: String,
    pub(super) created: Timestamp,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) versioning: Versioning,
    pub(super) lock: Option<LockConfiguration>,
    /// Versions of each key, oldest first. The lists are never empty.
    pub(super) keys: BTreeMap<String, Vec<Version>>,
    /// Unfinished multipart uploads, in the order of listings.
    pub(super) uploads: BTreeMap<(String, u64), Upload>,
}

/// A version of a key.
#[derive(Clone)]
pub(super) struct Version {
    /// Number that orders versions by creation.
    pub(super) sequence: u64,
    /// True for a version with the id `null`: it was created while versioning was not enabled.
    pub(super) is_null: bool,
    pub(super) modified: Timestamp,
    pub(super) content: Content,
}

/// Content of a version.
#[derive(Clone)]
pub(super) enum Content {
    Object(Box<Object>),
    DeleteMarker,
}

/// An object's data and metadata.
#[derive(Clone, Default)]
pub(super) struct Object {
    pub(super) data: Data,
    /// The entity tag without quotes.
    pub(super) etag: String,
    pub(super) checksum: Checksum,
    pub(super) attributes: Attributes,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) protection: Protection,
    /// True if a legal hold was ever set or removed. Before that its status cannot be read.
    pub(super) has_hold: bool,
}

/// Headers that are stored with an object and returned with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Attributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) metadata: BTreeMap<String, String>,
}

/// An unfinished multipart upload.
#[derive(Clone)]
pub(super) struct Upload {
    pub(super) initiated: Timestamp,
    /// The resulting object, without its data.
    pub(super) template: Object,
    pub(super) parts: BTreeMap<i32, Part>,
}

/// An uploaded part.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) data: Data,
    pub(super) etag: String,
    pub(super) modified: Timestamp,
}

/// Result of a delete.
pub(super) struct Deletion {
    /// True if a delete marker was created or removed.
    pub(super) delete_marker: bool,
    /// Version created or removed, if the bucket shows versions.
    pub(super) version_id: Option<String>,
}

impl Version {
    /// Returns the id of this version for clients.
    pub(super) fn id(&self) -> String {
        if self.is_null { NULL_VERSION.to_owned() } else { version_id(self.sequence) }
    }

    pub(super) fn object(&self) -> Option<&Object> {
        match &self.content {
            Content::Object(object) => Some(object),
            Content::DeleteMarker => None,
        }
    }
}

/// Id of versions created while versioning was not enabled.
pub(super) const NULL_VERSION: &str = "null";

/// Returns a version id. It contains the sequence, because a listing can continue after a version
/// that was deleted.
fn version_id(sequence: u64) -> String {
    format!("v{sequence:016}")
}

/// Returns the sequence in a version id; `None` for `null` and for other ids.
pub(super) fn version_sequence(id: &str) -> Option<u64> {
    id.strip_prefix('v')?.parse().ok()
}

/// Returns the id of an upload for clients.
pub(super) fn upload_id(sequence: u64) -> String {
    format!("u{sequence:016}")
}

/// Returns the sequence in an upload id; `None` for other ids.
pub(super) fn upload_sequence(id: &str) -> Option<u64> {
    id.strip_prefix('u')?.parse().ok()
}

impl Bucket {
    pub(super) fn new(owner: &str, region: &str, created: Timestamp) -> Self {
        Self {
            owner: owner.to_owned(),
            guest: None,
            region: region.to_owned(),
            created,
            tags: None,
            versioning: Versioning::default(),
            lock: None,
            keys: BTreeMap::new(),
            uploads: BTreeMap::new(),
        }
    }

    /// Returns true if an account has full access to the bucket.
    pub(super) fn lets_in(&self, account: &str) -> bool {
        self.owner == account || self.guest.as_deref() == Some(account)
    }

    /// Returns the id of a version for responses; `None` if the bucket was never versioned.
    pub(super) fn shown_id(&self, version: &Version) -> Option<String> {
        (self.versioning != Versioning::Unversioned).then(|| version.id())
    }

    /// Returns the version of a key to which a request refers, which may be a delete marker.
    pub(super) fn version(&self, key: &str, id: Option<&str>) -> S3Result<&Version> {
        let versions = self.keys.get(key).map(Vec::as_slice).unwrap_or_default();
        match id {
            None => versions.last().ok_or_else(|| refuse(S3ErrorCode::NoSuchKey)),
            Some(id) => {
                let found = versions.iter().find(|version| version.id() == id);
                found.ok_or_else(|| refuse(S3ErrorCode::NoSuchVersion))
            }
        }
    }

    /// Returns the version of a key to which a read refers, and its object.
    ///
    /// # Errors
    /// `NoSuchKey`, also if the newest version is a delete marker; `NoSuchVersion`; and
    /// `MethodNotAllowed` if the request names a delete marker by its id.
    pub(super) fn object(&self, key: &str, id: Option<&str>) -> S3Result<(&Version, &Object)> {
        let version = self.version(key, id)?;
        match &version.content {
            Content::Object(object) => Ok((version, object)),
            Content::DeleteMarker if id.is_some() => Err(refuse_marker(S3ErrorCode::MethodNotAllowed)),
            Content::DeleteMarker => Err(refuse_marker(S3ErrorCode::NoSuchKey)),
        }
    }

    /// Returns the object to whose lock a request refers. A delete marker, whether it is the newest
    /// version or named by its id, has no lock.
    ///
    /// # Errors
    /// Returns the errors of [`Bucket::object`], but always `MethodNotAllowed` for a delete marker.
    pub(super) fn lockable(&self, key: &str, id: Option<&str>) -> S3Result<&Object> {
        let version = self.version(key, id)?;
        version.object().ok_or_else(|| refuse_marker(S3ErrorCode::MethodNotAllowed))
    }

    /// Returns the object of a version for changes. The errors are those of [`Bucket::object`].
    pub(super) fn object_mut(&mut self, key: &str, id: Option<&str>) -> S3Result<&mut Object> {
        let sequence = self.object(key, id)?.0.sequence;
        let versions = self.keys.get_mut(key).into_iter().flatten();
        let found =
            versions.filter(|version| version.sequence == sequence).find_map(|version| match &mut version.content {
                Content::Object(object) => Some(&mut **object),
                Content::DeleteMarker => None,
            });
        found.ok_or_else(|| refuse(S3ErrorCode::NoSuchKey))
    }

    /// Stores content as the newest version of a key, according to the versioning state.
    pub(super) fn put(&mut self, key: &str, content: Content, sequence: u64, now: Timestamp) -> &Version {
        let is_null = self.versioning != Versioning::Enabled;
        let versions = self.keys.entry(key.to_owned()).or_default();
        if is_null {
            versions.retain(|version| !version.is_null);
        }
        // Most keys only ever have one version, and a vector would reserve space for four.
        if versions.is_empty() {
            versions.reserve_exact(1);
        }
        versions.push(Version { sequence, is_null, modified: now, content });
        &versions[versions.len() - 1]
    }

    /// Deletes a key, which creates a delete marker in a versioned bucket, or removes one version
    /// of it. A missing key or version counts as deleted.
    ///
    /// # Errors
    /// `AccessDenied` if object lock protects the version.
    pub(super) fn delete(
        &mut self,
        key: &str,
        id: Option<&str>,
        sequence: u64,
        now: Timestamp,
        release: Release,
    ) -> S3Result<Deletion> {
        match (id, self.versioning) {
            (None, Versioning::Unversioned) => {
                self.remove(key, NULL_VERSION, now, release)?;
                Ok(Deletion { delete_marker: false, version_id: None })
            }
            (None, Versioning::Enabled | Versioning::Suspended) => {
                let marker = self.put(key, Content::DeleteMarker, sequence, now);
                Ok(Deletion { delete_marker: true, version_id: Some(marker.id()) })
            }
            (Some(id), _) => {
                let delete_marker = self.remove(key, id, now, release)?;
                Ok(Deletion { delete_marker, version_id: Some(id.to_owned()) })
            }
        }
    }

    /// Removes a version permanently. Returns true if it was a delete marker.
    fn remove(&mut self, key: &str, id: &str, now: Timestamp, release: Release) -> S3Result<bool> {
        let Some(versions) = self.keys.get_mut(key) else { return Ok(false) };
        let Some(position) = versions.iter().position(|version| version.id() == id) else {
            return Ok(false);
        };
        let delete_marker = match versions[position].object() {
            Some(object) => {
                object.protection.check_removal(now, release)?;
                false
            }
            None => true,
        };
        versions.remove(position);
        if versions.is_empty() {
            self.keys.remove(key);
        }
        Ok(delete_marker)
    }
}
