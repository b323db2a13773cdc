//! Indexes of cached Secrets, by name and by the claim and bucket that they belong to. The cache
//! itself (`secrets`) decides what to put in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::api::wire::Role;
use crate::api::{BucketName, ClaimRef, ClaimUid, NamespaceUid};
use crate::plan::{Part, Stored};

use super::compressed::restored;
use super::is_later;

/// Namespace and name.
pub(super) type Key = (String, String);

/// The indexed Secrets.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) by_name: BTreeMap<Key, Arc<Secret>>,
    by_claim: BTreeMap<String, BTreeSet<Key>>,
    by_bucket: BTreeMap<String, BTreeSet<Key>>,
    /// Bucket records by the claim that they name, see [`holder`].
    by_holder: BTreeMap<String, BTreeSet<Key>>,
    /// Records of accesses by the UID of their namespace.
    by_namespace_uid: BTreeMap<String, BTreeSet<Key>>,
    /// Names seen by each running list. A Secret of that list's part which isn't among them at its
    /// end is deleted.
    pub(super) listings: BTreeMap<Part, BTreeSet<Key>>,
    /// Secrets that a live read did not find, while the watch has not shown their deletion.
    pub(super) missed: BTreeMap<Key, Arc<Secret>>,
    /// UIDs of Secrets that we deleted, the latest last.
    pub(super) deleted: VecDeque<String>,
}

impl Secrets {
    /// Adds a trimmed Secret. Returns the previous and the new version, or nothing if the new one
    /// is not later.
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

    /// Removes a deleted Secret. Returns its last version, for the objects that depend on it.
    pub(super) fn take(&mut self, deleted: &Secret) -> Vec<Arc<Secret>> {
        let key = key(deleted);
        for listing in self.listings_of(&key.0) {
            listing.remove(&key);
        }
        // A missed Secret was removed before. The one stored by now may be a new one of the same
        // name.
        let missed = self.missed.remove(&key);
        let gone = self.by_name.get(&key).is_some_and(|present| !is_later(present.as_ref(), deleted));
        if gone { self.remove(&key).into_iter().collect() } else { missed.into_iter().collect() }
    }

    /// Handles the end of a list. Returns the Secrets that it did not show.
    pub(super) fn finish_list(&mut self, part: &Part) -> Vec<Arc<Secret>> {
        let listed = self.listings.remove(part).unwrap_or_default();
        let is_gone = |key: &Key| part.covers(&key.0) && !listed.contains(key);
        let missed = self.missed.extract_if(.., |key, _| is_gone(key)).map(|(_, secret)| secret);
        let mut gone: Vec<_> = missed.collect();
        let unlisted: Vec<Key> = self.by_name.keys().filter(|key| is_gone(key)).cloned().collect();
        gone.extend(unlisted.iter().filter_map(|key| self.remove(key)));
        gone
    }

    /// Returns the running lists that cover a namespace.
    fn listings_of(&mut self, namespace: &str) -> impl Iterator<Item = &mut BTreeSet<Key>> {
        self.listings.iter_mut().filter(move |(part, _)| part.covers(namespace)).map(|(_, listing)| listing)
    }

    /// Removes a Secret by name.
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

    /// Returns the indexes that contain a Secret, and its key in each.
    fn indexes(&mut self, secret: &Arc<Secret>) -> Vec<(&mut BTreeMap<String, BTreeSet<Key>>, String)> {
        let stored = Stored(secret.clone());
        let bucket = stored.text("bucket_name").map(str::to_owned);
        let (mut holder, mut namespace) = (None, None);
        match Role::of_internal(stored.name()) {
            Some(Role::BucketRecord) => holder = holder_of(&stored),
            Some(Role::AccessRecord) => namespace = stored.text("namespace_uid").map(str::to_owned),
            Some(_) | None => {}
        }
        let by_claim = claim_of(secret).map(|uid| (&mut self.by_claim, uid));
        let by_bucket = bucket.map(|bucket| (&mut self.by_bucket, bucket));
        let by_holder = holder.map(|claim| (&mut self.by_holder, claim));
        let by_namespace_uid = namespace.map(|uid| (&mut self.by_namespace_uid, uid));
        [by_claim, by_bucket, by_holder, by_namespace_uid].into_iter().flatten().collect()
    }

    /// Returns this claim's Secrets that a live read missed.
    pub(super) fn missed_of(&self, uid: &ClaimUid) -> impl Iterator<Item = (&Key, &Arc<Secret>)> {
        self.missed.iter().filter(move |(_, secret)| claim_of(secret).as_deref() == Some(uid.as_str()))
    }

    /// Returns the Secrets of the claim with this UID, by name.
    pub(super) fn of_claim(&self, uid: &ClaimUid) -> Vec<Stored> {
        self.at(self.by_claim.get(uid.as_str())).map(restored).map(Stored).collect()
    }

    /// Returns the Secrets of all claims for this bucket, by name.
    pub(super) fn of_bucket(&self, bucket: &BucketName) -> Vec<Stored> {
        self.at(self.by_bucket.get(bucket.as_str())).map(restored).map(Stored).collect()
    }

    /// Returns the bucket records that name this claim, by name.
    pub(super) fn records_of(&self, claim: &ClaimRef) -> Vec<Stored> {
        self.at(self.by_holder.get(&holder(&claim.namespace, &claim.name))).cloned().map(Stored).collect()
    }

