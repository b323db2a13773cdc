//! Cache of accesses, by name and by the claims that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::{AccessEntry, AccessRef, AccessUid, BucketAccess, ClaimRef, Entry, EntryOf, ObjectId, Packed};

/// The part of each decodable access that other objects depend on. The whole object is in the
/// watch's store, and the entries share its memory.
#[derive(Default)]
pub(crate) struct AccessCache(Mutex<Accesses>);

#[derive(Default)]
struct Accesses {
    all: BTreeMap<Arc<AccessRef>, Known>,
    /// Accesses by the claims that they name.
    named: BTreeSet<(ClaimKey, Arc<AccessRef>)>,
    listing: Option<BTreeSet<AccessRef>>,
    is_filled: bool,
}

/// Digest of a claim's name. A tenant may name 64 claims in each of thousands of accesses, by long
/// names.
type ClaimKey = [u8; 16];

/// An access.
struct Known {
    id: ObjectId,
    deleting: bool,
    entries: Packed<Vec<AccessEntry>>,
    /// True if an entry names a bucket instead of a claim.
    has_bucket: bool,
}

impl AccessCache {
    /// Applies a watch event. Returns the claims that changed accesses name now or named before.
    pub(crate) fn apply(&self, event: &Event<DeserializeGuard<BucketAccess>>) -> BTreeSet<ClaimRef> {
        let mut accesses = self.0.lock();
        match event {
            Event::Init => {
                accesses.listing = Some(BTreeSet::new());
                BTreeSet::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let at = AccessRef { namespace: object.namespace().unwrap_or_default(), name: object.name_any() };
                if let Some(listing) = &mut accesses.listing {
                    listing.insert(at.clone());
                }
                match &object.0 {
                    Ok(raw) => accesses.put(at, raw),
                    Err(_) => accesses.take(&at),
                }
            }
            Event::Delete(object) => {
                accesses.take(&AccessRef { namespace: object.namespace().unwrap_or_default(), name: object.name_any() })
            }
            Event::InitDone => {
                let listed = accesses.listing.take().unwrap_or_default();
                let gone: Vec<_> = accesses.all.keys().filter(|at| !listed.contains(at.as_ref())).cloned().collect();
                // Claims wait for the first complete list, so its end wakes all of them.
                let first = !std::mem::replace(&mut accesses.is_filled, true);
                let mut touched: BTreeSet<ClaimRef> = gone.iter().flat_map(|at| accesses.take(at)).collect();
                if first {
                    touched.extend(accesses.all.iter().flat_map(|(at, known)| known.claims(at)));
                }
                touched
            }
        }
    }

    /// True once a list was complete.
    pub(crate) fn is_filled(&self) -> bool {
        self.0.lock().is_filled
    }

    /// Returns true if the access of this name is cached with this UID.
    pub(crate) fn has(&self, at: &AccessRef, uid: &AccessUid) -> bool {
        self.0.lock().all.get(at).is_some_and(|known| known.id.uid == uid.as_str())
    }

    /// Returns the UIDs of the accesses; `None` before the first complete list.
    pub(crate) fn uids(&self) -> Option<BTreeSet<AccessUid>> {
        let accesses = self.0.lock();
        accesses.is_filled.then(|| accesses.all.values().map(|known| AccessUid::new(&known.id.uid)).collect())
    }

    /// Returns the accesses that name a claim; `None` before the first complete list.
    pub(crate) fn of_claim(&self, claim: &ClaimRef) -> Option<BTreeSet<AccessRef>> {
        let accesses = self.0.lock();
        accesses.is_filled.then(|| accesses.naming(claim).map(|(at, _)| at.clone()).collect())
    }

    /// Like [`of_claim`](Self::of_claim), without accesses that are being deleted.
    pub(crate) fn live_of_claim(&self, claim: &ClaimRef) -> Option<BTreeSet<AccessRef>> {
        let accesses = self.0.lock();
        let live = accesses.naming(claim).filter(|(_, known)| !known.deleting);
        accesses.is_filled.then(|| live.map(|(at, _)| at.clone()).collect())
    }

    /// Returns the accesses in a namespace, and the claims that they name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(AccessRef, BTreeSet<ClaimRef>)> {
        let from = AccessRef { namespace: namespace.to_owned(), name: String::new() };
        let accesses = self.0.lock();
        let within = accesses.all.range(Arc::new(from)..).take_while(|(at, _)| at.namespace == namespace);
        within.map(|(at, known)| (at.as_ref().clone(), known.claims(at))).collect()
    }

    /// Returns the accesses that name a bucket of this backend.
    pub(crate) fn on_backend(&self, backend: &str) -> Vec<AccessRef> {
        let is_on = |entry: &Entry| matches!(&entry.of, Ok(EntryOf::Bucket(on, _)) if on == backend);
        let accesses = self.0.lock();
        let with_bucket = accesses.all.iter().filter(|(_, known)| known.has_bucket);
        let on = with_bucket.filter(|(at, known)| Entry::all(&known.entries, &at.namespace).iter().any(is_on));
        on.map(|(at, _)| at.as_ref().clone()).collect()
    }
}

