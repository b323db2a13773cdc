//! Kinds of requests, their senders, and the names that exist in the store.

use serde::Serialize;

/// The part of a request that is unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Kind {
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
    pub(in super::super) const ALL: [Self; 5] =
        [Self::Heads, Self::Documents, Self::Sources, Self::Forms, Self::Headers];

    pub(in super::super) fn name(self) -> &'static str {
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
pub(in super::super) enum Who {
    /// The claim's key.
    Owner,
    /// The key of an access, which opens keys below [`SHARED`] in the claim's bucket, and the
    /// current objects of another one.
    Guest,
}

/// Prefix of the guest's keys in the claim's bucket.
pub(in super::super) const SHARED: &str = "shared/";

/// Names that exist: buckets, and ids of versions and uploads.
#[derive(Clone, Debug)]
pub(in super::super) struct Scene {
    /// The claim's bucket.
    pub(in super::super) bucket: String,
    /// A bucket that the guest can read and the owner can't.
    pub(in super::super) films: String,
    /// A bucket that no sender has a key for.
    pub(in super::super) neighbour: String,
    /// A noncurrent version of an object in `films`.
    pub(in super::super) past: String,
    /// Versions of objects in the claim's bucket.
    pub(in super::super) versions: Vec<String>,
    /// Unfinished uploads in the claim's bucket.
    pub(in super::super) uploads: Vec<String>,
}
