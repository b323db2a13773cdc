//! What a request asks for: a closed set, by method, target and the names in its query.
//!
//! Names are compared decoded and in their case. A name that none of an operation's rows has makes
//! the request another one, or none: nothing that is not understood is sent on.

use http::Method;

use super::reserved;
use crate::refusal::{Code, Refusal};
use crate::uri::Pair;

/// An operation of S3 that the gateway knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are S3's names, and its documentation says what they do")]
pub enum Operation {
    AbortMultipartUpload,
    CompleteMultipartUpload,
    CopyObject,
    CreateBucket,
    CreateMultipartUpload,
    DeleteObject,
    DeleteObjectTagging,
    DeleteObjects,
    GetBucketAcl,
    GetBucketEncryption,
    GetBucketLocation,
    GetBucketTagging,
    GetBucketVersioning,
    GetObject,
    GetObjectAcl,
    GetObjectAttributes,
    GetObjectLockConfiguration,
    GetObjectTagging,
    GetPublicAccessBlock,
    HeadBucket,
    HeadObject,
    ListBuckets,
    ListMultipartUploads,
    ListObjectVersions,
    ListObjects,
    ListObjectsV2,
    ListParts,
    PostObject,
    PutObject,
    PutObjectTagging,
    UploadPart,
    UploadPartCopy,
}

/// On what level of the name space an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No bucket is named.
    Service,
    /// A bucket is.
    Bucket,
    /// So is a key.
    Object,
}

/// A row of the table.
struct Row {
    operation: Operation,
    method: Method,
    level: Level,
    /// Names that have to be there.
    asks: &'static [&'static str],
    /// Names that may be there.
    may: &'static [&'static str],
}

const LIST: &[&str] = &["delimiter", "encoding-type", "marker", "max-keys", "prefix"];
const LIST_2: &[&str] =
    &["continuation-token", "delimiter", "encoding-type", "fetch-owner", "max-keys", "prefix", "start-after"];
const LIST_VERSIONS: &[&str] = &["delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"];
const LIST_UPLOADS: &[&str] =
    &["delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker"];
const READ: &[&str] = &[
    "partNumber",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "versionId",
];
const VERSION: &[&str] = &["versionId"];
const PARTS: &[&str] = &["encoding-type", "max-parts", "part-number-marker"];
const BUCKETS: &[&str] = &["bucket-region", "continuation-token", "max-buckets", "prefix"];

/// Names whose presence alone says something: a value would be read by nobody, or otherwise by
/// somebody.
const MARKS: [&str; 11] = [
    "acl",
    "attributes",
    "delete",
    "encryption",
    "location",
    "object-lock",
    "publicAccessBlock",
    "tagging",
    "uploads",
    "versioning",
    "versions",
];

/// Parameters that say where in a bucket a list begins.
const PLACES: [&str; 5] = ["continuation-token", "key-marker", "marker", "prefix", "start-after"];

/// What SDKs put into every query to say which operation they mean. It is nobody's word but theirs.
const SPOKEN: &str = "x-id";

const fn row(
    operation: Operation,
    method: Method,
    level: Level,
    asks: &'static [&'static str],
    may: &'static [&'static str],
) -> Row {
    Row { operation, method, level, asks, may }
}

