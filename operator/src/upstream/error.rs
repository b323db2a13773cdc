//! Errors of calls to the store.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use crate::mandate::NoMandate;
use crate::metrics::CallResult;

use super::bounded::is_too_long;
use super::silence::Silence;
use super::whole::is_not_s3;

/// Maximum length of an error code.
const LONGEST_CODE: usize = 64;

/// A failed call.
///
/// Its text is stable and short: the operation and an error code or a fixed phrase, without request
/// ids, times or keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {class}")]
pub struct UpstreamError {
    /// S3's name of the operation.
    pub operation: &'static str,
    /// Classification of the failure.
    pub class: Class,
}

/// Classification of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// There was no answer. The call may have taken effect.
    NoAnswer(Silence),
    /// The answer is unusable. The call may have taken effect.
    Unusable(Flaw),
    /// The circuit is open: the store has given no usable answer to this operation repeatedly, and
    /// gets only trial calls.
    Failing {
        /// True if the call was made, and so may have taken effect.
        asked: bool,
    },
    /// This operator may not change anything, or not now. The call was not made.
    Forbidden(NoMandate),
    /// 401 or 403 with an S3 error code.
    Denied {
        /// S3's error code.
        code: String,
    },
    /// The store asks to slow down.
    Throttled,
    /// The store does not support this operation.
    Unsupported,
    /// Any other error.
    Failed {
        /// S3's error code, or the status if there was none.
        code: String,
    },
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(why) => write!(f, "the store gave no answer: {why}"),
            Self::Unusable(flaw) => write!(f, "the store's answer can't be used: {flaw}"),
            // The same text for both, because the status must not change with every trial.
            Self::Failing { .. } => write!(f, "the store fails again and again and is given a rest between trials"),
            Self::Forbidden(why) => write!(f, "{why}"),
            Self::Denied { code } => write!(f, "the store refuses us ({code})"),
            Self::Throttled => write!(f, "the store asks to slow down"),
            Self::Unsupported => write!(f, "the store does not implement it"),
            Self::Failed { code } => write!(f, "the store failed ({code})"),
        }
    }
}

/// The reason why an answer is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The answer is longer than any to this operation, and was not read to its end.
    TooLong,
    /// The answer reports success and breaks off.
    Cut,
    /// The answer reports success and is not an S3 answer.
    Unreadable,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is longer than any of this operation",
            Self::Cut => "it breaks off",
            Self::Unreadable => "it is not what S3 answers",
        })
    }
}

impl Flaw {
    /// Returns the flaw of an answer. With an error status, only a body that is too long is a
    /// flaw.
    fn of<E: Error + 'static>(error: &SdkError<E, HttpResponse>, code: Option<&str>) -> Option<Self> {
        let success = error.raw_response()?.status().is_success();
        match error {
            _ if is_too_long(error) => Some(Self::TooLong),
            _ if is_not_s3(error) => Some(Self::Unreadable),
            SdkError::ResponseError(_) if success => Some(Self::Cut),
            _ if success && code.is_none() => Some(Self::Unreadable),
            _ => None,
        }
    }
}

/// A failed call: its HTTP status, if there was an answer, and S3's code, if the answer had a body.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) operation: &'static str,
    pub(super) status: Option<u16>,
    /// S3's error code, only if it is well-formed.
    pub(super) code: Option<String>,
    /// The reason why the answer is unusable.
    flaw: Option<Flaw>,
    /// The reason why there was no answer; counts only without a status.
    silence: Silence,
    /// The bucket's region according to the store.
    pub(super) region: Option<String>,
    /// Time from the store's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
    /// True if no request was sent, so that this says nothing about the store.
    pub(super) unsent: bool,
    /// Set if the call would have changed something and this operator may not.
    forbidden: Option<NoMandate>,
    /// Set if the circuit is open.
    pub(super) failing: Option<Asked>,
}

/// True if the store was called although the circuit is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked(pub(super) bool);

