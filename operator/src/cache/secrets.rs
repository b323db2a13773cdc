//! Cache of our Secrets, by name and by the claim and bucket that they belong to.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::{AccessUid, BucketName, ClaimRef, ClaimUid, NamespaceUid};
use crate::plan::{Part, SecretRef, Stored};

use super::compressed::restored;
use super::consumer::Whose;
use super::secret_index::{Secrets, key};
use super::{is_later, number};

/// Secrets selected by label, as shown by the watch, our own writes and live reads.
#[derive(Default)]
pub(crate) struct SecretCache {
    whose: Whose,
    known: Mutex<Secrets>,
}

/// Number of our latest deletions that are remembered: far more than happen between a deletion and
/// the end of the next pass over its claim.
const MOST_DELETED: usize = 1024;

impl SecretCache {
    /// Creates a cache of Secrets that tenants may write.
    pub(crate) fn of_tenants() -> Self {
        Self { whose: Whose::Tenants, known: Mutex::default() }
    }

    /// Trims a Secret to the parts that a pass reads.
    pub(crate) fn kept(&self, secret: Secret) -> Arc<Secret> {
        Arc::new(self.whose.kept(secret))
    }

    /// Trims a Secret to the parts that the cache stores.
    fn cached(&self, kept: &Arc<Secret>) -> Arc<Secret> {
        self.whose.cached(kept.clone())
    }

    /// Applies an event of a cluster-wide watch, or of the only namespace in this cache, see
    /// [`SecretCache::apply_part`].
    pub(crate) fn apply(&self, event: Event<Secret>) -> Vec<Arc<Secret>> {
        self.apply_part(&Part::All, event)
    }

    /// Applies an event of the watch of one part, whose lists don't affect the other parts. Returns
    /// the Secrets that have changed, without echoes of our own writes.
    pub(crate) fn apply_part(&self, part: &Part, event: Event<Secret>) -> Vec<Arc<Secret>> {
        let mut secrets = self.known.lock();
        match event {
            Event::Init => {
                secrets.listings.insert(part.clone(), BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(secret) | Event::Apply(secret) => secrets.put(self.cached(&self.kept(secret))),
            Event::Delete(secret) => secrets.take(&secret),
            Event::InitDone => secrets.finish_list(part),
        }
    }

    /// Stores the answer to a write of ours.
    pub(crate) fn wrote(&self, secret: &Arc<Secret>) {
        self.known.lock().put(self.cached(secret));
    }

    /// Removes a Secret that we deleted, and remembers the deletion.
    pub(crate) fn deleted(&self, secret: &SecretRef) {
        let mut secrets = self.known.lock();
        secrets.remove(&(secret.namespace.clone(), secret.name.clone()));
        secrets.deleted.push_back(secret.id.uid.clone());
        if secrets.deleted.len() > MOST_DELETED {
            secrets.deleted.pop_front();
        }
    }

    /// Returns true if we deleted one of these Secrets before, so that the answer which shows it is
    /// outdated. A Secret that is being deleted doesn't count: another finalizer may keep it.
    pub(crate) fn has_deleted<'a>(&self, shown: impl IntoIterator<Item = &'a Secret>) -> bool {
        let secrets = self.known.lock();
        let deleted = |meta: &ObjectMeta| meta.uid.as_ref().is_some_and(|uid| secrets.deleted.contains(uid));
        shown.into_iter().any(|secret| secret.metadata.deletion_timestamp.is_none() && deleted(&secret.metadata))
    }

    /// Removes a Secret that a live read did not find, even if the watch doesn't report that.
    pub(crate) fn missed(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let mut secrets = self.known.lock();
        if let Some(secret) = secrets.remove(&key) {
            secrets.missed.insert(key, secret);
        }
    }

    /// Handles a Secret that a live read found.
    ///
    /// If an earlier read missed it, that read was answered from the server's past. The Secret is
    /// added again then, because the watch will not report an unchanged object. Otherwise nothing
    /// is done: the watch reports every change, and only it knows the version before that.
    pub(crate) fn read_live(&self, secret: &Arc<Secret>) {
        let mut secrets = self.known.lock();
        if secrets.missed.get(&key(secret)).is_some_and(|missed| !is_later(missed.as_ref(), secret.as_ref())) {
            secrets.put(self.cached(secret));
        }
    }

    /// Returns the Secret of this name.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Stored> {
        let key = (namespace.to_owned(), name.to_owned());
        self.known.lock().by_name.get(&key).map(restored).map(Stored)
    }