/// The table. Of the rows that fit, the one that asks for the most is meant; no two ask for equally
/// many. An upload by a form is none of them: it is known by its content type, and says in its body
/// what it asks for.
static ROWS: [Row; 29] = [
    row(Operation::ListBuckets, Method::GET, Level::Service, &[], BUCKETS),
    row(Operation::HeadBucket, Method::HEAD, Level::Bucket, &[], &[]),
    row(Operation::CreateBucket, Method::PUT, Level::Bucket, &[], &[]),
    row(Operation::GetBucketAcl, Method::GET, Level::Bucket, &["acl"], &[]),
    row(Operation::GetBucketEncryption, Method::GET, Level::Bucket, &["encryption"], &[]),
    row(Operation::GetBucketLocation, Method::GET, Level::Bucket, &["location"], &[]),
    row(Operation::GetBucketTagging, Method::GET, Level::Bucket, &["tagging"], &[]),
    row(Operation::GetBucketVersioning, Method::GET, Level::Bucket, &["versioning"], &[]),
    row(Operation::GetObjectLockConfiguration, Method::GET, Level::Bucket, &["object-lock"], &[]),
    row(Operation::GetPublicAccessBlock, Method::GET, Level::Bucket, &["publicAccessBlock"], &[]),
    row(Operation::ListObjects, Method::GET, Level::Bucket, &[], LIST),
    row(Operation::ListObjectsV2, Method::GET, Level::Bucket, &["list-type"], LIST_2),
    row(Operation::ListObjectVersions, Method::GET, Level::Bucket, &["versions"], LIST_VERSIONS),
    row(Operation::ListMultipartUploads, Method::GET, Level::Bucket, &["uploads"], LIST_UPLOADS),
    row(Operation::DeleteObjects, Method::POST, Level::Bucket, &["delete"], &[]),
    row(Operation::GetObject, Method::GET, Level::Object, &[], READ),
    row(Operation::HeadObject, Method::HEAD, Level::Object, &[], READ),
    row(Operation::GetObjectAcl, Method::GET, Level::Object, &["acl"], VERSION),
    row(Operation::GetObjectAttributes, Method::GET, Level::Object, &["attributes"], VERSION),
    row(Operation::GetObjectTagging, Method::GET, Level::Object, &["tagging"], VERSION),
    row(Operation::PutObjectTagging, Method::PUT, Level::Object, &["tagging"], VERSION),
    row(Operation::DeleteObjectTagging, Method::DELETE, Level::Object, &["tagging"], VERSION),
    row(Operation::ListParts, Method::GET, Level::Object, &["uploadId"], PARTS),
    // With a copy source these two are CopyObject and UploadPartCopy.
    row(Operation::PutObject, Method::PUT, Level::Object, &[], &[]),
    row(Operation::UploadPart, Method::PUT, Level::Object, &["partNumber", "uploadId"], &[]),
    row(Operation::CreateMultipartUpload, Method::POST, Level::Object, &["uploads"], &[]),
    row(Operation::CompleteMultipartUpload, Method::POST, Level::Object, &["uploadId"], &[]),
    row(Operation::AbortMultipartUpload, Method::DELETE, Level::Object, &["uploadId"], &[]),
    row(Operation::DeleteObject, Method::DELETE, Level::Object, &[], VERSION),
];

/// Names of S3 that configure something, or that are of no use to who has one bucket: they are
/// known, and denied.
const DENIED: [&str; 31] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "session",
    "torrent",
    "versioning",
    "website",
];

impl Operation {
    /// Which operation a request is, and the part of its query that goes to the store.
    ///
    /// `copies` says whether it names a source of a copy.
    ///
    /// # Errors
    /// `AccessDenied` for what S3 has and the gateway doesn't do for tenants, `NotImplemented` for
    /// what nobody knows, `InvalidArgument` where a name comes twice or a mark has a value.
    pub fn of(method: &Method, level: Level, query: &[Pair], copies: bool) -> Result<(Self, Vec<Pair>), Refusal> {
        let asked: Vec<&Pair> = query.iter().filter(|pair| pair.name != SPOKEN.as_bytes()).collect();
        refuse_twice(query)?;
        let fits = |row: &&Row| {
            let has = |names: &[&str], name: &[u8]| names.iter().any(|it| it.as_bytes() == name);
            row.method == *method
                && row.level == level
                && row.asks.iter().all(|name| asked.iter().any(|pair| pair.name == name.as_bytes()))
                && asked.iter().all(|pair| has(row.asks, &pair.name) || has(row.may, &pair.name))
        };
        let Some(row) = ROWS.iter().filter(fits).max_by_key(|row| row.asks.len()) else {
            return Err(unknown(method, level, &asked));
        };
        check_values(&asked)?;
        let operation = match row.operation {
            Self::PutObject if copies => Self::CopyObject,
            Self::UploadPart if copies => Self::UploadPartCopy,
            operation => operation,
        };
        let mut query: Vec<Pair> = asked.into_iter().cloned().collect();
        query.sort_unstable();
        Ok((operation, query))
    }

