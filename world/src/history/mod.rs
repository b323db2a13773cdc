//! History: everything that happened in a world that can be told from outside of the operator, in
//! order.
//!
//! Plain data. [`Chronicle`] gathers it while a world runs; oracles judge it afterwards, and a
//! timeline draws it.

mod chronicle;
mod exchange;
pub mod facts;

pub use chronicle::Arrived;
pub use chronicle::Chronicle;
pub use exchange::{Act, Answer, Contents, Exchange, Meant, Received, Right};
pub use facts::Facts;
use jiff::Timestamp;
pub use kube_sim::{Asked, Stored};
use s3_sim::BucketSnapshot;

use crate::effects::{Actor, S3Operation, Trace};

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every event, oldest first.
    pub events: Vec<Event>,
    /// Every call of the operator. An event's `effect` is the number of a line here.
    pub trace: Trace,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, by the world's wall clock.
    pub at: Timestamp,
    /// The call of the operator that did it; `None` for everybody else's doing.
    pub effect: Option<u64>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// Somebody asked the Kubernetes API for a write.
    Asked(Asked),
    /// An object changed.
    Stored(Stored),
    /// A call of the operator was carried out, or refused, by a store.
    Called(Called),
    /// A tenant used a key.
    Used(Used),
    /// A tenant used a key at another gateway than the first.
    UsedAt {
        /// Which, counted from 0.
        gateway: usize,
        /// The use.
        used: Used,
    },
    /// A tenant asked a gateway for something.
    Exchanged(Box<Exchange>),
    /// A tenant used the key of an access.
    AccessUsed(Used),
    /// Somebody tried what a key is not for.
    Tried(Tried),
    /// Somebody did something that is part of the scenario, in words.
    Acted(String),
    /// Somebody's wall clock is off true time from here on.
    ClockOff {
        /// Whose.
        actor: Actor,
        /// Seconds that it is ahead; negative ones behind.
        ahead: i64,
    },
    /// A life of the operator began.
    Began {
        /// Which, counted from 1.
        instance: u32,
    },
    /// A life of the operator ended.
    Ended {
        /// Which, counted from 1.
        instance: u32,
    },
    /// From here on nothing happens but what the operator does of itself: faults have stopped,
    /// people rest.
    Quiet,
    /// From here on the operator has nothing to do either (Q in the oracles).
    AtRest,
}

/// A call of the operator at a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// Host and port of the store.
    pub host: String,
    /// The operation.
    pub operation: S3Operation,
    /// The bucket; `None` for operations on none.
    pub bucket: Option<String>,
    /// Key id that it was signed with, as it stood there for anybody to read.
    pub key_id: Option<String>,
    /// The bucket as it was right before; `None` if there was none.
    pub before: Option<BucketSnapshot>,
    /// The bucket as it was right after; `None` if there was none.
    pub after: Option<BucketSnapshot>,
    /// Status of the store's answer, whatever the operator saw of it.
    pub status: u16,
}

/// A tenant's use of a key at the gateway: what it wanted is in its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Namespace of the tenant.
    pub namespace: String,
    /// The consumer Secret that it read the key from.
    pub secret: String,
    /// The key's id.
    pub access_key_id: String,
    /// The bucket that it wanted to list.
    pub bucket: String,
    /// When it read the Secret.
    pub read_at: Timestamp,
    /// Whether the gateway let it.
    pub allowed: bool,
}

/// An attempt to do at the gateway what a key is not for: on another bucket, or with a bucket
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The key's id.
    pub access_key_id: String,
    /// The operation, by its name in the AWS service model.
    pub operation: String,
    /// The bucket.
    pub bucket: String,
    /// Whether the gateway let it.
    pub allowed: bool,
}

impl History {
    /// Changes of objects of a resource, oldest first, each with its event.
    pub fn changes<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a Event, &'a Stored)> {
        self.events.iter().filter_map(move |event| match &event.what {
            What::Stored(stored) if stored.plural == plural => Some((event, stored)),
            _ => None,
        })
    }

    /// Calls at stores, oldest first, each with its event.
    pub fn calls(&self) -> impl Iterator<Item = (&Event, &Called)> {
        self.events.iter().filter_map(|event| match &event.what {
            What::Called(called) => Some((event, called)),
            _ => None,
        })
    }

    /// Which life of the operator made a call; 0 for a number that no call has.
    pub fn instance_of(&self, effect: u64) -> u32 {
        let index = usize::try_from(effect).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.trace.lines().get(index)).map_or(0, |line| line.instance)
    }

    /// When the operator was at rest, if that was waited for.
    pub fn at_rest(&self) -> Option<Timestamp> {
        self.events.iter().rev().find(|event| matches!(event.what, What::AtRest)).map(|event| event.at)
    }
}
