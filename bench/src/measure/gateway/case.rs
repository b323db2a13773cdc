//! The cases of the measurement.

use clap::ValueEnum;
use serde::Serialize;

use crate::measure::figures::{self, Part};
use crate::measure::table;

/// Values of one turn.
pub(super) type Figures = figures::Figures<Case>;
/// Column of a gateway, or of a subject it is compared with.
pub(super) type Column = table::Column<Case>;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// Memory at rest, with all keys known.
    Idle,
    /// Memory while many clients read large objects slowly.
    SlowGet,
    /// Memory while many clients send large objects slowly.
    SlowPut,
    /// Signed ListBuckets, which needs no request to the store.
    ListBuckets,
    /// A request with a wrong signature.
    BadSignature,
    /// A request for another tenant's bucket.
    Scope,
    /// HEAD of an object.
    Head,
    /// GET of 1 KiB.
    GetSmall,
    /// PUT of 1 KiB, with its hash signed.
    PutSmall,
    /// GET of a large object.
    GetLarge,
    /// PUT of a large object, UNSIGNED-PAYLOAD.
    PutLarge,
    /// PUT of a large object in signed chunks of 64 KiB.
    PutChunks,
    /// GET of a large object, over TLS from client to gateway and from gateway to store.
    TlsGet,
    /// PUT of a large object, over the same TLS connections.
    TlsPut,
    /// GET of 1 KiB through a gateway that shares its core with a real store, and without the
    /// gateway.
    StoreGet,
    /// PUT of 1 KiB, with and without the gateway in the same way.
    StorePut,
    /// GET of 1 MiB, with and without the gateway in the same way.
    StoreGetMib,
    /// Time from the deletion of a key's Secret to the first refused request.
    Revoke,
}

/// Kind of work of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Memory at rest.
    Rest,
    /// Memory under slow clients, which upload if `sends`.
    Slow { sends: bool },
    /// Requests that a gateway answers without the store.
    Local,
    /// Small requests that need the store.
    Small,
    /// Large bodies to or from the store; measured for gateways only if `signed`.
    Large { signed: bool },
    /// Large bodies over TLS.
    LargeTls,
    /// Requests to a real store.
    Real,
    /// Time until a revoked key is refused.
    Revocation,
}

impl Case {
    const ALL: [Self; 18] = [
        Self::Idle,
        Self::SlowGet,
        Self::SlowPut,
        Self::ListBuckets,
        Self::BadSignature,
        Self::Scope,
        Self::Head,
        Self::GetSmall,
        Self::PutSmall,
        Self::GetLarge,
        Self::PutLarge,
        Self::PutChunks,
        Self::TlsGet,
        Self::TlsPut,
        Self::StoreGet,
        Self::StorePut,
        Self::StoreGetMib,
        Self::Revoke,
    ];

    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Idle => Shape::Rest,
            Self::SlowGet => Shape::Slow { sends: false },
            Self::SlowPut => Shape::Slow { sends: true },
            Self::ListBuckets | Self::BadSignature | Self::Scope => Shape::Local,
            Self::Head | Self::GetSmall | Self::PutSmall => Shape::Small,
            Self::GetLarge | Self::PutLarge => Shape::Large { signed: false },
            Self::PutChunks => Shape::Large { signed: true },
            Self::TlsGet | Self::TlsPut => Shape::LargeTls,
            Self::StoreGet | Self::StorePut | Self::StoreGetMib => Shape::Real,
            Self::Revoke => Shape::Revocation,
        }
    }
}

impl Part for Case {
    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::SlowGet => "slow-get",
            Self::SlowPut => "slow-put",
            Self::ListBuckets => "list-buckets",
            Self::BadSignature => "bad-signature",
            Self::Scope => "scope",
            Self::Head => "head",
            Self::GetSmall => "get-small",
            Self::PutSmall => "put-small",
            Self::GetLarge => "get-large",
            Self::PutLarge => "put-large",
            Self::PutChunks => "put-chunks",
            Self::TlsGet => "tls-get",
            Self::TlsPut => "tls-put",
            Self::StoreGet => "store-get",
            Self::StorePut => "store-put",
            Self::StoreGetMib => "store-get-mib",
            Self::Revoke => "revoke",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_are_measured_in_their_order_and_by_their_names() {
        let mut sorted = Case::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Case::ALL);
        let names = Case::value_variants().iter().filter_map(Case::to_possible_value);
        let told = Case::ALL.map(|case| case.name().to_owned());
        assert_eq!(names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>(), told);
    }
}