    /// Its name in S3, as SDKs and logs have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AbortMultipartUpload => "AbortMultipartUpload",
            Self::CompleteMultipartUpload => "CompleteMultipartUpload",
            Self::CopyObject => "CopyObject",
            Self::CreateBucket => "CreateBucket",
            Self::CreateMultipartUpload => "CreateMultipartUpload",
            Self::DeleteObject => "DeleteObject",
            Self::DeleteObjectTagging => "DeleteObjectTagging",
            Self::DeleteObjects => "DeleteObjects",
            Self::GetBucketAcl => "GetBucketAcl",
            Self::GetBucketEncryption => "GetBucketEncryption",
            Self::GetBucketLocation => "GetBucketLocation",
            Self::GetBucketTagging => "GetBucketTagging",
            Self::GetBucketVersioning => "GetBucketVersioning",
            Self::GetObject => "GetObject",
            Self::GetObjectAcl => "GetObjectAcl",
            Self::GetObjectAttributes => "GetObjectAttributes",
            Self::GetObjectLockConfiguration => "GetObjectLockConfiguration",
            Self::GetObjectTagging => "GetObjectTagging",
            Self::GetPublicAccessBlock => "GetPublicAccessBlock",
            Self::HeadBucket => "HeadBucket",
            Self::HeadObject => "HeadObject",
            Self::ListBuckets => "ListBuckets",
            Self::ListMultipartUploads => "ListMultipartUploads",
            Self::ListObjectVersions => "ListObjectVersions",
            Self::ListObjects => "ListObjects",
            Self::ListObjectsV2 => "ListObjectsV2",
            Self::ListParts => "ListParts",
            Self::PostObject => "PostObject",
            Self::PutObject => "PutObject",
            Self::PutObjectTagging => "PutObjectTagging",
            Self::UploadPart => "UploadPart",
            Self::UploadPartCopy => "UploadPartCopy",
        }
    }

    /// Whether somebody without a key may ask for it of a bucket that is public.
    #[must_use]
    pub fn is_public(self) -> bool {
        matches!(self, Self::GetObject | Self::HeadObject | Self::ListObjects | Self::ListObjectsV2)
    }

    /// Asks for a bucket's configuration, or to make a bucket: the gateway answers from what it
    /// knows, and the store isn't asked. Only the store knows about versioning.
    #[must_use]
    pub fn is_about_configuration(self) -> bool {
        use Operation as O;
        matches!(
            self,
            O::CreateBucket
                | O::GetBucketAcl
                | O::GetBucketEncryption
                | O::GetBucketTagging
                | O::GetObjectAcl
                | O::GetObjectLockConfiguration
                | O::GetPublicAccessBlock
        )
    }

    /// Whether its body is an object's bytes.
    #[must_use]
    pub fn stores_body(self) -> bool {
        matches!(self, Self::PutObject | Self::UploadPart | Self::PostObject)
    }

    /// Whether a bucket may hold more after it.
    #[must_use]
    pub fn adds(self) -> bool {
        let copies = matches!(self, Self::CopyObject | Self::UploadPartCopy);
        let of_uploads = matches!(self, Self::CreateMultipartUpload | Self::CompleteMultipartUpload);
        copies || self.stores_body() || of_uploads || self == Self::PutObjectTagging
    }

    /// Whether its body is a document: the most bytes that it may have. `None`: it has no document.
    #[must_use]
    pub fn longest_document(self) -> Option<u64> {
        match self {
            Self::DeleteObjects => Some(2 << 20),
            Self::CompleteMultipartUpload => Some(4 << 20),
            Self::PutObjectTagging => Some(64 << 10),
            _ => None,
        }
    }

    /// Whether the store may work for minutes before it answers, or answer 200 and then an error.
    #[must_use]
    pub fn is_long(self) -> bool {
        matches!(self, Self::CompleteMultipartUpload | Self::CopyObject | Self::UploadPartCopy)
    }

    /// Whether a store answers with a list, in which whose the entries are may stand.
    #[must_use]
    pub fn lists(self) -> bool {
        let of_objects = matches!(self, Self::ListObjectVersions | Self::ListObjects | Self::ListObjectsV2);
        of_objects || matches!(self, Self::ListMultipartUploads | Self::ListParts)
    }
}

