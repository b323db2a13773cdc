//! The faults that are decided on a single call, from the outside.
//!
//! Faults that need a world with a past (stale reads, third parties, partial deletes) belong to the worlds themselves.

use std::fmt;

use super::call::CallKind;

/// What is done to a call. Names and meaning are those of a plan's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request never arrives: no effect, and the connection breaks.
    LostRequest,
    /// The request is carried out, then the connection breaks. The caller sees exactly what it sees of [`Fault::LostRequest`].
    LostAnswer,
    /// The request never arrives and no answer ever comes; only the caller's own deadline ends it.
    Hang,
    /// The request takes this long to arrive. A caller that gives up meanwhile has taken it back.
    Slow {
        /// Milliseconds on the way.
        millis: u64,
    },
    /// The operator dies at this point of the call.
    Crash(CrashPoint),

    /// A Kubernetes write is refused because a rival wrote first: 409, reason `Conflict`, not carried out.
    Conflict,
    /// A Kubernetes write is answered with 500, reason `InternalError`.
    ServerError(Applied),
    /// A Kubernetes write is answered with 429 and a `Retry-After`, not carried out.
    Throttle {
        /// Seconds the server asks to wait.
        seconds: u32,
    },
    /// A Kubernetes write is refused by RBAC: 403, reason `Forbidden`.
    Forbidden,
    /// A Kubernetes write is refused by an admission webhook that names no code of its own: 400, the API server's default.
    Denied,
    /// Something can't be created because a ResourceQuota is used up: 403, reason `Forbidden`.
    QuotaExceeded,
    /// Something can't be created because its namespace is going away: 403 with the cause `NamespaceTerminating`.
    NamespaceTerminating,

    /// Nothing listens at the S3 endpoint: the connection is refused.
    Unreachable,
    /// The S3 store answers 500 `InternalError`, not carried out.
    InternalError,
    /// The S3 store answers 503 `SlowDown`, not carried out.
    SlowDown,
    /// The S3 store answers 403 `AccessDenied`, not carried out.
    AccessDenied,
    /// An S3 HEAD request is answered with this status and, as HEAD is, without a body or an error code.
    Head(HeadStatus),
}

/// Where in a call the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Before the request reaches the world.
    Before,
    /// After it is carried out, before the answer is back.
    AfterEffect,
    /// After the answer is back, before the next call of this life is carried out.
    AfterAnswer,
}

impl CrashPoint {
    /// All three, in order of time: the crash points of one effect.
    pub const ALL: [Self; 3] = [Self::Before, Self::AfterEffect, Self::AfterAnswer];
}

/// Whether a request that is answered with an error was carried out nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was.
    Applied,
    /// It was not.
    Not,
}

/// Status of a HEAD answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStatus {
    /// 301: the bucket is in another region.
    Moved,
    /// 400: among others, what some stores send for a wrong region.
    BadRequest,
    /// 403: somebody else's bucket, or no right to look.
    Forbidden,
}

impl HeadStatus {
    /// The status as a number.
    pub fn code(self) -> u16 {
        match self {
            Self::Moved => 301,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
        }
    }
}

impl Fault {
    /// Whether the fault makes sense for a call of this kind.
    ///
    /// # Errors
    ///
    /// Says which calls the fault is for.
    pub fn check(self, kind: CallKind) -> Result<(), &'static str> {
        let (fits, needs) = match self {
            Self::LostRequest | Self::LostAnswer | Self::Hang | Self::Slow { .. } | Self::Crash(_) => {
                (true, "any call")
            }
            Self::Conflict | Self::ServerError(_) | Self::Throttle { .. } | Self::Forbidden | Self::Denied => (
                matches!(kind, CallKind::Kube(verb) if verb.is_write()),
                "Kubernetes writes (create, update, patch, delete, deletecollection)",
            ),
            Self::QuotaExceeded | Self::NamespaceTerminating => (
                matches!(kind, CallKind::Kube(verb) if verb.may_create()),
                "Kubernetes writes that may create (create, patch)",
            ),
            Self::Unreachable | Self::InternalError | Self::SlowDown | Self::AccessDenied => {
                (matches!(kind, CallKind::S3(_)), "S3 calls")
            }
            Self::Head(_) => (
                matches!(kind, CallKind::S3(operation) if operation.is_head()),
                "HEAD requests (HeadBucket, HeadObject)",
            ),
        };
        if fits { Ok(()) } else { Err(needs) }
    }
}

impl fmt::Display for Fault {
    /// The fault as a plan writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LostRequest => f.write_str("lost-request"),
            Self::LostAnswer => f.write_str("lost-answer"),
            Self::Hang => f.write_str("hang"),
            Self::Slow { millis } => write!(f, "slow({millis})"),
            Self::Crash(CrashPoint::Before) => f.write_str("crash(before)"),
            Self::Crash(CrashPoint::AfterEffect) => f.write_str("crash(after-effect)"),
            Self::Crash(CrashPoint::AfterAnswer) => f.write_str("crash(after-answer)"),
            Self::Conflict => f.write_str("conflict"),
            Self::ServerError(Applied::Applied) => f.write_str("server-error(applied)"),
            Self::ServerError(Applied::Not) => f.write_str("server-error(not)"),
            Self::Throttle { seconds } => write!(f, "throttle({seconds})"),
            Self::Forbidden => f.write_str("forbidden"),
            Self::Denied => f.write_str("denied"),
            Self::QuotaExceeded => f.write_str("quota-exceeded"),
            Self::NamespaceTerminating => f.write_str("namespace-terminating"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::InternalError => f.write_str("internal-error"),
            Self::SlowDown => f.write_str("slow-down"),
            Self::AccessDenied => f.write_str("access-denied"),
            Self::Head(status) => write!(f, "head({})", status.code()),
        }
    }
}
