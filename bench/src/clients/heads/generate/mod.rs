//! Requests on a claim's bucket, in which much is written in an odd way: what one reader might take
//! for data, and another for administration, or for somebody else's.
//!
//! A request follows from the seed and its number alone: one that shows a hole can be made again
//! without those before it. `pen` has what all are written with; the other files have a kind each.

mod documents;
mod forms;
mod headers;
mod heads;
mod pen;
mod sources;
#[cfg(test)]
mod tests;
mod xml;

use std::fmt;

use fastrand::Rng;
use http::HeaderMap;
use serde::Serialize;
use stowage_gateway::uri::Pair;
use stowage_testbed::request::Signed;

pub(super) use self::forms::Form;
pub(super) use self::pen::OBJECTS;
use self::pen::Pen;

/// The part of a request that is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Path and query.
    Heads,
    /// A document: of DeleteObjects, CompleteMultipartUpload or PutObjectTagging.
    Documents,
    /// The source of a copy.
    Sources,
    /// The fields of a form.
    Forms,
    /// The headers of an operation.
    Headers,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Heads, Self::Documents, Self::Sources, Self::Forms, Self::Headers];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Heads => "heads",
            Self::Documents => "documents",
            Self::Sources => "sources",
            Self::Forms => "forms",
            Self::Headers => "headers",
        }
    }
}

/// Sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The claim's key.
    Owner,
    /// The key of an access: what is below [`SHARED`] in the claim's bucket, and the present
    /// objects of another.
    Guest,
}

/// Beginning of the keys that the guest has in the claim's bucket.
pub(super) const SHARED: &str = "shared/";

/// Names that exist: buckets, and ids that lead to something.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The claim's bucket.
    pub(super) bucket: String,
    /// The bucket that the guest reads, and the owner doesn't.
    pub(super) films: String,
    /// A bucket that nobody here has a key for.
    pub(super) neighbour: String,
    /// A past version of an object in `films`.
    pub(super) past: String,
    /// Versions of objects in the claim's bucket.
    pub(super) versions: Vec<String>,
    /// Uploads that are open in the claim's bucket.
    pub(super) uploads: Vec<String>,
}

/// Body of a request.
#[derive(Clone)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// Its policy is signed when it is sent.
    Form(Form),
}

/// A request before it is signed.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) who: Who,
    /// Place of the signature.
    pub(super) signed: Signed,
    pub(super) method: &'static str,
    /// The path, decoded, as it is signed.
    pub(super) path: Vec<u8>,
    /// The query, decoded.
    pub(super) query: Vec<Pair>,
    /// Path and query as they are written.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// A request before its target is written.
struct Draft {
    method: &'static str,
    /// `None` for one on the bucket.
    key: Option<Vec<u8>>,
    query: Vec<Pair>,
    headers: HeaderMap,
    body: Body,
}

/// Makes requests. The same seed, scene and number make the same one.
pub(super) struct Generator {
    seed: u64,
    scene: Scene,
}

impl Generator {
    pub(super) fn new(seed: u64, scene: Scene) -> Self {
        Self { seed, scene }
    }

    /// The request of this number.
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

/// Numbers in a row as numbers that have nothing in common (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, kind, who, signed, method, target, .. } = self;
        write!(f, "request {number} ({}) of the {who:?}, signed by {signed:?}: {method} {target}", kind.name())
    }
}
