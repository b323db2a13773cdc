//! The options of a front.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::identity::Identity;
use super::tokens::{Issued, KeepIssued};
use super::webhooks::Webhooks;

/// A source of random bytes for tokens. Must be unpredictable if others can reach the server.
pub type Random = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// The authorization mode of a [`Front`](crate::Front).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Every caller that is not refused with 401 may do everything.
    #[default]
    AllowAll,
    /// Roles and bindings decide, and members of `system:masters` may do everything. The cluster
    /// gets the ClusterRoles `cluster-admin`, `admin`, `edit` and `view`.
    Rbac,
}

/// The options of a [`Front`](crate::Front).
#[derive(Clone)]
pub struct FrontOptions {
    /// Static bearer tokens and their users. ServiceAccount tokens, which clients request, are
    /// accepted as well.
    pub tokens: BTreeMap<String, Identity>,
    /// The user for requests without a token; `None` refuses them with 401.
    pub anonymous: Option<Identity>,
    /// The authorization mode.
    pub authorization: Authorization,
    /// Source of random bytes for ServiceAccount tokens.
    pub random: Random,
    /// ServiceAccount tokens that were issued before.
    pub issued: Vec<Issued>,
    /// Called with each new token before it is issued; it has to be quick.
    pub keep_issued: Option<KeepIssued>,
    /// Calls admission webhooks. Without it their configurations are stored but they are not
    /// called.
    pub webhooks: Option<Arc<dyn Webhooks>>,
    /// The Kubernetes version that `/version` reports, without its `v`, such as `1.34.4`.
    pub server_version: String,
}

impl FrontOptions {
    /// Creates options with the Kubernetes version whose behaviour this crate has, and with every
    /// caller without a token as an admin.
    pub fn open(random: Random) -> Self {
        let admin = Identity::new("admin", &["system:masters"]);
        Self {
            tokens: BTreeMap::new(),
            anonymous: Some(admin),
            authorization: Authorization::AllowAll,
            random,
            issued: Vec::new(),
            keep_issued: None,
            webhooks: None,
            server_version: "1.34.4".to_owned(),
        }
    }
}

impl std::fmt::Debug for FrontOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let users: Vec<&str> = self.tokens.values().map(|identity| identity.user.as_str()).collect();
        let mut out = f.debug_struct("FrontOptions");
        out.field("users", &users).field("anonymous", &self.anonymous).field("authorization", &self.authorization);
        out.field("server_version", &self.server_version).finish_non_exhaustive()
    }
}
