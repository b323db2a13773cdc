//! The first part of the tour: manifests are applied, backends become ready, and claims become
//! bound or don't.

use kube::ResourceExt;
use stowage_operator::api::{AdoptionPolicy, BucketClaim, DeletionPolicy, Endpoint};
use stowage_world::{BackendStore, Document, World};

use super::conflict::{Conflict, others_unbound};
use super::kubectl::{self, is_claim};
use super::settle::settle;
use super::step::{DemoStep, Finding, Page};
use super::text::PAGE_WIDTH;
use super::tour::Tour;
use super::views;

/// Name and heading of the first step.
pub(super) const APPLY: (&str, &str) = ("apply-manifests", "Manifests are applied");

/// Applies everything but the claims, in order. Claims are applied last wherever they are in the
/// manifests, as tools that sort by kind do. Only then can the tour show the effect of each claim.
pub(super) async fn apply_manifests<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let documents = tour.documents.iter().filter(|document| !is_claim(document));
    let applied = kubectl::apply_all(&tour.world, page, documents, async || ()).await?;
    let claims = tour.documents.len() - applied;
    Ok(format!("{applied} objects are there; {claims} claims follow, once there is a store for them"))
}

/// Shows the conditions of the backends. A backend that is not ready is shown too, as long as
/// another one is ready.
pub(super) async fn backends_ready<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, _: &mut Page) -> Finding {
    settle(&tour.world).await;
    let backends = views::backends(&tour.world);
    if backends.is_empty() {
        return Err("the manifests hold no S3Backend that claims could be bound on".to_owned());
    }
    let mut any_ready = false;
    let told = backends.iter().map(|backend| {
        let (name, endpoint) = (backend.name_any(), &backend.spec.endpoint);
        let conditions = backend.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        match views::ready_of(conditions) {
            Some(ready) if ready.status == "True" => {
                any_ready = true;
                format!("{name} ({endpoint}) is Ready")
            }
            Some(ready) => format!("{name} ({endpoint}) is not: {}, {}", ready.reason, ready.message),
            None => format!("{name} ({endpoint}) was not looked at"),
        }
    });
    let told = told.collect::<Vec<_>>().join("; ");
    if any_ready { Ok(told) } else { Err(told) }
}

/// Applies the claims one after the other, each after the one before has settled. If they were
/// applied at once, two claims to one bucket would race for it.
pub(super) async fn claims_bound<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let claims = || tour.documents.iter().filter(|document| is_claim(document));
    if claims().next().is_none() {
        return Err("the manifests hold no BucketClaim".to_owned());
    }
    if let Some(bucket) = make_heirloom(&tour.world, &tour.documents) {
        page.remark(format!("bucket {bucket} is in the store already, with an object in it: its owner's, not ours"));
    }
    let world = &tour.world;
    let claims = tour.documents.iter().filter(|document| is_claim(document));
    kubectl::apply_all(world, page, claims, async || settle(world).await).await?;
    page.command("kubectl get bucketclaims -A");
    page.lines(views::claim_table(world).lines(PAGE_WIDTH));
    verdict(world)
}

/// Creates a bucket that a claim will adopt, as if its owner had created it before. It is for the
/// first claim that names its bucket, has the policy `Delete`, and is on a backend that adopts
/// existing buckets.
fn make_heirloom(world: &World, documents: &[Document]) -> Option<String> {
    let backends = views::backends(world);
    let adopts = |claim: &BucketClaim| {
        backends.iter().find(|backend| backend.name_any() == claim.spec.backend_ref.name).filter(|backend| {
            claim.spec.deletion_policy == DeletionPolicy::Delete.into()
                && backend.spec.adoption_policy == AdoptionPolicy::Any
        })
    };
    let typed = |document: &Document| serde_json::from_value(serde_json::to_value(&document.object).ok()?).ok();
    let claims = documents.iter().filter(|document| is_claim(document)).filter_map(typed);
    claims.into_iter().find_map(|claim: BucketClaim| {
        let (backend, bucket) = (adopts(&claim)?, claim.spec.bucket_name.clone()?);
        let owner = BackendStore::of_manifests(documents).into_iter().find(|store| store.name == backend.name_any())?;
        let store = world.store_at(&Endpoint::parse(&backend.spec.endpoint).ok()?)?;
        if store.bucket(&bucket).is_some() {
            return None;
        }
        store.put_bucket(&owner.account, &bucket);
        store.put_object(&bucket, "old.txt", "older than any claim");
        Some(bucket)
    })
}

fn verdict(world: &World) -> Finding {
    let claims = views::claims(world);
    let (bound, unbound): (Vec<&BucketClaim>, Vec<&BucketClaim>) = claims.iter().partition(|c| views::is_bound(c));
    if bound.is_empty() {
        let reasons: Vec<String> = unbound.into_iter().map(why).collect();
        return Err(format!("no claim was bound: {}", reasons.join("; ")));
    }
    Ok(match (bound.len(), unbound.len()) {
        (1, 0) => "the claim is Bound".to_owned(),
        (bound, 0) => format!("all {bound} claims are Bound"),
        (bound, unbound) => format!("{bound} of {} claims are Bound", bound + unbound),
    })
}

/// Describes why a claim isn't bound, from its `Ready` condition.
fn why(claim: &BucketClaim) -> String {
    let place = views::place(claim);
    match views::ready(claim) {
        Some(ready) => format!("{place}: {}, {}", ready.reason, ready.message),
        None => format!("{place}: the operator has not looked at it"),
    }
}

/// Shows the claim that lost the name conflict: its condition, and that it has no Secret.
pub(super) fn name_conflict<S>(tour: &Tour<S>, page: &mut Page, conflict: &Conflict) -> Finding {
    let Conflict { holder, loser, bucket } = conflict;
    let claim = views::claim(&tour.world, loser).ok_or_else(|| format!("{loser} is gone"))?;
    page.lines(views::readiness_table(&[&claim]).lines(PAGE_WIDTH));
    let secret = secret_name(&claim);
    match views::secret(&tour.world, &loser.namespace, &secret) {
        Some(_) => Err(format!("{loser} has a Secret {secret}, though bucket {bucket} belongs to {holder}")),
        None => Ok(format!("{bucket} belongs to {holder}; {loser} waits, without bucket, credential or Secret")),
    }
}

/// Returns the name of the connection Secret that a claim requests.
fn secret_name(claim: &BucketClaim) -> String {
    let asked = claim.spec.write_connection_secret_to_ref.as_ref().and_then(|to| to.name.clone());
    asked.unwrap_or_else(|| format!("{}-s3", claim.name_any()))
}

/// Shows the other claims without a bucket. A final condition is enough; the step fails for a claim
/// that is still being reconciled.
pub(super) fn claims_not_bound<S: FnMut(&DemoStep)>(tour: &Tour<S>, page: &mut Page) -> Finding {
    let claims: Vec<BucketClaim> = others_unbound(&tour.world).collect();
    page.lines(views::readiness_table(&claims.iter().collect::<Vec<_>>()).lines(PAGE_WIDTH));
    let conditions = |claim: &BucketClaim| claim.status.as_ref().map(|status| status.conditions.clone());
    let stands = |claim: &BucketClaim| {
        conditions(claim).is_some_and(|all| !all.is_empty() && !all.iter().any(|one| one.type_ == "Reconciling"))
    };
    match claims.iter().find(|claim| !stands(claim)) {
        Some(claim) => Err(format!("still being worked on: {}", why(claim))),
        None => Ok(format!("each of the {} has been told why", claims.len())),
    }
}
