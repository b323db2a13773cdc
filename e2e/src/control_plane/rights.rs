//! What tenants may do.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use stowage_operator::api::GROUP;

use super::users::TENANTS;
use crate::cluster::{explain, from_json};

const ROLE: &str = "stowage-e2e-tenant";

/// Gives tenants the rights of spec §3.8, and those on Secrets that users of a namespace usually have.
pub(super) async fn grant(client: &Client) -> Result<(), String> {
    let role: ClusterRole = from_json(json!({
        "metadata": {"name": ROLE},
        "rules": [
            {"apiGroups": [GROUP], "resources": ["bucketclaims"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
        ],
    }));
    let binding: ClusterRoleBinding = from_json(json!({
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": TENANTS}],
    }));
    let (roles, bindings) = (Api::all(client.clone()), Api::all(client.clone()));
    explain("can't grant the tenants' rights", roles.create(&PostParams::default(), &role).await)?;
    explain("can't grant the tenants' rights", bindings.create(&PostParams::default(), &binding).await)?;
    Ok(())
}
