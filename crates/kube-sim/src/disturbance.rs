//! Faults that clients of a real API server must tolerate and that an idle one never shows: stale
//! answers, broken watches, and concurrent creation.
//!
//! A request with a [`Disturbance`] among its extensions is answered accordingly. Requests to which
//! it does not apply are answered normally.

use std::time::Duration;

use serde_json::{Value, json};

use super::kind::{Family, Kind};
use super::meta;
use super::store::Store;

/// Maximum delay of an event in a watch that lags or gathers changes.
pub const LAG: Duration = Duration::from_secs(5);

/// Fault in the answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// GET, LIST: the state before this number of the kind's latest changes, under that state's
    /// version. WATCH: an event is sent once this number of further changes of the kind is stored,
    /// or five seconds after the watch fell behind.
    Behind(u64),
    /// LIST: the state before half of the kind's remembered changes.
    Rewound,
    /// WATCH: changes are gathered for five seconds and sent as one event for each object. An
    /// object that was added and deleted meanwhile is never seen, and one that was deleted and
    /// created again is modified.
    Collapsed,
    /// WATCH: ends in place of its first event.
    Cut,
    /// WATCH: the first event is 410.
    Gone,
    /// WATCH: sends nothing and never ends.
    Silent,
    /// WATCH: sends each event twice.
    Duplicated,
    /// LIST: the items are in reverse order.
    Shuffled,
    /// POST: another client has just created a different object of that name.
    TakenByStranger,
    /// POST: the same object has just been created.
    TakenByTwin,
}

impl Disturbance {
    /// Returns the version from which a read of this kind is answered.
    pub(crate) fn version_read(self, state: &Store, kind: &Kind) -> Option<u64> {
        match self {
            Self::Behind(changes) => Some(state.version_before(kind, changes)),
            Self::Rewound => Some(state.version_before(kind, state.remembered(kind).div_ceil(2))),
            _ => None,
        }
    }

    /// Returns the object that takes the name of one about to be created.
    pub(crate) fn rival(self, kind: &Kind, object: &Value) -> Option<Value> {
        match self {
            Self::TakenByStranger => Some(strangers(kind, object)),
            Self::TakenByTwin => Some(object.clone()),
            _ => None,
        }
    }
}

/// Returns an unrelated object of the same name.
fn strangers(kind: &Kind, object: &Value) -> Value {
    let mut rival = object.clone();
    for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
        meta::set(&mut rival, field, Value::Null);
    }
    if kind.family == Family::Secret {
        rival["data"] = json!({"stranger": "eA=="});
    }
    rival
}
