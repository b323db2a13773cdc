//! What a pass over a backend asks for and does, what it learns from, and how it ends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Backend, S3BackendStatus, ServedBy};

use super::uptime::Uptime;

/// A step of a pass over a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendStep {
    /// PATCH the backend: note that this operator serves it.
    Serve(ServedBy),
    /// GET the admin and the CA Secret, and make the client anew if either changed. From here on
    /// the two are watched.
    Connect(Arc<Backend>),
    /// ListBuckets, by the client that was made last.
    Probe,
    /// Have the claims on the backend look at it again.
    WakeClaims,
    /// Draw when the next probe is due: in about so long, so that backends that were probed
    /// together don't stay together.
    Schedule(Duration),
    /// Count the claims that are bound on the backend, see [`super::is_bound_on`].
    Count,
    /// PATCH the status.
    WriteStatus(S3BackendStatus),
}

/// What a step found out or did, together with what was asked or done.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendAnswer {
    /// It is noted who serves it.
    Served(ServedBy),
    /// What came of making the client.
    Connected(Connected),
    /// What came of the probe.
    Probed(Probed),
    /// The claims will look at it again.
    ClaimsWoken,
    /// The next probe, wanted in about so long, is due in so long.
    Scheduled(Duration, Duration),
    /// So many claims are bound on it.
    Counted(i64),
    /// The status is written.
    Written(S3BackendStatus),
    /// The status is not written: it was too often of late, and may be again after so long.
    TooOften(S3BackendStatus, Duration),
    /// An error of the API server, which says nothing about the backend. Says what.
    Failed(BackendStep, String),
}

/// An answer, and when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendAnswered {
    /// The answer.
    pub answer: BackendAnswer,
    /// When it came.
    pub at: Uptime,
}

/// What came of making a backend's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// It is the one that the last probe was made with.
    Same,
    /// It is another one.
    Anew,
    /// There is none: a Secret does not exist, perhaps only until it is made anew. Says which.
    Missing(String),
    /// There is none: a Secret is malformed, not trusted or may not be read. Says which.
    Unusable(String),
}

/// What came of a probe. The texts say what happened, without request ids or times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// ListBuckets succeeded.
    Succeeded,
    /// Nobody answered.
    NoAnswer(String),
    /// 401 or 403.
    Denied(String),
    /// Any other error.
    Failed(String),
}

/// The end of a pass over a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendEnd {
    /// The status says what is known.
    Rest {
        /// When to look again.
        after: Duration,
        /// Whether what failed before is made up for.
        resets_backoff: bool,
    },
    /// Another operator serves it: it is left alone until that changes.
    LeftAlone(ServedBy),
    /// The status can't be written before so long.
    Wait(Duration),
    /// Something failed that may succeed when tried again. Says what.
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
