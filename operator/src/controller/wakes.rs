//! Wakes objects that depend on a change.

use std::collections::{BTreeMap, BTreeSet};

use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::{AccessRef, BucketClaim, ClaimRef};

use super::objects::{Access, Backend, Claim, ObcObject, claim_ref};

/// Wakes claims, backends, accesses and ObjectBucketClaims.
///
/// A send fails only after the receiving controller has ended, and then nothing has to be woken.
pub(super) struct Wakes {
    claims: UnboundedSender<ObjectRef<Claim>>,
    backends: UnboundedSender<ObjectRef<Backend>>,
    accesses: UnboundedSender<ObjectRef<Access>>,
    obcs: UnboundedSender<ObjectRef<ObcObject>>,
    store: Store<Claim>,
    /// Claims that wait for a record to be released, by the record's name.
    waiting: Mutex<BTreeMap<String, BTreeSet<ClaimRef>>>,
}

/// The receiving ends of [`Wakes`].
pub(super) struct Woken {
    pub(super) claims: UnboundedReceiver<ObjectRef<Claim>>,
    pub(super) backends: UnboundedReceiver<ObjectRef<Backend>>,
    pub(super) accesses: UnboundedReceiver<ObjectRef<Access>>,
    pub(super) obcs: UnboundedReceiver<ObjectRef<ObcObject>>,
}

impl Wakes {
    /// Creates both ends. Claims are looked up in `store`.
    pub(super) fn new(store: Store<Claim>) -> (Self, Woken) {
        let (wake_claims, claims) = unbounded_channel();
        let (wake_backends, backends) = unbounded_channel();
        let (wake_accesses, accesses) = unbounded_channel();
        let (wake_obcs, obcs) = unbounded_channel();
        let waiting = Mutex::default();
        let wakes = Self {
            claims: wake_claims,
            backends: wake_backends,
            accesses: wake_accesses,
            obcs: wake_obcs,
            store,
            waiting,
        };
        (wakes, Woken { claims, backends, accesses, obcs })
    }

    /// Wakes one claim.
    pub(super) fn claim(&self, claim: &ClaimRef) {
        let _ = self.claims.send(ObjectRef::new(&claim.name).within(&claim.namespace));
    }

    /// Wakes one backend.
    pub(super) fn backend(&self, name: &str) {
        let _ = self.backends.send(ObjectRef::new(name));
    }

    /// Wakes one access.
    pub(super) fn access(&self, access: &AccessRef) {
        let _ = self.accesses.send(ObjectRef::new(&access.name).within(&access.namespace));
    }

    /// Wakes one ObjectBucketClaim.
    pub(super) fn obc(&self, claim: &ClaimRef) {
        let _ = self.obcs.send(ObjectRef::new(&claim.name).within(&claim.namespace));
    }

    /// Wakes the claims of a namespace.
    pub(super) fn claims_in(&self, namespace: &str) {
        self.claims_where(|claim| claim.metadata.namespace.as_deref() == Some(namespace));
    }

    /// Wakes the claims that refer to this backend or have their bucket on it.
    pub(super) fn claims_on(&self, backend: &str) {
        self.claims_where(|claim| {
            let pinned = claim.status.as_ref().and_then(|status| status.backend.as_ref());
            claim.spec.backend_ref.name == backend || pinned.is_some_and(|pinned| pinned.name == backend)
        });
    }

    /// Wakes the matching claims in sorted order: a store's own order differs in every run.
    fn claims_where(&self, concerned: impl Fn(&BucketClaim) -> bool) {
        let all = self.store.state();
        let concerned = all.iter().filter_map(|claim| claim.0.as_ref().ok()).filter(|claim| concerned(claim));
        let claims: BTreeSet<ClaimRef> = concerned.map(claim_ref).collect();
        claims.iter().for_each(|claim| self.claim(claim));
    }

    /// Registers `claim` to be woken when the record is changed or deleted.
    pub(super) fn wait_for(&self, record: &str, claim: &ClaimRef) {
        self.waiting.lock().entry(record.to_owned()).or_default().insert(claim.clone());
    }

    /// Unregisters `claim`.
    pub(super) fn stop_waiting(&self, record: &str, claim: &ClaimRef) {
        let mut waiting = self.waiting.lock();
        if let Some(claims) = waiting.get_mut(record) {
            claims.remove(claim);
            if claims.is_empty() {
                waiting.remove(record);
            }
        }
    }

    /// Unregisters a deleted claim everywhere.
    pub(super) fn forget_claim(&self, claim: &ClaimRef) {
        self.waiting.lock().retain(|_, claims| {
            claims.remove(claim);
            !claims.is_empty()
        });
    }

    /// Wakes and unregisters the claims that wait for this record.
    pub(super) fn record_changed(&self, record: &str) {
        let claims = self.waiting.lock().remove(record).unwrap_or_default();
        claims.iter().for_each(|claim| self.claim(claim));
    }

    /// Wakes and unregisters the claims that wait for any record.
    pub(super) fn all_waiting(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.values().flatten().for_each(|claim| self.claim(claim));
    }
}
