//! A claim is deleted and its bucket retained, which is the default. Then the claim is created
//! again and gets the bucket back.

use kube::ResourceExt;
use s3_sim::Store;
use stowage_operator::api::wire::TAG_CLAIM;
use stowage_operator::api::{AdoptionPolicy, BucketClaim, BucketOrigin, ClaimRef, DeletionPolicy, Endpoint};

use super::access::{KEY, greeting, key_is_unknown, new_tenant, said};
use super::conflict::{Conflict, lost_its_name};
use super::kubectl::{self, is_this_claim};
use super::settle::settle;
use super::step::{DemoStep, Finding, Page};
use super::tour::Tour;
use super::views;

/// A claim to be deleted, and its bucket.
pub(super) struct Leaving {
    pub(super) claim: ClaimRef,
    pub(super) bucket: String,
    backend: String,
    endpoint: Endpoint,
}

impl Leaving {
    /// Returns a bound claim and its bucket; `None` if the claim isn't bound.
    pub(super) fn of(claim: &BucketClaim) -> Option<Self> {
        let status = claim.status.as_ref().filter(|_| views::is_bound(claim))?;
        let backend = status.backend.as_ref()?;
        Some(Self {
            claim: views::place(claim),
            bucket: status.bucket_name.clone()?,
            backend: backend.name.clone(),
            endpoint: Endpoint::parse(&backend.endpoint).ok()?,
        })
    }

    /// Returns the store with the bucket, for direct access as its owner.
    pub(super) fn store<S>(&self, tour: &Tour<S>) -> Result<Store, String> {
        tour.world.store_at(&self.endpoint).ok_or_else(|| format!("there is no store at {}", self.endpoint))
    }
}

/// Returns the claim to delete: the preferred one, else the last one. Only bound claims with the
/// policy `Retain` are considered.
pub(super) fn retaining<S>(tour: &Tour<S>, preferred: Option<&ClaimRef>) -> Option<Leaving> {
    let mut claims = views::claims(&tour.world);
    claims.retain(|claim| claim.spec.deletion_policy == DeletionPolicy::Retain.into() && views::is_bound(claim));
    let wanted = claims.iter().find(|claim| Some(&views::place(claim)) == preferred).or_else(|| claims.last())?;
    Leaving::of(wanted)
}

/// Deletes the claim.
pub(super) async fn claim_deleted<S: FnMut(&DemoStep)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
) -> Finding {
    kubectl::delete(&tour.world, page, &leaving.claim).await?;
    settle(&tour.world).await;
    match views::claim(&tour.world, &leaving.claim) {
        None => Ok(format!("{} is gone; its deletion policy was Retain", leaving.claim)),
        Some(claim) => Err(format!("{} is still there, {:?}", leaving.claim, views::phase(&claim))),
    }
}

/// Tries the old key of the claim, from a copy of its deleted Secret.
pub(super) async fn old_key_refused<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, leaving: &Leaving) -> Finding {
    let tenant = tour.tenants.iter().find(|tenant| tenant.claim == leaving.claim);
    let tenant = tenant.ok_or_else(|| format!("{} never had a key", leaving.claim))?;
    let got = tenant.get(&tenant.bucket, KEY).await;
    let told = format!("GetObject with the key of {}: {}", leaving.claim, said(&got, |_| "200".to_owned()));
    if key_is_unknown(&got) { Ok(told) } else { Err(told) }
}

/// Looks into the store as its owner.
pub(super) fn bucket_retained<S>(tour: &Tour<S>, leaving: &Leaving) -> Finding {
    let bucket = &leaving.bucket;
    let store = leaving.store(tour)?;
    let snapshot = store.bucket(bucket).ok_or_else(|| format!("bucket {bucket} is gone"))?;
    let kept =
        store.objects(bucket).get(KEY).is_some_and(|bytes| bytes.as_ref() == greeting(&leaving.claim).as_bytes());
    let owner = snapshot.tags.and_then(|mut tags| tags.remove(TAG_CLAIM));
    if kept && owner.as_ref() == Some(&leaving.claim.to_string()) {
        Ok(format!("{bucket} keeps {KEY}, and the tag {TAG_CLAIM} = {}", leaving.claim))
    } else {
        Err(format!("bucket {bucket} lost its object or its tags"))
    }
}

/// Shows that the claim that had lost the name conflict was reconciled again. Although the name is
/// free now, the bucket is not given to it: the tags still name the claim that the bucket was
/// created for.
pub(super) fn loser_woken<S>(tour: &Tour<S>, conflict: &Conflict) -> Finding {
    let Conflict { holder, loser, bucket } = conflict;
    let claim = views::claim(&tour.world, loser).ok_or_else(|| format!("{loser} is gone"))?;
    let reason = views::ready(&claim).map(|ready| ready.reason.clone()).unwrap_or_default();
    match reason.as_str() {
        "Bound" => Ok(format!("{loser} has got bucket {bucket}")),
        "BucketExists" => {
            Ok(format!("BucketExists: {bucket} was made for {holder}, its data is not handed over to {loser}"))
        }
        _ if lost_its_name(&claim) => Err(format!("{loser} still waits for {bucket}")),
        reason => Err(format!("{loser} is not Ready: {reason}")),
    }
}

/// Returns true if a claim that is created again under the same name may adopt its old bucket.
pub(super) fn may_return<S>(tour: &Tour<S>, leaving: &Leaving) -> bool {
    let backends = views::backends(&tour.world);
    let backend = backends.iter().find(|backend| backend.name_any() == leaving.backend);
    backend.is_some_and(|backend| backend.spec.adoption_policy != AdoptionPolicy::Never)
}

/// Applies the deleted claim again, after deleting the claim that waits for the same bucket. The
/// tags prove that the bucket belongs to it.
pub(super) async fn bucket_returned<S: FnMut(&DemoStep)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
    loser: Option<&ClaimRef>,
) -> Finding {
    let (world, returning, bucket) = (&tour.world, &leaving.claim, &leaving.bucket);
    if let Some(loser) = loser {
        kubectl::delete(world, page, loser).await?;
        settle(world).await;
    }
    let documents = tour.documents.iter().filter(|document| is_this_claim(document, returning));
    kubectl::apply_all(world, page, documents, async || settle(world).await).await?;
    let claim = views::claim(world, returning).filter(views::is_bound);
    let claim = claim.ok_or_else(|| format!("{returning} was not bound again"))?;
    let tenant = new_tenant(world, &claim)?;
    let found = tenant.get(&tenant.bucket, KEY).await == Ok(greeting(returning));
    let adopted = claim.status.is_some_and(|status| status.bucket_origin == Some(BucketOrigin::Adopted));
    match (adopted, found) {
        (true, true) => Ok(format!("{bucket} is Adopted, its tags name {returning}; a new key reads the old object")),
        (false, _) => Err(format!("{returning} is bound, but not to the bucket that it left")),
        (_, false) => Err(format!("bucket {bucket} came back without its object")),
    }
}