impl Refusal {
    /// Converts the SDK's error.
    pub(super) fn of<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let told = error.as_service_error().and_then(ProvideErrorMetadata::code);
        let response = error.raw_response();
        let header = |name| response.and_then(|response| response.headers().get(name));
        let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok());
        Self {
            operation,
            status: response.map(|response| response.status().as_u16()),
            code: told.and_then(code).map(str::to_owned),
            flaw: Flaw::of(error, told),
            silence: Silence::of(error),
            region: header("x-amz-bucket-region").map(str::to_owned),
            retry_after: retry_after.map(Duration::from_secs),
            unsent: matches!(error, SdkError::ConstructionFailure(_)),
            forbidden: None,
            failing: None,
        }
    }

    /// Returns the error of a call that was not made because the circuit is open.
    pub(super) fn not_asked(operation: &'static str) -> Self {
        Self {
            operation,
            status: None,
            code: None,
            flaw: None,
            silence: Silence::Broken,
            region: None,
            retry_after: None,
            unsent: true,
            forbidden: None,
            failing: Some(Asked(false)),
        }
    }

    /// Returns the error of a call that was not made because it would have changed something.
    pub(super) fn forbidden(operation: &'static str, why: NoMandate) -> Self {
        Self { forbidden: Some(why), failing: None, ..Self::not_asked(operation) }
    }

    /// Returns true if S3's code is this one.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Returns true if the store reports that the bucket is in another region.
    ///
    /// Amazon S3 does so before it checks the bucket's owner, with 301 `PermanentRedirect` or 400
    /// `AuthorizationHeaderMalformed`.
    pub(super) fn is_elsewhere(&self, region: &str) -> bool {
        self.flaw.is_none()
            && matches!(self.status, Some(301 | 400))
            && self.region.as_deref().is_some_and(|theirs| theirs != region)
    }

    /// Returns true if the store could not take the call at all. A plain 500 doesn't count, as it
    /// may be about this request.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self.status, None | Some(429 | 502..=504)) || self.class() == Class::Throttled
    }

    /// Returns the metrics label.
    pub(super) fn result(&self) -> CallResult {
        match (self.status, self.class()) {
            (Some(404), _) => CallResult::NotFound,
            (Some(409), _) => CallResult::Conflict,
            (_, Class::NoAnswer(_) | Class::Failing { .. }) => CallResult::NoAnswer,
            (_, Class::Denied { .. } | Class::Forbidden(_)) => CallResult::Denied,
            (_, Class::Throttled) => CallResult::Throttled,
            (_, Class::Unsupported) => CallResult::Unsupported,
            (_, Class::Failed { .. } | Class::Unusable(_)) => CallResult::Failed,
        }
    }

    pub(super) fn error(self) -> UpstreamError {
        UpstreamError { operation: self.operation, class: self.class() }
    }

    pub(super) fn class(&self) -> Class {
        if let Some(why) = self.forbidden {
            return Class::Forbidden(why);
        }
        if let Some(Asked(asked)) = self.failing {
            return Class::Failing { asked };
        }
        let Some(status) = self.status else { return Class::NoAnswer(self.silence) };
        if let Some(flaw) = self.flaw {
            return Class::Unusable(flaw);
        }
        let code = self.code.clone().unwrap_or_else(|| format!("HTTP {status}"));
        match (status, code.as_str()) {
            (_, code) if is_throttle(code) => Class::Throttled,
            (429, _) => Class::Throttled,
            (501, _) | (_, "NotImplemented") => Class::Unsupported,
            (405, "MethodNotAllowed") => Class::Unsupported,
            // Without a code the refusal may come from a proxy, which answers with a page.
            (401 | 403, _) if self.code.is_some() => Class::Denied { code },
            _ => Class::Failed { code },
        }
    }
}

/// Returns an error code if it is well-formed. The store chooses the text, and it ends up in
/// statuses and logs.
pub(super) fn code(told: &str) -> Option<&str> {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    ((1..=LONGEST_CODE).contains(&told.len()) && told.bytes().all(fits)).then_some(told)
}

