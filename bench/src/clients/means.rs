//! With what clients are played, and what they call.

use stowage_testbed::control_plane::Programs;

use crate::measure::stores::Program;

/// With what clients are played.
pub(crate) struct Means {
    pub(super) store: Program,
    pub(super) programs: Programs,
    pub(super) operator: Vec<String>,
    pub(super) gateway: Vec<String>,
}

/// What a client calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    /// The gateway.
    Http,
    /// The gateway, with a certificate of an authority that is made for this.
    Https,
    /// The store itself with its administrator's key, to see what is not the gateway's doing.
    Store,
}

impl Over {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Store => "store",
        }
    }
}
