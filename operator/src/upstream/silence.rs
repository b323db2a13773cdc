//! Reasons for a call without an answer, as a few fixed phrases. The text of the errors contains
//! addresses, names and times, and differs from call to call.

use std::error::Error;
use std::io;
use std::{fmt, iter};

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use hyper_util::client::legacy;
use rustls::CertificateError;
use store_tls::is_authority;

use super::connect::Unresolved;

/// Maximum depth of an error's chain of causes that is searched.
const DEEPEST: usize = 16;

/// The reason why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The host name doesn't resolve.
    Unresolved,
    /// Nothing listens at the address.
    Refused,
    /// There is no route to the address.
    Unreachable,
    /// No address accepted a connection in time.
    NoConnection,
    /// The certificate is not accepted.
    Certificate(Doubt),
    /// TLS failed in another way.
    Tls,
    /// No answer came in time.
    Late,
    /// The connection was closed.
    Closed,
    /// The connection failed in another way.
    Broken,
}

/// The reason why a certificate is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No trusted authority has signed it.
    Issuer,
    /// The certificate is for other names.
    Name,
    /// The certificate is an authority's own and not in the CA bundle.
    Authority,
    /// The certificate has expired, or is not valid yet.
    Time,
    /// Any other reason.
    Other,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unresolved => "its host name can't be resolved",
            Self::Refused => "the connection is refused",
            Self::Unreachable => "there is no way to its address",
            Self::NoConnection => "no connection came about in time",
            Self::Certificate(Doubt::Issuer) => {
                "its certificate is signed by nobody who is trusted; give the backend a CA bundle"
            }
            Self::Certificate(Doubt::Authority) => {
                "its certificate is an authority's own; if it is to be believed, put it into the backend's CA bundle"
            }
            Self::Certificate(Doubt::Name) => "its certificate is for another host name",
            Self::Certificate(Doubt::Time) => "its certificate has expired or is not valid yet",
            Self::Certificate(Doubt::Other) => "its certificate is not accepted",
            Self::Tls => "TLS can't be agreed on; does it speak https?",
            Self::Late => "none came in time",
            Self::Closed => "the connection was closed",
            Self::Broken => "the connection failed",
        })
    }
}

impl Silence {
    /// Finds the reason in the SDK's error.
    pub(super) fn of<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> Self {
        if matches!(error, SdkError::TimeoutError(_)) {
            return Self::Late;
        }
        let connecting = causes(error).filter_map(|cause| cause.downcast_ref::<legacy::Error>());
        let connecting = connecting.last().is_some_and(legacy::Error::is_connect);
        let words = |cause: &(dyn Error + 'static)| Self::of_cause(cause, connecting);
        // The innermost cause is the most precise.
        causes(error).filter_map(words).last().unwrap_or(Self::Broken)
    }

    fn of_cause(cause: &(dyn Error + 'static), connecting: bool) -> Option<Self> {
        if cause.is::<Unresolved>() {
            return Some(Self::Unresolved);
        }
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return Some(match error {
                rustls::Error::InvalidCertificate(why) => Self::Certificate(doubt(why)),
                _ => Self::Tls,
            });
        }
        if let Some(error) = cause.downcast_ref::<ConnectorError>() {
            return error.is_timeout().then_some(Self::Late);
        }
        match cause.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::ConnectionRefused => Some(Self::Refused),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(Self::Unreachable),
            io::ErrorKind::TimedOut if connecting => Some(Self::NoConnection),
            io::ErrorKind::TimedOut => Some(Self::Late),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Some(Self::Closed),
            _ => None,
        }
    }
}

fn doubt(why: &CertificateError) -> Doubt {
    match why {
        CertificateError::UnknownIssuer => Doubt::Issuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Doubt::Name,
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Doubt::Time,
        why if is_authority(why) => Doubt::Authority,
        _ => Doubt::Other,
    }
}

/// Iterates over an error and its causes, from the outside in. The inner error of an I/O error
/// counts as its cause.
pub(super) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
    .take(DEEPEST)
}

#[cfg(test)]
#[path = "silence_tests.rs"]
mod tests;
