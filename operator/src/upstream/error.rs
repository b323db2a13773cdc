//! What a failed call to the store means.

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

/// Longest that an error code is.
const LONGEST_CODE: usize = 64;

/// A failed call. Its text is stable and short: operation and code, or a word of ours, without
/// request ids, times or keys.
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
    NoAnswer(Silence),
    /// An answer that nothing can be learned from: whether it happened is unknown.
    Unusable(Flaw),
    /// The store gives no usable answer to this operation again and again, and is asked only now
    /// and then.
    Failing {
        /// Whether it was asked this time: then it is unknown whether it happened, else it did not.
        asked: bool,
    },
    /// This operator may change nothing, never or not now: the store was not asked.
    Forbidden(NoMandate),
    /// 401 or 403, in S3's words.
    Denied {
        /// S3's error code.
        code: String,
    },
    /// The store asks us to slow down.
    Throttled,
    /// The store does not know this operation.
    Unsupported,
    /// Any other answer that is an error.
    Failed {
        /// S3's error code; the status where there was none.
        code: String,
    },
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(why) => write!(f, "the store gave no answer: {why}"),
            Self::Unusable(flaw) => write!(f, "the store's answer can't be used: {flaw}"),
            // The same text whether asked or not: the status must not change with every trial.
            Self::Failing { .. } => write!(f, "the store fails again and again and is given a rest between trials"),
            Self::Forbidden(why) => write!(f, "{why}"),
            Self::Denied { code } => write!(f, "the store refuses us ({code})"),
            Self::Throttled => write!(f, "the store asks to slow down"),
            Self::Unsupported => write!(f, "the store does not implement it"),
            Self::Failed { code } => write!(f, "the store failed ({code})"),
        }
    }
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No more of it was taken in than any of its operation has.
    TooLong,
    /// It says that all is well, and breaks off.
    Cut,
    /// It says that all is well, and is not what S3 says then.
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
    /// What the SDK makes nothing of. Beside a status that tells of an error, a body that can't be
    /// read takes nothing away, unless there is no end to it.
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

/// What is known of a failed call: its HTTP status, if there was an answer, and S3's code, if that
/// had a body.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) operation: &'static str,
    pub(super) status: Option<u16>,
    /// Only if it has the shape of one.
    pub(super) code: Option<String>,
    /// Nothing can be learned from the answer.
    flaw: Option<Flaw>,
    /// Why there was no answer, where there is no status.
    silence: Silence,
    /// The region that the store names as the bucket's.
    pub(super) region: Option<String>,
    /// How long the store asks to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// No request was made of the call: that says nothing of the store.
    pub(super) unsent: bool,
    /// It would have changed something, and this operator may not.
    forbidden: Option<NoMandate>,
    /// The circuit is open; whether the store was asked all the same.
    pub(super) failing: Option<Asked>,
}

/// Whether the store was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked(pub(super) bool);

impl Refusal {
    /// What the SDK says of it.
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

    /// A call that was not made, because the circuit is open.
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

    /// A call that was not made, because it would have changed something.
    pub(super) fn forbidden(operation: &'static str, why: NoMandate) -> Self {
        Self { forbidden: Some(why), failing: None, ..Self::not_asked(operation) }
    }

    /// Whether S3's code is this one.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether the store says that the bucket is in another region than this one: Amazon S3 answers
    /// so before it asks whose it is, by 301 `PermanentRedirect` or 400
    /// `AuthorizationHeaderMalformed`.
    pub(super) fn is_elsewhere(&self, region: &str) -> bool {
        self.flaw.is_none()
            && matches!(self.status, Some(301 | 400))
            && self.region.as_deref().is_some_and(|theirs| theirs != region)
    }

    /// Whether the store could not take the call at all. A plain 500 may be about this very
    /// request.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self.status, None | Some(429 | 502..=504)) || self.class() == Class::Throttled
    }

    /// The word for metrics.
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
            // Without a code it need not be the store that refuses: proxies do, with a page.
            (401 | 403, _) if self.code.is_some() => Class::Denied { code },
            _ => Class::Failed { code },
        }
    }
}

/// An error code, if it has the shape of one. What stands there is the store's to choose, and goes
/// into statuses and logs.
pub(super) fn code(told: &str) -> Option<&str> {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    ((1..=LONGEST_CODE).contains(&told.len()) && told.bytes().all(fits)).then_some(told)
}

/// Whether a code asks to slow down. MinIO says `SlowDownRead` and `SlowDownWrite` where it lacks a
/// quorum.
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
