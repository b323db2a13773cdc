//! What a client is told when it doesn't get what it wants: S3's codes.

use std::borrow::Cow;

use http::StatusCode;

/// An answer that is an error of S3. Its text is for the client to read: nothing of a store's key,
/// nothing of another tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What S3 calls it.
    pub code: Code,
    /// A sentence: what was wrong and what to do.
    pub message: Cow<'static, str>,
    /// Further elements of the answer, by name.
    pub details: Vec<(&'static str, String)>,
}

impl Refusal {
    /// An error with this sentence.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }

    /// The same with one more element.
    #[must_use]
    pub fn with(mut self, element: &'static str, value: impl Into<String>) -> Self {
        self.details.push((element, value.into()));
        self
    }
}

macro_rules! codes {
    ($($(#[$about:meta])* $code:ident = $status:ident;)*) => {
        /// The codes that the gateway itself answers with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$about])* $code,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// The word that stands in `<Code>`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                }
            }

            /// The status of the answer.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self {
                    $(Self::$code => StatusCode::$status,)*
                }
            }
        }
    };
}

codes! {
    /// No page of this origin may do this.
    AccessForbidden = FORBIDDEN;
    /// The caller may not do this.
    AccessDenied = FORBIDDEN;
    /// The `Authorization` header can't be read, or is for another region or service.
    AuthorizationHeaderMalformed = BAD_REQUEST;
    /// The signature's query parameters can't be read.
    AuthorizationQueryParametersError = BAD_REQUEST;
    /// A question about a page's origin that lacks something.
    BadRequest = BAD_REQUEST;
    /// The bucket is there, and the caller's.
    BucketAlreadyOwnedByYou = CONFLICT;
    /// The body is not what its checksum says.
    BadDigest = BAD_REQUEST;
    /// More bytes than may be sent at once.
    EntityTooLarge = BAD_REQUEST;
    /// Fewer bytes than a policy asks for.
    EntityTooSmall = BAD_REQUEST;
    /// The body ended before its time.
    IncompleteBody = BAD_REQUEST;
    /// The gateway itself failed.
    InternalError = INTERNAL_SERVER_ERROR;
    /// Nobody has this key, or nobody any more.
    InvalidAccessKeyId = FORBIDDEN;
    /// A value that is none.
    InvalidArgument = BAD_REQUEST;
    /// A bucket can't be called so.
    InvalidBucketName = BAD_REQUEST;
    /// A digest that is none.
    InvalidDigest = BAD_REQUEST;
    /// The parts of an upload are named in another order than their numbers have.
    InvalidPartOrder = BAD_REQUEST;
    /// A request that contradicts itself.
    InvalidRequest = BAD_REQUEST;
    /// Session tokens are not known here.
    InvalidToken = BAD_REQUEST;
    /// The path or the query can't be read.
    InvalidURI = BAD_REQUEST;
    /// A key of more than 1,024 bytes.
    KeyTooLongError = BAD_REQUEST;
    /// A form that can't be read.
    MalformedPOSTRequest = BAD_REQUEST;
    /// A chunked or framed body that can't be read.
    MalformedTrailerError = BAD_REQUEST;
    /// XML that can't be read.
    MalformedXML = BAD_REQUEST;
    /// No such method here.
    MethodNotAllowed = METHOD_NOT_ALLOWED;
    /// A body without a length.
    MissingContentLength = LENGTH_REQUIRED;
    /// More metadata than an object may have.
    MetadataTooLarge = BAD_REQUEST;
    /// A header that has to be there.
    MissingSecurityHeader = BAD_REQUEST;
    /// There is no such object.
    NoSuchKey = NOT_FOUND;
    /// Nothing is configured about public access to the bucket.
    NoSuchPublicAccessBlockConfiguration = NOT_FOUND;
    /// The bucket has no tags.
    NoSuchTagSet = NOT_FOUND;
    /// What is asked for is not built.
    NotImplemented = NOT_IMPLEMENTED;
    /// Nothing is configured about locks of the bucket's objects.
    ObjectLockConfigurationNotFoundError = NOT_FOUND;
    /// A condition of the request doesn't hold.
    PreconditionFailed = PRECONDITION_FAILED;
    /// The bucket holds as much as it may.
    QuotaExceeded = FORBIDDEN;
    /// Nothing came for too long, or too little.
    RequestTimeout = BAD_REQUEST;
    /// The signature's time is too far from ours.
    RequestTimeTooSkewed = FORBIDDEN;
    /// Something behind the gateway fails, or it can't know yet.
    ServiceUnavailable = SERVICE_UNAVAILABLE;
    /// Nothing is configured about encryption of the bucket.
    ServerSideEncryptionConfigurationNotFoundError = NOT_FOUND;
    /// The signature is not that of this request by this key.
    SignatureDoesNotMatch = FORBIDDEN;
    /// Too much at once.
    SlowDown = SERVICE_UNAVAILABLE;
    /// The head of the request is too long.
    RequestHeaderSectionTooLarge = BAD_REQUEST;
    /// The body does not have the hash that was signed.
    XAmzContentSHA256Mismatch = BAD_REQUEST;
}
