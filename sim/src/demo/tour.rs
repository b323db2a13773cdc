//! The tour itself: which steps there are, in which order, and when it ends early.

use std::time::Instant;

use stowage_operator::api::{BucketClaim, ClaimRef};

use crate::world::{Document, Operator, World};

use super::millis_since;
use super::settle::settle;
use super::setup;
use super::step::{Finding, Page, Report, Step};
use super::tenant::Tenant;
use super::views::{self, is_bound, ready};
use super::{access, departure};

/// A tour under way.
pub(super) struct Tour<S> {
    pub(super) world: World,
    /// The manifests.
    pub(super) documents: Vec<Document>,
    /// Those with a connection Secret, once there are any.
    pub(super) tenants: Vec<Tenant>,
    /// Keeps the operator; it works in the background.
    _operator: Operator,
    steps: Vec<Step>,
    seen: S,
}

impl<S: FnMut(&Step)> Tour<S> {
    pub(super) fn new(mut world: World, documents: Vec<Document>, seen: S) -> Self {
        let operator = world.start_operator();
        Self { world, documents, tenants: Vec::new(), _operator: operator, steps: Vec::new(), seen }
    }

    /// Takes all steps that there is something to see for.
    pub(super) async fn take(mut self) -> Report {
        self.walk().await;
        settle(&self.world).await;
        let counters = self.world.effects.trace().counters();
        let (kubernetes_writes, s3_calls) = (counters.kubernetes_writes, counters.s3_calls);
        Report { steps: self.steps, kubernetes_writes, s3_calls, millis: 0 }
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
            self.step("claims-not-bound", "Claims that got no bucket, and why", setup::claims_not_bound).await;
        }
        if !self.step("connection-secret", "What a tenant gets", access::connection_secrets).await {
            return;
        }
        self.step("put-get-list", "The AWS SDK, with nothing but that Secret", access::put_get_list).await;
        self.step("neighbour-refused", "A neighbour's bucket is out of reach", access::neighbour_refused).await;
        self.step("administration-refused", "Tenants make and delete no buckets", access::administration_refused).await;
        self.depart().await;
        self.step("events", "What the events tell", setup::events).await;
    }

    /// One claim is deleted: the one whose name another waits for, if there is such a one.
    async fn depart(&mut self) {
        let conflict = self.conflict();
        let holder = conflict.as_ref().map(|conflict| &conflict.holder);
        let Some(leaving) = departure::leaving(self, holder) else { return };
        let body = async |tour: &mut Self, page: &mut Page| departure::claim_deleted(tour, page, &leaving).await;
        self.step("claim-deleted", "A claim is deleted", body).await;
        let body = async |tour: &mut Self, page: &mut Page| departure::old_key_refused(tour, page, &leaving).await;
        self.step("old-key-refused", "Its key has stopped working", body).await;
        let body = async |tour: &mut Self, page: &mut Page| departure::bucket_retained(tour, page, &leaving);
        self.step("bucket-retained", "Its bucket is still there", body).await;
        if let Some(conflict) = &conflict {
            let body = async |tour: &mut Self, page: &mut Page| departure::loser_woken(tour, page, conflict);
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

    /// Takes a step; tells whether it was as it should be.
    async fn step(
        &mut self,
        name: &'static str,
        title: &'static str,
        body: impl AsyncFnOnce(&mut Self, &mut Page) -> Finding,
    ) -> bool {
        let began = Instant::now();
        let mut page = Page::default();
        let Finding { ok, detail } = body(self, &mut page).await;
        let step = Step { name, title, ok, millis: millis_since(began), detail, page };
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
