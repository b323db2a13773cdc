//! A tour under way: what it looks at, and the steps that it has taken.

use std::time::Instant;

use stowage_world::{Document, Operator, World};

use super::settle::settle;
use super::step::{DemoReport, DemoStep, Finding, Page, millis_since};
use super::tenant::Tenant;

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

    /// Takes a step; tells whether it was as it should be.
    pub(super) async fn step(
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

    /// What has come of it, once the world is at rest.
    pub(super) async fn report(self) -> DemoReport {
        settle(&self.world).await;
        let counters = self.world.effects.trace().counters();
        let (kubernetes_writes, s3_calls) = (counters.kubernetes_writes, counters.s3_calls);
        DemoReport { steps: self.steps, kubernetes_writes, s3_calls, millis: 0 }
    }
}
