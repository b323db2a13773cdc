//! A tour in progress: its world and the steps so far.

use std::time::Instant;

use stowage_world::{Document, Operator, World};

use super::settle::settle;
use super::step::{DemoReport, DemoStep, Finding, Page, millis_since};
use super::tenant::Tenant;

/// A tour in progress.
pub(super) struct Tour<S> {
    pub(super) world: World,
    /// The manifests.
    pub(super) documents: Vec<Document>,
    /// The tenants, once claims have connection Secrets.
    pub(super) tenants: Vec<Tenant>,
    /// Keeps the operator alive; it works in the background.
    _operator: Operator,
    steps: Vec<DemoStep>,
    seen: S,
}

impl<S: FnMut(&DemoStep)> Tour<S> {
    pub(super) fn new(mut world: World, documents: Vec<Document>, seen: S) -> Self {
        let operator = world.start_operator();
        Self { world, documents, tenants: Vec::new(), _operator: operator, steps: Vec::new(), seen }
    }

    /// Takes a step. Returns true if it succeeded.
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

    /// Waits until the world is idle and returns the report.
    pub(super) async fn report(self) -> DemoReport {
        settle(&self.world).await;
        let counters = self.world.effects.trace().counters();
        let (kubernetes_writes, s3_calls) = (counters.kubernetes_writes, counters.s3_calls);
        DemoReport { steps: self.steps, kubernetes_writes, s3_calls, millis: 0 }
    }
}
