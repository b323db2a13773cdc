//! What a failed call to the store means.

use std::fmt;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

/// A failed call. Its text is stable: operation and code, without request ids, times or keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {class}")]
pub struct UpstreamError {
    /// S3's name of the operation.
    pub operation: &'static str,
    /// What it means.
    pub class: Class,
}

/// What a failed call means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// No answer: whether it happened is unknown.
    NoAnswer,
    /// 401 or 403.
    Denied {
        /// S3's error code; the status where there was no body.
        code: String,
    },
    /// The store asks us to slow down.
    Throttled,
    /// The store does not know this operation.
    Unsupported,
    /// Any other answer that is an error.
    Failed {
        /// S3's error code; the status where there was no body.
        code: String,
    },
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => write!(f, "the store gave no answer"),
            Self::Denied { code } => write!(f, "the store refuses us ({code})"),
            Self::Throttled => write!(f, "the store asks to slow down"),
            Self::Unsupported => write!(f, "the store does not implement it"),
            Self::Failed { code } => write!(f, "the store failed ({code})"),
        }
    }
}

/// What the SDK says of a failed call: its HTTP status, if there was an answer, and S3's code, if that had a body.
pub(super) struct Refusal {
    pub(super) status: Option<u16>,
    pub(super) code: Option<String>,
}

impl Refusal {
    pub(super) fn of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Self {
        let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(str::to_owned);
        Self { status: error.raw_response().map(|response| response.status().as_u16()), code }
    }

    /// Whether S3's code is this one.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    pub(super) fn error(self, operation: &'static str) -> UpstreamError {
        UpstreamError { operation, class: self.class() }
    }

    fn class(self) -> Class {
        let Some(status) = self.status else { return Class::NoAnswer };
        let code = self.code.unwrap_or_else(|| format!("HTTP {status}"));
        match (status, code.as_str()) {
            (_, "SlowDown" | "Throttling" | "ThrottlingException" | "TooManyRequests") | (429, _) => Class::Throttled,
            (501, _) | (_, "NotImplemented") => Class::Unsupported,
            (405, "MethodNotAllowed") => Class::Unsupported,
            (401 | 403, _) => Class::Denied { code },
            _ => Class::Failed { code },
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // covers: 1.backend.reason.CredentialsInvalid
    #[rstest]
    #[case(None, None, Class::NoAnswer)]
    #[case(Some(503), Some("SlowDown"), Class::Throttled)]
    #[case(Some(501), None, Class::Unsupported)]
    #[case(Some(501), Some("NotImplemented"), Class::Unsupported)]
    #[case(Some(403), None, Class::Denied { code: "HTTP 403".into() })]
    #[case(Some(403), Some("InvalidAccessKeyId"), Class::Denied { code: "InvalidAccessKeyId".into() })]
    #[case(Some(404), Some("NoSuchBucket"), Class::Failed { code: "NoSuchBucket".into() })]
    #[case(Some(500), Some("InternalError"), Class::Failed { code: "InternalError".into() })]
    fn answers_are_classified(#[case] status: Option<u16>, #[case] code: Option<&str>, #[case] class: Class) {
        let refusal = Refusal { status, code: code.map(str::to_owned) };
        assert_eq!(refusal.error("CreateBucket"), UpstreamError { operation: "CreateBucket", class });
    }
}
