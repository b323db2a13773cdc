//! The sequence of the tour: its steps, their order, and the conditions to end early.

use super::conflict::{Conflict, others_unbound};
use super::removal::End;
use super::step::{DemoReport, DemoStep, Page};
use super::tour::Tour;
use super::{access, departure, removal, rotation, setup, sharing, views};

/// Takes all steps that apply.
pub(super) async fn take<S: FnMut(&DemoStep)>(mut tour: Tour<S>) -> DemoReport {
    walk(&mut tour).await;
    tour.report().await
}

async fn walk<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) {
    let (name, title) = setup::APPLY;
    if !tour.step(name, title, setup::apply_manifests).await
        || !tour.step("backends-ready", "The operator looks at the stores", setup::backends_ready).await
        || !tour.step("claims-bound", "Claims become buckets", setup::claims_bound).await
    {
        return;
    }
    if let Some(conflict) = Conflict::first(&tour.world) {
        let body = async |tour: &mut Tour<S>, page: &mut Page| setup::name_conflict(tour, page, &conflict);
        tour.step("name-conflict", "Two claims, one bucket name", body).await;
    }
    if others_unbound(&tour.world).next().is_some() {
        let body = async |tour: &mut Tour<S>, page: &mut Page| setup::claims_not_bound(tour, page);
        tour.step("claims-not-bound", "Claims that got no bucket", body).await;
    }
    if try_keys(tour).await {
        rotate(tour).await;
        share(tour).await;
        depart(tour).await;
        remove(tour).await;
        tour.step("events", "Events", async |tour: &mut Tour<S>, _: &mut Page| views::all_told(&tour.world)).await;
    }
}

/// Shows what tenants can do and what they can't. Returns true if there are any tenants.
async fn try_keys<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) -> bool {
    let body = async |tour: &mut Tour<S>, _: &mut Page| access::connection_secrets(tour);
    if !tour.step("connection-secret", "What a tenant gets", body).await {
        return false;
    }
    tour.step("put-get-list", "The AWS SDK, with nothing but that Secret", access::put_get_list).await;
    let body = async |tour: &mut Tour<S>, _: &mut Page| access::neighbour_refused(tour).await;
    tour.step("neighbour-refused", "A neighbour's bucket is out of reach", body).await;
    let body = async |tour: &mut Tour<S>, _: &mut Page| access::administration_refused(tour).await;
    tour.step("administration-refused", "Tenants make and delete no buckets", body).await;
    true
}

/// Rotates a key, if a claim has a suitable overlap.
async fn rotate<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) {
    let Some(rotating) = rotation::rotating(tour) else { return };
    let body = async |tour: &mut Tour<S>, page: &mut Page| rotation::rotation(tour, page, &rotating).await;
    tour.step("rotation", "A key is replaced under a tenant that never stops", body).await;
}

/// Requests access to a bucket from another namespace, if there is one.
async fn share<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) {
    let Some(sharing) = sharing::sharing(tour) else { return };
    let body = async |tour: &mut Tour<S>, page: &mut Page| sharing::asked(tour, page, &sharing).await;
    if !tour.step("access-not-shared", "A neighbour asks for a bucket", body).await {
        return;
    }
    let body = async |tour: &mut Tour<S>, page: &mut Page| sharing::shared(tour, page, &sharing).await;
    if tour.step("access-shared", "Its owner lets them read", body).await {
        let body = async |tour: &mut Tour<S>, page: &mut Page| sharing::withdrawn(tour, page, &sharing).await;
        tour.step("access-withdrawn", "And lets them no more", body).await;
    }
}

/// Deletes a claim with the policy `Retain`, preferably one whose bucket another claim waits for.
async fn depart<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) {
    let conflict = Conflict::first(&tour.world);
    let holder = conflict.as_ref().map(|conflict| &conflict.holder);
    let Some(leaving) = departure::retaining(tour, holder) else { return };
    let body = async |tour: &mut Tour<S>, page: &mut Page| departure::claim_deleted(tour, page, &leaving).await;
    tour.step("claim-deleted", "A claim is deleted", body).await;
    let body = async |tour: &mut Tour<S>, _: &mut Page| departure::old_key_refused(tour, &leaving).await;
    tour.step("old-key-refused", "Its key has stopped working", body).await;
    let body = async |tour: &mut Tour<S>, _: &mut Page| departure::bucket_retained(tour, &leaving);
    tour.step("bucket-retained", "Its bucket is still there", body).await;
    if let Some(conflict) = &conflict {
        let body = async |tour: &mut Tour<S>, _: &mut Page| departure::loser_woken(tour, conflict);
        tour.step("loser-woken", "The claim that had lost is tried again", body).await;
    }
    if departure::may_return(tour, &leaving) {
        let loser = conflict.map(|conflict| conflict.loser);
        let body = async |tour: &mut Tour<S>, page: &mut Page| {
            departure::bucket_returned(tour, page, &leaving, loser.as_ref()).await
        };
        tour.step("bucket-returned", "The claim comes back, and finds its bucket", body).await;
    }
}

/// Deletes claims with the policy `Delete`, one for each possible outcome.
async fn remove<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) {
    if let Some(leaving) = removal::ending(tour, End::OnlyEmpty) {
        let body = async |tour: &mut Tour<S>, page: &mut Page| removal::deletion_refused(tour, page, &leaving).await;
        tour.step("deletion-refused", "Delete, and the bucket is not empty", body).await;
        let body = async |tour: &mut Tour<S>, page: &mut Page| removal::let_go(tour, page, &leaving).await;
        tour.step("deletion-let-go", "The way out that it names", body).await;
    }
    if let Some(leaving) = removal::ending(tour, End::Emptied) {
        let body = async |tour: &mut Tour<S>, page: &mut Page| removal::forced_deletion(tour, page, &leaving).await;
        tour.step("deletion-forced", "Delete with forceDelete", body).await;
    }
    if let Some(leaving) = removal::ending(tour, End::Kept) {
        let body = async |tour: &mut Tour<S>, page: &mut Page| removal::adopted_kept(tour, page, &leaving).await;
        tour.step("adopted-kept", "The same, for a bucket that was there before", body).await;
    }
}
