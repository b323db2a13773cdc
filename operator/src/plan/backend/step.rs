//! Steps, answers and ends of a pass over a backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Backend, S3BackendStatus, ServedBy};

use super::uptime::Uptime;

/// A step of a pass over a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendStep {
    /// PATCH the backend: annotate it with this operator.
    Serve(ServedBy),
    /// GET the admin and the CA Secret, and replace the client if either changed. Both are watched
    /// from here on.
    Connect(Arc<Backend>),
    /// ListBuckets with the current client.
    Probe,
    /// Wake the claims on the backend.
    WakeClaims,
    /// Choose the time of the next probe: about this long from now, with jitter so that backends
    /// probed together don't stay together.
    Schedule(Duration),
    /// Count the claims that are bound on the backend, see [`super::is_bound_on`].
    Count,
    /// PATCH the status.
    WriteStatus(S3BackendStatus),
}

/// Result of a step, together with the step.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendAnswer {
    /// The backend is annotated with its operator.
    Served(ServedBy),
    /// Result of creating the client.
    Connected(Connected),
    /// Result of the probe.
    Probed(Probed),
    /// The claims are woken.
    ClaimsWoken,
    /// The next probe is scheduled: the requested wait, and the actual wait.
    Scheduled(Duration, Duration),
    /// Number of bound claims.
    Counted(i64),
    /// The status is written.
    Written(S3BackendStatus),
    /// The status is not written, because it was written too often. It may be written again after
    /// this time.
    TooOften(S3BackendStatus, Duration),
    /// The API server failed, with this error, which says nothing about the backend.
    Failed(BackendStep, String),
}

/// An answer with its time of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendAnswered {
    /// The answer.
    pub answer: BackendAnswer,
    /// Time of arrival.
    pub at: Uptime,
}

/// Result of creating a backend's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// The client is the one of the last probe.
    Same,
    /// The client is a new one.
    Anew,
    /// No client: a Secret does not exist, possibly only until it is recreated. Names the Secret.
    Missing(String),
    /// No client: a Secret is malformed, not trusted or may not be read. Names the Secret.
    Unusable(String),
}

/// Result of a probe. The texts describe it without request ids or times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// ListBuckets succeeded.
    Succeeded,
    /// No answer.
    NoAnswer(String),
    /// 401 or 403.
    Denied(String),
    /// Any other error.
    Failed(String),
}

/// The end of a pass over a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendEnd {
    /// The status is up to date.
    Rest {
        /// Time until the next pass.
        after: Duration,
        /// True if the pass proves that an earlier failure is over.
        resets_backoff: bool,
    },
    /// Another operator serves the backend. It is left alone until that changes.
    LeftAlone(ServedBy),
    /// The status may not be written before this time has passed.
    Wait(Duration),
    /// Something failed that may succeed on retry. Holds the reason.
    Retry(String),
}

impl fmt::Display for BackendStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serve(_) => "note who serves it",
            Self::Connect(_) => "make a client of the store",
            Self::Probe => "probe the store",
            Self::WakeClaims => "wake the claims on the backend",
            Self::Schedule(_) => "schedule the next probe",
            Self::Count => "count the bound claims",
            Self::WriteStatus(_) => "write the status",
        })
    }
}
