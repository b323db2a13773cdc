//! The cached cluster state, and queries about buckets. Pure: events are passed in.

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

/// The state delivered by all watches.
#[derive(Debug)]
pub struct Tables {
    internal: Listed<Internal>,
    stores: Stores,
    /// True once all of it was complete at the same time.
    is_ready: bool,
}

/// The reason why a bucket can't be reached with a key that is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// There is no S3Backend of that name, or it can't be parsed.
    #[error("there is no S3Backend of that name")]
    NoBackend,
    /// The S3Backend of that name is not at the bucket's endpoint, and never was: it may be another
    /// store.
    #[error("the S3Backend of that name is at another endpoint")]
    Elsewhere,
    /// Another claim holds the bucket.
    #[error("another claim holds the bucket")]
    Held,
    /// The owner of the bucket doesn't consent, or not any more.
    #[error("there is no consent to it")]
    Closed,
}

/// A bucket of a claim, as named by a Secret.
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
    /// Creates empty tables.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self { internal: Listed::default(), stores: Stores::new(setting), is_ready: false }
    }

    /// Applies an event of the watch of internal Secrets of all roles.
    pub fn apply(&mut self, event: Event<Secret>) {
        self.internal.apply(event);
        self.look();
    }

    /// Applies an event of the watch of S3Backends.
    pub fn apply_backend(&mut self, event: Event<SeenBackend>) {
        self.stores.apply(event);
        self.look();
    }

    /// Applies an event of the watch of a Secret referenced by a backend ([`Tables::wanted`]).
    pub fn apply_store_secret(&mut self, name: &SecretName, event: Event<Secret>) {
        self.stores.apply_secret(name, event);
        self.look();
    }

    /// Records that the watch of such a Secret fails.
    pub fn store_secret_failed(&mut self, name: &SecretName, why: Failure) {
        self.stores.secret_failed(name, why);
        self.look();
    }

    fn look(&mut self) {
        self.is_ready |= self.internal.is_whole() && self.stores.is_whole();
    }

    /// Returns the Secrets that backends reference. Each needs its own watch.
    #[must_use]
    pub fn wanted(&self) -> BTreeSet<SecretName> {
        self.stores.secrets()
    }

    /// Returns true once the state has been complete. Later additions, such as a new backend, don't
    /// reset this: the others must still be served.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns the numbers of cached objects.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.internal.live().counts()
    }

    /// Returns the key of an access key id, even if it has expired. The caller has the clock.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Arc<Key>> {
        self.internal.live().key(id)
    }

    /// Returns every key, in a stable order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.internal.live().keys()
    }

    /// Returns the keys of a bucket of this name.
    pub(super) fn keys_of(&self, bucket: &BucketName) -> impl Iterator<Item = &Arc<Key>> {
        self.internal.live().keys_of(bucket)
    }

    /// Returns the record of an access. Without it, the access's keys open nothing.
    pub(super) fn access(&self, uid: &AccessUid) -> Option<&ServedAccessRecord> {
        self.internal.live().access(uid)
    }

    /// Returns the records of a bucket of this name, at all stores.
    pub(super) fn records_of(&self, bucket: &BucketName) -> impl Iterator<Item = &ServedRecord> {
        self.internal.live().records().of(bucket.as_str()).map(|(_, record)| &**record)
    }

    /// Returns the store of a backend.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.stores.get(name)
    }

    /// Returns every store, by name.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.stores.all()
    }

    /// Returns the CORS rules of all stores, in a stable order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.backends().filter_map(|backend| backend.cors.as_ref())
    }

    /// Returns the binding that makes a bucket public.
    ///
    /// An anonymous request can't name a store. If bindings at several stores have the same bucket
    /// name, the one with the oldest record counts, so that a new claim can't take the name over.
    /// If a record is unknown, none counts.
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

    /// Returns the time since which the bucket of a binding is claimed. The record's name breaks
    /// ties within a second, with the same result in every replica.
    fn held_since(&self, binding: &ServedBinding) -> Option<(Timestamp, String)> {
        let (name, record) = self.own_records(Target::of_binding(binding)).next()?;
        Some((record.since?, name.to_owned()))
    }

    /// Returns the time since which this claim holds a bucket of this name.
    pub(crate) fn held_by_since(&self, bucket: &BucketName, uid: &ClaimUid) -> Option<Timestamp> {
        self.records_of(bucket).filter(|record| record.uid == *uid).filter_map(|record| record.since).min()
    }

    /// Returns the records by which a claim holds a bucket: more than one while it moves.
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

    /// Returns the store of a scope of a key.
    ///
    /// # Errors
    /// Returns an error if the key is for no current store.
    pub fn reach_scope(&self, credential: &ServedCredential, scope: &Scope) -> Result<Arc<Backend>, Unreachable> {
        let Scope { bucket, backend } = scope;
        let (endpoint, uid) = (credential.endpoint.as_ref(), &credential.uid);
        self.reach(Target { bucket, backend, endpoint, uid }).cloned()
    }

    /// Returns the store of a public bucket.
    ///
    /// # Errors
    /// Returns an error if the binding is for no current store.
    pub fn reach_binding(&self, binding: &ServedBinding) -> Result<Arc<Backend>, Unreachable> {
        self.reach(Target::of_binding(binding)).cloned()
    }

    fn reach(&self, target: Target<'_>) -> Result<&Arc<Backend>, Unreachable> {
        let backend = self.stores.get(target.backend).ok_or(Unreachable::NoBackend)?;
        if target.endpoint.is_some_and(|endpoint| !backend.is_at(endpoint)) {
            return Err(Unreachable::Elsewhere);
        }
        // If the Secret has no endpoint, the claim's records do, unless the backend has moved to
        // another endpoint since. Then the backend's name decides, until an operator has recorded
        // the endpoint.
        let mut recorded = self.own_records(target).map(|(_, record)| &record.endpoint);
        let noted = target.endpoint.or_else(|| recorded.find(|endpoint| backend.is_at(endpoint)));
        let has_record = noted.is_some_and(|noted| self.own_records(target).any(|(_, it)| it.endpoint == *noted));
        let is_held = |endpoint| self.is_held_by_another(endpoint, target.bucket, target.uid);
        let is_held = match noted.filter(|_| has_record) {
            Some(endpoint) => is_held(endpoint),
            // All addresses are those of one store, so a claim may hold the bucket by any of them.
            None => noted.into_iter().chain([&backend.endpoint]).chain(&backend.former).any(is_held),
        };
        if is_held { Err(Unreachable::Held) } else { Ok(backend) }
    }

    /// Returns true if another claim than that of `uid` holds the bucket at this endpoint. The
    /// absence of a record proves nothing: it may have been lost, and will be created again.
    #[must_use]
    pub fn is_held_by_another(&self, endpoint: &Endpoint, bucket: &BucketName, uid: &ClaimUid) -> bool {
        let mut records = self.internal.live().records().of(bucket.as_str());
        records.any(|(_, record)| record.endpoint == *endpoint && record.uid != *uid)
    }
}
