//! What a look ahead is given.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;

use crate::Clock;
use crate::api::{AccessRef, AddressingStyle, ClaimRef, Endpoint, Publishing, Unlabelled};
use crate::plan::Reach;
use crate::upstream::{Connect, Limits};

/// What the operator is told whose next steps are asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Namespace of its Secrets.
    pub operator_namespace: String,
    /// Namespace of the ConfigMaps that gateways write; `None` = that of its Secrets.
    pub usage_namespace: Option<String>,
    /// The namespaces whose claims it serves.
    pub reach: Reach,
    /// Namespaces besides it that may hold admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// Whether admin Secrets are used whose owner says nothing of what they are for.
    pub unlabelled_credentials: Unlabelled,
    /// What tells this cluster's buckets from another's; the UID of `kube-system` when absent.
    pub installation: Option<String>,
    /// The gateway, as far as it is told.
    pub gateway: GivenGateway,
    /// What may stand in consumer Secrets.
    pub publishing: Publishing,
    /// Bounds on calls to each store.
    pub limits: Limits,
    /// Most objects that one pass deletes from a bucket.
    pub purge_slice: u32,
    /// What storage classes call the provisioner of ObjectBucketClaims; `None` = none are served.
    pub obc: Option<String>,
    /// Claims looked at at once.
    pub at_once: usize,
    /// Every claim's bucket is looked at, as in a drift check.
    pub look_at_buckets: bool,
}

/// The gateway, as far as it is told: the rest is what bound claims have.
#[derive(Clone, Debug, Default)]
pub struct GivenGateway {
    /// Its URL.
    pub endpoint: Option<Endpoint>,
    /// The region that requests to it are signed for.
    pub region: Option<String>,
    /// How it wants a bucket's name in a request's URL.
    pub addressing_style: Option<AddressingStyle>,
    /// PEM of the authorities that vouch for it, where those that everybody trusts don't.
    pub ca: Option<Arc<str>>,
}

/// What a look ahead works with.
pub struct Means {
    /// The API server.
    pub client: Client,
    /// HTTP clients for the stores.
    pub connect: Arc<dyn Connect>,
    /// The time of day.
    pub clock: Clock,
}

/// What is looked at: everything, unless something is named.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// All that is in this namespace.
    pub namespace: Option<String>,
    /// These claims.
    pub claims: BTreeSet<ClaimRef>,
    /// These accesses.
    pub accesses: BTreeSet<AccessRef>,
    /// These ObjectBucketClaims.
    pub obcs: BTreeSet<ClaimRef>,
    /// These backends.
    pub backends: BTreeSet<String>,
}

impl Scope {
    /// One claim.
    pub fn of(claim: ClaimRef) -> Self {
        Self { claims: BTreeSet::from([claim]), ..Self::default() }
    }

    /// One access.
    pub fn of_access(access: AccessRef) -> Self {
        Self { accesses: BTreeSet::from([access]), ..Self::default() }
    }

    /// One ObjectBucketClaim.
    pub fn of_obc(obc: ClaimRef) -> Self {
        Self { obcs: BTreeSet::from([obc]), ..Self::default() }
    }

    /// Everything that there is.
    pub(super) fn is_whole(&self) -> bool {
        let named = [self.claims.len(), self.accesses.len(), self.obcs.len(), self.backends.len()];
        self.namespace.is_none() && named.iter().all(|count| *count == 0)
    }

    /// Whether all claims have to be known: a backend's status counts them, and what is left of
    /// claims that are gone is known by that.
    pub(super) fn needs_all_claims(&self) -> bool {
        self.is_whole() || !self.backends.is_empty()
    }

    /// Whether there may be ObjectBucketClaims to look at.
    pub(super) fn may_have_obcs(&self) -> bool {
        self.is_whole() || self.namespace.is_some() || !self.obcs.is_empty()
    }

    /// The namespaces of what is looked at; `None` = any.
    pub(super) fn namespaces(&self) -> Option<BTreeSet<&str>> {
        if self.is_whole() {
            return None;
        }
        let named = self.claims.iter().chain(&self.obcs).map(|claim| claim.namespace.as_str());
        let accesses = self.accesses.iter().map(|access| access.namespace.as_str());
        Some(named.chain(accesses).chain(self.namespace.as_deref()).collect())
    }

    /// Whether a claim is to be looked at.
    pub(super) fn has_claim(&self, claim: &ClaimRef) -> bool {
        self.is_whole() || self.namespace.as_deref() == Some(&claim.namespace) || self.claims.contains(claim)
    }

    /// Whether an access is to be looked at.
    pub(super) fn has_access(&self, access: &AccessRef) -> bool {
        self.is_whole() || self.namespace.as_deref() == Some(&access.namespace) || self.accesses.contains(access)
    }

    /// Whether a backend is to be looked at.
    pub(super) fn has_backend(&self, name: &str) -> bool {
        self.is_whole() || self.backends.contains(name)
    }
}
