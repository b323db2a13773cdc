//! The operation of a request: one of a closed set, by method, target and the names in its query.
//!
//! Names are compared decoded and case-sensitively. A name that is in none of an operation's rows
//! makes the request a different operation or an unknown one: nothing is forwarded that was not
//! parsed.

use http::Method;

use super::reserved;
use crate::refusal::{Code, Refusal};
use crate::uri::Pair;

/// An S3 operation that the gateway knows.
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

/// The level of an operation's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No bucket is named.
    Service,
    /// A bucket is named.
    Bucket,
    /// A bucket and a key are named.
    Object,
}

/// A row of the table.
struct Row {
    operation: Operation,
    method: Method,
    level: Level,
    /// Required parameters.
    asks: &'static [&'static str],
    /// Optional parameters.
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

/// Parameters without a value: only their presence matters. A value is refused, because stores
/// might interpret it differently.
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

/// Parameters with a position in the list of a bucket.
const PLACES: [&str; 5] = ["continuation-token", "key-marker", "marker", "prefix", "start-after"];

/// The operation's name, which SDKs add to every query. The gateway ignores it.
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

/// The table. If several rows match, the one with the most required parameters wins; no two
/// matching rows have the same number. A form upload has no row: it is recognised by its content
/// type, and parsed from its body.
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
    // With a copy source these two become CopyObject and UploadPartCopy.
    row(Operation::PutObject, Method::PUT, Level::Object, &[], &[]),
    row(Operation::UploadPart, Method::PUT, Level::Object, &["partNumber", "uploadId"], &[]),
    row(Operation::CreateMultipartUpload, Method::POST, Level::Object, &["uploads"], &[]),
    row(Operation::CompleteMultipartUpload, Method::POST, Level::Object, &["uploadId"], &[]),
    row(Operation::AbortMultipartUpload, Method::DELETE, Level::Object, &["uploadId"], &[]),
    row(Operation::DeleteObject, Method::DELETE, Level::Object, &[], VERSION),
];

/// S3's names for configuration, and for features that are useless to the owner of one bucket. They
/// are known, and denied.
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
    /// Returns the operation of a request, and the part of its query to forward.
    ///
    /// `copies` is true if the request names the source of a copy.
    ///
    /// # Errors
    /// `AccessDenied` for S3 operations that tenants may not use, `NotImplemented` for unknown
    /// ones, `InvalidArgument` if a name is repeated or a value is invalid.
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

    /// Returns the operation's name in S3, as SDKs and logs use it.
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

    /// Returns true if the operation is allowed on a public bucket without a key.
    #[must_use]
    pub fn is_public(self) -> bool {
        matches!(self, Self::GetObject | Self::HeadObject | Self::ListObjects | Self::ListObjectsV2)
    }

    /// Returns true if the operation reads a bucket's configuration or creates a bucket. The
    /// gateway answers those from its own knowledge, without the store. Versioning is not among
    /// them: only the store knows it.
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

    /// Returns true if its body is an object's bytes.
    #[must_use]
    pub fn stores_body(self) -> bool {
        matches!(self, Self::PutObject | Self::UploadPart | Self::PostObject)
    }

    /// Returns true if a bucket may hold more after it.
    #[must_use]
    pub fn adds(self) -> bool {
        let copies = matches!(self, Self::CopyObject | Self::UploadPartCopy);
        let of_uploads = matches!(self, Self::CreateMultipartUpload | Self::CompleteMultipartUpload);
        copies || self.stores_body() || of_uploads || self == Self::PutObjectTagging
    }

    /// Returns the maximum length of its document in bytes, or `None` if its body is not a
    /// document.
    #[must_use]
    pub fn longest_document(self) -> Option<u64> {
        match self {
            Self::DeleteObjects => Some(2 << 20),
            Self::CompleteMultipartUpload => Some(4 << 20),
            Self::PutObjectTagging => Some(64 << 10),
            _ => None,
        }
    }

    /// Returns true if the store may work for minutes before it answers, or answer 200 followed by
    /// an error.
    #[must_use]
    pub fn is_long(self) -> bool {
        matches!(self, Self::CompleteMultipartUpload | Self::CopyObject | Self::UploadPartCopy)
    }

    /// Returns true if the store answers with a list, whose entries may name an owner.
    #[must_use]
    pub fn lists(self) -> bool {
        let of_objects = matches!(self, Self::ListObjectVersions | Self::ListObjects | Self::ListObjectsV2);
        of_objects || matches!(self, Self::ListMultipartUploads | Self::ListParts)
    }
}

/// Refuses a repeated parameter: gateway and store might each use a different one of the two.
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
        // Some stores walk the file system to a position, and a token may be the position itself.
        if PLACES.iter().any(|name| is(name)) && climbs(&pair.value) {
            return argument("A segment of it is . or .., which no key has.", pair);
        }
        if PLACES.iter().any(|name| is(name)) && reserved::find_folder(&pair.value).is_some() {
            return argument("A folder in it is one that stores keep for themselves.", pair);
        }
        // A store writes the value as a header of its response.
        if pair.name.starts_with(b"response-") && pair.value.iter().any(u8::is_ascii_control) {
            return argument("A header of an answer has no control characters.", pair);
        }
    }
    Ok(())
}

/// Returns true if a value can be the id of a version or an upload. Some stores build a path from
/// it.
pub(crate) fn is_id(value: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+=-".contains(byte);
    (1..=1024).contains(&value.len()) && value.iter().all(allowed) && value != b"." && value != b".."
}

/// Returns true if a store that keeps objects in folders could resolve the value to a parent
/// folder.
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
