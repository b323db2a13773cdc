//! A tenant in another namespace requests access to a claim's bucket: the request is closed at
//! first, then granted for reading, then withdrawn (spec §8).

use kube::ResourceExt;
use serde_json::json;
use stowage_operator::api::{AccessReason, AccessRef, BucketClaim, ClaimRef};
use stowage_world::{OPERATOR_NAMESPACE, parse};

use super::access::{KEY, denied, greeting, said};
use super::kubectl;
use super::settle::settle;
use super::step::{DemoStep, Finding, Page};
use super::tenant::{Tenant, TenantResult};
use super::tour::Tour;
use super::views;

/// A claim, and an access to its bucket from another namespace.
pub(super) struct Sharing {
    claim: ClaimRef,
    access: AccessRef,
}

/// Returns the first bound claim without sharing on a backend for all namespaces, and the first
/// other namespace in the manifests.
pub(super) fn sharing<S>(tour: &Tour<S>) -> Option<Sharing> {
    let backends = views::backends(&tour.world);
    let is_for_all = |claim: &BucketClaim| {
        let own = backends.iter().find(|backend| backend.name_any() == claim.spec.backend_ref.name);
        own.is_some_and(|backend| backend.spec.allowed_namespaces.is_none())
    };
    let fits = |claim: &BucketClaim| views::is_bound(claim) && claim.spec.sharing.is_none() && is_for_all(claim);
    let claim = views::place(&views::claims(&tour.world).into_iter().find(fits)?);
    let objects = tour.documents.iter().map(|document| &document.object);
    let namespaces = objects.filter(|it| it.types.as_ref().is_some_and(|types| types.kind == "Namespace"));
    let mut names = namespaces.map(ResourceExt::name_any);
    let namespace = names.find(|name| *name != claim.namespace && name != OPERATOR_NAMESPACE)?;
    let access = AccessRef { namespace, name: format!("{}-reader", claim.name) };
    Some(Sharing { claim, access })
}

/// Requests access before the owner has consented.
pub(super) async fn asked<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page, sharing: &Sharing) -> Finding {
    let Sharing { claim, access } = sharing;
    let (namespace, name) = (&access.namespace, &access.name);
    let entry = format!("{{claimRef: {{namespace: {}, name: {}}}, mode: ReadOnly}}", claim.namespace, claim.name);
    let manifest = format!(
        "apiVersion: broker.stowage.io/v1alpha1\nkind: BucketAccess\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{buckets: [{entry}], writeConnectionSecretToRef: {{name: {name}}}}}\n"
    );
    let documents = parse(&format!("{name}.yaml"), &manifest).map_err(|error| error.to_string())?;
    page.remark(format!("a BucketAccess in {namespace} asks for {claim}, with mode: ReadOnly"));
    kubectl::apply_all(&tour.world, page, documents.iter(), async || ()).await?;
    settle(&tour.world).await;
    let reason = reason(tour, access)?;
    match reason == AccessReason::NotShared.to_string() {
        true => Ok(format!("{access}: {reason}, as it would be if there were no claim {claim}")),
        false => Err(format!("{access} is {reason}, though nobody has consented")),
    }
}

/// Has the owner consent to reading.
pub(super) async fn shared<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page, sharing: &Sharing) -> Finding {
    let Sharing { claim, access } = sharing;
    let rule = json!([{"namespaces": {"names": [access.namespace]}, "maxMode": "ReadOnly"}]);
    kubectl::patch_spec(&tour.world, page, claim, &json!({ "sharing": rule })).await?;
    settle(&tour.world).await;
    let reason = reason(tour, access)?;
    if reason != AccessReason::Open.to_string() {
        return Err(format!("{access} is {reason}, though its owner has consented"));
    }
    let neighbour = neighbour(tour, access)?;
    let got = neighbour.get(&neighbour.bucket, KEY).await;
    let put = neighbour.put(&neighbour.bucket, KEY, "overwritten").await;
    let told = format!("its key on {}: {}", neighbour.bucket, answers(&got, &put));
    match got.as_ref() == Ok(&greeting(claim)) && denied(&put) {
        true => Ok(told),
        false => Err(told),
    }
}

/// Has the owner withdraw the consent. The other tenant still has its Secret.
pub(super) async fn withdrawn<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page, sharing: &Sharing) -> Finding {
    let Sharing { claim, access } = sharing;
    let neighbour = neighbour(tour, access)?;
    kubectl::patch_spec(&tour.world, page, claim, &json!({"sharing": null})).await?;
    settle(&tour.world).await;
    let got = neighbour.get(&neighbour.bucket, KEY).await;
    let put = neighbour.put(&neighbour.bucket, KEY, "overwritten").await;
    let told = format!("the same key: {}", answers(&got, &put));
    match denied(&got) && denied(&put) {
        true => Ok(format!("{told}; {access} is {} again", reason(tour, access)?)),
        false => Err(told),
    }
}

fn answers(got: &TenantResult<String>, put: &TenantResult<()>) -> String {
    let ok = "200".to_owned();
    format!("GetObject {}, PutObject {}", said(got, |_| ok.clone()), said(put, |()| ok.clone()))
}

/// Returns the reason of an access's `Ready` condition.
fn reason<S>(tour: &Tour<S>, at: &AccessRef) -> Result<String, String> {
    let access = views::access(&tour.world, at).ok_or_else(|| format!("{at} is gone"))?;
    let ready = access.status.as_ref().and_then(|status| views::ready_of(&status.conditions));
    Ok(ready.ok_or_else(|| format!("nobody has looked at {at}"))?.reason.clone())
}

/// Creates a tenant from the Secret of the access alone.
fn neighbour<S>(tour: &Tour<S>, at: &AccessRef) -> Result<Tenant, String> {
    let secret = views::secret(&tour.world, &at.namespace, &at.name);
    let secret = secret.ok_or_else(|| format!("{at} is Ready, but there is no Secret {}", at.name))?;
    let named = ClaimRef { namespace: at.namespace.clone(), name: at.name.clone() };
    Tenant::new(named, &at.name, &secret, tour.world.tenant_http(), tour.world.tenants_time())
}
