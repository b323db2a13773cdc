//! Deletion of claims with `deletionPolicy: Delete`: which buckets are deleted, which claims wait,
//! and which buckets are kept.

use futures::StreamExt;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use s3_sim::BucketSnapshot;
use serde_json::json;
use stowage_operator::api::{BucketClaim, BucketOrigin, ClaimRef, DeletionPolicy, Phase};
use stowage_world::World;
use terminal::Table;
use tokio::sync::mpsc;

use super::departure::Leaving;
use super::kubectl;
use super::settle::settle;
use super::step::{DemoStep, Finding, Page};
use super::tenant::Tenant;
use super::text::PAGE_WIDTH;
use super::tour::Tour;
use super::views;

/// Number of objects that the operator deletes from a bucket in one pass: few, so that the tour can
/// show the progress.
pub(super) const PURGE_SLICE: u32 = 10;

/// Number of objects that the tenant creates for the forced deletion. Each is overwritten once, and
/// every third is deleted.
const OBJECTS: usize = 9;

/// The possible outcomes for a bucket with `deletionPolicy: Delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Created for the claim, without `forceDelete`: not deleted unless it is empty.
    OnlyEmpty,
    /// Created for the claim, with `forceDelete`: deleted with its content.
    Emptied,
    /// Adopted: never deleted.
    Kept,
}

/// Returns the first bound claim with this outcome.
pub(super) fn ending<S>(tour: &Tour<S>, end: End) -> Option<Leaving> {
    let ends_so = |claim: &BucketClaim| {
        let adopted = claim.status.as_ref().is_some_and(|status| status.bucket_origin == Some(BucketOrigin::Adopted));
        let its_end = match (adopted, claim.spec.force_delete) {
            (true, _) => End::Kept,
            (false, true) => End::Emptied,
            (false, false) => End::OnlyEmpty,
        };
        claim.spec.deletion_policy == DeletionPolicy::Delete.into() && its_end == end
    };
    let claims = views::claims(&tour.world);
    claims.iter().filter(|claim| ends_so(claim)).find_map(Leaving::of)
}

/// Shows that a claim isn't deleted while its bucket isn't empty.
pub(super) async fn deletion_refused<S: FnMut(&DemoStep)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
) -> Finding {
    kubectl::delete(&tour.world, page, &leaving.claim).await?;
    settle(&tour.world).await;
    let gone = || format!("{} is gone, though {} was not empty", leaving.claim, leaving.bucket);
    let claim = views::claim(&tour.world, &leaving.claim).ok_or_else(gone)?;
    page.lines(views::readiness_table(&[&claim]).lines(PAGE_WIDTH));
    let reason = views::ready(&claim).map(|ready| ready.reason.clone()).unwrap_or_default();
    if views::phase(&claim) != Some(Phase::Deleting) || reason != "BucketNotEmpty" {
        return Err(format!("{} waits with {reason}", leaving.claim));
    }
    Ok(format!("{} holds objects, so its claim waits and says how to go on", leaving.bucket))
}

/// Follows the advice of the condition's message: the claim is deleted, and the bucket stays.
pub(super) async fn let_go<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page, leaving: &Leaving) -> Finding {
    let spec = json!({"deletionPolicy": "Retain", "forceDelete": false});
    kubectl::patch_spec(&tour.world, page, &leaving.claim, &spec).await?;
    settle(&tour.world).await;
    is_gone(tour, leaving)?;
    let left: Vec<String> = leaving.store(tour)?.objects(&leaving.bucket).into_keys().collect();
    match left.is_empty() {
        true => Err(format!("bucket {} lost what was in it", leaving.bucket)),
        false => Ok(format!("{} is gone, {} keeps {}", leaving.claim, leaving.bucket, left.join(", "))),
    }
}

