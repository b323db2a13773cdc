//! The first half of the tour: manifests are applied, backends become ready, claims are bound, or not.

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use stowage_operator::api::{BucketClaim, NameTemplate};
use tokio::sync::mpsc;

use crate::world::{Document, apply};

use super::settle::settle;
use super::step::{Finding, Line, Page, Span, Step, Tone};
use super::text::PAGE_WIDTH;
use super::tour::{Conflict, Tour};
use super::views;

/// Name and heading of the first step.
pub(super) const APPLY: (&str, &str) = ("apply-manifests", "Manifests are applied");

/// Applies everything but the claims, in order. Claims come last, wherever they stand, as tools that know the order of
/// kinds have it; only then can it be shown what each of them brings about.
pub(super) async fn apply_manifests<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let client = tour.world.kube();
    let mut applied = 0;
    let mut file = "";
    for document in tour.documents.iter().filter(|document| !is_claim(document)) {
        if file != document.file {
            file = &document.file;
            page.command(format!("kubectl apply --server-side -f {file}"));
        }
        if let Err(refusal) = apply(&client, document).await {
            return Finding::bad(refusal.to_string());
        }
        page.line(applied_line(document));
        applied += 1;
    }
    let claims = tour.documents.len() - applied;
    Finding::good(format!("{applied} objects are applied; {claims} claims follow, once there is a store for them"))
}

/// Whether a document is a claim.
pub(super) fn is_claim(document: &Document) -> bool {
    document.object.types.as_ref().is_some_and(|types| types.kind == "BucketClaim")
}

/// As kubectl says it: `bucketclaim.broker.stowage.io/photos serverside-applied`.
pub(super) fn applied_line(document: &Document) -> String {
    let types = document.object.types.clone().unwrap_or_default();
    let group = types.api_version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{} serverside-applied", types.kind.to_lowercase(), document.object.name_any())
}

/// Shows the backends once they are probed.
pub(super) async fn backends_ready<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    settle(&tour.world).await;
    let backends = views::backends(&tour.world);
    page.command("kubectl get s3backends");
    page.lines(views::backend_table(&tour.world, &backends).lines(PAGE_WIDTH));
    let mut said = Vec::new();
    let mut ready = 0;
    for backend in &backends {
        let conditions = backend.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let Some(condition) = views::ready_of(conditions) else { continue };
        ready += usize::from(condition.status == "True");
        said.push(format!("S3Backend {}: {}, {}", backend.name_any(), condition.reason, condition.message));
    }
    if backends.is_empty() {
        return Finding::bad("the manifests hold no S3Backend that claims could be bound on");
    }
    // One that is not ready is a sight too, as long as there is another to go on with.
    Finding { ok: ready > 0, detail: said.join("; ") }
}

/// Applies the claims one after the other, each once the one before has come to rest: applied at once, which of two
/// claims to one bucket gets it would be a race. Shows how their table changes.
pub(super) async fn claims_bound<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    if !tour.documents.iter().any(is_claim) {
        return Finding::bad("the manifests hold no BucketClaim");
    }
    page.remark("one claim after the other, so that it is no race who is first");
    let mut changes = watch_claims(tour);
    let mut rows: Vec<Line> = Vec::new();
    let client = tour.world.kube();
    let mut file = "";
    for document in tour.documents.iter().filter(|document| is_claim(document)) {
        if file != document.file {
            file = &document.file;
            page.command(format!("kubectl apply --server-side -f {file}"));
        }
        if let Err(refusal) = apply(&client, document).await {
            return Finding::bad(refusal.to_string());
        }
        page.line(applied_line(document));
        settle(&tour.world).await;
        collect(&mut changes, &mut rows);
    }
    page.gap();
    page.command("kubectl get bucketclaims -A --watch");
    page.lines(table_of(rows));
    verdict(tour)
}

/// The rows that a `kubectl get --watch` prints from now on.
fn watch_claims<S>(tour: &Tour<S>) -> mpsc::UnboundedReceiver<Line> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let api: Api<BucketClaim> = Api::all(tour.world.kube());
    let clock = tour.world.clock.clone();
    tokio::spawn(async move {
        let mut changes = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().touched_objects());
        while let Some(change) = changes.next().await {
            // Errors are retried by the watcher; it ends when nobody listens any more.
            if change.is_ok_and(|claim| sender.send(views::claim_row(&clock, &claim)).is_err()) {
                return;
            }
        }
    });
    receiver
}

/// Adds the row of each change that can be seen in the table.
fn collect(changes: &mut mpsc::UnboundedReceiver<Line>, rows: &mut Vec<Line>) {
    while let Ok(row) = changes.try_recv() {
        let age = row.len() - 1;
        let same = |other: &&Line| other[..2] == row[..2];
        if rows.iter().rev().find(same).is_none_or(|before| before[..age] != row[..age]) {
            rows.push(row);
        }
    }
}

