//! Optional features of a store, and the operations that belong to them.

use super::call::S3Operation;
use super::words;

words! {
    /// An optional feature of a store.
    Feature {
        /// Bucket tagging.
        Tagging = "tagging",
        /// Versioning, including the list of versions.
        Versioning = "versioning",
        /// Multipart uploads.
        Uploads = "uploads",
    }
}

impl Feature {
    /// Returns true if an operation belongs to it.
    pub fn has(self, operation: S3Operation) -> bool {
        match self {
            Self::Tagging => operation.name().ends_with("BucketTagging"),
            Self::Versioning => {
                operation.name().ends_with("BucketVersioning") || operation.name() == "ListObjectVersions"
            }
            Self::Uploads => operation.name().contains("MultipartUpload"),
        }
    }
}
