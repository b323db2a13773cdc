//! The accesses, by name and by the claims that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::{Access, AccessRef, AccessUid, BucketAccess, ClaimRef, EntryOf};

/// Every access that can be decoded.
#[derive(Default)]
pub(crate) struct AccessCache(Mutex<Accesses>);

#[derive(Default)]
struct Accesses {
    all: BTreeMap<AccessRef, Arc<Access>>,
    by_claim: BTreeMap<ClaimRef, BTreeSet<AccessRef>>,
    listing: Option<BTreeSet<AccessRef>>,
    is_filled: bool,
}

impl AccessCache {
    /// Takes in what the watch shows. Returns the claims that are named now or were before, for
    /// those accesses that have changed.
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
                    Ok(raw) => accesses.put(at, Access::parse(raw)),
                    Err(_) => accesses.take(&at),
                }
            }
            Event::Delete(object) => {
                accesses.take(&AccessRef { namespace: object.namespace().unwrap_or_default(), name: object.name_any() })
            }
            Event::InitDone => {
                let listed = accesses.listing.take().unwrap_or_default();
                let gone: Vec<AccessRef> = accesses.all.keys().filter(|at| !listed.contains(at)).cloned().collect();
                // Who waits for the first list is not woken by what is in it.
                let first = !std::mem::replace(&mut accesses.is_filled, true);
                let mut touched: BTreeSet<ClaimRef> = gone.iter().flat_map(|at| accesses.take(at)).collect();
                if first {
                    touched.extend(accesses.by_claim.keys().cloned());
                }
                touched
            }
        }
    }

    /// Whether a list was whole.
    pub(crate) fn is_filled(&self) -> bool {
        self.0.lock().is_filled
    }

    /// Whether the access of this name is known, and has this UID.
    pub(crate) fn has(&self, at: &AccessRef, uid: &AccessUid) -> bool {
        self.0.lock().all.get(at).is_some_and(|access| access.uid == *uid)
    }

    /// UIDs of the accesses; `None` while no list has been whole.
    pub(crate) fn uids(&self) -> Option<BTreeSet<AccessUid>> {
        let accesses = self.0.lock();
        accesses.is_filled.then(|| accesses.all.values().map(|access| access.uid.clone()).collect())
    }

    /// The accesses that name a claim; `None` while no list has been whole.
    pub(crate) fn of_claim(&self, claim: &ClaimRef) -> Option<Vec<Arc<Access>>> {
        let accesses = self.0.lock();
        let names = accesses.by_claim.get(claim).into_iter().flatten();
        accesses.is_filled.then(|| names.filter_map(|at| accesses.all.get(at)).cloned().collect())
    }

    /// The accesses of a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Access>> {
        let from = AccessRef { namespace: namespace.to_owned(), name: String::new() };
        let accesses = self.0.lock();
        let within = accesses.all.range(from..).take_while(|(at, _)| at.namespace == namespace);
        within.map(|(_, access)| access.clone()).collect()
    }

    /// The accesses that name a bucket of this backend.
    pub(crate) fn on_backend(&self, backend: &str) -> Vec<AccessRef> {
        let is_on = |access: &Access| {
            access.entries.iter().any(|entry| matches!(&entry.of, Ok(EntryOf::Bucket(on, _)) if on == backend))
        };
        self.0.lock().all.iter().filter(|(_, access)| is_on(access)).map(|(at, _)| at.clone()).collect()
    }
}

impl Accesses {
    fn put(&mut self, at: AccessRef, access: Access) -> BTreeSet<ClaimRef> {
        if self.all.get(&at).is_some_and(|known| known.id == access.id) {
            return BTreeSet::new();
        }
        let is_changed = |known: &Arc<Access>| {
            known.entries != access.entries || known.deleting != access.deleting || known.uid != access.uid
        };
        let matters = self.all.get(&at).is_none_or(is_changed);
        let mut touched = self.take(&at);
        for claim in access.claims() {
            self.by_claim.entry(claim.clone()).or_default().insert(at.clone());
            touched.insert(claim.clone());
        }
        self.all.insert(at, Arc::new(access));
        if matters { touched } else { BTreeSet::new() }
    }

    fn take(&mut self, at: &AccessRef) -> BTreeSet<ClaimRef> {
        let Some(access) = self.all.remove(at) else { return BTreeSet::new() };
        let named: BTreeSet<ClaimRef> = access.claims().cloned().collect();
        for claim in &named {
            if let Some(accesses) = self.by_claim.get_mut(claim) {
                accesses.remove(at);
                if accesses.is_empty() {
                    self.by_claim.remove(claim);
                }
            }
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
        assert!(cache.0.lock().by_claim.is_empty());
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
