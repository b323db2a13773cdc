//! What a client of a real API server must live with and a server at rest never shows: answers that
//! are old, watches that go wrong, rivals.
//!
//! A request that carries a [`Disturbance`] among its extensions is answered so; requests that it
//! can't happen to are answered as ever.

use std::time::Duration;

use serde_json::{Value, json};

use super::kind::{Family, Kind};
use super::meta;
use super::store::Store;

/// How long a watch that lags, or gathers changes, holds an event back at most.
pub const LAG: Duration = Duration::from_secs(5);

/// What is wrong with the answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// GET, LIST: as the kind stood this many of its changes ago, under that time's version. WATCH:
    /// an event is told once this many further changes of the kind are stored, or five seconds
    /// after the watch fell behind.
    Behind(u64),
    /// LIST: as the kind stood half of its remembered changes ago.
    Rewound,
    /// WATCH: changes are gathered for five seconds, and told as one for each object: what was
    /// added and deleted meanwhile is never seen, what was deleted and made again is modified.
    Collapsed,
    /// WATCH: ends where its first event would have come.
    Cut,
    /// WATCH: 410 is its first event.
    Gone,
    /// WATCH: tells nothing and never ends.
    Silent,
    /// WATCH: tells each event twice.
    Duplicated,
    /// LIST: the items in reverse order.
    Shuffled,
    /// POST: a moment before, a stranger has made another object of that name.
    TakenByStranger,
    /// POST: a moment before, the very object has been made.
    TakenByTwin,
}

impl Disturbance {
    /// The version that a read of this kind is answered from.
    pub(crate) fn version_read(self, state: &Store, kind: &Kind) -> Option<u64> {
        match self {
            Self::Behind(changes) => Some(state.version_before(kind, changes)),
            Self::Rewound => Some(state.version_before(kind, state.remembered(kind).div_ceil(2))),
            _ => None,
        }
    }

    /// The object that takes the name of one that is about to be made.
    pub(crate) fn rival(self, kind: &Kind, object: &Value) -> Option<Value> {
        match self {
            Self::TakenByStranger => Some(strangers(kind, object)),
            Self::TakenByTwin => Some(object.clone()),
            _ => None,
        }
    }
}

/// An object of the same name that has nothing to do with this one.
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
