//! The last part of the tour: a claim is deleted, its bucket stays.

use kube::api::{Api, DeleteParams};
use stowage_operator::api::{BucketClaim, ClaimRef, DeletionPolicy, Endpoint};

use crate::store::Store;

use super::access::{KEY, greeting, try_old_key};
use super::settle::settle;
use super::setup::{collect, show_conditions, table_of, watch_claims};
use super::step::{Finding, Page, Step};
use super::table::Table;
use super::text::PAGE_WIDTH;
use super::tour::{Conflict, Tour, lost_its_name};
use super::views;

/// The claim that is about to go, and what must outlive it.
pub(super) struct Leaving {
    claim: ClaimRef,
    bucket: String,
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
        endpoint: Endpoint::parse(&status.backend.as_ref()?.endpoint).ok()?,
    })
}

/// Deletes the claim, and shows how the table changes.
pub(super) async fn claim_deleted<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page, leaving: &Leaving) -> Finding {
    let ClaimRef { namespace, name } = &leaving.claim;
    let mut changes = watch_claims(tour);
    let mut rows = Vec::new();
    settle(&tour.world).await;
    collect(tour, &mut changes, &mut rows);
    page.command(format!("kubectl delete bucketclaim {name} -n {namespace}"));
    let api: Api<BucketClaim> = Api::namespaced(tour.world.kube(), namespace);
    if let Err(error) = api.delete(name, &DeleteParams::default()).await {
        return Finding::bad(format!("{} can't be deleted: {error}", leaving.claim));
    }
    settle(&tour.world).await;
    collect(tour, &mut changes, &mut rows);
    page.line(format!("bucketclaim.broker.stowage.io \"{name}\" deleted"));
    page.gap();
    page.command("kubectl get bucketclaims -A --watch");
    page.lines(table_of(rows));
    page.gap();
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
    page.remark("with the credentials of the store's owner");
    page.command(format!("aws s3api list-objects-v2 --bucket {bucket}"));
    let objects = store.objects(bucket);
    let mut listing = Table::new(&["KEY", "SIZE"]);
    for (key, bytes) in &objects {
        listing.row([key.clone().into(), bytes.len().to_string().into()]);
    }
    page.lines(listing.lines(PAGE_WIDTH));
    page.gap();
    page.command(format!("aws s3api get-bucket-tagging --bucket {bucket}"));
    let tags = snapshot.tags.unwrap_or_default();
    let mut table = Table::new(&["TAG", "VALUE"]);
    for (tag, value) in &tags {
        table.row([tag.clone().into(), value.clone().into()]);
    }
    page.lines(table.lines(PAGE_WIDTH));
    page.gap();
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
    page.gap();
    let reason = views::ready(&claim).map(|ready| ready.reason.clone()).unwrap_or_default();
    match reason.as_str() {
        "Bound" => Finding::good(format!("{loser} has got bucket {bucket}")),
        "BucketExists" => Finding::good(format!(
            "nobody holds the name {bucket} any more, but the bucket was {holder}'s and its data is not given to {loser}"
        )),
        _ if lost_its_name(&claim) => Finding::bad(format!("{loser} still waits for {bucket}")),
        reason => Finding::bad(format!("{loser} is not Ready: {reason}")),
    }
}
