//! The last part of the tour: a claim is deleted, its bucket stays.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use stowage_operator::api::{AdoptionPolicy, BucketClaim, BucketOrigin, ClaimRef, DeletionPolicy, Endpoint};

use crate::store::Store;
use crate::world::{Document, apply};

use super::access::{KEY, greeting, new_tenant, read_old_object, try_old_key};
use super::settle::settle;
use super::setup::{applied_line, is_claim, show_conditions};
use super::step::{Finding, Page, Step};
use super::table::Table;
use super::text::PAGE_WIDTH;
use super::tour::{Conflict, Tour, lost_its_name};
use super::views;

/// The claim that is about to go, and what must outlive it.
pub(super) struct Leaving {
    claim: ClaimRef,
    bucket: String,
    backend: String,
    endpoint: Endpoint,
}

/// The claim to delete: this one, else the last that is bound; only one whose bucket is to be retained.
pub(super) fn leaving<S>(tour: &Tour<S>, preferred: Option<&ClaimRef>) -> Option<Leaving> {
    let retains = |claim: &BucketClaim| claim.spec.deletion_policy == DeletionPolicy::Retain && views::is_bound(claim);
    let mut claims = views::claims(&tour.world);
    claims.retain(retains);
    let wanted = claims.iter().find(|claim| Some(&views::place(claim)) == preferred).or_else(|| claims.last())?;
    let status = wanted.status.as_ref()?;
    Some(Leaving {
        claim: views::place(wanted),
        bucket: status.bucket_name.clone()?,
        backend: status.backend.as_ref()?.name.clone(),
        endpoint: Endpoint::parse(&status.backend.as_ref()?.endpoint).ok()?,
    })
}

/// All claims as they are now.
fn show_claims<S>(tour: &Tour<S>, page: &mut Page) {
    page.command("kubectl get bucketclaims -A");
    let mut table = views::claim_table();
    for claim in views::claims(&tour.world) {
        table.row(views::claim_row(&tour.world.clock, &claim));
    }
    page.lines(table.lines(PAGE_WIDTH));
}

async fn delete<S>(tour: &Tour<S>, page: &mut Page, claim: &ClaimRef) -> Result<(), String> {
    let ClaimRef { namespace, name } = claim;
    page.command(format!("kubectl delete bucketclaim {name} -n {namespace}"));
    let api: Api<BucketClaim> = Api::namespaced(tour.world.kube(), namespace);
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.map_err(|error| format!("{claim} can't be deleted: {error}"))?;
    page.line(format!("bucketclaim.broker.stowage.io \"{name}\" deleted"));
    Ok(())
}

/// Deletes the claim, and shows which are left.
pub(super) async fn claim_deleted<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page, leaving: &Leaving) -> Finding {
    if let Err(why) = delete(tour, page, &leaving.claim).await {
        return Finding::bad(why);
    }
    settle(&tour.world).await;
    page.gap();
    show_claims(tour, page);
    match views::claim(&tour.world, &leaving.claim) {
        None => Finding::good(format!("{} is gone; its deletion policy was Retain", leaving.claim)),
        Some(claim) => Finding::bad(format!("{} is still there, {:?}", leaving.claim, views::phase(&claim))),
    }
}

/// Tries the key that the claim had.
pub(super) async fn old_key_refused<S: FnMut(&Step)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
) -> Finding {
    let Some(tenant) = tour.tenants.iter().find(|tenant| tenant.claim == leaving.claim) else {
        return Finding::bad(format!("{} never had a key", leaving.claim));
    };
    page.remark("with a copy of the Secret that is gone");
    if try_old_key(tenant, page).await {
        Finding::good("the gateway doesn't know the key any more")
    } else {
        Finding::bad(format!("the key of {} was not refused as unknown", leaving.claim))
    }
}