/// Returns true if a code asks to slow down. MinIO uses `SlowDownRead` and `SlowDownWrite` if it
/// lacks a quorum.
pub(super) fn is_throttle(code: &str) -> bool {
    code.starts_with("SlowDown") || matches!(code, "Throttling" | "ThrottlingException" | "TooManyRequests")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // covers: 1.backend.reason.CredentialsInvalid
    #[rstest]
    #[case(None, None, Class::NoAnswer(Silence::Broken))]
    #[case(Some(503), Some("SlowDown"), Class::Throttled)]
    #[case(Some(503), Some("SlowDownWrite"), Class::Throttled)]
    #[case(Some(501), None, Class::Unsupported)]
    #[case(Some(501), Some("NotImplemented"), Class::Unsupported)]
    #[case(Some(403), None, Class::Failed { code: "HTTP 403".into() })]
    #[case(Some(403), Some("AccessDenied"), Class::Denied { code: "AccessDenied".into() })]
    #[case(Some(403), Some("InvalidAccessKeyId"), Class::Denied { code: "InvalidAccessKeyId".into() })]
    #[case(Some(404), Some("NoSuchBucket"), Class::Failed { code: "NoSuchBucket".into() })]
    #[case(Some(500), Some("InternalError"), Class::Failed { code: "InternalError".into() })]
    fn answers_are_classified(#[case] status: Option<u16>, #[case] code: Option<&str>, #[case] class: Class) {
        let refusal = Refusal { status, code: code.map(str::to_owned), ..Refusal::not_asked("CreateBucket") };
        let refusal = Refusal { failing: None, ..refusal };
        assert_eq!(refusal.error(), UpstreamError { operation: "CreateBucket", class });
    }

    #[rstest]
    #[case(None, None, true)]
    #[case(Some(503), Some("SlowDown"), true)]
    #[case(Some(400), Some("SlowDown"), true)]
    #[case(Some(429), None, true)]
    #[case(Some(502), None, true)]
    #[case(Some(504), None, true)]
    #[case(Some(500), Some("InternalError"), false)]
    #[case(Some(501), Some("NotImplemented"), false)]
    #[case(Some(403), Some("AccessDenied"), false)]
    #[case(Some(404), Some("NoSuchBucket"), false)]
    fn an_outage_is_a_store_that_takes_no_calls(
        #[case] status: Option<u16>,
        #[case] code: Option<&str>,
        #[case] outage: bool,
    ) {
        let refusal = Refusal { status, code: code.map(str::to_owned), ..Refusal::not_asked("CreateBucket") };
        assert_eq!(Refusal { failing: None, ..refusal }.is_outage(), outage);
    }

    // covers: 3.5.code
    #[rstest]
    #[case("NoSuchBucket", true)]
    #[case("XMinioAdminBucketQuotaExceeded", true)]
    #[case("Client.InvalidArgument", true)]
    #[case("", false)]
    #[case("no such bucket", false)]
    #[case("Zugriff<verweigert>", false)]
    #[case("NoSuchB\u{fc}cket", false)]
    #[case("AccessDenied\n2009-02-13T23:31:30Z ERROR", false)]
    fn a_code_is_one_short_word(#[case] told: &str, #[case] is_one: bool) {
        assert_eq!(code(told), is_one.then_some(told));
    }

    // covers: 3.5.code
    #[test]
    fn a_code_has_a_length() {
        let longest = "x".repeat(LONGEST_CODE);
        assert_eq!(code(&longest), Some(longest.as_str()));
        assert_eq!(code(&format!("{longest}x")), None);
    }

    #[test]
    fn of_a_call_that_could_not_be_made_no_request_was_sent() {
        let refusal = |error| Refusal::of::<aws_sdk_s3::Error>("CreateBucket", &error);
        assert!(refusal(SdkError::construction_failure("no such bucket can be had")).unsent);
        assert!(!refusal(SdkError::timeout_error("nobody answers")).unsent);
    }

    #[test]
    fn the_text_is_the_same_whether_a_failing_store_was_asked_or_not() {
        let text = |asked| Class::Failing { asked }.to_string();
        assert_eq!(text(true), text(false));
    }
}