    /// Returns all Secrets by name, as they are stored: long texts of records and of keys of
    /// accesses are compressed and can't be read.
    pub(crate) fn all(&self) -> Vec<Stored> {
        self.known.lock().by_name.values().cloned().map(Stored).collect()
    }

    /// Returns the Secrets of the claim with this UID, by name.
    pub(crate) fn of_claim(&self, uid: &ClaimUid) -> Vec<Stored> {
        self.known.lock().of_claim(uid)
    }

    /// Returns the Secrets of the access with this UID, by name.
    pub(crate) fn of_access(&self, uid: &AccessUid) -> Vec<Stored> {
        self.of_claim(&ClaimUid::new(uid.as_str()))
    }

    /// Returns the bucket records that name this claim, by name.
    pub(crate) fn records_of(&self, claim: &ClaimRef) -> Vec<Stored> {
        self.known.lock().records_of(claim)
    }

    /// Returns the records of accesses in the namespace with this UID, by name.
    pub(crate) fn access_records_in(&self, namespace: &NamespaceUid) -> Vec<Stored> {
        self.known.lock().access_records_in(namespace)
    }

    /// Like [`is_ahead_of`](Self::is_ahead_of), for the Secrets of an access.
    pub(crate) fn is_ahead_of_access(&self, uid: &AccessUid, version: Option<&str>) -> bool {
        self.is_ahead_of(&ClaimUid::new(uid.as_str()), version)
    }

    /// Returns namespace and name of this claim's Secrets that a live read missed, while the watch
    /// has not shown their deletion.
    pub(crate) fn missed_of(&self, uid: &ClaimUid) -> Vec<(String, String)> {
        self.known.lock().missed_of(uid).map(|(key, _)| key.clone()).collect()
    }

    /// Returns true if a cached Secret of this claim is later than this version of the server, so
    /// that the server's answer is outdated.
    pub(crate) fn is_ahead_of(&self, uid: &ClaimUid, version: Option<&str>) -> bool {
        let secrets = self.known.lock();
        is_any_later(secrets.shown_of(uid), version)
    }

    /// Like [`is_ahead_of`](Self::is_ahead_of), for the Secrets of all claims for this bucket.
    pub(crate) fn is_ahead_at(&self, bucket: &BucketName, version: Option<&str>) -> bool {
        is_any_later(self.of_bucket(bucket).iter().map(|known| &known.0), version)
    }

    /// Returns the Secrets of all claims for this bucket.
    pub(crate) fn of_bucket(&self, bucket: &BucketName) -> Vec<Stored> {
        self.known.lock().of_bucket(bucket)
    }
}