/// Looks into the store, as its owner.
pub(super) fn bucket_retained<S>(tour: &Tour<S>, page: &mut Page, leaving: &Leaving) -> Finding {
    let bucket = &leaving.bucket;
    let store: Option<&Store> = tour.world.store_at(&leaving.endpoint);
    let Some((store, snapshot)) = store.and_then(|store| Some((store, store.bucket(bucket)?))) else {
        return Finding::bad(format!("bucket {bucket} is gone"));
    };
    page.remark(format!("the store's owner looks into bucket {bucket}"));
    let objects = store.objects(bucket);
    let mut listing = Table::new(&["KEY", "SIZE"]);
    for (key, bytes) in &objects {
        listing.row([key.clone().into(), bytes.len().to_string().into()]);
    }
    page.lines(listing.lines(PAGE_WIDTH));
    page.gap();
    let tags = snapshot.tags.unwrap_or_default();
    let mut table = Table::new(&["TAG", "VALUE"]);
    for (tag, value) in &tags {
        table.row([tag.clone().into(), value.clone().into()]);
    }
    page.lines(table.lines(PAGE_WIDTH));
    let kept = objects.get(KEY).is_some_and(|bytes| bytes.as_ref() == greeting(&leaving.claim).as_bytes());
    let named = tags.get("broker.stowage.io/claim") == Some(&leaving.claim.to_string());
    if kept && named {
        Finding::good(format!("bucket {bucket} keeps its object and says whose it was"))
    } else {
        Finding::bad(format!("bucket {bucket} lost its object or its tags"))
    }
}

/// The claim that had lost the name was woken. That the name is free doesn't make the bucket its own: the tags on it
/// still name the claim that it was made for.
pub(super) fn loser_woken<S>(tour: &Tour<S>, page: &mut Page, conflict: &Conflict) -> Finding {
    let Conflict { holder, loser, bucket } = conflict;
    let Some(claim) = views::claim(&tour.world, loser) else {
        return Finding::bad(format!("{loser} is gone"));
    };
    show_conditions(page, &claim);
    let reason = views::ready(&claim).map(|ready| ready.reason.clone()).unwrap_or_default();
    match reason.as_str() {
        "Bound" => Finding::good(format!("{loser} has got bucket {bucket}")),
        "BucketExists" => Finding::good(format!(
            "the name {bucket} is free for {loser}, but the bucket there was made for {holder}: its data is not handed over"
        )),
        _ if lost_its_name(&claim) => Finding::bad(format!("{loser} still waits for {bucket}")),
        reason => Finding::bad(format!("{loser} is not Ready: {reason}")),
    }
}

/// Whether a claim made again under the same name may take over what it left behind.
pub(super) fn may_return<S>(tour: &Tour<S>, leaving: &Leaving) -> bool {
    let backends = views::backends(&tour.world);
    let backend = backends.iter().find(|backend| backend.name_any() == leaving.backend);
    backend.is_some_and(|backend| backend.spec.adoption_policy != AdoptionPolicy::Never)
}

/// Applies the deleted claim again, once nobody else waits for its name: the tags say that the bucket was its own.
pub(super) async fn bucket_returned<S: FnMut(&Step)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
    loser: Option<&ClaimRef>,
) -> Finding {
    let returning = &leaving.claim;
    if let Some(loser) = loser {
        if let Err(why) = delete(tour, page, loser).await {
            return Finding::bad(why);
        }
        settle(&tour.world).await;
    }
    let Some(document) = tour.documents.iter().find(|document| is_of(document, returning)) else {
        return Finding::bad(format!("{returning} is not among the manifests"));
    };
    page.command(format!("kubectl apply --server-side -f {}   # {returning} alone", document.file));
    if let Err(refusal) = apply(&tour.world.kube(), document).await {
        return Finding::bad(refusal.to_string());
    }
    page.line(applied_line(document));
    settle(&tour.world).await;
    page.gap();
    show_claims(tour, page);
    page.gap();
    let Some(claim) = views::claim(&tour.world, returning).filter(views::is_bound) else {
        return Finding::bad(format!("{returning} was not bound again"));
    };
    let found = match new_tenant(&tour.world, &claim) {
        Ok(tenant) => read_old_object(&tenant, page).await,
        Err(why) => return Finding::bad(why),
    };
    let adopted = claim.status.is_some_and(|status| status.bucket_origin == Some(BucketOrigin::Adopted));
    match (adopted, found) {
        (true, true) => Finding::good(format!(
            "bucket {} is Adopted: its tags name {returning}; the object is there, the key is a new one",
            leaving.bucket
        )),
        (false, _) => Finding::bad(format!("{returning} is bound, but not to the bucket that it left")),
        (_, false) => Finding::bad(format!("bucket {} came back without its object", leaving.bucket)),
    }
}

fn is_of(document: &Document, claim: &ClaimRef) -> bool {
    let metadata = &document.object.metadata;
    is_claim(document)
        && metadata.name.as_deref() == Some(&claim.name)
        && metadata.namespace.as_deref().unwrap_or("default") == claim.namespace
}
