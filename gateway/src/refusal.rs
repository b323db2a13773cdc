//! Error responses, with S3's codes.

use std::borrow::Cow;

use http::StatusCode;

/// An S3 error response. Its text is for the client: it has nothing about a store's key or another
/// tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// S3's error code.
    pub code: Code,
    /// Message for the client: what was wrong and what to do.
    pub message: Cow<'static, str>,
    /// Further elements of the response, by name.
    pub details: Vec<(&'static str, String)>,
}

impl Refusal {
    /// Creates an error with this message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }

    /// Adds one more element.
    #[must_use]
    pub fn with(mut self, element: &'static str, value: impl Into<String>) -> Self {
        self.details.push((element, value.into()));
        self
    }
}

macro_rules! codes {
    ($($(#[$about:meta])* $code:ident = $status:ident;)*) => {
        /// The error codes that the gateway itself returns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$about])* $code,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// Returns the text of the `<Code>` element.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                }
            }

            /// Returns the status of the response.
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
    /// No rule allows this to a page of this origin.
    AccessForbidden = FORBIDDEN;
    /// The caller may not do this.
    AccessDenied = FORBIDDEN;
    /// The `Authorization` header is malformed, or is for another region or service.
    AuthorizationHeaderMalformed = BAD_REQUEST;
    /// The signature's query parameters are malformed.
    AuthorizationQueryParametersError = BAD_REQUEST;
    /// An incomplete CORS preflight.
    BadRequest = BAD_REQUEST;
    /// The bucket already exists and is the caller's.
    BucketAlreadyOwnedByYou = CONFLICT;
    /// The body doesn't match its checksum.
    BadDigest = BAD_REQUEST;
    /// More bytes than may be sent at once.
    EntityTooLarge = BAD_REQUEST;
    /// Fewer bytes than a policy requires.
    EntityTooSmall = BAD_REQUEST;
    /// The body ended early.
    IncompleteBody = BAD_REQUEST;
    /// The gateway itself failed.
    InternalError = INTERNAL_SERVER_ERROR;
    /// The access key id is unknown, or its key has ended.
    InvalidAccessKeyId = FORBIDDEN;
    /// An invalid value.
    InvalidArgument = BAD_REQUEST;
    /// An invalid bucket name.
    InvalidBucketName = BAD_REQUEST;
    /// An invalid digest.
    InvalidDigest = BAD_REQUEST;
    /// The parts of an upload are not in ascending order.
    InvalidPartOrder = BAD_REQUEST;
    /// A request that contradicts itself.
    InvalidRequest = BAD_REQUEST;
    /// Session tokens are not supported.
    InvalidToken = BAD_REQUEST;
    /// The path or the query is malformed.
    InvalidURI = BAD_REQUEST;
    /// A key of more than 1,024 bytes.
    KeyTooLongError = BAD_REQUEST;
    /// A malformed form.
    MalformedPOSTRequest = BAD_REQUEST;
    /// A malformed chunked or framed body.
    MalformedTrailerError = BAD_REQUEST;
    /// Malformed XML.
    MalformedXML = BAD_REQUEST;
    /// The method is not supported here.
    MethodNotAllowed = METHOD_NOT_ALLOWED;
    /// A body without a length.
    MissingContentLength = LENGTH_REQUIRED;
    /// More metadata than an object may have.
    MetadataTooLarge = BAD_REQUEST;
    /// A required header is missing.
    MissingSecurityHeader = BAD_REQUEST;
    /// The object does not exist.
    NoSuchKey = NOT_FOUND;
    /// The bucket has no public access block configuration.
    NoSuchPublicAccessBlockConfiguration = NOT_FOUND;
    /// The bucket has no tags.
    NoSuchTagSet = NOT_FOUND;
    /// Not implemented.
    NotImplemented = NOT_IMPLEMENTED;
    /// The bucket has no object lock configuration.
    ObjectLockConfigurationNotFoundError = NOT_FOUND;
    /// A condition of the request is not met.
    PreconditionFailed = PRECONDITION_FAILED;
    /// The bucket has reached its quota.
    QuotaExceeded = FORBIDDEN;
    /// The client sent nothing for too long, or too little.
    RequestTimeout = BAD_REQUEST;
    /// The signature's time differs too much from the gateway's.
    RequestTimeTooSkewed = FORBIDDEN;
    /// Something behind the gateway fails, or the gateway lacks information for now.
    ServiceUnavailable = SERVICE_UNAVAILABLE;
    /// The bucket has no encryption configuration.
    ServerSideEncryptionConfigurationNotFoundError = NOT_FOUND;
    /// The signature is not that of this request by this key.
    SignatureDoesNotMatch = FORBIDDEN;
    /// Too many requests.
    SlowDown = SERVICE_UNAVAILABLE;
    /// The head of the request is too long.
    RequestHeaderSectionTooLarge = BAD_REQUEST;
    /// The body does not have the signed hash.
    XAmzContentSHA256Mismatch = BAD_REQUEST;
}
