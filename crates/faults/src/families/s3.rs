//! What can happen to a call to an S3 store, and how that answers it.

use std::time::Duration;

use crate::answer::Answered;
use crate::call::{Call, S3Call, S3Operation};
use crate::feature::Feature;
use crate::row::{Application, Calls, Lasts, Parameter, Refusal, Row, Vocabulary};
use crate::words;

/// How long a store is in trouble that ends by itself.
const TROUBLE: Lasts = Lasts::For(Duration::from_secs(60));

/// A fault of an S3 store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3Fault {
    /// Nothing listens at the S3 endpoint: the connection is refused.
    Unreachable,
    /// The S3 store answers 500 `InternalError`, not carried out.
    InternalError,
    /// The S3 store answers 503 `SlowDown`, not carried out.
    SlowDown,
    /// The S3 store answers 403 `AccessDenied`, not carried out.
    AccessDenied,
    /// An S3 HEAD request is answered with this status and, as HEAD is, without a body or an error
    /// code.
    Head(HeadStatus),
    /// What stands before the S3 store answers in its place with an HTML page of this status; not
    /// carried out.
    Page(PageStatus),
    /// From this S3 call on, and for a minute, this operation is answered with 503
    /// `ServiceUnavailable`, not carried out.
    VerbDown(S3Operation),
    /// CreateBucket is answered with 409 `BucketAlreadyOwnedByYou`. There is such a bucket: if need
    /// be one is made, untagged.
    AlreadyOwned,
    /// CreateBucket is answered with 409 `BucketAlreadyExists`. There is such a bucket: if need be
    /// another account's.
    BucketExists,
    /// CreateBucket is answered with 200 although there is such a bucket: if need be one is made,
    /// untagged.
    OkOnExisting,
    /// DeleteObjects is answered with 200; in it the first key has an error of its own, and stays.
    PartialDelete,
    /// Right before the call, a legal hold is put on the first object of the bucket, for the rest
    /// of the run.
    Locked,
    /// Right before the call, an object and a multipart upload arrive in the bucket.
    LateWrite,
    /// Right before the call, the bucket is deleted by somebody else, with all that is in it.
    Vanish,
    /// From this S3 call on, and for a minute, all of them are answered with 403
    /// `InvalidAccessKeyId`.
    CredentialsRevoked,
    /// The S3 store answers 403 `RequestTimeTooSkewed`, not carried out.
    ClockSkew,
    /// An S3 read is answered from the state before the last write.
    StaleRead,
    /// The S3 store answers 200 with an error document, `InternalError`; not carried out.
    ErrorIn200,
    /// The second half of the answer's XML document is missing, and nothing else tells.
    Truncated,
    /// From this S3 call on, for the rest of the run, the store has no such feature: 501
    /// `NotImplemented`.
    NotImplemented(Feature),
}

words! {
    /// Status of a HEAD answer.
    HeadStatus {
        /// The bucket is in another region.
        Moved = "301",
        /// Among others, what some stores send for a wrong region.
        BadRequest = "400",
        /// Somebody else's bucket, or no right to look.
        Forbidden = "403",
    }
}

words! {
    /// Status of a page that is not the store's.
    PageStatus {
        /// A proxy that lets nobody through.
        Forbidden = "403",
        /// A proxy that knows no such host or path.
        NotFound = "404",
    }
}

impl HeadStatus {
    /// The status as a number.
    pub fn code(self) -> u16 {
        match self {
            Self::Moved => 301,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
        }
    }
}

impl PageStatus {
    /// The status as a number.
    pub fn code(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::NotFound => 404,
        }
    }
}

const CALLS: Calls = Calls::s3(|_| true, "S3 calls");
const HEADS: Calls = Calls::s3(S3Operation::is_head, "HEAD requests (HeadBucket, HeadObject)");
const CREATE_BUCKET: Calls = Calls::s3(|operation| operation.name() == "CreateBucket", "CreateBucket");
const DELETE_OBJECTS: Calls = Calls::s3(|operation| operation.name() == "DeleteObjects", "DeleteObjects");
const DELETES_OF_OBJECTS: Calls = Calls::s3(S3Operation::deletes_objects, "DeleteObject and DeleteObjects");
const EMPTYING: Calls = Calls::s3(S3Operation::empties, "S3 calls that list or delete objects, and DeleteBucket");
const ON_BUCKETS: Calls = Calls::s3(S3Operation::is_on_bucket, "S3 calls on a bucket");
const READS: Calls = Calls::s3(S3Operation::is_read, "S3 reads");
const IN_XML: Calls = Calls::s3(S3Operation::answers_in_xml, "S3 calls that are answered with an XML document");

const REFUSED: Application = Application::Answer(Refusal::AtOnce);

/// Operations that are worth being out of order: those of a bucket's beginning and end.
const VITAL: [&str; 7] = [
    "ListBuckets",
    "GetBucketTagging",
    "CreateBucket",
    "PutBucketTagging",
    "ListObjectVersions",
    "DeleteObjects",
    "DeleteBucket",
];

