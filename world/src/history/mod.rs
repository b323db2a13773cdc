//! History of a world: everything that can be observed from outside the operator, in order.
//!
//! Plain data. [`Chronicle`] records it while a world runs. Afterwards oracles judge it, and a
//! timeline shows it.

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

/// Events of a world, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every event, oldest first.
    pub events: Vec<Event>,
    /// Every call of the operator. An event's `effect` is the number of a line here.
    pub trace: Trace,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time by the world's wall clock.
    pub at: Timestamp,
    /// Number of the operator's call that caused it; `None` if something else did.
    pub effect: Option<u64>,
    /// The event itself.
    pub what: What,
}

/// Kinds of events.
#[derive(Clone, Debug)]
pub enum What {
    /// A client requested a write from the Kubernetes API.
    Asked(Asked),
    /// An object changed.
    Stored(Stored),
    /// A store carried out or refused a call of the operator.
    Called(Called),
    /// A tenant used a key.
    Used(Used),
    /// A tenant used a key at a gateway other than the first.
    UsedAt {
        /// Index of the gateway, counted from 0.
        gateway: usize,
        /// The use.
        used: Used,
    },
    /// A tenant sent a request to a gateway.
    Exchanged(Box<Exchange>),
    /// A tenant used the key of an access.
    AccessUsed(Used),
    /// An attempt to use a key for something it does not permit.
    Tried(Tried),
    /// A description of an action that is part of the scenario.
    Acted(String),
    /// A wall clock is off true time from here on.
    ClockOff {
        /// Actor that has the clock.
        actor: Actor,
        /// Seconds that the clock is ahead; negative if behind.
        ahead: i64,
    },
    /// An operator process started.
    Began {
        /// Number of the process, counted from 1.
        instance: u32,
    },
    /// An operator process ended.
    Ended {
        /// Number of the process, counted from 1.
        instance: u32,
    },
    /// From here on only the operator acts, on its own: faults have stopped, and users do nothing.
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
    /// The bucket; `None` for operations without one.
    pub bucket: Option<String>,
    /// Access key id that signed the call, as readable in the request.
    pub key_id: Option<String>,
    /// State of the bucket just before; `None` if it did not exist.
    pub before: Option<BucketSnapshot>,
    /// State of the bucket just after; `None` if it did not exist.
    pub after: Option<BucketSnapshot>,
    /// Status of the store's answer, even if the operator did not receive it.
    pub status: u16,
}

/// A tenant's use of a key at the gateway, within the key's scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Namespace of the tenant.
    pub namespace: String,
    /// Consumer Secret from which the tenant read the key.
    pub secret: String,
    /// Access key id.
    pub access_key_id: String,
    /// Bucket that the tenant tried to list.
    pub bucket: String,
    /// Time at which the tenant read the Secret.
    pub read_at: Timestamp,
    /// True if the gateway permitted it.
    pub allowed: bool,
}

/// An attempt to use a key at the gateway outside its scope: on another bucket, or for an operation
/// on a bucket itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Access key id.
    pub access_key_id: String,
    /// Name of the operation in the AWS service model.
    pub operation: String,
    /// The bucket.
    pub bucket: String,
    /// True if the gateway permitted it.
    pub allowed: bool,
}

impl History {
    /// Iterates over changes of a resource's objects, oldest first, each with its event.
    pub fn changes<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a Event, &'a Stored)> {
        self.events.iter().filter_map(move |event| match &event.what {
            What::Stored(stored) if stored.plural == plural => Some((event, stored)),
            _ => None,
        })
    }

    /// Iterates over calls at stores, oldest first, each with its event.
    pub fn calls(&self) -> impl Iterator<Item = (&Event, &Called)> {
        self.events.iter().filter_map(|event| match &event.what {
            What::Called(called) => Some((event, called)),
            _ => None,
        })
    }

    /// Returns the number of the operator process that made a call; 0 for an unknown call.
    pub fn instance_of(&self, effect: u64) -> u32 {
        let index = usize::try_from(effect).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.trace.lines().get(index)).map_or(0, |line| line.instance)
    }

    /// Returns the time at which the operator came to rest, if the run waited for that.
    pub fn at_rest(&self) -> Option<Timestamp> {
        self.events.iter().rev().find(|event| matches!(event.what, What::AtRest)).map(|event| event.at)
    }
}
