//! What tenants and the operator may do.

use std::fmt::Debug;

use anyhow::{Context as _, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_operator::api::GROUP;

use crate::objects::from_json;
use crate::users::{TENANTS, User};

const TENANT: &str = "stowage-e2e-tenant";
const OPERATOR: &str = "stowage-operator";
/// The operator's rights as it is installed with them.
const MANIFEST: &str = include_str!("../../kind-config/operator/rbac.yaml");

/// Gives tenants the rights of spec §3.8, and those on Secrets that users of a namespace usually
/// have.
pub(crate) async fn of_tenants(client: &Client) -> Result<()> {
    let role: ClusterRole = from_json(json!({
        "metadata": {"name": TENANT},
        "rules": [
            {"apiGroups": [GROUP], "resources": ["bucketclaims"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
        ],
    }));
    grant(Api::all(client.clone()), &role).await?;
    let binding: ClusterRoleBinding = from_json(binding(TENANT, "ClusterRole", "Group", TENANTS));
    grant(Api::all(client.clone()), &binding).await
}

/// Gives the operator the rights that it has in the whole cluster, and no others.
pub(crate) async fn of_operator(client: &Client) -> Result<()> {
    grant(Api::all(client.clone()), &installed::<ClusterRole>()?).await?;
    let binding: ClusterRoleBinding = from_json(binding(OPERATOR, "ClusterRole", "User", User::Operator.name()));
    grant(Api::all(client.clone()), &binding).await
}

/// Gives the operator the rights that it has in its own namespace.
pub(crate) async fn of_operator_in(client: &Client, namespace: &str) -> Result<()> {
    grant(Api::namespaced(client.clone(), namespace), &installed::<Role>()?).await?;
    let binding: RoleBinding = from_json(binding(OPERATOR, "Role", "User", User::Operator.name()));
    grant(Api::namespaced(client.clone(), namespace), &binding).await
}

/// The object of this kind among the operator's manifests.
fn installed<K: DeserializeOwned + Resource<DynamicType = ()>>() -> Result<K> {
    let documents = stowage_sim::world::parse("rbac.yaml", MANIFEST)?;
    let kind = K::kind(&());
    let wanted = documents.into_iter().find(|it| it.object.types.as_ref().is_some_and(|types| types.kind == kind));
    let object = wanted.with_context(|| format!("rbac.yaml has no {kind}"))?.object;
    object.try_parse().context("rbac.yaml")
}

/// A binding with the name of its role.
fn binding(role: &str, kind: &str, subject: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": subject, "name": name}],
    })
}

async fn grant<K>(api: Api<K>, object: &K) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    api.create(&PostParams::default(), object).await.context("can't grant rights").map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_rights_are_those_that_it_is_installed_with() {
        let (cluster, own): (ClusterRole, Role) = (installed().unwrap(), installed().unwrap());
        assert_eq!((cluster.metadata.name.as_deref(), own.metadata.name.as_deref()), (Some(OPERATOR), Some(OPERATOR)));
        let rules = [cluster.rules.unwrap_or_default(), own.rules.unwrap_or_default()].concat();
        assert!(!rules.is_empty() && rules.iter().all(|rule| !rule.verbs.contains(&"*".to_owned())), "{rules:?}");
    }
}