impl Vocabulary for S3Fault {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Unreachable, Self::InternalError, Self::SlowDown, Self::AccessDenied];
        all.extend(HeadStatus::ALL.map(Self::Head));
        all.extend(PageStatus::ALL.map(Self::Page));
        all.extend(VITAL.into_iter().filter_map(S3Operation::named).map(Self::VerbDown));
        all.extend([Self::AlreadyOwned, Self::BucketExists, Self::OkOnExisting, Self::PartialDelete, Self::Locked]);
        all.extend([Self::LateWrite, Self::Vanish]);
        all.extend([Self::CredentialsRevoked, Self::ClockSkew, Self::StaleRead, Self::ErrorIn200, Self::Truncated]);
        all.extend(Feature::ALL.map(Self::NotImplemented));
        all
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Unreachable => Row::new("unreachable", CALLS, Application::NoListener),
            Self::InternalError => Row::new("internal-error", CALLS, REFUSED),
            Self::SlowDown => Row::new("slow-down", CALLS, REFUSED),
            Self::AccessDenied => Row::new("access-denied", CALLS, REFUSED),
            Self::Head(status) => Row::new("head", HEADS, REFUSED).with(Parameter::Word(status.word())),
            Self::Page(status) => Row::new("page", CALLS, REFUSED).with(Parameter::Word(status.word())),
            // It may begin at a call of another operation.
            Self::VerbDown(operation) => Row::new("verb-down", CALLS, REFUSED)
                .with(Parameter::Open {
                    word: operation.name(),
                    form: "operation",
                    with: |name| S3Operation::named(name).map(Self::VerbDown),
                })
                .lasting(TROUBLE)
                .meeting(Calls::operation(operation)),
            Self::AlreadyOwned => Row::new("already-owned", CREATE_BUCKET, Application::WorldThenAnswer),
            Self::BucketExists => {
                Row::new("already-exists", CREATE_BUCKET, Application::WorldThenAnswer).counted_as("bucket-exists")
            }
            Self::OkOnExisting => Row::new("ok-on-existing", CREATE_BUCKET, Application::WorldThenAnswer),
            Self::PartialDelete => Row::new("partial-delete", DELETE_OBJECTS, Application::World),
            Self::Locked => Row::new("locked", DELETES_OF_OBJECTS, Application::World).lasting(Lasts::Beyond),
            Self::LateWrite => Row::new("late-write", EMPTYING, Application::World),
            Self::Vanish => Row::new("vanish", ON_BUCKETS, Application::World),
            Self::CredentialsRevoked => Row::new("credentials-revoked", CALLS, REFUSED).lasting(TROUBLE).meeting(CALLS),
            Self::ClockSkew => Row::new("clock-skew", CALLS, REFUSED),
            Self::StaleRead => Row::new("stale-read", READS, Application::World),
            Self::ErrorIn200 => Row::new("error-in-200", IN_XML, REFUSED),
            Self::Truncated => Row::new("truncated", IN_XML, Application::World),
            Self::NotImplemented(feature) => {
                let of_feature = Calls::feature(feature);
                Row::new("not-implemented", of_feature, REFUSED)
                    .with(Parameter::Word(feature.word()))
                    .lasting(Lasts::ToTheEnd)
                    .meeting(of_feature)
            }
        }
    }

    fn answer(self, call: &Call) -> Option<Answered> {
        match call {
            Call::S3(call) => refusal(self, call),
            Call::Kube(_) => None,
        }
    }
}

/// What a fault says that refuses; `None` of the others.
fn refusal(fault: S3Fault, call: &S3Call) -> Option<Answered> {
    let (code, name, message) = match fault {
        S3Fault::InternalError => (500, "InternalError", "We encountered an internal error. Please try again."),
        S3Fault::SlowDown => (503, "SlowDown", "Please reduce your request rate."),
        S3Fault::AccessDenied => (403, "AccessDenied", "Access Denied"),
        S3Fault::VerbDown(_) => (503, "ServiceUnavailable", "Service is unable to handle request."),
        S3Fault::AlreadyOwned => (
            409,
            "BucketAlreadyOwnedByYou",
            "Your previous request to create the named bucket succeeded and you already own it.",
        ),
        S3Fault::BucketExists => (
            409,
            "BucketAlreadyExists",
            "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.",
        ),
        S3Fault::CredentialsRevoked => {
            (403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
        }
        S3Fault::ClockSkew => {
            (403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
        }
        S3Fault::ErrorIn200 => (200, "InternalError", "We encountered an internal error. Please try again."),
        S3Fault::NotImplemented(_) => {
            (501, "NotImplemented", "A header you provided implies functionality that is not implemented.")
        }
        S3Fault::Head(status) => return Some(Answered::empty(status.code())),
        S3Fault::Page(status) => return Some(page(status.code(), call)),
        S3Fault::OkOnExisting => return Some(Answered::empty(200)),
        _ => return None,
    };
    if call.operation.is_head() {
        return Some(Answered::empty(code));
    }
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{name}</Code><Message>{message}</Message></Error>"
    );
    Some(Answered::new(code, "application/xml", body))
}

/// What a proxy says; to HEAD, without a body.
fn page(code: u16, call: &S3Call) -> Answered {
    if call.operation.is_head() {
        return Answered::empty(code);
    }
    Answered::new(code, "text/html", format!("<html><head><title>{code}</title></head><body>nginx</body></html>"))
}
