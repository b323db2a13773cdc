//! What tenants, the operator and the gateway may do.

use std::fmt::Debug;

use anyhow::{Context as _, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_operator::api::{GROUP, OBC_GROUP};

use crate::objects::from_json;
use crate::users::{TENANTS, User};

const TENANT: &str = "stowage-e2e-tenant";

/// What is installed with rights of its own.
struct Installed {
    /// The name of its roles.
    role: &'static str,
    /// Its rights as it is installed with them.
    manifest: &'static str,
    user: User,
}

const INSTALLED: [Installed; 2] = [
    Installed {
        role: "stowage-operator",
        manifest: include_str!("../../kind-config/operator/rbac.yaml"),
        user: User::Operator,
    },
    Installed {
        role: "stowage-gateway",
        manifest: include_str!("../../kind-config/gateway/rbac.yaml"),
        user: User::Gateway,
    },
];

/// Gives tenants the rights of spec §3.8, and those that users of a namespace usually have on
/// Secrets, ConfigMaps and ObjectBucketClaims.
pub(crate) async fn of_tenants(client: &Client) -> Result<()> {
    let role: ClusterRole = from_json(json!({
        "metadata": {"name": TENANT},
        "rules": [
            {"apiGroups": [GROUP], "resources": ["bucketclaims", "bucketaccesses"], "verbs": ["*"]},
            {"apiGroups": [OBC_GROUP], "resources": ["objectbucketclaims"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"]},
        ],
    }));
    grant(Api::all(client.clone()), &role).await?;
    let binding: ClusterRoleBinding = from_json(binding(TENANT, "ClusterRole", "Group", TENANTS));
    grant(Api::all(client.clone()), &binding).await
}

/// Gives operator and gateway the rights that they have in the whole cluster, and no others.
pub(crate) async fn of_installed(client: &Client) -> Result<()> {
    for installed in &INSTALLED {
        let Installed { role, user, .. } = installed;
        grant(Api::all(client.clone()), &installed.object::<ClusterRole>()?).await?;
        let binding: ClusterRoleBinding = from_json(binding(role, "ClusterRole", "User", user.name()));
        grant(Api::all(client.clone()), &binding).await?;
    }
    Ok(())
}

/// Gives them the rights that they have in the operator's namespace.
pub(crate) async fn of_installed_in(client: &Client, namespace: &str) -> Result<()> {
    for installed in &INSTALLED {
        let Installed { role, user, .. } = installed;
        grant(Api::namespaced(client.clone(), namespace), &installed.object::<Role>()?).await?;
        let binding: RoleBinding = from_json(binding(role, "Role", "User", user.name()));
        grant(Api::namespaced(client.clone(), namespace), &binding).await?;
    }
    Ok(())
}

impl Installed {
    /// The object of this kind among the manifests.
    fn object<K: DeserializeOwned + Resource<DynamicType = ()>>(&self) -> Result<K> {
        let documents = stowage_sim::world::parse("rbac.yaml", self.manifest)?;
        let kind = K::kind(&());
        let wanted = documents.into_iter().find(|it| it.object.types.as_ref().is_some_and(|types| types.kind == kind));
        let object = wanted.with_context(|| format!("rbac.yaml of {} has no {kind}", self.role))?.object;
        object.try_parse().context("rbac.yaml")
    }
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
    use k8s_openapi::api::rbac::v1::PolicyRule;

    use super::*;

    fn rules(installed: &Installed) -> Vec<PolicyRule> {
        let (cluster, own): (ClusterRole, Role) = (installed.object().unwrap(), installed.object().unwrap());
        let names = (cluster.metadata.name.as_deref(), own.metadata.name.as_deref());
        assert_eq!(names, (Some(installed.role), Some(installed.role)));
        [cluster.rules.unwrap_or_default(), own.rules.unwrap_or_default()].concat()
    }

    #[test]
    fn rights_are_those_that_are_installed_and_name_what_they_are() {
        for installed in &INSTALLED {
            let rules = rules(installed);
            assert!(!rules.is_empty() && rules.iter().all(|rule| !rule.verbs.contains(&"*".to_owned())), "{rules:?}");
        }
    }

    #[test]
    fn the_gateway_reads_secrets_and_backends_and_writes_what_it_counts() {
        for rule in rules(&INSTALLED[1]) {
            let only = |verbs: &[&str]| rule.verbs.iter().all(|verb| verbs.contains(&verb.as_str()));
            let resources = rule.resources.clone().unwrap_or_default();
            let allowed = |resource: &String| match resource.as_str() {
                "secrets" | "s3backends" => only(&["get", "list", "watch"]),
                "configmaps" => only(&["list", "watch", "create", "update", "delete"]),
                "leases" => only(&["list", "watch", "create", "patch", "delete"]),
                _ => false,
            };
            assert!(!resources.is_empty() && resources.iter().all(allowed), "{:?} {resources:?}", rule.verbs);
        }
    }
}
