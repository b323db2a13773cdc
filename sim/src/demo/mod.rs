//! The guided tour (spec §5, `stowage-sim demo`): a simulated world, manifests applied to it, and
//! the output that a user would see.
//!
//! [`run`] takes the tour and returns its steps as data; [`text`] and [`json`] render them. The
//! tour looks at the world only as people can: tenants through the Kubernetes API and the gateway,
//! administrators into the operator's namespace, the store's owner into the store.

mod access;
mod conflict;
mod departure;
pub mod json;
mod kubectl;
mod removal;
mod rotation;
mod settle;
mod setup;
mod sharing;
mod source;
mod step;
mod tenant;
pub mod text;
mod tour;
mod views;
mod walk;

use std::time::Instant;

use removal::PURGE_SLICE;
pub use source::Source;
use step::millis_since;
pub use step::{DemoReport, DemoStep, Finding, Page};
use stowage_world::determinism::run_seeded;
use stowage_world::{Accesses, BackendStore, Document, Options, World};
use tour::Tour;

/// Seed of the tour: every run is the same.
const SEED: u64 = 1;

/// Takes the tour; `seen` is called with each step as it ends. If manifests can't be read or are
/// refused, the first steps fail.
pub fn run(source: &Source, seen: impl FnMut(&DemoStep) + Send) -> DemoReport {
    let began = Instant::now();
    let mut report = match source.read() {
        Ok(documents) => run_seeded(SEED, || take(documents, seen)),
        Err(why) => unreadable(why, seen),
    };
    report.millis = millis_since(began);
    report
}

async fn take(documents: Vec<Document>, seen: impl FnMut(&DemoStep)) -> DemoReport {
    let backends = BackendStore::of_manifests(&documents);
    let accesses = Accesses::Served;
    let world = World::new(Options { seed: SEED, backends, accesses, purge_slice: PURGE_SLICE, ..Options::default() });
    walk::take(Tour::new(world, documents, seen)).await
}

fn unreadable(why: String, mut seen: impl FnMut(&DemoStep)) -> DemoReport {
    let (name, title) = setup::APPLY;
    let step = DemoStep { name, title, ok: false, millis: 0, detail: why, page: Page::default() };
    seen(&step);
    DemoReport { steps: vec![step], kubernetes_writes: 0, s3_calls: 0, millis: 0 }
}
