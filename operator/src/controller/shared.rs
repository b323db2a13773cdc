//! State shared by the controllers, the feeds and the sweeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::Clock;
use crate::act::Actor;
use crate::api::wire::Role;
use crate::api::{BucketClaim, BucketName, ClaimRef, S3Backend, controlling_obc};
use crate::cache::{AccessCache, BackendCache, NamespaceCache, SecretCache, UsageCache, Written};
use crate::mandate::Mandate;
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::plan::obc::SHADOW;
use crate::plan::{Setting, Stored};
use crate::upstream::{Access, Upstreams};

use super::announcer::Announcer;
use super::clues::Orphans;
use super::config::{Config, Parts};
use super::memory::Memory;
use super::objects::{self, Claim, access_ref, claim_ref};
use super::secret_watches::SecretWatches;
use super::wakes::Wakes;

/// State shared by the controllers, the feeds and the sweeps.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) observer: Arc<Observer>,
    pub(super) actor: Actor,
    pub(super) written: Arc<Written<BucketClaim>>,
    pub(super) written_backends: Written<S3Backend>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) announcer: Announcer,
    pub(super) metrics: Metrics,
    pub(super) wakes: Arc<Wakes>,
    pub(super) orphans: Orphans,
    pub(super) secret_watches: SecretWatches,
    pub(super) memory: Memory,
}

/// Parts that are created before the controllers because others refer to them.
pub(super) struct Told {
    pub(super) wakes: Arc<Wakes>,
    pub(super) orphans: Orphans,
    pub(super) recoveries: UnboundedSender<String>,
    pub(super) claims: Store<Claim>,
    pub(super) accesses: Arc<AccessCache>,
}

impl Shared {
    pub(super) fn new(config: Config, parts: &Parts, mandate: Mandate, installation: String, told: Told) -> Self {
        let Told { wakes, orphans, recoveries, claims, accesses } = told;
        let client = parts.client.clone();
        let mut namespaces: Vec<String> = config.trusted_namespaces.iter().cloned().collect();
        namespaces.push(config.operator_namespace.clone());
        let upstreams = Arc::new(Upstreams::new(Access {
            client: client.clone(),
            connect: parts.connect.clone(),
            limits: config.limits,
            mandate,
            namespaces,
            unlabelled: config.unlabelled_credentials,
            recoveries,
            metrics: parts.metrics.clone(),
        }));
        let observer = Arc::new(Observer {
            client: client.clone(),
            setting: Arc::new(Setting {
                operator_namespace: config.operator_namespace.clone(),
                reach: config.reach.clone(),
                trusted_namespaces: config.trusted_namespaces.clone(),
                gateway: config.gateway.clone(),
                publishing: config.publishing.clone(),
                installation,
                purge_slice: config.purge_slice,
            }),
            internal: Arc::new(SecretCache::default()),
            consumers: Arc::new(SecretCache::of_tenants()),
            backends: Arc::new(BackendCache::default()),
            namespaces: Arc::new(NamespaceCache::default()),
            accesses,
            claims: Some(claims),
            usage: Arc::new(UsageCache::default()),
            upstreams: upstreams.clone(),
        });
        let written = Arc::new(Written::default());
        let actor = Actor {
            client: client.clone(),
            observer: observer.clone(),
            written: written.clone(),
            written_accesses: Arc::default(),
            written_obcs: Arc::default(),
        };
        let announcer = Announcer::new(client.clone(), parts.clock.clone());
        Self {
            config,
            client,
            clock: parts.clock.clone(),
            observer,
            actor,
            written,
            written_backends: Written::default(),
            secret_watches: SecretWatches::new(parts.client.clone(), wakes.clone(), upstreams.clone()),
            upstreams,
            announcer,
            metrics: parts.metrics.clone(),
            wakes,
            orphans,
            memory: Memory::default(),
        }
    }

    /// Handles a Secret that was changed or deleted. If it is a record, the claims that wait for it
    /// are woken. A Secret of another namespace is never a record, whatever its name.
    pub(super) fn internal_changed(&self, secret: &Stored) {
        if self.is_internal(&secret.reference().namespace) {
            self.public_changed(secret);
            self.wakes.record_changed(secret.name());
        }
    }

    /// Wakes the accesses that name this claim.
    pub(super) fn wake_accesses_of(&self, claim: &ClaimRef) {
        for access in self.observer.accesses.of_claim(claim).into_iter().flatten() {
            self.wakes.access(&access);
        }
    }

    /// Wakes the accesses in a namespace, and the claims that they name.
    pub(super) fn wake_accesses_in(&self, namespace: &str) {
        for (access, claims) in self.observer.accesses.in_namespace(namespace) {
            self.wakes.access(&access);
            claims.iter().for_each(|claim| self.wakes.claim(claim));
        }
    }

    /// Wakes the ObjectBucketClaim of a claim or access that was changed or deleted.
    ///
    /// The ObjectBucketClaim controls the object, or needs a controlled object of the same name.
    pub(super) fn wake_obc_of(&self, shadow: &impl ResourceExt) {
        if self.config.obc.is_none() {
            return;
        }
        let at = claim_ref(shadow);
        let owner = controlling_obc(shadow.owner_references());
        let named = owner.map(|(name, _)| name.to_owned()).or_else(|| at.name.strip_prefix(SHADOW).map(str::to_owned));
        if let Some(name) = named {
            self.wakes.obc(&ClaimRef { namespace: at.namespace, name });
        }
    }

    /// Returns true if this is the operator's own namespace.
    pub(super) fn is_internal(&self, namespace: &str) -> bool {
        namespace == self.config.operator_namespace
    }

    /// Wakes other claims that open a bucket of the same name, after a binding or record was
    /// written.
    ///
    /// If several claims grant public access to a bucket of that name, the write may change which
    /// of them takes effect.
    pub(super) fn public_changed(&self, secret: &Stored) {
        let is = |secret: &Stored, role| Role::of_internal(secret.name()) == Some(role);
        let matters = is(secret, Role::AnonymousBinding) || is(secret, Role::BucketRecord);
        let bucket = secret.text("bucket_name").filter(|_| matters).and_then(|name| BucketName::parse(name).ok());
        let Some(bucket) = bucket else { return };
        for other in self.observer.internal.of_bucket(&bucket) {
            if is(&other, Role::AnonymousBinding)
                && other.text("claim_uid") != secret.text("claim_uid")
                && let Some(claim) = other.claim()
            {
                self.wakes.claim(&claim);
            }
        }
    }

    /// Drops the state of a deleted claim.
    pub(super) fn forget_claim(&self, claim: &Claim) {
        let name = claim_ref(claim);
        self.wake_obc_of(claim);
        self.written.forget(&name.namespace, &name.name);
        self.wakes.forget_claim(&name);
        self.memory.forget(&claim.uid().unwrap_or_default(), &name);
    }

    /// Drops the state of a deleted access.
    pub(super) fn forget_access(&self, access: &objects::Access) {
        let (at, uid) = (access_ref(access), access.uid().unwrap_or_default());
        self.wake_obc_of(access);
        self.actor.written_accesses.forget(&at.namespace, &at.name);
        self.memory.forget_access(&uid, &at);
        self.orphans.access_gone(&uid);
    }

    /// Drops the state of a deleted backend.
    pub(super) fn forget_backend(&self, name: &str) {
        self.upstreams.forget(name);
        self.written_backends.forget("", name);
        self.metrics.forget_backend(name);
        self.secret_watches.set(name, &BTreeSet::new());
    }
}
