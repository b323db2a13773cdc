//! Configuration and dependencies of a preview.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;

use crate::Clock;
use crate::api::{AccessRef, AddressingStyle, ClaimRef, Endpoint, Publishing, Unlabelled};
use crate::plan::Reach;
use crate::upstream::{Connect, Limits};

/// Configuration of the operator whose next steps are previewed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Namespace of the operator's Secrets.
    pub operator_namespace: String,
    /// Namespace of the ConfigMaps that gateways write; `None` means that of its Secrets.
    pub usage_namespace: Option<String>,
    /// Namespaces whose claims the operator serves.
    pub reach: Reach,
    /// Namespaces in addition to the operator's own that may contain admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// Policy for admin Secrets whose owner has not opted in.
    pub unlabelled_credentials: Unlabelled,
    /// Distinguishes this cluster's buckets from those of another; default is the UID of
    /// `kube-system`.
    pub installation: Option<String>,
    /// The gateway, as far as it is given.
    pub gateway: GivenGateway,
    /// Allowed content of consumer Secrets.
    pub publishing: Publishing,
    /// Limits of calls to each store.
    pub limits: Limits,
    /// Maximum number of objects that one pass deletes from a bucket.
    pub purge_slice: u32,
    /// The `provisioner` of storage classes whose ObjectBucketClaims are served; `None` serves
    /// none.
    pub obc: Option<String>,
    /// Number of objects previewed at once.
    pub at_once: usize,
    /// Checks every claim's bucket, like a drift check.
    pub look_at_buckets: bool,
}

/// The gateway, as far as it is given. Other values are inferred from bound claims.
#[derive(Clone, Debug, Default)]
pub struct GivenGateway {
    /// URL of the gateway.
    pub endpoint: Option<Endpoint>,
    /// Region with which requests to the gateway are signed.
    pub region: Option<String>,
    /// Position of the bucket's name in its URLs.
    pub addressing_style: Option<AddressingStyle>,
    /// PEM of the gateway's CA certificates, if the system's don't cover it.
    pub ca: Option<Arc<str>>,
}

/// Dependencies of a preview.
pub struct Means {
    /// Client of the API server.
    pub client: Client,
    /// HTTP clients for the stores.
    pub connect: Arc<dyn Connect>,
    /// Wall clock.
    pub clock: Clock,
}

/// The objects to preview: everything, unless something is named.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// All objects in this namespace.
    pub namespace: Option<String>,
    /// Claims to preview.
    pub claims: BTreeSet<ClaimRef>,
    /// Accesses to preview.
    pub accesses: BTreeSet<AccessRef>,
    /// ObjectBucketClaims to preview.
    pub obcs: BTreeSet<ClaimRef>,
    /// Backends to preview.
    pub backends: BTreeSet<String>,
}

impl Scope {
    /// Creates the scope of one claim.
    pub fn of(claim: ClaimRef) -> Self {
        Self { claims: BTreeSet::from([claim]), ..Self::default() }
    }

    /// Creates the scope of one access.
    pub fn of_access(access: AccessRef) -> Self {
        Self { accesses: BTreeSet::from([access]), ..Self::default() }
    }

    /// Creates the scope of one ObjectBucketClaim.
    pub fn of_obc(obc: ClaimRef) -> Self {
        Self { obcs: BTreeSet::from([obc]), ..Self::default() }
    }

    /// Returns true if the scope is the whole cluster.
    pub(super) fn is_whole(&self) -> bool {
        let named = [self.claims.len(), self.accesses.len(), self.obcs.len(), self.backends.len()];
        self.namespace.is_none() && named.iter().all(|count| *count == 0)
    }

    /// Returns true if all claims have to be read: a backend's status counts them, and the
    /// remaining Secrets of deleted claims are found by comparing with them.
    pub(super) fn needs_all_claims(&self) -> bool {
        self.is_whole() || !self.backends.is_empty()
    }

    /// Returns true if the scope may contain ObjectBucketClaims.
    pub(super) fn may_have_obcs(&self) -> bool {
        self.is_whole() || self.namespace.is_some() || !self.obcs.is_empty()
    }

    /// Returns the namespaces in the scope; `None` means all.
    pub(super) fn namespaces(&self) -> Option<BTreeSet<&str>> {
        if self.is_whole() {
            return None;
        }
        let named = self.claims.iter().chain(&self.obcs).map(|claim| claim.namespace.as_str());
        let accesses = self.accesses.iter().map(|access| access.namespace.as_str());
        Some(named.chain(accesses).chain(self.namespace.as_deref()).collect())
    }

    /// Returns true if the scope contains a claim.
    pub(super) fn has_claim(&self, claim: &ClaimRef) -> bool {
        self.is_whole() || self.namespace.as_deref() == Some(&claim.namespace) || self.claims.contains(claim)
    }

    /// Returns true if the scope contains an access.
    pub(super) fn has_access(&self, access: &AccessRef) -> bool {
        self.is_whole() || self.namespace.as_deref() == Some(&access.namespace) || self.accesses.contains(access)
    }

    /// Returns true if the scope contains a backend.
    pub(super) fn has_backend(&self, name: &str) -> bool {
        self.is_whole() || self.backends.contains(name)
    }
}
