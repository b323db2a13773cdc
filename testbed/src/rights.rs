//! RBAC rights of tenants, operator and gateway.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_operator::api::{GROUP, OBC_GROUP};

use crate::objects::from_json;
use crate::users::{TENANTS, User};

const TENANT: &str = "stowage-e2e-tenant";

/// A component that is installed with its own rights.
struct Installed {
    /// Name of its roles.
    role: &'static str,
    /// The manifest of its rights.
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

/// Rights of operator and gateway in the usage namespace, in which gateways exchange the usage of
/// buckets. The harness uses the operator's namespace for that, as it configures no other one.
const USAGE: &str = include_str!("../../kind-config/usage/rbac.yaml");
/// Rights of an operator that serves only one namespace.
const ALONE: &str = include_str!("../../kind-config/namespaced/rbac.yaml");
/// Name of those rights' cluster-wide part here, beside those of an operator that serves all
/// namespaces.
const ALONE_NAME: &str = "stowage-e2e-alone";

/// Grants tenants the rights of spec §3.8, and those that users of a namespace usually have on
/// Secrets, ConfigMaps and ObjectBucketClaims.
pub async fn of_tenants(client: &Client) -> Result<()> {
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

/// Grants operator and gateway exactly their cluster-wide rights.
pub async fn of_installed(client: &Client) -> Result<()> {
    for installed in &INSTALLED {
        let Installed { role, user, .. } = installed;
        grant(Api::all(client.clone()), &installed.object::<ClusterRole>()?).await?;
        let binding: ClusterRoleBinding = from_json(binding(role, "ClusterRole", "User", user.name()));
        grant(Api::all(client.clone()), &binding).await?;
    }
    Ok(())
}

/// Grants operator and gateway their rights in the operator's namespace.
pub async fn of_installed_in(client: &Client, namespace: &str) -> Result<()> {
    for installed in &INSTALLED {
        let Installed { role, user, .. } = installed;
        grant(Api::namespaced(client.clone(), namespace), &installed.object::<Role>()?).await?;
        let binding: RoleBinding = from_json(binding(role, "Role", "User", user.name()));
        grant(Api::namespaced(client.clone(), namespace), &binding).await?;
        let usage = installed.usage()?;
        let binding: RoleBinding = from_json(self::binding(&usage.name_any(), "Role", "User", user.name()));
        grant(Api::namespaced(client.clone(), namespace), &usage).await?;
        grant(Api::namespaced(client.clone(), namespace), &binding).await?;
    }
    Ok(())
}

/// Replaces the operator's cluster-wide rights by those of an operator that serves only the
/// namespace `tenant` and stores its Secrets in `system`.
pub async fn narrow(client: &Client, system: &str, tenant: &str) -> Result<()> {
    let Installed { role: name, user, .. } = &INSTALLED[0];
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.delete(name, &DeleteParams::default()).await.context("can't take rights")?;
    let manifest = ALONE.replace("stowage-system", system).replace("team-a", tenant);
    for document in stowage_world::parse("rbac.yaml", &manifest)? {
        let object = document.object;
        match object.types.as_ref().map(|types| types.kind.as_str()) {
            Some("ClusterRole") => {
                let mut role: ClusterRole = object.try_parse().context("rbac.yaml")?;
                role.metadata.name = Some(ALONE_NAME.to_owned());
                grant(Api::all(client.clone()), &role).await?;
                let binding = from_json(binding(ALONE_NAME, "ClusterRole", "User", user.name()));
                grant(bindings.clone(), &binding).await?;
            }
            Some("Role") => put_role(client, &object, user.name()).await?,
            _ => {}
        }
    }
    until_narrow(client, user.name(), tenant).await
}

/// Applies a role in its namespace, replacing an existing one, and binds it to this user.
async fn put_role(client: &Client, role: &DynamicObject, user: &str) -> Result<()> {
    let (name, namespace) = (role.name_any(), role.namespace().context("a Role of rbac.yaml has no namespace")?);
    let ours = PatchParams::apply("stowage-e2e").force();
    let roles: Api<Role> = Api::namespaced(client.clone(), &namespace);
    roles.patch(&name, &ours, &Patch::Apply(role)).await.context("can't grant rights")?;
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &namespace);
    let mut binding = binding(&name, "Role", "User", user);
    binding["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    binding["kind"] = "RoleBinding".into();
    bindings.patch(&name, &ours, &Patch::Apply(binding)).await.context("can't grant rights").map(drop)
}

/// Waits until the API server enforces the rights of [`narrow`], which it learns of by watches.
async fn until_narrow(client: &Client, user: &str, tenant: &str) -> Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let may = async |namespace: &str| -> Result<bool> {
        let asked = json!({"group": GROUP, "resource": "bucketclaims", "verb": "list", "namespace": namespace});
        let review = from_json(json!({"spec": {"user": user, "resourceAttributes": asked}}));
        let answer = reviews.create(&PostParams::default(), &review).await.context("can't ask for rights")?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    };
    for _ in 0..100 {
        if may(tenant).await? && !may("").await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ensure!(may(tenant).await?, "the operator has no rights in {tenant} ten seconds after they were granted");
    ensure!(!may("").await?, "the operator has its rights ten seconds after they were taken");
    Ok(())
}

/// Reverts [`narrow`], except for objects that are deleted with their namespaces.
pub async fn widen(client: &Client) -> Result<()> {
    let Installed { role: name, user, .. } = &INSTALLED[0];
    let now = DeleteParams::default();
    let (bindings, roles): (Api<ClusterRoleBinding>, Api<ClusterRole>) =
        (Api::all(client.clone()), Api::all(client.clone()));
    bindings.delete(ALONE_NAME, &now).await.context("can't take rights")?;
    roles.delete(ALONE_NAME, &now).await.context("can't take rights")?;
    let binding: ClusterRoleBinding = from_json(binding(name, "ClusterRole", "User", user.name()));
    grant(bindings, &binding).await
}

impl Installed {
    /// Returns the object of this kind in the manifest.
    fn object<K: DeserializeOwned + Resource<DynamicType = ()>>(&self) -> Result<K> {
        let documents = stowage_world::parse("rbac.yaml", self.manifest)?;
        let kind = K::kind(&());
        let wanted = documents.into_iter().find(|it| it.object.types.as_ref().is_some_and(|types| types.kind == kind));
        let object = wanted.with_context(|| format!("rbac.yaml of {} has no {kind}", self.role))?.object;
        object.try_parse().context("rbac.yaml")
    }

    /// Returns its Role for the usage namespace, with the namespace removed.
    fn usage(&self) -> Result<Role> {
        let name = format!("{}-usage", self.role);
        let documents = stowage_world::parse("usage/rbac.yaml", USAGE)?;
        let is_ours = |object: &DynamicObject| {
            object.types.as_ref().is_some_and(|it| it.kind == "Role") && object.name_any() == name
        };
        let wanted = documents.into_iter().map(|it| it.object).find(is_ours);
        let wanted = wanted.with_context(|| format!("usage/rbac.yaml has no Role {name}"))?;
        let mut role: Role = wanted.try_parse().context("usage/rbac.yaml")?;
        role.metadata.namespace = None;
        Ok(role)
    }
}

/// Returns a binding with the same name as its role.
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
        let usage = installed.usage().unwrap().rules.unwrap_or_default();
        [cluster.rules.unwrap_or_default(), own.rules.unwrap_or_default(), usage].concat()
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
