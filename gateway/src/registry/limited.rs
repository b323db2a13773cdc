//! How much may be stored in a bucket, as the keys to it say.

use std::collections::BTreeMap;
use std::sync::Arc;

use stowage_api::{BucketName, Limits, NotServed, RecordName, ServedCredential};

use super::backend::Backend;
use super::internal::{Holder, Key};
use super::tables::Tables;

/// A bucket with a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    /// What tells it from all others: store and name.
    pub id: RecordName,
    /// Its name.
    pub bucket: BucketName,
    /// The store that has it.
    pub backend: Arc<Backend>,
    /// How much may be stored.
    pub limits: Limits,
    /// The namespace of its claim, where that is known.
    pub namespace: Option<String>,
}

impl Tables {
    /// The limits of a bucket at a backend: those of the newest generation that isn't on its way
    /// out, where there is one. `own` is a key that opens it, which no watch may have told of yet.
    ///
    /// # Errors
    /// When those can't be read: nothing may be stored then.
    pub fn limits(&self, own: Option<&Key>, bucket: &BucketName, backend: &Backend) -> Result<Limits, NotServed> {
        let known = self.keys_of(bucket).filter(|key| self.opens(key, bucket, backend)).map(|key| &**key);
        // Of two that are equally new, the one that says less counts.
        let rank = |credential: &&ServedCredential| {
            let hard = credential.quota.map_or(0, |limits| limits.hard.map_or(u64::MAX, stowage_api::Bytes::get));
            (credential.expires_at.is_none(), credential.generation, std::cmp::Reverse(hard))
        };
        let newest = known.chain(own).filter_map(Key::credential).max_by_key(rank);
        match (newest, own.map(|key| &key.holder)) {
            (Some(credential), _) => credential.quota,
            // The claim has no key at the moment: its record says it too.
            (None, Some(Holder::Access(access))) => self.noted_limits(access, bucket),
            (None, Some(Holder::Claim(_)) | None) => Ok(Limits::default()),
        }
    }

    fn opens(&self, key: &Key, bucket: &BucketName, backend: &Backend) -> bool {
        let Some(credential) = key.credential() else { return false };
        let scope = credential.scope(bucket.as_str()).filter(|scope| scope.backend == backend.name);
        scope.is_some_and(|scope| self.reach_scope(credential, scope).is_ok())
    }

    /// All buckets that have a limit which can be read, by what tells each from the others.
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
