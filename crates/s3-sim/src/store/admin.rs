//! Administrative access: reads and changes everything, for tests, oracles and faults.
//!
//! There is no access control. Changes of something missing do nothing, and report that.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use s3s::auth::SecretKey;

use super::Store;
use crate::data::Data;
use crate::lock::{LockConfiguration, Protection};
use crate::payload::Payload;
use crate::state::{AccountKey, Bucket, Content, Object, Upload, Version, Versioning, upload_id};
use crate::touched::Touched;

/// A snapshot of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketSnapshot {
    /// Account that owns the bucket.
    pub owner: String,
    /// Region of the bucket.
    pub region: String,
    /// Creation time.
    pub created: Timestamp,
    /// Tags; `None` if there is no tag set.
    pub tags: Option<BTreeMap<String, String>>,
    /// Versioning state.
    pub versioning: Versioning,
    /// Number of keys whose newest version is an object.
    pub objects: usize,
    /// Number of versions that are objects, including the newest.
    pub versions: usize,
    /// Number of versions that are delete markers.
    pub delete_markers: usize,
    /// Number of unfinished multipart uploads.
    pub uploads: usize,
}

/// A snapshot of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSnapshot {
    /// Id of the version; `null` if it was created without versioning.
    pub id: String,
    /// Data of the version; `None` for a delete marker.
    pub bytes: Option<Bytes>,
    /// Protection against removal.
    pub protection: Protection,
}

impl Store {
    /// Adds a key pair to an account. An account may have several key pairs; an access key belongs
    /// to one account.
    pub fn add_account(&self, account: &str, access_key: &str, secret_key: &str) {
        let key = AccountKey { account: account.to_owned(), secret: SecretKey::from(secret_key) };
        self.shared.state().keys.insert(access_key.to_owned(), key);
    }

    /// Revokes an access key. Returns true if it was known.
    pub fn revoke_key(&self, access_key: &str) -> bool {
        self.shared.state().keys.remove(access_key).is_some()
    }

    /// Returns all buckets by name.
    #[must_use]
    pub fn buckets(&self) -> BTreeMap<String, BucketSnapshot> {
        let state = self.shared.state();
        state.buckets.iter().map(|(name, bucket)| (name.clone(), snapshot(bucket))).collect()
    }

