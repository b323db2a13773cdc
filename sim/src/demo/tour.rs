//! The tour itself: which steps there are, in which order, and when it ends early.

use std::time::Instant;

use stowage_operator::api::{BucketClaim, ClaimRef};
use stowage_world::{Document, Operator, World};

use super::millis_since;
use super::removal::End;
use super::settle::settle;
use super::setup;
use super::step::{DemoReport, DemoStep, Finding, Page};
use super::tenant::Tenant;
use super::views::{self, is_bound, ready};
use super::{access, departure, removal, rotation, sharing};

/// A tour under way.
pub(super) struct Tour<S> {
    pub(super) world: World,
    /// The manifests.
    pub(super) documents: Vec<Document>,
    /// Those with a connection Secret, once there are any.
    pub(super) tenants: Vec<Tenant>,
    /// Keeps the operator; it works in the background.
    _operator: Operator,
    steps: Vec<DemoStep>,
    seen: S,
}

impl<S: FnMut(&DemoStep)> Tour<S> {
    pub(super) fn new(mut world: World, documents: Vec<Document>, seen: S) -> Self {
        let operator = world.start_operator();
        Self { world, documents, tenants: Vec::new(), _operator: operator, steps: Vec::new(), seen }
    }

    /// Takes all steps that there is something to see for.
    pub(super) async fn take(mut self) -> DemoReport {
        self.walk().await;
        settle(&self.world).await;
        let counters = self.world.effects.trace().counters();
        let (kubernetes_writes, s3_calls) = (counters.kubernetes_writes, counters.s3_calls);
        DemoReport { steps: self.steps, kubernetes_writes, s3_calls, millis: 0 }
    }

    async fn walk(&mut self) {
        let (name, title) = setup::APPLY;
        if !self.step(name, title, setup::apply_manifests).await
            || !self.step("backends-ready", "The operator looks at the stores", setup::backends_ready).await
            || !self.step("claims-bound", "Claims become buckets", setup::claims_bound).await
        {
            return;
        }
        if let Some(conflict) = self.conflict() {
            let body = async |tour: &mut Self, page: &mut Page| setup::name_conflict(tour, page, &conflict);
            self.step("name-conflict", "Two claims, one bucket name", body).await;
        }
        if self.others_unbound().next().is_some() {
            let body = async |tour: &mut Self, page: &mut Page| setup::claims_not_bound(tour, page);
            self.step("claims-not-bound", "Claims that got no bucket", body).await;
        }
        if self.access().await {
            self.rotate().await;
            self.share().await;
            self.depart().await;
            self.remove().await;
            self.step("events", "Events", async |tour: &mut Self, _: &mut Page| views::all_told(&tour.world)).await;
        }
    }

    /// What tenants can do and what not; tells whether there are any.
    async fn access(&mut self) -> bool {
        let body = async |tour: &mut Self, _: &mut Page| access::connection_secrets(tour);
        if !self.step("connection-secret", "What a tenant gets", body).await {
            return false;
        }
        self.step("put-get-list", "The AWS SDK, with nothing but that Secret", access::put_get_list).await;
        let body = async |tour: &mut Self, _: &mut Page| access::neighbour_refused(tour).await;
        self.step("neighbour-refused", "A neighbour's bucket is out of reach", body).await;
        let body = async |tour: &mut Self, _: &mut Page| access::administration_refused(tour).await;
        self.step("administration-refused", "Tenants make and delete no buckets", body).await;
        true
    }

    /// A key is replaced, if there is a claim whose overlap can be sat out.
    async fn rotate(&mut self) {
        let Some(rotating) = rotation::rotating(self) else { return };
        let body = async |tour: &mut Self, page: &mut Page| rotation::rotation(tour, page, &rotating).await;
        self.step("rotation", "A key is replaced under a tenant that never stops", body).await;
    }

    /// Another namespace asks for a bucket, if there is one.
    async fn share(&mut self) {
        let Some(sharing) = sharing::sharing(self) else { return };
        let body = async |tour: &mut Self, page: &mut Page| sharing::asked(tour, page, &sharing).await;
        if !self.step("access-not-shared", "A neighbour asks for a bucket", body).await {
            return;
        }
        let body = async |tour: &mut Self, page: &mut Page| sharing::shared(tour, page, &sharing).await;
        if self.step("access-shared", "Its owner lets them read", body).await {
            let body = async |tour: &mut Self, page: &mut Page| sharing::withdrawn(tour, page, &sharing).await;
            self.step("access-withdrawn", "And lets them no more", body).await;
        }
    }

