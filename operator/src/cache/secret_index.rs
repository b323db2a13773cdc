//! What is known of Secrets, by name and by the claim and bucket that they belong to. Who tells is
//! the cache's business (`secrets`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::api::{BucketName, ClaimUid};
use crate::plan::{Part, Stored};

use super::compressed::restored;
use super::is_later;

/// Namespace and name.
pub(super) type Key = (String, String);

/// The Secrets, and what was heard of them.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) by_name: BTreeMap<Key, Arc<Secret>>,
    by_claim: BTreeMap<String, BTreeSet<Key>>,
    by_bucket: BTreeMap<String, BTreeSet<Key>>,
    /// For each list under way the names seen since it began; what isn't among them when it ends,
    /// of what it tells of, is gone.
    pub(super) listings: BTreeMap<Part, BTreeSet<Key>>,
    /// What a live read did not find, and of whose deletion the watch has not told.
    pub(super) missed: BTreeMap<Key, Arc<Secret>>,
    /// UIDs of what we deleted, the latest last.
    pub(super) deleted: VecDeque<String>,
}

impl Secrets {
    /// Takes in what is kept of a Secret as it is shown. Returns it as it was known before, and as
    /// it is now; nothing where that is no later.
    pub(super) fn put(&mut self, secret: Arc<Secret>) -> Vec<Arc<Secret>> {
        let key = key(&secret);
        for listing in self.listings_of(&key.0) {
            listing.insert(key.clone());
        }
        if self.by_name.get(&key).is_some_and(|present| !is_later(secret.as_ref(), present.as_ref())) {
            return Vec::new();
        }
        self.missed.remove(&key);
        let before = self.remove(&key);
        for (index, word) in self.indexes(&secret) {
            index.entry(word).or_default().insert(key.clone());
        }
        self.by_name.insert(key, secret.clone());
        before.into_iter().chain([secret]).collect()
    }

    /// Takes in that a Secret is gone. Returns it as it was known, for those who depend on it.
    pub(super) fn take(&mut self, deleted: &Secret) -> Vec<Arc<Secret>> {
        let key = key(deleted);
        for listing in self.listings_of(&key.0) {
            listing.remove(&key);
        }
        // Who missed it knows; whose it was may be another.
        let missed = self.missed.remove(&key);
        let gone = self.by_name.get(&key).is_some_and(|present| !is_later(present.as_ref(), deleted));
        if gone { self.remove(&key).into_iter().collect() } else { missed.into_iter().collect() }
    }

    /// Takes in that the list of a watch is at its end. Returns what it did not show.
    pub(super) fn finish_list(&mut self, part: &Part) -> Vec<Arc<Secret>> {
        let listed = self.listings.remove(part).unwrap_or_default();
        let is_gone = |key: &Key| part.covers(&key.0) && !listed.contains(key);
        let missed = self.missed.extract_if(.., |key, _| is_gone(key)).map(|(_, secret)| secret);
        let mut gone: Vec<_> = missed.collect();
        let unlisted: Vec<Key> = self.by_name.keys().filter(|key| is_gone(key)).cloned().collect();
        gone.extend(unlisted.iter().filter_map(|key| self.remove(key)));
        gone
    }

    /// What the lists under way have shown that tell of a namespace.
    fn listings_of(&mut self, namespace: &str) -> impl Iterator<Item = &mut BTreeSet<Key>> {
        self.listings.iter_mut().filter(move |(part, _)| part.covers(namespace)).map(|(_, listing)| listing)
    }

    /// Forgets what is known under a name.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Secret>> {
        let secret = self.by_name.remove(key)?;
        for (index, word) in self.indexes(&secret) {
            if let Some(keys) = index.get_mut(&word) {
                keys.remove(key);
                if keys.is_empty() {
                    index.remove(&word);
                }
            }
        }
        Some(secret)
    }

    /// The indexes that a Secret belongs into, and under which word.
    fn indexes(&mut self, secret: &Arc<Secret>) -> Vec<(&mut BTreeMap<String, BTreeSet<Key>>, String)> {
        let bucket = Stored(secret.clone()).text("bucket_name").map(str::to_owned);
        let by_claim = claim_of(secret).map(|uid| (&mut self.by_claim, uid));
        let by_bucket = bucket.map(|bucket| (&mut self.by_bucket, bucket));
        by_claim.into_iter().chain(by_bucket).collect()
    }

    /// What a live read missed of this claim's.
    pub(super) fn missed_of(&self, uid: &ClaimUid) -> impl Iterator<Item = (&Key, &Arc<Secret>)> {
        self.missed.iter().filter(move |(_, secret)| claim_of(secret).as_deref() == Some(uid.as_str()))
    }

    /// Secrets of the claim of this UID, by name.
    pub(super) fn of_claim(&self, uid: &ClaimUid) -> Vec<Stored> {
        self.at(self.by_claim.get(uid.as_str())).map(restored).map(Stored).collect()
    }

    /// Secrets for this bucket, whoever's, by name.
    pub(super) fn of_bucket(&self, bucket: &BucketName) -> Vec<Stored> {
        self.at(self.by_bucket.get(bucket.as_str())).map(restored).map(Stored).collect()
    }

    /// Secrets of the claim of this UID, those that a live read missed included.
    pub(super) fn shown_of(&self, uid: &ClaimUid) -> impl Iterator<Item = &Arc<Secret>> {
        let missed = self.missed_of(uid).map(|(_, secret)| secret);
        self.at(self.by_claim.get(uid.as_str())).chain(missed)
    }

    fn at<'a>(&'a self, keys: Option<&'a BTreeSet<Key>>) -> impl Iterator<Item = &'a Arc<Secret>> {
        keys.into_iter().flatten().filter_map(|key| self.by_name.get(key))
    }
}

/// UID of the claim or access that a Secret is of: no UID is given twice, to whatever.
fn claim_of(secret: &Arc<Secret>) -> Option<String> {
    let stored = Stored(secret.clone());
    let noted = stored.text("claim_uid").or_else(|| stored.text("access_uid"));
    noted.map(str::to_owned).or_else(|| controller(secret))
}

/// UID of the controller, which is what makes a consumer Secret ours.
fn controller(secret: &Secret) -> Option<String> {
    let owner = secret.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}

/// Where a Secret is.
pub(super) fn key(secret: &Secret) -> Key {
    (secret.namespace().unwrap_or_default(), secret.name_any())
}