impl Known {
    fn claims(&self, at: &AccessRef) -> BTreeSet<ClaimRef> {
        Entry::all(&self.entries, &at.namespace).iter().filter_map(Entry::claim).cloned().collect()
    }
}

impl Accesses {
    fn naming(&self, claim: &ClaimRef) -> impl Iterator<Item = (&AccessRef, &Known)> {
        let key = claim.short_digest();
        let least = AccessRef { namespace: String::new(), name: String::new() };
        let names = self.named.range((key, Arc::new(least))..).take_while(move |(named, _)| *named == key);
        names.filter_map(|(_, at)| self.all.get_key_value(at)).map(|(at, known)| (at.as_ref(), known))
    }

    fn put(&mut self, at: AccessRef, raw: &BucketAccess) -> BTreeSet<ClaimRef> {
        let entries = Entry::all(&raw.spec.buckets, &at.namespace);
        let known = Known {
            id: ObjectId::of(raw),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            entries: raw.spec.buckets.clone(),
            has_bucket: entries.iter().any(|entry| matches!(entry.of, Ok(EntryOf::Bucket(..)))),
        };
        let before = self.all.get(&at);
        if before.is_some_and(|before| before.id == known.id) {
            return BTreeSet::new();
        }
        let matters = before.is_none_or(|before| {
            before.entries != known.entries || before.deleting != known.deleting || before.id.uid != known.id.uid
        });
        let mut touched = self.take(&at);
        let at = Arc::new(at);
        for claim in entries.iter().filter_map(Entry::claim) {
            self.named.insert((claim.short_digest(), at.clone()));
            touched.insert(claim.clone());
        }
        self.all.insert(at, known);
        if matters { touched } else { BTreeSet::new() }
    }

    fn take(&mut self, at: &AccessRef) -> BTreeSet<ClaimRef> {
        let Some((at, known)) = self.all.remove_entry(at) else { return BTreeSet::new() };
        let named = known.claims(&at);
        for claim in &named {
            self.named.remove(&(claim.short_digest(), at.clone()));
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn access(version: u32, spec: Value) -> DeserializeGuard<BucketAccess> {
        let metadata =
            json!({"name": "reader", "namespace": "team-b", "uid": "a", "resourceVersion": version.to_string()});
        let mut spec = spec;
        spec["writeConnectionSecretToRef"] = json!({"name": "s"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object")
    }

    fn named(claims: &[&str]) -> Value {
        let entry = |name: &&str| json!({"claimRef": {"name": name, "namespace": "team-a"}});
        json!({"buckets": claims.iter().map(entry).collect::<Vec<_>>()})
    }

    fn names(claims: &BTreeSet<ClaimRef>) -> Vec<&str> {
        claims.iter().map(|claim| claim.name.as_str()).collect()
    }

    #[test]
    fn claims_are_told_of_accesses_that_come_change_and_go() {
        let cache = AccessCache::default();
        let films = ClaimRef { namespace: "team-a".into(), name: "films".into() };
        assert!(cache.of_claim(&films).is_none(), "nothing is known yet");
        cache.apply(&Event::Init);
        cache.apply(&Event::InitApply(access(1, named(&["photos"]))));
        assert_eq!(names(&cache.apply(&Event::InitDone)), ["photos"]);
        assert_eq!(cache.of_claim(&films).map(|all| all.len()), Some(0));
        assert_eq!(names(&cache.apply(&Event::Apply(access(2, named(&["films"]))))), ["films", "photos"]);
        assert_eq!(cache.of_claim(&films).map(|all| all.len()), Some(1));
        assert!(cache.apply(&Event::Apply(access(3, named(&["films"])))).is_empty(), "only its status has changed");
        assert_eq!(names(&cache.apply(&Event::Delete(access(4, named(&["films"]))))), ["films"]);
        assert_eq!(cache.of_claim(&films).map(|all| all.len()), Some(0));
        assert!(cache.0.lock().named.is_empty());
    }

    #[test]
    fn what_a_list_does_not_show_is_gone() {
        let cache = AccessCache::default();
        cache.apply(&Event::Apply(access(1, named(&["photos"]))));
        cache.apply(&Event::Init);
        assert_eq!(names(&cache.apply(&Event::InitDone)), ["photos"]);
        assert!(cache.in_namespace("team-b").is_empty());
    }

    #[test]
    fn one_that_can_not_be_decoded_asks_for_nothing() {
        let cache = AccessCache::default();
        cache.apply(&Event::Apply(access(1, named(&["photos"]))));
        let broken = access(2, json!({"buckets": "all of them"}));
        assert!(broken.0.is_err());
        assert_eq!(names(&cache.apply(&Event::Apply(broken))), ["photos"]);
        assert!(cache.in_namespace("team-b").is_empty());
    }
}
