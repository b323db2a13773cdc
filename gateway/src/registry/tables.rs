//! All that is known of the cluster, and what it says of a bucket: pure, it is told of events.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::Event;
use stowage_api::{AccessUid, BucketName, ClaimUid, Endpoint, Scope, ServedAccessRecord, ServedBinding};
use stowage_api::{ServedCredential, ServedRecord};

use super::backend::{Backend, Failure, SecretName, Setting};
use super::internal::{Counts, Internal, Key};
use super::stores::{SeenBackend, Stores};
use super::table::Listed;
use crate::cors::Rule;

/// Everything that the watches have told.
#[derive(Debug)]
pub struct Tables {
    internal: Listed<Internal>,
    stores: Stores,
    /// All of it was known at once.
    is_ready: bool,
}

/// Why a bucket can't be reached by somebody who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// There is no S3Backend of that name, or it can't be read.
    #[error("there is no S3Backend of that name")]
    NoBackend,
    /// The S3Backend of that name is, and was, at other endpoints than the bucket: it may be
    /// another store.
    #[error("the S3Backend of that name is at another endpoint")]
    Elsewhere,
    /// Another claim holds the bucket.
    #[error("another claim holds the bucket")]
    Held,
    /// Whose bucket it is doesn't consent, or not any more.
    #[error("there is no consent to it")]
    Closed,
}

/// A bucket of a claim, as a Secret names it.
#[derive(Clone, Copy, Debug)]
struct Target<'a> {
    bucket: &'a BucketName,
    backend: &'a str,
    endpoint: Option<&'a Endpoint>,
    uid: &'a ClaimUid,
}

impl<'a> Target<'a> {
    fn of_binding(binding: &'a ServedBinding) -> Self {
        let ServedBinding { bucket, backend, endpoint, uid, .. } = binding;
        Self { bucket, backend, endpoint: endpoint.as_ref(), uid }
    }
}