    /// A claim with the policy `Retain` is deleted: the one whose name another waits for, if there
    /// is such a one.
    async fn depart(&mut self) {
        let conflict = self.conflict();
        let holder = conflict.as_ref().map(|conflict| &conflict.holder);
        let Some(leaving) = departure::retaining(self, holder) else { return };
        let body = async |tour: &mut Self, page: &mut Page| departure::claim_deleted(tour, page, &leaving).await;
        self.step("claim-deleted", "A claim is deleted", body).await;
        let body = async |tour: &mut Self, _: &mut Page| departure::old_key_refused(tour, &leaving).await;
        self.step("old-key-refused", "Its key has stopped working", body).await;
        let body = async |tour: &mut Self, _: &mut Page| departure::bucket_retained(tour, &leaving);
        self.step("bucket-retained", "Its bucket is still there", body).await;
        if let Some(conflict) = &conflict {
            let body = async |tour: &mut Self, _: &mut Page| departure::loser_woken(tour, conflict);
            self.step("loser-woken", "The claim that had lost is tried again", body).await;
        }
        if departure::may_return(self, &leaving) {
            let loser = conflict.map(|conflict| conflict.loser);
            let body = async |tour: &mut Self, page: &mut Page| {
                departure::bucket_returned(tour, page, &leaving, loser.as_ref()).await
            };
            self.step("bucket-returned", "The claim comes back, and finds its bucket", body).await;
        }
    }

    /// Claims with the policy `Delete` are deleted, one of each kind that there is.
    async fn remove(&mut self) {
        if let Some(leaving) = removal::ending(self, End::OnlyEmpty) {
            let body = async |tour: &mut Self, page: &mut Page| removal::deletion_refused(tour, page, &leaving).await;
            self.step("deletion-refused", "Delete, and the bucket is not empty", body).await;
            let body = async |tour: &mut Self, page: &mut Page| removal::let_go(tour, page, &leaving).await;
            self.step("deletion-let-go", "The way out that it names", body).await;
        }
        if let Some(leaving) = removal::ending(self, End::Emptied) {
            let body = async |tour: &mut Self, page: &mut Page| removal::forced_deletion(tour, page, &leaving).await;
            self.step("deletion-forced", "Delete with forceDelete", body).await;
        }
        if let Some(leaving) = removal::ending(self, End::Kept) {
            let body = async |tour: &mut Self, page: &mut Page| removal::adopted_kept(tour, page, &leaving).await;
            self.step("adopted-kept", "The same, for a bucket that was there before", body).await;
        }
    }

    /// Takes a step; tells whether it was as it should be.
    async fn step(
        &mut self,
        name: &'static str,
        title: &'static str,
        body: impl AsyncFnOnce(&mut Self, &mut Page) -> Finding,
    ) -> bool {
        let began = Instant::now();
        let mut page = Page::default();
        let finding = body(self, &mut page).await;
        let ok = finding.is_ok();
        let detail = finding.unwrap_or_else(|why| why);
        let step = DemoStep { name, title, ok, millis: millis_since(began), detail, page };
        (self.seen)(&step);
        self.steps.push(step);
        ok
    }

    /// The first claim that lost its name to another, and that other one.
    fn conflict(&self) -> Option<Conflict> {
        let claims = views::claims(&self.world);
        let mut losers = claims.iter().filter(|claim| lost_its_name(claim));
        losers.find_map(|loser| {
            let wanted = setup::wanted_bucket(&self.world, loser)?;
            let bucket_of = |claim: &BucketClaim| claim.status.as_ref()?.bucket_name.clone();
            let holder = claims.iter().find(|claim| is_bound(claim) && bucket_of(claim).as_ref() == Some(&wanted))?;
            Some(Conflict { holder: views::place(holder), loser: views::place(loser), bucket: wanted })
        })
    }

    /// Claims that are not bound, those aside that lost their name.
    pub(super) fn others_unbound(&self) -> impl Iterator<Item = BucketClaim> {
        views::claims(&self.world).into_iter().filter(|claim| !is_bound(claim) && !lost_its_name(claim))
    }
}

/// Whether a claim's name is held by another.
pub(super) fn lost_its_name(claim: &BucketClaim) -> bool {
    ready(claim).is_some_and(|ready| ready.reason == "BucketNameConflict")
}

/// Two claims that came to the same bucket.
pub(super) struct Conflict {
    /// The one that has it.
    pub(super) holder: ClaimRef,
    /// The one that has not.
    pub(super) loser: ClaimRef,
    /// The bucket.
    pub(super) bucket: String,
}
