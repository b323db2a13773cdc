//! Who may do what: a pure function of the caller, the operation, the bucket and the time.

use jiff::Timestamp;

use super::record::{AnonymousBinding, Credential};

/// What a request wants, as far as access is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get or head an object.
    ReadObject,
    /// List the objects of a bucket.
    ListObjects,
    /// Everything else that works with the content of one bucket, or asks whether it is there.
    UseBucket,
    /// List the caller's buckets.
    ListBuckets,
    /// Anything that makes, removes or configures a bucket, and all that is not known.
    Administer,
}

impl Operation {
    /// The class of an operation by its name in the S3 API. This is an allow-list: what is not
    /// on it is [`Operation::Administer`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "GetObject" | "HeadObject" => Self::ReadObject,
            "ListObjects" | "ListObjectsV2" => Self::ListObjects,
            "AbortMultipartUpload"
            | "CompleteMultipartUpload"
            | "CopyObject"
            | "CreateMultipartUpload"
            | "DeleteObject"
            | "DeleteObjectTagging"
            | "DeleteObjects"
            | "GetBucketLocation"
            | "GetObjectTagging"
            | "HeadBucket"
            | "ListMultipartUploads"
            | "ListObjectVersions"
            | "ListParts"
            | "PutObject"
            | "PutObjectTagging"
            | "UploadPart"
            | "UploadPartCopy" => Self::UseBucket,
            "ListBuckets" => Self::ListBuckets,
            _ => Self::Administer,
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub enum Caller<'a> {
    /// A request signed with this credential; the signature has been checked.
    Signed(&'a Credential),
    /// An unsigned request, and the binding of the bucket it names, if that has one.
    Anonymous(Option<&'a AnonymousBinding>),
}

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Pass it on to this backend.
    Forward {
        /// The backend's name.
        backend: String,
    },
    /// Answer with the buckets in the caller's scope.
    ListScope,
    /// Refuse it.
    Refuse(Refusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The credential's time has come: it is as unknown as one whose Secret is gone, so that
    /// clients see one answer for both (`InvalidAccessKeyId`).
    Expired,
    /// The caller may not do this (`AccessDenied`).
    Denied,
}

/// Decides about a request. `bucket` is the one in its path.
#[must_use]
pub fn decide(caller: Caller<'_>, operation: Operation, bucket: Option<&str>, now: Timestamp) -> Verdict {
    let backend = match caller {
        Caller::Signed(credential) if credential.is_expired(now) => return Verdict::Refuse(Refusal::Expired),
        Caller::Signed(credential) => match operation {
            Operation::ListBuckets => return Verdict::ListScope,
            Operation::Administer => None,
            Operation::ReadObject | Operation::ListObjects | Operation::UseBucket => {
                bucket.and_then(|bucket| credential.scope(bucket)).map(|scope| &scope.backend)
            }
        },
        Caller::Anonymous(binding) => match operation {
            Operation::ReadObject | Operation::ListObjects => {
                binding.filter(|binding| Some(binding.bucket.as_str()) == bucket).map(|binding| &binding.backend)
            }
            Operation::UseBucket | Operation::ListBuckets | Operation::Administer => None,
        },
    };
    match backend {
        Some(backend) => Verdict::Forward { backend: backend.clone() },
        None => Verdict::Refuse(Refusal::Denied),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use s3s::auth::SecretKey;

    use super::super::record::Scope;
    use super::*;

    const END: i64 = 100;

    fn credential() -> Credential {
        let scope = |bucket: &str, backend: &str| Scope { bucket: bucket.to_owned(), backend: backend.to_owned() };
        Credential {
            access_key_id: "AKIAONE".to_owned(),
            secret_access_key: SecretKey::from("secret"),
            scopes: vec![scope("photos", "main"), scope("films", "other")],
            expires_at: Timestamp::from_second(END).ok(),
        }
    }

    fn signed(operation: &str, bucket: Option<&str>, now: i64) -> Verdict {
        let now = Timestamp::from_second(now).expect("a time in range");
        decide(Caller::Signed(&credential()), Operation::from_name(operation), bucket, now)
    }

    fn forward(backend: &str) -> Verdict {
        Verdict::Forward { backend: backend.to_owned() }
    }

    const DENIED: Verdict = Verdict::Refuse(Refusal::Denied);
    const EXPIRED: Verdict = Verdict::Refuse(Refusal::Expired);

    #[rstest]
    #[case("GetObject")]
    #[case("HeadObject")]
    #[case("PutObject")]
    #[case("DeleteObject")]
    #[case("DeleteObjects")]
    #[case("CopyObject")]
    #[case("ListObjects")]
    #[case("ListObjectsV2")]
    #[case("ListObjectVersions")]
    #[case("CreateMultipartUpload")]
    #[case("UploadPart")]
    #[case("UploadPartCopy")]
    #[case("CompleteMultipartUpload")]
    #[case("AbortMultipartUpload")]
    #[case("ListParts")]
    #[case("ListMultipartUploads")]
    #[case("GetObjectTagging")]
    #[case("PutObjectTagging")]
    #[case("DeleteObjectTagging")]
    #[case("HeadBucket")]
    #[case("GetBucketLocation")]
    fn tenants_use_the_buckets_in_their_scope(#[case] operation: &str) {
        assert_eq!(signed(operation, Some("photos"), 0), forward("main"));
        assert_eq!(signed(operation, Some("films"), 0), forward("other"));
        assert_eq!(signed(operation, Some("neighbour"), 0), DENIED);
        assert_eq!(signed(operation, None, 0), DENIED);
    }

    // covers: 3.2.gateway
    #[rstest]
    #[case("CreateBucket")]
    #[case("DeleteBucket")]
    #[case("PutBucketTagging")]
    #[case("DeleteBucketTagging")]
    #[case("GetBucketTagging")]
    #[case("PutBucketPolicy")]
    #[case("DeleteBucketPolicy")]
    #[case("PutBucketAcl")]
    #[case("PutObjectAcl")]
    #[case("PutBucketVersioning")]
    #[case("PutBucketLifecycleConfiguration")]
    #[case("PutBucketEncryption")]
    #[case("PutBucketCors")]
    #[case("PutObjectLockConfiguration")]
    #[case("PutObjectRetention")]
    #[case("PutObjectLegalHold")]
    #[case("PostObject")]
    #[case("SomethingNew")]
    fn tenants_do_not_administer(#[case] operation: &str) {
        assert_eq!(signed(operation, Some("photos"), 0), DENIED);
        assert_eq!(signed(operation, Some("neighbour"), 0), DENIED);
    }

    #[test]
    fn a_key_ends_at_its_time() {
        assert_eq!(signed("GetObject", Some("photos"), END - 1), forward("main"));
        for operation in ["GetObject", "ListBuckets", "CreateBucket"] {
            assert_eq!(signed(operation, Some("photos"), END), EXPIRED);
        }
    }

    #[test]
    fn tenants_see_their_own_buckets() {
        assert_eq!(signed("ListBuckets", None, 0), Verdict::ListScope);
    }

    #[rstest]
    #[case("GetObject", "photos", true)]
    #[case("HeadObject", "photos", true)]
    #[case("ListObjects", "photos", true)]
    #[case("ListObjectsV2", "photos", true)]
    #[case("GetObject", "neighbour", false)]
    #[case("ListObjectVersions", "photos", false)]
    #[case("PutObject", "photos", false)]
    #[case("DeleteObject", "photos", false)]
    #[case("HeadBucket", "photos", false)]
    #[case("GetObjectTagging", "photos", false)]
    #[case("DeleteBucket", "photos", false)]
    fn a_binding_opens_one_bucket_for_reading(#[case] operation: &str, #[case] bucket: &str, #[case] open: bool) {
        let binding = AnonymousBinding {
            bucket: "photos".to_owned(),
            backend: "main".to_owned(),
            claim_uid: "uid".to_owned(),
            per_source_ip_rps: 0,
        };
        let ask = |binding| {
            let caller = Caller::Anonymous(binding);
            decide(caller, Operation::from_name(operation), Some(bucket), Timestamp::UNIX_EPOCH)
        };
        assert_eq!(ask(Some(&binding)), if open { forward("main") } else { DENIED });
        assert_eq!(ask(None), DENIED);
    }
}