    /// Returns a bucket.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Option<BucketSnapshot> {
        self.shared.state().buckets.get(name).map(snapshot)
    }

    /// Returns the data of all current objects of a bucket by key; empty for a missing bucket.
    /// Objects that a keeper cannot read are omitted.
    #[must_use]
    pub fn objects(&self, bucket: &str) -> BTreeMap<String, Bytes> {
        let state = self.shared.state();
        let keys = state.buckets.get(bucket).into_iter().flat_map(|bucket| &bucket.keys);
        let live =
            keys.filter_map(|(key, versions)| Some((key.clone(), versions.last()?.object()?.data.bytes().ok()?)));
        live.collect()
    }

    /// Returns all versions of all keys of a bucket, oldest first; empty for a missing bucket.
    #[must_use]
    pub fn versions(&self, bucket: &str) -> BTreeMap<String, Vec<VersionSnapshot>> {
        let version = |version: &Version| VersionSnapshot {
            id: version.id(),
            bytes: version.object().and_then(|object| object.data.bytes().ok()),
            protection: version.object().map(|object| object.protection).unwrap_or_default(),
        };
        let state = self.shared.state();
        let keys = state.buckets.get(bucket).into_iter().flat_map(|bucket| &bucket.keys);
        keys.map(|(key, versions)| (key.clone(), versions.iter().map(version).collect())).collect()
    }

    /// Creates an empty bucket. Returns `false` if it replaced a bucket of that name.
    pub fn put_bucket(&self, account: &str, name: &str) -> bool {
        let created = (self.shared.clock)();
        let bucket = Bucket::new(account, &self.shared.dialect.region, created);
        let mut state = self.shared.state();
        let existed = state.buckets.remove(name).is_some();
        let place = || vec![Touched::Bucket(name.to_owned())];
        let gone = self.shared.before(&state, place).filter(|_| existed);
        self.shared.tell(&state, gone);
        let before = self.shared.before(&state, place);
        state.buckets.insert(name.to_owned(), bucket);
        self.shared.tell(&state, before);
        !existed
    }

    /// Grants full access to a bucket to another account, as its owner can by a policy.
    pub fn let_in(&self, bucket: &str, account: &str) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.guest = Some(account.to_owned())).is_some()
    }

    /// Removes a bucket with all of its content, even if it is locked.
    pub fn remove_bucket(&self, name: &str) -> bool {
        let mut state = self.shared.state();
        let before = self.shared.before(&state, || vec![Touched::Bucket(name.to_owned())]);
        let existed = state.buckets.remove(name).is_some();
        self.shared.tell(&state, before);
        existed
    }

    /// Sets the tag set of a bucket, or removes it if `tags` is `None`.
    pub fn set_tags(&self, bucket: &str, tags: Option<BTreeMap<String, String>>) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.tags = tags).is_some()
    }

    /// Sets the versioning state of a bucket.
    pub fn set_versioning(&self, bucket: &str, versioning: Versioning) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.versioning = versioning).is_some()
    }

    /// Writes an object like a client. Returns the id of the new version.
    pub fn put_object(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) -> Option<String> {
        let bytes = bytes.into();
        let data = match self.shared.home() {
            Some(home) => Data::store(home, &bytes).ok()?,
            None => Data::Memory(bytes),
        };
        let Payload { data, etag, checksum } = Payload::trusted(data).ok()?;
        let object = Object { data, etag, checksum, ..Object::default() };
        self.change(bucket, Touch::Key(key), |bucket, sequence, now| {
            bucket.put(key, Content::Object(Box::new(object)), sequence, now).id()
        })
    }

    /// Removes a key with all its versions, even if they are locked.
    pub fn remove_object(&self, bucket: &str, key: &str) -> bool {
        self.change(bucket, Touch::Key(key), |bucket, _, _| bucket.keys.remove(key).is_some()).unwrap_or(false)
    }

    /// Sets the protection of the newest version of a key, and enables object lock and versioning,
    /// which it requires, for the bucket. Returns `false` if there is no such object.
    pub fn protect(&self, bucket: &str, key: &str, protection: Protection) -> bool {
        let changed = self.change(bucket, Touch::Versions(key), |bucket, _, _| {
            let Ok(object) = bucket.object_mut(key, None) else { return false };
            object.protection = protection;
            bucket.versioning = Versioning::Enabled;
            bucket.lock.get_or_insert_with(LockConfiguration::default);
            true
        });
        changed.unwrap_or(false)
    }

    /// Starts a multipart upload and returns its id.
    pub fn start_upload(&self, bucket: &str, key: &str) -> Option<String> {
        self.change(bucket, Touch::Uploads(key), |bucket, sequence, now| {
            let upload = Upload { initiated: now, template: Object::default(), parts: BTreeMap::new() };
            bucket.uploads.insert((key.to_owned(), sequence), upload);
            upload_id(sequence)
        })
    }

    fn change<R>(
        &self,
        name: &str,
        touch: Touch<'_>,
        change: impl FnOnce(&mut Bucket, u64, Timestamp) -> R,
    ) -> Option<R> {
        let now = (self.shared.clock)();
        let mut state = self.shared.state();
        if !state.buckets.contains_key(name) {
            return None;
        }
        let before = self.shared.before(&state, || touch.places(name));
        let sequence = state.next_sequence();
        let changed = state.buckets.get_mut(name).map(|bucket| change(bucket, sequence, now));
        self.shared.tell(&state, before);
        changed
    }
}

/// The part of a bucket that is changed.
enum Touch<'a> {
    Bucket,
    Key(&'a str),
    /// The versions of a key, and the bucket.
    Versions(&'a str),
    Uploads(&'a str),
}

impl Touch<'_> {
    fn places(&self, bucket: &str) -> Vec<Touched> {
        let name = bucket.to_owned();
        match *self {
            Self::Bucket => vec![Touched::Bucket(name)],
            Self::Key(key) => vec![Touched::Key(name, key.to_owned())],
            Self::Versions(key) => vec![Touched::Bucket(name.clone()), Touched::Versions(name, key.to_owned())],
            Self::Uploads(key) => vec![Touched::Uploads(name, key.to_owned())],
        }
    }
}

fn snapshot(bucket: &Bucket) -> BucketSnapshot {
    let all = || bucket.keys.values().flatten();
    let versions = all().filter(|version| version.object().is_some()).count();
    let live = bucket.keys.values().filter(|versions| versions.last().is_some_and(|last| last.object().is_some()));
    BucketSnapshot {
        owner: bucket.owner.clone(),
        region: bucket.region.clone(),
        created: bucket.created,
        tags: bucket.tags.clone(),
        versioning: bucket.versioning,
        objects: live.count(),
        versions,
        delete_markers: all().count() - versions,
        uploads: bucket.uploads.len(),
    }
}