    /// Returns the records of accesses in the namespace with this UID, by name.
    pub(super) fn access_records_in(&self, namespace: &NamespaceUid) -> Vec<Stored> {
        self.at(self.by_namespace_uid.get(namespace.as_str())).cloned().map(Stored).collect()
    }

    /// Returns the Secrets of the claim with this UID, including those that a live read missed.
    pub(super) fn shown_of(&self, uid: &ClaimUid) -> impl Iterator<Item = &Arc<Secret>> {
        let missed = self.missed_of(uid).map(|(_, secret)| secret);
        self.at(self.by_claim.get(uid.as_str())).chain(missed)
    }

    fn at<'a>(&'a self, keys: Option<&'a BTreeSet<Key>>) -> impl Iterator<Item = &'a Arc<Secret>> {
        keys.into_iter().flatten().filter_map(|key| self.by_name.get(key))
    }
}

/// Returns the UID of a Secret's claim or access. UIDs are unique across kinds.
fn claim_of(secret: &Arc<Secret>) -> Option<String> {
    let stored = Stored(secret.clone());
    let noted = stored.text("claim_uid").or_else(|| stored.text("access_uid"));
    noted.map(str::to_owned).or_else(|| controller(secret))
}

/// Returns the index key of the claim that a bucket record names.
fn holder_of(record: &Stored) -> Option<String> {
    Some(holder(record.text("claim_namespace")?, record.text("claim_name")?))
}

/// Returns the index key of a claim. It is unique because names contain no slash.
fn holder(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Returns the UID of the controller, which identifies consumer Secrets.
fn controller(secret: &Secret) -> Option<String> {
    let owner = secret.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}

/// Returns namespace and name of a Secret.
pub(super) fn key(secret: &Secret) -> Key {
    (secret.namespace().unwrap_or_default(), secret.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{AccessRecord, AccessRef, AccessUid, BucketRecord, SecretContent};

    fn stored(content: &SecretContent, version: u32) -> Arc<Secret> {
        let mut secret = content.to_secret();
        secret.metadata.resource_version = Some(version.to_string());
        Arc::new(secret)
    }

    fn claim(namespace: &str, name: &str) -> ClaimRef {
        ClaimRef { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns a record of this claim for a bucket.
    fn record(claim: ClaimRef, bucket: &str) -> SecretContent {
        let record = BucketRecord {
            uid: ClaimUid::new(format!("of-{claim:?}")),
            claim,
            bucket: BucketName::parse(bucket).unwrap(),
            ..BucketRecord::fixture()
        };
        record.content("stowage-system")
    }

    fn access_record(name: &str, namespace_uid: &str) -> SecretContent {
        let record = AccessRecord {
            access: AccessRef { namespace: "team-b".to_owned(), name: name.to_owned() },
            uid: AccessUid::new(name),
            namespace_uid: NamespaceUid::new(namespace_uid),
            ..AccessRecord::fixture()
        };
        record.content("stowage-system")
    }

    // covers: 3.9.access.cost
    #[test]
    fn a_record_is_found_by_the_claim_that_it_names_without_a_look_at_the_others() {
        let mut secrets = Secrets::default();
        for number in 0..100 {
            let other = claim("team-a", &format!("films-{number}"));
            secrets.put(stored(&record(other, &format!("films-{number}")), 1));
        }
        let photos = record(claim("team-a", "photos"), "photos");
        secrets.put(stored(&photos, 1));
        secrets.put(stored(&record(claim("team-a", "photos"), "moved"), 1));
        secrets.put(stored(&record(claim("team-b", "photos"), "theirs"), 1));
        let of = |secrets: &Secrets, namespace: &str| {
            let buckets = secrets.records_of(&claim(namespace, "photos")).into_iter();
            let mut buckets: Vec<_> = buckets.map(|it| it.text("bucket_name").unwrap().to_owned()).collect();
            buckets.sort();
            buckets
        };
        assert_eq!(
            (of(&secrets, "team-a"), of(&secrets, "team-b")),
            (vec!["moved".into(), "photos".into()], vec!["theirs".into()])
        );
        assert!(of(&secrets, "team-c").is_empty() && secrets.records_of(&claim("team-a/photos", "")).is_empty());
        let key = key(&stored(&photos, 1));
        secrets.remove(&key);
        assert_eq!(of(&secrets, "team-a"), ["moved"]);
    }

    // covers: 3.9.access.cost
    #[test]
    fn records_of_accesses_are_found_by_the_namespace_that_they_were_made_in() {
        let mut secrets = Secrets::default();
        for (name, namespace) in [("reader", "n-1"), ("writer", "n-1"), ("later", "n-2")] {
            secrets.put(stored(&access_record(name, namespace), 1));
        }
        let of = |secrets: &Secrets, uid: &str| secrets.access_records_in(&NamespaceUid::new(uid)).len();
        assert_eq!(["n-1", "n-2", "n-3"].map(|uid| of(&secrets, uid)), [2, 1, 0]);
        secrets.put(stored(&access_record("writer", "n-2"), 2));
        assert_eq!(["n-1", "n-2"].map(|uid| of(&secrets, uid)), [1, 2], "one that changes is found anew");
    }
}
