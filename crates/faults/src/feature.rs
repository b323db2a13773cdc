//! What a store may be without, and the operations that go with it.

use super::call::S3Operation;
use super::words;

words! {
    /// What a store may be without.
    Feature {
        /// Bucket tagging.
        Tagging = "tagging",
        /// Versioning, and with it the list of versions.
        Versioning = "versioning",
        /// Multipart uploads.
        Uploads = "uploads",
    }
}

impl Feature {
    /// Whether an operation is a part of it.
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
