//! Error messages: for each error code the message that real stores send with it.
//!
//! s3s leaves the message of many errors empty (its own and those of `s3_error!(Code)`). Clients
//! log messages and operators write them into conditions, so empty ones would hide bugs that real
//! messages cause. The messages are those of Amazon S3, which moto and MinIO use too.

use http::HeaderMap;
use s3s::{S3Error, S3ErrorCode};

/// Returns an error with the message that real stores send for this code.
pub(super) fn refuse(code: S3ErrorCode) -> S3Error {
    match message(&code) {
        Some(message) => S3Error::with_message(code, message),
        None => S3Error::new(code),
    }
}

/// Returns an error with the given message, for codes that have several meanings.
pub(super) fn refuse_because(code: S3ErrorCode, message: impl Into<String>) -> S3Error {
    S3Error::with_message(code, message.into())
}

/// Returns an `InvalidArgument` with a message about the argument.
pub(super) fn invalid_argument(message: impl Into<String>) -> S3Error {
    refuse_because(S3ErrorCode::InvalidArgument, message)
}

/// Returns an error with the header for a delete marker as the newest version.
pub(super) fn refuse_marker(code: S3ErrorCode) -> S3Error {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-delete-marker", http::HeaderValue::from_static("true"));
    headers.insert("content-type", http::HeaderValue::from_static("application/xml"));
    let mut error = refuse(code);
    error.set_headers(headers);
    error
}

/// Returns the message of Amazon S3 for a code; `None` for codes that this store never sends.
pub(super) fn message(code: &S3ErrorCode) -> Option<&'static str> {
    use S3ErrorCode as Code;
    Some(match *code {
        Code::AccessDenied => "Access Denied",
        Code::BadDigest => {
            "The Content-MD5 or checksum value that you specified did not match what the server received."
        }
        Code::BucketAlreadyExists => {
            "The requested bucket name is not available. The bucket namespace is shared by all users of the system. \
             Please select a different name and try again."
        }
        Code::BucketAlreadyOwnedByYou => {
            "Your previous request to create the named bucket succeeded and you already own it."
        }
        Code::BucketNotEmpty => "The bucket you tried to delete is not empty",
        Code::EntityTooSmall => "Your proposed upload is smaller than the minimum allowed size",
        Code::IncompleteBody => "You did not provide the number of bytes specified by the Content-Length HTTP header",
        Code::InternalError => "We encountered an internal error. Please try again.",
        Code::InvalidAccessKeyId => "The AWS Access Key Id you provided does not exist in our records.",
        Code::InvalidBucketName => "The specified bucket is not valid.",
        Code::InvalidBucketState => "The request is not valid for the current state of the bucket.",
        Code::InvalidDigest => "The Content-MD5 you specified is not valid.",
        Code::InvalidLocationConstraint => "The specified location-constraint is not valid",
        Code::InvalidPart => {
            "One or more of the specified parts could not be found. The part may not have been uploaded, \
             or the specified entity tag may not match the part's entity tag."
        }
        Code::InvalidPartOrder => "The list of parts was not in ascending order. Parts must be ordered by part number.",
        Code::InvalidRange => "The requested range is not satisfiable",
        Code::KeyTooLongError => "Your key is too long",
        Code::MalformedXML => {
            "The XML you provided was not well-formed or did not validate against our published schema"
        }
        Code::MethodNotAllowed => "The specified method is not allowed against this resource.",
        Code::NoSuchBucket => "The specified bucket does not exist",
        Code::NoSuchKey => "The specified key does not exist.",
        Code::NoSuchObjectLockConfiguration => "The specified object does not have a ObjectLock configuration",
        Code::NoSuchTagSet => "The TagSet does not exist",
        Code::NoSuchUpload => {
            "The specified upload does not exist. The upload ID may be invalid, or the upload may have been \
             aborted or completed."
        }
        Code::NoSuchVersion => "The specified version does not exist.",
        Code::NotImplemented => "A header you provided implies functionality that is not implemented.",
        Code::ObjectLockConfigurationNotFoundError => "Object Lock configuration does not exist for this bucket",
        Code::PreconditionFailed => "At least one of the pre-conditions you specified did not hold",
        Code::RequestTimeTooSkewed => "The difference between the request time and the current time is too large.",
        Code::SignatureDoesNotMatch => {
            "The request signature we calculated does not match the signature you provided. \
             Check your key and signing method."
        }
        _ => return None,
    })
}
