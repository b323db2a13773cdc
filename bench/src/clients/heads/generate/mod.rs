//! Requests on a claim's bucket with unusual encodings, which one parser might take for data, and
//! another for administration or for another tenant's data.
//!
//! A request depends only on the seed and its number, so one that shows a vulnerability can be
//! generated again without those before it. A `request` is written by a `pen` in a `scene`. The
//! other files have one kind each, and the `form` that one of them sends.

mod documents;
mod form;
mod forms;
mod headers;
mod heads;
mod pen;
mod request;
mod scene;
mod sources;
#[cfg(test)]
mod tests;
mod xml;

use fastrand::Rng;
use stowage_testbed::request::Signed;

pub(super) use self::pen::OBJECTS;
use self::pen::Pen;
use self::request::Draft;
pub(super) use self::request::{Body, Request};
pub(super) use self::scene::{Kind, SHARED, Scene, Who};

/// Generates requests. The result depends only on seed, scene and number.
pub(super) struct Generator {
    seed: u64,
    scene: Scene,
}

impl Generator {
    pub(super) fn new(seed: u64, scene: Scene) -> Self {
        Self { seed, scene }
    }

    /// Generates the request with this number.
    pub(super) fn request(&self, number: u64) -> Request {
        let random = Rng::with_seed(mixed(self.seed ^ mixed(number)));
        let mut pen = Pen::new(random, &self.scene);
        let (kind, who) = (pen.kind(), pen.who());
        let mut draft = match kind {
            Kind::Heads => heads::draft(&mut pen),
            Kind::Documents => documents::draft(&mut pen),
            Kind::Sources => sources::draft(&mut pen),
            Kind::Forms => forms::draft(&mut pen),
            Kind::Headers => headers::draft(&mut pen),
        };
        let is_presigned = matches!(kind, Kind::Heads | Kind::Headers) && pen.chance(40);
        let signed = match &draft.body {
            Body::Form(_) => Signed::Form,
            Body::Bytes(_) if is_presigned => Signed::Query,
            Body::Bytes(_) => Signed::Headers,
        };
        if signed == Signed::Query {
            headers::hoist(&mut draft);
        }
        let mut path = format!("/{}", self.scene.bucket).into_bytes();
        if let Some(key) = &draft.key {
            path.push(b'/');
            path.extend(key);
        } else if pen.chance(64) {
            path.push(b'/');
        }
        let target = pen.written(&path, &draft.query);
        let Draft { method, query, headers, body, .. } = draft;
        Request { number, kind, who, signed, method, path, query, target, headers, body }
    }
}

/// Maps consecutive numbers to unrelated ones (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
