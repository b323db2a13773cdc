//! What is measured.

use clap::ValueEnum;
use serde::Serialize;

use crate::bench::figures::{self, Part};
use crate::bench::table;

/// The numbers of one turn.
pub(super) type Figures = figures::Figures<Case>;
/// A gateway, or what is measured beside it.
pub(super) type Column = table::Column<Case>;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// Memory at rest, with all keys known.
    Idle,
    /// Signed ListBuckets, which no store is asked for.
    ListBuckets,
    /// A request whose signature is wrong.
    BadSignature,
    /// A request for somebody else's bucket.
    Scope,
    /// HEAD of an object.
    Head,
    /// GET of 1 KiB.
    GetSmall,
    /// PUT of 1 KiB, its hash signed.
    PutSmall,
    /// GET of a large object.
    GetLarge,
    /// PUT of a large object, UNSIGNED-PAYLOAD.
    PutLarge,
}

impl Case {
    const ALL: [Self; 9] = [
        Self::Idle,
        Self::ListBuckets,
        Self::BadSignature,
        Self::Scope,
        Self::Head,
        Self::GetSmall,
        Self::PutSmall,
        Self::GetLarge,
        Self::PutLarge,
    ];
}

impl Part for Case {
    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::ListBuckets => "list-buckets",
            Self::BadSignature => "bad-signature",
            Self::Scope => "scope",
            Self::Head => "head",
            Self::GetSmall => "get-small",
            Self::PutSmall => "put-small",
            Self::GetLarge => "get-large",
            Self::PutLarge => "put-large",
        }
    }
}