/// Shows that a bucket with versions, delete markers and uploads is emptied and deleted.
pub(super) async fn forced_deletion<S: FnMut(&DemoStep)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
) -> Finding {
    let tenant = tour.tenants.iter().find(|tenant| tenant.claim == leaving.claim);
    fill(tenant.ok_or_else(|| format!("{} never had a key", leaving.claim))?).await?;
    let store = leaving.store(tour)?;
    let before = store.bucket(&leaving.bucket).ok_or_else(|| format!("there is no bucket {}", leaving.bucket))?;
    page.lines(content_table(&leaving.bucket, &before).lines(PAGE_WIDTH));
    let world = &tour.world;
    let told = views::events_on(world, &leaving.claim).len();
    let mut progress = watch_progress(world, &leaving.claim);
    kubectl::delete(world, page, &leaving.claim).await?;
    settle(world).await;
    let mut counts = Vec::new();
    while let Ok(count) = progress.try_recv() {
        counts.push(count.to_string());
    }
    counts.dedup();
    if !counts.is_empty() {
        page.remark(format!("status.purge.objectsDeleted, in slices of {PURGE_SLICE}: {}", counts.join(", ")));
    }
    show_news(world, page, &leaving.claim, told);
    is_gone(tour, leaving)?;
    if store.bucket(&leaving.bucket).is_some() {
        return Err(format!("bucket {} is still there", leaving.bucket));
    }
    let all = before.versions + before.delete_markers + before.uploads;
    Ok(format!("{} is gone, and {} with the {all} versions, markers and uploads in it", leaving.claim, leaving.bucket))
}

/// Has the tenant fill its bucket with objects, overwrite and delete some (in a versioned bucket
/// this leaves versions and delete markers), and begin an upload that is never completed.
async fn fill(tenant: &Tenant) -> Result<(), String> {
    let failed = |refused| format!("{} can't fill its bucket: {refused}", tenant.claim);
    let bucket = &tenant.bucket;
    for number in 0..OBJECTS {
        let key = format!("scene-{number}.raw");
        tenant.put(bucket, &key, "first take").await.map_err(failed)?;
        tenant.put(bucket, &key, "second take").await.map_err(failed)?;
        if number % 3 == 0 {
            tenant.delete(bucket, &key).await.map_err(failed)?;
        }
    }
    tenant.start_upload(bucket, "never-finished.raw").await.map_err(failed)
}

fn content_table(bucket: &str, content: &BucketSnapshot) -> Table {
    let mut table = Table::new(&["BUCKET", "VERSIONING", "VERSIONS", "DELETE MARKERS", "UNFINISHED UPLOADS"]);
    let counts = [content.versions, content.delete_markers, content.uploads].map(|count| count.to_string().into());
    table.row([bucket.into(), format!("{:?}", content.versioning).into()].into_iter().chain(counts));
    table
}

/// Returns the values of `status.purge` of a claim from now on.
fn watch_progress(world: &World, claim: &ClaimRef) -> mpsc::UnboundedReceiver<i64> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let api: Api<BucketClaim> = Api::namespaced(world.kube(), &claim.namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", claim.name));
    tokio::spawn(async move {
        let mut changes = std::pin::pin!(watcher(api, only).default_backoff().touched_objects());
        while let Some(change) = changes.next().await {
            let purge = change.ok().and_then(|claim| claim.status?.purge);
            // Errors are retried by the watcher. It ends once the receiver is dropped.
            if purge.map_or(sender.is_closed(), |purge| sender.send(purge.objects_deleted).is_err()) {
                return;
            }
        }
    });
    receiver
}

/// Shows that a bucket that is older than its claim is kept, whatever the policy.
pub(super) async fn adopted_kept<S: FnMut(&DemoStep)>(
    tour: &mut Tour<S>,
    page: &mut Page,
    leaving: &Leaving,
) -> Finding {
    let (world, before) = (&tour.world, leaving.store(tour)?.objects(&leaving.bucket));
    let told = views::events_on(world, &leaving.claim).len();
    kubectl::delete(world, page, &leaving.claim).await?;
    settle(world).await;
    show_news(world, page, &leaving.claim, told);
    is_gone(tour, leaving)?;
    let after = leaving.store(tour)?.objects(&leaving.bucket);
    if leaving.store(tour)?.bucket(&leaving.bucket).is_none() || after != before {
        return Err(format!("bucket {} lost what was in it", leaving.bucket));
    }
    let keys: Vec<String> = after.into_keys().collect();
    Ok(format!("{} keeps all that was in it: {}", leaving.bucket, keys.join(", ")))
}

/// Shows the events of a claim, without the first `before` ones.
fn show_news(world: &World, page: &mut Page, claim: &ClaimRef, before: usize) {
    let events = views::events_on(world, claim);
    page.lines(views::event_table(events.get(before..).unwrap_or_default()).lines(PAGE_WIDTH));
}

fn is_gone<S>(tour: &Tour<S>, leaving: &Leaving) -> Result<(), String> {
    match views::claim(&tour.world, &leaving.claim) {
        None => Ok(()),
        Some(claim) => {
            let ready = views::ready(&claim).map(|ready| format!("{}, {}", ready.reason, ready.message));
            Err(format!("{} is still there: {}", leaving.claim, ready.unwrap_or_default()))
        }
    }
}
