//! The admin handle: looks at and changes everything, for tests, oracles and faults.
//!
//! Nothing here asks who may; changes that name something missing do nothing and say so.

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

/// A bucket as it was when asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketSnapshot {
    /// The account that owns it.
    pub owner: String,
    /// The region it is in.
    pub region: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its tags; `None` where it has no tag set.
    pub tags: Option<BTreeMap<String, String>>,
    /// Its versioning state.
    pub versioning: Versioning,
    /// Keys whose newest version is an object.
    pub objects: usize,
    /// Versions that are objects, the newest included.
    pub versions: usize,
    /// Versions that are delete markers.
    pub delete_markers: usize,
    /// Unfinished multipart uploads.
    pub uploads: usize,
}

/// A version of a key as it was when asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSnapshot {
    /// Its id; `null` where it was made without versioning.
    pub id: String,
    /// Its data; `None` for a delete marker.
    pub bytes: Option<Bytes>,
    /// What keeps it from being removed.
    pub protection: Protection,
}

impl Store {
    /// Gives an account a pair of keys; an account may have several, a key belongs to one.
    pub fn add_account(&self, account: &str, access_key: &str, secret_key: &str) {
        let key = AccountKey { account: account.to_owned(), secret: SecretKey::from(secret_key) };
        self.shared.state().keys.insert(access_key.to_owned(), key);
    }

    /// Withdraws a key: from now on it is unknown. Tells whether it was known.
    pub fn revoke_key(&self, access_key: &str) -> bool {
        self.shared.state().keys.remove(access_key).is_some()
    }

    /// All buckets by name.
    #[must_use]
    pub fn buckets(&self) -> BTreeMap<String, BucketSnapshot> {
        let state = self.shared.state();
        state.buckets.iter().map(|(name, bucket)| (name.clone(), snapshot(bucket))).collect()
    }

    /// One bucket.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Option<BucketSnapshot> {
        self.shared.state().buckets.get(name).map(snapshot)
    }

    /// The data of all live objects of a bucket by key; empty for a missing bucket. What a keeper
    /// can't read is left out.
    #[must_use]
    pub fn objects(&self, bucket: &str) -> BTreeMap<String, Bytes> {
        let state = self.shared.state();
        let keys = state.buckets.get(bucket).into_iter().flat_map(|bucket| &bucket.keys);
        let live =
            keys.filter_map(|(key, versions)| Some((key.clone(), versions.last()?.object()?.data.bytes().ok()?)));
        live.collect()
    }

    /// All versions of all keys of a bucket, oldest first; empty for a missing bucket.
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

    /// Makes an empty bucket, in place of one of that name if there is one; `false` then.
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

    /// Has a bucket let another account in, as its owner may by a policy.
    pub fn let_in(&self, bucket: &str, account: &str) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.guest = Some(account.to_owned())).is_some()
    }

    /// Removes a bucket with all that is in it, locked or not.
    pub fn remove_bucket(&self, name: &str) -> bool {
        let mut state = self.shared.state();
        let before = self.shared.before(&state, || vec![Touched::Bucket(name.to_owned())]);
        let existed = state.buckets.remove(name).is_some();
        self.shared.tell(&state, before);
        existed
    }

    /// Replaces the tag set of a bucket; `None` takes it away.
    pub fn set_tags(&self, bucket: &str, tags: Option<BTreeMap<String, String>>) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.tags = tags).is_some()
    }

    /// Sets the versioning state of a bucket.
    pub fn set_versioning(&self, bucket: &str, versioning: Versioning) -> bool {
        self.change(bucket, Touch::Bucket, |bucket, _, _| bucket.versioning = versioning).is_some()
    }

    /// Writes an object as a client would; returns the id of the new version.
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

    /// Removes a key with all its versions, locked or not.
    pub fn remove_object(&self, bucket: &str, key: &str) -> bool {
        self.change(bucket, Touch::Key(key), |bucket, _, _| bucket.keys.remove(key).is_some()).unwrap_or(false)
    }

    /// Sets what protects the newest version of a key, and turns object lock on for its bucket
    /// (which needs versioning: that is turned on too). `false` where there is no such object.
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

    /// Begins a multipart upload; returns its id.
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

/// What of a bucket is changed.
enum Touch<'a> {
    Bucket,
    Key(&'a str),
    /// The bucket, too.
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