/// Rows as a table of claims.
fn table_of(rows: Vec<Line>) -> Vec<Line> {
    let mut table = views::claim_table();
    for row in rows {
        table.row(row);
    }
    table.lines(PAGE_WIDTH)
}

fn verdict<S>(tour: &Tour<S>) -> Finding {
    let claims = views::claims(&tour.world);
    let (bound, unbound): (Vec<&BucketClaim>, Vec<&BucketClaim>) = claims.iter().partition(|c| views::is_bound(c));
    if bound.is_empty() {
        let reasons: Vec<String> = unbound.into_iter().map(why).collect();
        return Finding::bad(format!("no claim was bound: {}", reasons.join("; ")));
    }
    let detail = match (bound.len(), unbound.len()) {
        (1, 0) => "the claim is Bound".to_owned(),
        (bound, 0) => format!("all {bound} claims are Bound"),
        (bound, unbound) => format!("{bound} of {} claims are Bound", bound + unbound),
    };
    Finding::good(detail)
}

/// Why a claim isn't bound, from its `Ready` condition.
fn why(claim: &BucketClaim) -> String {
    let place = views::place(claim);
    match views::ready(claim) {
        Some(ready) => format!("{place}: {}, {}", ready.reason, ready.message),
        None => format!("{place}: the operator has not looked at it"),
    }
}

/// The bucket that a claim asks for, by its own words or by its backend's template.
pub(super) fn wanted_bucket(world: &crate::world::World, claim: &BucketClaim) -> Option<String> {
    if let Some(name) = &claim.spec.bucket_name {
        return Some(name.clone());
    }
    let backends = views::backends(world);
    let backend = backends.iter().find(|backend| backend.name_any() == claim.spec.backend_ref.name)?;
    let template = NameTemplate::parse(&backend.spec.bucket_name_template).ok()?;
    let at = views::place(claim);
    template.render(&at.namespace, &at.name).ok().map(|name| name.to_string())
}

/// The claim that came too late: its condition, and that there is no Secret.
pub(super) fn name_conflict<S>(tour: &Tour<S>, page: &mut Page, conflict: &Conflict) -> Finding {
    let Conflict { holder, loser, bucket } = conflict;
    let Some(claim) = views::claim(&tour.world, loser) else {
        return Finding::bad(format!("{loser} is gone"));
    };
    show_conditions(page, &claim);
    let secret = secret_name(&claim);
    let found = views::secret(&tour.world, &loser.namespace, &secret).is_some();
    page.gap();
    page.command(format!("kubectl get secret {secret} -n {}", loser.namespace));
    if found {
        return Finding::bad(format!("{loser} has a Secret {secret}, though bucket {bucket} belongs to {holder}"));
    }
    page.line(Span::new(Tone::Bad, format!("Error from server (NotFound): secrets \"{secret}\" not found")));
    Finding::good(format!("bucket {bucket} belongs to {holder}; {loser} waits, without bucket, credential or Secret"))
}

/// Name of the connection Secret that a claim asks for.
fn secret_name(claim: &BucketClaim) -> String {
    let asked = claim.spec.write_connection_secret_to_ref.as_ref().and_then(|to| to.name.clone());
    asked.unwrap_or_else(|| format!("{}-s3", claim.name_any()))
}

/// The conditions of a claim.
pub(super) fn show_conditions(page: &mut Page, claim: &BucketClaim) {
    let at = views::place(claim);
    page.command(format!("kubectl describe bucketclaim {} -n {}", at.name, at.namespace));
    let conditions = claim.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    page.lines(views::condition_table(conditions).lines(PAGE_WIDTH));
}

/// The other claims without a bucket. An answer that stands is all that can be wished for; one that is still being
/// worked on after all that time is not.
pub(super) async fn claims_not_bound<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let claims: Vec<BucketClaim> = tour.others_unbound().collect();
    let mut ok = true;
    for (index, claim) in claims.iter().enumerate() {
        if index > 0 {
            page.gap();
        }
        show_conditions(page, claim);
        let conditions = claim.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        ok &= !conditions.is_empty() && !conditions.iter().any(|condition| condition.type_ == "Reconciling");
    }
    let reasons: Vec<String> = claims.iter().map(why).collect();
    Finding { ok, detail: format!("not bound: {}", reasons.join("; ")) }
}

/// The events of all namespaces.
pub(super) async fn events<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let (table, count) = views::event_table(&tour.world);
    page.command("kubectl get events -A");
    page.lines(table.lines(PAGE_WIDTH));
    Finding { ok: count > 0, detail: format!("{count} events, one for each transition") }
}
