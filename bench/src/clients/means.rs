//! Programs with which clients are played, and the endpoints that they call.

use stowage_testbed::control_plane::Programs;

use crate::measure::stores::Program;

/// Programs with which clients are played.
pub(crate) struct Means {
    pub(super) store: Program,
    pub(super) programs: Programs,
    pub(super) operator: Vec<String>,
    pub(super) gateway: Vec<String>,
}

/// Endpoint that a client calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    /// The gateway over http.
    Http,
    /// The gateway over https, with a certificate authority created for the run.
    Https,
    /// The store itself, with its administrator's key, to see problems that the gateway doesn't
    /// cause.
    Store,
}

impl Over {
    /// Returns its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Store => "store",
        }
    }
}