/// Returns true if one of these is later than this version. False if there is no version to compare
/// with.
fn is_any_later<'a>(mut known: impl Iterator<Item = &'a Arc<Secret>>, version: Option<&str>) -> bool {
    let asked = version.and_then(|version| version.parse::<u128>().ok());
    asked.is_some_and(|asked| known.any(|known| number(known.as_ref()).is_some_and(|known| known > asked)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
    use k8s_openapi::jiff::Timestamp;
    use kube::ResourceExt;

    use super::*;
    use crate::api::{BucketRecord, SecretKey, kept, wire};

    fn secret(version: u32) -> Secret {
        let facts = BucketRecord::fixture().key_fixture(1);
        let mut secret = facts.content("stowage-system", Some(&SecretKey::new("x".into()))).to_secret();
        secret.metadata.resource_version = Some(version.to_string());
        secret
    }

    fn versions(cache: &SecretCache) -> Vec<Option<String>> {
        cache.of_claim(&ClaimUid::new("u-1")).iter().map(|stored| stored.0.resource_version()).collect()
    }

    #[test]
    fn of_a_consumer_secret_what_is_ours_is_kept() {
        let mut secret = Secret::default();
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        secret.metadata.labels = Some(map(wire::ROLE, wire::Role::ConsumerSecret.as_str()));
        secret.metadata.labels.get_or_insert_default().extend(map("theirs", "x"));
        secret.metadata.labels.get_or_insert_default().extend(map("broker.stowage.io/theirs", "x"));
        secret.metadata.annotations = Some(map("theirs", "x"));
        secret.metadata.finalizers = Some(vec!["example.com/theirs".to_owned()]);
        secret.metadata.owner_references = Some(vec![OwnerReference::default()]);
        secret.type_ = Some("x".repeat(1 << 20));
        let long = ByteString(vec![b'x'; 1 << 20]);
        secret.data = Some(["BUCKET_NAME", "theirs"].map(|key| (key.to_owned(), long.clone())).into());
        let cache = SecretCache::of_tenants();
        cache.apply(Event::Apply(secret.clone()));
        let kept = cache.all().remove(0).0;
        assert_eq!(kept.metadata.labels, Some(map(wire::ROLE, wire::Role::ConsumerSecret.as_str())));
        assert_eq!(kept.metadata.annotations, Some(BTreeMap::new()));
        assert_eq!((&kept.metadata.finalizers, &kept.metadata.owner_references), (&None, &Some(Vec::new())));
        assert_eq!(kept.type_.as_deref(), Some("too long"));
        let data = kept.data.as_ref().unwrap();
        assert_eq!(
            data.iter().map(|(key, value)| (key.as_str(), value.0.len())).collect::<Vec<_>>(),
            [("BUCKET_NAME", kept::LONGEST)]
        );

        let cache = SecretCache::default();
        secret.metadata.labels = Some(map(wire::ROLE, wire::Role::BucketRecord.as_str()));
        cache.apply(Event::Apply(secret));
        assert_eq!(cache.all().remove(0).0.data.as_ref().unwrap().len(), 2, "internal Secrets are nobody else's");
    }

    // covers: 3.ownWrites
    #[test]
    fn our_own_write_supersedes_the_watch_until_it_has_caught_up() {
        let cache = SecretCache::default();
        cache.wrote(&Arc::new(secret(9)));
        assert!(cache.apply(Event::Apply(secret(7))).is_empty(), "older than what we wrote");
        assert!(cache.apply(Event::Apply(secret(9))).is_empty(), "the echo of what we wrote");
        assert_eq!(versions(&cache), [Some("9".to_owned())]);
        assert_eq!(cache.apply(Event::Apply(secret(10))).len(), 2, "before and after");
    }

    // covers: 3.ownWrites
    #[test]
    fn a_deletion_counts_unless_what_we_know_is_later() {
        let cache = SecretCache::default();
        cache.wrote(&Arc::new(secret(9)));
        assert!(cache.apply(Event::Delete(secret(8))).is_empty());
        assert_eq!(cache.apply(Event::Delete(secret(10))).len(), 1);
        assert!(versions(&cache).is_empty());
        assert!(cache.of_bucket(&BucketName::parse("photos").unwrap()).is_empty());
    }

    // covers: 3.ownWrites
    #[test]
    fn what_a_list_does_not_show_is_gone_but_for_what_we_wrote_meanwhile() {
        let cache = SecretCache::default();
        cache.apply(Event::Apply(secret(3)));
        cache.apply(Event::Init);
        assert_eq!(cache.apply(Event::InitDone).len(), 1);
        cache.apply(Event::Init);
        cache.wrote(&Arc::new(secret(9)));
        assert!(cache.apply(Event::InitDone).is_empty());
        assert_eq!(versions(&cache).len(), 1);
    }

    // covers: 3.9.lists
    #[test]
    fn a_list_of_one_namespace_says_nothing_of_another() {
        let cache = SecretCache::of_tenants();
        let part = |namespace: &str| Part::Namespace(namespace.to_owned());
        let (a, b) = (part("team-a"), part("team-b"));
        let of = |namespace: &str, version| {
            let mut secret = secret(version);
            secret.metadata.namespace = Some(namespace.to_owned());
            secret
        };
        let places = |cache: &SecretCache| {
            cache.all().iter().filter_map(|secret| secret.0.metadata.namespace.clone()).collect::<Vec<_>>()
        };
        cache.apply_part(&a, Event::Init);
        cache.apply_part(&b, Event::Init);
        cache.apply_part(&a, Event::InitApply(of("team-a", 3)));
        assert!(cache.apply_part(&b, Event::InitDone).is_empty(), "it is another's list");
        cache.apply_part(&a, Event::InitDone);
        assert_eq!(places(&cache), ["team-a"]);
        cache.apply_part(&b, Event::Apply(of("team-b", 4)));
        cache.apply_part(&a, Event::Init);
        cache.wrote(&Arc::new(of("team-b", 5)));
        assert_eq!(cache.apply_part(&a, Event::InitDone).len(), 1, "it went while nobody watched");
        assert_eq!(places(&cache), ["team-b"]);
        cache.apply_part(&b, Event::Init);
        cache.wrote(&Arc::new(of("team-b", 6)));
        assert!(cache.apply_part(&b, Event::InitDone).is_empty(), "it was written meanwhile");
    }

    #[test]
    fn what_a_server_told_before_it_got_to_what_is_known_is_its_past() {
        let cache = SecretCache::default();
        let uid = ClaimUid::new("u-1");
        assert!(!cache.is_ahead_of(&uid, Some("1")), "nothing is known");
        cache.apply(Event::Apply(secret(9)));
        assert!(cache.is_ahead_of(&uid, Some("8")));
        assert!(!cache.is_ahead_of(&uid, Some("10")) && !cache.is_ahead_of(&uid, Some("9")));
        assert!(!cache.is_ahead_of(&uid, None) && !cache.is_ahead_of(&uid, Some("")), "it does not say");
        assert!(!cache.is_ahead_of(&ClaimUid::new("u-2"), Some("8")), "another claim's");
        let at = |bucket: &str, version| cache.is_ahead_at(&BucketName::parse(bucket).unwrap(), Some(version));
        assert!(at("photos", "8") && !at("photos", "9") && !at("films", "8"));
    }

    #[test]
    fn what_a_live_read_missed_is_known_again_once_another_finds_it() {
        let cache = SecretCache::default();
        let stored = Arc::new(secret(3));
        cache.read_live(&stored);
        assert!(versions(&cache).is_empty(), "what the watch has not shown yet is its to tell");
        cache.apply(Event::Apply(secret(3)));
        let name = stored.name_any();
        cache.missed("stowage-system", &name);
        assert!(versions(&cache).is_empty());
        let missed_of = |uid: &str| cache.missed_of(&ClaimUid::new(uid));
        assert_eq!(missed_of("u-1"), [("stowage-system".to_owned(), name.clone())]);
        assert!(missed_of("u-2").is_empty(), "nor is another claim asked for it");
        cache.read_live(&Arc::new(secret(2)));
        assert!(versions(&cache).is_empty(), "nor as it was before it was seen last");
        cache.read_live(&stored);
        assert_eq!(versions(&cache).len(), 1);
        assert!(missed_of("u-1").is_empty());

        cache.missed("stowage-system", &name);
        assert!(cache.is_ahead_of(&ClaimUid::new("u-1"), Some("2")), "it was seen");
        let told = cache.apply(Event::Delete(secret(4)));
        assert_eq!(told.len(), 1, "who missed it may be another than whose it was");
        cache.read_live(&stored);
        assert!(versions(&cache).is_empty(), "the watch has told of its deletion");

        cache.apply(Event::Init);
        cache.apply(Event::InitApply(secret(5)));
        cache.missed("stowage-system", &name);
        cache.apply(Event::InitDone);
        cache.read_live(&Arc::new(secret(5)));
        assert_eq!(versions(&cache).len(), 1, "the list that was under way had shown it");

        cache.missed("stowage-system", &name);
        cache.apply(Event::Init);
        assert_eq!(cache.apply(Event::InitDone).len(), 1);
        cache.read_live(&Arc::new(secret(5)));
        assert!(versions(&cache).is_empty(), "a later list does not show it");
    }

    #[test]
    fn what_we_deleted_is_known_when_it_is_shown_again_for_a_while() {
        let cache = SecretCache::default();
        let with_uid = |uid: u32| {
            let mut secret = secret(uid);
            secret.metadata.uid = Some(format!("s-{uid}"));
            secret
        };
        for uid in 0..=1024 {
            cache.deleted(&Stored(Arc::new(with_uid(uid))).reference());
        }
        let known = [0, 1, 1024, 1025].map(|uid| cache.has_deleted(&[secret(1), with_uid(uid)]));
        assert_eq!(known, [false, true, true, false]);
        let mut kept = with_uid(1024);
        kept.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!cache.has_deleted(&[kept]), "a finalizer keeps it");
    }
}
