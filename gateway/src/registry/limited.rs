//! Limits of buckets, from the keys to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use stowage_api::{BucketName, Limits, NotServed, RecordName, ServedCredential};

use super::backend::Backend;
use super::internal::{Holder, Key};
use super::tables::Tables;

/// A bucket with a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    /// Unique id of the bucket: store and name.
    pub id: RecordName,
    /// Name of the bucket.
    pub bucket: BucketName,
    /// Store of the bucket.
    pub backend: Arc<Backend>,
    /// Limits of the bucket.
    pub limits: Limits,
    /// The namespace of its claim, if known.
    pub namespace: Option<String>,
}

impl Tables {
    /// Returns the limits of a bucket at a backend: those of the key with the newest generation.
    /// Keys with an expiry count only if there are no others. `own` is a key for the bucket, which
    /// the watch may not have delivered yet.
    ///
    /// # Errors
    /// Returns an error if the limits can't be parsed. Nothing may be stored then.
    pub fn limits(&self, own: Option<&Key>, bucket: &BucketName, backend: &Backend) -> Result<Limits, NotServed> {
        let known = self.keys_of(bucket).filter(|key| self.opens(key, bucket, backend)).map(|key| &**key);
        // Of two equally new keys, the one with the lower limit counts. A limit that can't be
        // parsed counts as zero.
        let rank = |credential: &&ServedCredential| {
            let hard = credential.quota.map_or(0, |limits| limits.hard.map_or(u64::MAX, stowage_api::Bytes::get));
            (credential.expires_at.is_none(), credential.generation, std::cmp::Reverse(hard))
        };
        let newest = known.chain(own).filter_map(Key::credential).max_by_key(rank);
        match (newest, own.map(|key| &key.holder)) {
            (Some(credential), _) => credential.quota,
            // The claim has no key at the moment: its record also has the limits.
            (None, Some(Holder::Access(access))) => self.noted_limits(access, bucket),
            (None, Some(Holder::Claim(_)) | None) => Ok(Limits::default()),
        }
    }

    fn opens(&self, key: &Key, bucket: &BucketName, backend: &Backend) -> bool {
        let Some(credential) = key.credential() else { return false };
        let scope = credential.scope(bucket.as_str()).filter(|scope| scope.backend == backend.name);
        scope.is_some_and(|scope| self.reach_scope(credential, scope).is_ok())
    }

    /// Returns all buckets that have a limit which can be parsed, by their unique id.
    #[must_use]
    pub fn limited(&self) -> BTreeMap<RecordName, Limited> {
        let mut all = BTreeMap::new();
        for key in self.keys() {
            let Some(credential) = key.credential() else { continue };
            for scope in &credential.scopes {
                let Ok(backend) = self.reach_scope(credential, scope) else { continue };
                let bucket = scope.bucket.clone();
                let Ok(limits) = self.limits(None, &bucket, &backend) else { continue };
                if limits != Limits::default() {
                    let id = RecordName::of(&backend.endpoint, &bucket);
                    let namespace = self.namespace_of(key).map(str::to_owned);
                    all.entry(id.clone()).or_insert(Limited { id, bucket, backend, limits, namespace });
                }
            }
        }
        all
    }
}
