//! Faults of calls to an S3 store, and the answers to them.

use std::time::Duration;

use crate::answer::Answered;
use crate::call::{Call, S3Call, S3Operation};
use crate::feature::Feature;
use crate::row::{Application, Calls, Lasts, Parameter, Refusal, Row, Vocabulary};
use crate::words;

/// Duration of temporary trouble at a store.
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
    /// An S3 HEAD request is answered with this status. Like every HEAD answer, it has no body and
    /// so no error code.
    Head(HeadStatus),
    /// A proxy in front of the S3 store answers instead, with an HTML page of this status; not
    /// carried out.
    Page(PageStatus),
    /// From this S3 call on, for a minute, this operation is answered with 503
    /// `ServiceUnavailable`, not carried out.
    VerbDown(S3Operation),
    /// CreateBucket is answered with 409 `BucketAlreadyOwnedByYou`. The bucket exists; if it did
    /// not, it is created without tags.
    AlreadyOwned,
    /// CreateBucket is answered with 409 `BucketAlreadyExists`. The bucket exists; if it did not,
    /// it is created for another account.
    BucketExists,
    /// CreateBucket is answered with 200 although the bucket exists; if it did not, it is created
    /// without tags first.
    OkOnExisting,
    /// DeleteObjects is answered with 200, but the first key has an error and is not deleted.
    PartialDelete,
    /// Just before the call, the first object of the bucket gets a legal hold for the rest of the
    /// run.
    Locked,
    /// Just before the call, an object is written to the bucket and a multipart upload is started.
    LateWrite,
    /// Just before the call, a third party deletes the bucket with all its content.
    Vanish,
    /// From this S3 call on, for a minute, all S3 calls are answered with 403 `InvalidAccessKeyId`.
    CredentialsRevoked,
    /// The S3 store answers 403 `RequestTimeTooSkewed`, not carried out.
    ClockSkew,
    /// An S3 read returns the state before the last write.
    StaleRead,
    /// The S3 store answers 200 with an error document, `InternalError`; not carried out.
    ErrorIn200,
    /// The second half of the answer's XML document is missing, without any other sign of an error.
    Truncated,
    /// From this S3 call on, for the rest of the run, the store lacks this feature: 501
    /// `NotImplemented`.
    NotImplemented(Feature),
}

words! {
    /// Status of a HEAD answer.
    HeadStatus {
        /// The bucket is in another region.
        Moved = "301",
        /// A bad request. Some stores send it for a wrong region.
        BadRequest = "400",
        /// The bucket of another account, or no permission to read it.
        Forbidden = "403",
    }
}

words! {
    /// Status of a page that does not come from the store.
    PageStatus {
        /// A proxy that refuses access.
        Forbidden = "403",
        /// A proxy that does not know the host or path.
        NotFound = "404",
    }
}

impl HeadStatus {
    /// Returns the status as a number.
    pub fn code(self) -> u16 {
        match self {
            Self::Moved => 301,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
        }
    }
}

impl PageStatus {
    /// Returns the status as a number.
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

/// Operations for which being down is worth trying: those that create and delete a bucket.
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

/// Returns the answer of a fault that refuses; `None` for other faults.
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

/// Returns the page of a proxy; without a body for HEAD.
fn page(code: u16, call: &S3Call) -> Answered {
    if call.operation.is_head() {
        return Answered::empty(code);
    }
    Answered::new(code, "text/html", format!("<html><head><title>{code}</title></head><body>nginx</body></html>"))
}
