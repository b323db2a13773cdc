//! The scenarios.

mod accesses;
mod basic;
mod elections;
mod names;
mod namespaced;
mod notes;
mod obc;
mod operators;
mod orphans;
mod recovery;
mod removal;
mod requests;
mod rotation;
mod stores;
mod stuck;
mod words;

use super::scenario::Scenario;

/// All scenarios, in the order in which they are explored.
pub static ALL: &[&Scenario] = &[
    &basic::CREATE,
    &names::CONFLICT,
    &names::RACE,
    &names::SHARED_SECRET,
    &basic::ADOPT,
    &names::ADOPT_OWNED,
    &names::ADOPT_NEVER,
    &names::ADOPT_NEVER_EMPTY,
    &names::ADOPT_ELSEWHERE,
    &names::ADOPT_LURED,
    &basic::ROTATE,
    &rotation::BY_TIME,
    &rotation::SPAMMED,
    &rotation::WITHOUT_OVERLAP,
    &rotation::OVERLAPPING,
    &rotation::REVOKED,
    &rotation::REVOKED_IN_ROTATION,
    &notes::REVOKED,
    &operators::RESTART,
    &operators::TEN_YEARS,
    &operators::VERSIONS,
    &rotation::ANONYMOUS,
    &names::ANY_ORDER,
    &basic::QUOTA,
    &basic::QUOTA_TAKEN,
    &basic::RENAME,
    &stores::MOVE,
    &stores::MOVE_PUBLIC,
    &stores::ENDPOINT,
    &removal::DELETE,
    &removal::DELETE_PUBLIC,
    &removal::DELETE_EMPTY,
    &removal::DELETE_FORCED,
    &notes::DELETED,
    &removal::PURGE_SLICES,
    &removal::DELETE_FULL,
    &removal::DELETE_LOCKED,
    &removal::WITHOUT_TAGGING,
    &removal::MISSING_UNTAGGED,
    &stuck::DELETE_PAUSED,
    &stuck::DELETE_WAITING,
    &stuck::DELETE_REFUSED,
    &stuck::DELETE_NOT_ALLOWED,
    &stuck::DELETE_LOST,
    &recovery::BACKEND_FIRST,
    &recovery::NAMESPACE_GONE,
    &recovery::RESTORE,
    &recovery::BURST,
    &operators::MANY_KEYS,
    &operators::FIRST_SERVED,
    &operators::TWO_OPERATORS,
    &operators::TWO_AT_REST,
    &operators::SLOW_TWINS,
    &elections::ELECTED,
    &elections::LEASE_DELETED,
    &recovery::OLDER_VERSION,
    &recovery::OLDER_PAUSED,
    &recovery::NOT_ALLOWED,
    &recovery::SECRET_TAKEN,
    &recovery::BUCKET_LOST,
    &recovery::PAUSED,
    &stores::ADMIN_KEY,
    &stores::STOLEN_ENDPOINT,
    &stores::ANOTHER_STORE,
    &stores::HANGING_STORE,
    &removal::PURGE_VERSIONS,
    &orphans::ORPHANS,
    &namespaced::NAMESPACED,
    &requests::OBJECTS,
    &requests::OBJECTS_PUBLIC,
    &requests::OBJECTS_QUOTA,
    &requests::TWO_GATEWAYS,
    &accesses::MADE,
    &accesses::WITHDRAWN,
    &accesses::DELETED_UNDER,
    &accesses::REMOVED,
    &accesses::NARROWED,
    &accesses::REVOKED,
    &notes::LEFT_BEHIND,
    &obc::MADE,
    &obc::EDITED,
    &obc::DELETED,
    &obc::RETAINED,
    &obc::BROWNFIELD,
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// The names of all scenarios.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name).collect()
}