impl Tables {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self { internal: Listed::default(), stores: Stores::new(setting), is_ready: false }
    }

    /// Takes in what the watch of internal Secrets tells, those of all roles.
    pub fn apply(&mut self, event: Event<Secret>) {
        self.internal.apply(event);
        self.look();
    }

    /// Takes in what the watch of S3Backends tells.
    pub fn apply_backend(&mut self, event: Event<SeenBackend>) {
        self.stores.apply(event);
        self.look();
    }

    /// Takes in what the watch of a Secret tells that a backend names ([`Tables::wanted`]).
    pub fn apply_store_secret(&mut self, name: &SecretName, event: Event<Secret>) {
        self.stores.apply_secret(name, event);
        self.look();
    }

    /// Takes in that the watch of such a Secret fails.
    pub fn store_secret_failed(&mut self, name: &SecretName, why: Failure) {
        self.stores.secret_failed(name, why);
        self.look();
    }

    fn look(&mut self) {
        self.is_ready |= self.internal.is_whole() && self.stores.is_whole();
    }

    /// The Secrets that backends name: each needs a watch of its own.
    #[must_use]
    pub fn wanted(&self) -> BTreeSet<SecretName> {
        self.stores.secrets()
    }

    /// Whether all of it was known once. What comes later, a new backend for instance, takes
    /// nothing back: it is one of many.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// How much is known.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.internal.live().counts()
    }

    /// The key of an access key id. Whether its time has come is for whoever has a clock.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Arc<Key>> {
        self.internal.live().key(id)
    }

    /// Every key, in an order that stays.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.internal.live().keys()
    }

    /// The keys that have a bucket of this name among their own.
    pub(super) fn keys_of(&self, bucket: &BucketName) -> impl Iterator<Item = &Arc<Key>> {
        self.internal.live().keys_of(bucket)
    }

    /// The record of an access: while it is there its keys may open something.
    pub(super) fn access(&self, uid: &AccessUid) -> Option<&ServedAccessRecord> {
        self.internal.live().access(uid)
    }

    /// Who holds a bucket of this name, at whatever stores.
    pub(super) fn records_of(&self, bucket: &BucketName) -> impl Iterator<Item = &ServedRecord> {
        self.internal.live().records().of(bucket.as_str()).map(|(_, record)| &**record)
    }

    /// The store of a backend.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.stores.get(name)
    }

    /// Every store, by name.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.stores.all()
    }

    /// The rules of all stores about pages of other origins, in an order that stays.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.backends().filter_map(|backend| backend.cors.as_ref())
    }

    /// Who opens a bucket to everybody. A request can't say which store it means, so where several
    /// have a bucket of that name the one counts whose record is the oldest: nobody's claim takes
    /// it away from who was there. Where a record is not known, it is nobody's.
    #[must_use]
    pub fn binding(&self, bucket: &str) -> Option<&Arc<ServedBinding>> {
        let all = self.internal.live().bindings().of(bucket).map(|(_, binding)| binding);
        let open = all.filter(|binding| self.reach(Target::of_binding(binding)) != Err(Unreachable::Held));
        let open: Vec<&Arc<ServedBinding>> = open.collect();
        let (first, others) = open.split_first()?;
        if others.iter().all(|other| (&other.backend, &other.endpoint) == (&first.backend, &first.endpoint)) {
            return Some(first);
        }
        let ages: Option<Vec<_>> = open.iter().map(|binding| Some((self.held_since(binding)?, *binding))).collect();
        ages?.into_iter().min_by(|(age, _), (other, _)| age.cmp(other)).map(|(_, binding)| binding)
    }

    /// Since when the bucket of a binding is held. Of one second, the record's name decides: for
    /// everybody alike.
    fn held_since(&self, binding: &ServedBinding) -> Option<(Timestamp, String)> {
        let (name, record) = self.own_records(Target::of_binding(binding)).next()?;
        Some((record.since?, name.to_owned()))
    }

    /// Since when this claim holds a bucket of this name.
    pub(crate) fn held_by_since(&self, bucket: &BucketName, uid: &ClaimUid) -> Option<Timestamp> {
        self.records_of(bucket).filter(|record| record.uid == *uid).filter_map(|record| record.since).min()
    }

    /// The records by which a claim holds a bucket: more than one while it moves.
    fn own_records<'a>(&'a self, target: Target<'a>) -> impl Iterator<Item = (&'a str, &'a ServedRecord)> {
        let is_own = move |record: &ServedRecord| {
            let is_there = match target.endpoint {
                Some(endpoint) => record.endpoint == *endpoint,
                None => record.backend == target.backend,
            };
            record.uid == *target.uid && is_there
        };
        let records = self.internal.live().records().of(target.bucket.as_str());
        records.map(|(name, record)| (name.as_str(), &**record)).filter(move |(_, record)| is_own(record))
    }

    /// The store that a scope of a key leads to.
    ///
    /// # Errors
    /// When there is none that the key is good for.
    pub fn reach_scope(&self, credential: &ServedCredential, scope: &Scope) -> Result<Arc<Backend>, Unreachable> {
        let Scope { bucket, backend } = scope;
        let (endpoint, uid) = (credential.endpoint.as_ref(), &credential.uid);
        self.reach(Target { bucket, backend, endpoint, uid }).cloned()
    }

    /// The store of a bucket that is open to everybody.
    ///
    /// # Errors
    /// When there is none that the binding is good for.
    pub fn reach_binding(&self, binding: &ServedBinding) -> Result<Arc<Backend>, Unreachable> {
        self.reach(Target::of_binding(binding)).cloned()
    }

    fn reach(&self, target: Target<'_>) -> Result<&Arc<Backend>, Unreachable> {
        let backend = self.stores.get(target.backend).ok_or(Unreachable::NoBackend)?;
        if target.endpoint.is_some_and(|endpoint| !backend.is_at(endpoint)) {
            return Err(Unreachable::Elsewhere);
        }
        // Where the Secret doesn't say where the bucket is, the claim's records do, unless the
        // store is elsewhere by now: then it is found by the backend's name, until an operator has
        // noted where it is.
        let mut recorded = self.own_records(target).map(|(_, record)| &record.endpoint);
        let noted = target.endpoint.or_else(|| recorded.find(|endpoint| backend.is_at(endpoint)));
        let has_record = noted.is_some_and(|noted| self.own_records(target).any(|(_, it)| it.endpoint == *noted));
        let is_held = |endpoint| self.is_held_by_another(endpoint, target.bucket, target.uid);
        let is_held = match noted.filter(|_| has_record) {
            Some(endpoint) => is_held(endpoint),
            // All addresses are of one store: whoever holds the bucket by another one holds it.
            None => noted.into_iter().chain([&backend.endpoint]).chain(&backend.former).any(is_held),
        };
        if is_held { Err(Unreachable::Held) } else { Ok(backend) }
    }

    /// Whether another claim than that of `uid` holds the bucket at this endpoint. That nobody is
    /// known to hold it says nothing: a record may be lost, and is made again.
    #[must_use]
    pub fn is_held_by_another(&self, endpoint: &Endpoint, bucket: &BucketName, uid: &ClaimUid) -> bool {
        let mut records = self.internal.live().records().of(bucket.as_str());
        records.any(|(_, record)| record.endpoint == *endpoint && record.uid != *uid)
    }
}
