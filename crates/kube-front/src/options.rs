//! How a front is set up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::identity::Identity;
use super::tokens::{Issued, KeepIssued};
use super::webhooks::Webhooks;

/// Where random bytes come from, for tokens. Must be unpredictable where the server can be reached
/// by others.
pub type Random = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// Who may do what at a [`Front`](crate::Front).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Whoever is known may do everything.
    #[default]
    AllowAll,
    /// What roles and bindings say, and members of `system:masters` everything. The cluster gets
    /// the ClusterRoles `cluster-admin`, `admin`, `edit` and `view`.
    Rbac,
}

/// How a [`Front`](crate::Front) is set up.
#[derive(Clone)]
pub struct FrontOptions {
    /// Whose each bearer token is. Tokens of ServiceAccounts, which clients ask for, come on top.
    pub tokens: BTreeMap<String, Identity>,
    /// Who calls without a token; `None` refuses those with 401.
    pub anonymous: Option<Identity>,
    /// Who may do what.
    pub authorization: Authorization,
    /// For the tokens of ServiceAccounts.
    pub random: Random,
    /// Tokens of ServiceAccounts that were handed out before.
    pub issued: Vec<Issued>,
    /// Told of each further one before it is handed out; it has to be quick.
    pub keep_issued: Option<KeepIssued>,
    /// What calls admission webhooks; without it they are kept and not asked.
    pub webhooks: Option<Arc<dyn Webhooks>>,
    /// The Kubernetes version that clients are told, without its `v`, such as `1.34.4`.
    pub server_version: String,
}

impl FrontOptions {
    /// A server of the version whose behaviour this crate has, to anybody without a token: an
    /// admin.
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