/// A name that comes twice is read once by one and twice by another.
fn refuse_twice(query: &[Pair]) -> Result<(), Refusal> {
    let twice = query.iter().enumerate().any(|(at, pair)| query.iter().skip(at + 1).any(|it| it.name == pair.name));
    if twice { Err(Refusal::new(Code::InvalidArgument, "A parameter of the query is given twice.")) } else { Ok(()) }
}

fn check_values(asked: &[&Pair]) -> Result<(), Refusal> {
    let argument = |message, pair: &Pair| {
        let name = String::from_utf8_lossy(&pair.name).into_owned();
        Err(Refusal::new(Code::InvalidArgument, message).with("ArgumentName", name))
    };
    for pair in asked {
        let is = |name: &str| pair.name == name.as_bytes();
        if MARKS.iter().any(|mark| is(mark)) && !pair.value.is_empty() {
            return argument("This parameter takes no value.", pair);
        }
        if is("list-type") && pair.value != b"2" {
            return argument("Only list-type 2 is known.", pair);
        }
        if is("partNumber") && !is_part_number(&pair.value) {
            return argument("A part number is an integer from 1 to 10000.", pair);
        }
        if (is("uploadId") || is("versionId")) && !is_id(&pair.value) {
            return argument("This is no id that a store has given.", pair);
        }
        let is_marker = is("upload-id-marker") || is("version-id-marker");
        if is_marker && !pair.value.is_empty() && !is_id(&pair.value) {
            return argument("This is no id that a store has given.", pair);
        }
        // Some stores walk to a place, and a token may be the place itself.
        if PLACES.iter().any(|name| is(name)) && climbs(&pair.value) {
            return argument("A segment of it is . or .., which no key has.", pair);
        }
        if PLACES.iter().any(|name| is(name)) && reserved::find_folder(&pair.value).is_some() {
            return argument("A folder in it is one that stores keep for themselves.", pair);
        }
        // A store writes the value as a header of its answer.
        if pair.name.starts_with(b"response-") && pair.value.iter().any(u8::is_ascii_control) {
            return argument("A header of an answer has no control characters.", pair);
        }
    }
    Ok(())
}

/// Whether a value can be the id of a version or of an upload. Some stores make a path of it.
pub(crate) fn is_id(value: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+=-".contains(byte);
    (1..=1024).contains(&value.len()) && value.iter().all(allowed) && value != b"." && value != b".."
}

/// Whether something would be understood as a way upwards by a store that keeps objects in folders.
fn climbs(value: &[u8]) -> bool {
    let mut segments = value.split(|byte| *byte == b'/').rev();
    // The last segment may be the beginning of a longer one.
    segments.next() == Some(b"..") || segments.any(|segment| segment == b"." || segment == b"..")
}

fn is_part_number(value: &[u8]) -> bool {
    let number = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|text| text.parse::<u16>().ok()).is_some_and(|number| (1..=10_000).contains(&number))
}

fn unknown(method: &Method, level: Level, asked: &[&Pair]) -> Refusal {
    if *method == Method::POST && level == Level::Bucket && asked.is_empty() {
        return Refusal::new(Code::MalformedPOSTRequest, "A POST on a bucket has a form (multipart/form-data).");
    }
    let denied = asked.iter().any(|pair| DENIED.iter().any(|name| pair.name == name.as_bytes()));
    let configures = level == Level::Bucket && matches!(*method, Method::PUT | Method::DELETE);
    if denied || configures {
        return Refusal::new(Code::AccessDenied, "Access Denied");
    }
    if !matches!(*method, Method::GET | Method::HEAD | Method::PUT | Method::POST | Method::DELETE) {
        return Refusal::new(Code::MethodNotAllowed, "The specified method is not allowed against this resource.");
    }
    Refusal::new(
        Code::NotImplemented,
        "A parameter or method you provided implies functionality that is not implemented.",
    )
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
