//! Steps and answers exchanged between a pass or a sweep and the world, as numbers.

use std::sync::OnceLock;

use stowage_operator::plan::{Failure, OwnerSeen, Posted, Rest, Step, Target, Then};

use super::facts::{BACKENDS, BUCKETS, BackendFacts, NAMES, Uid};
use super::names::{backend_name, backend_number, bucket_name, bucket_number, endpoint};
use super::objects::Objects;

/// A bucket as the operator addresses it: backend, store and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) backend: u8,
    pub(super) store: u8,
    pub(super) bucket: usize,
}

impl Place {
    pub(super) fn of(target: &Target) -> Self {
        let bucket = bucket_number(target.endpoint.as_str(), target.bucket.as_str());
        let bucket = bucket.unwrap_or_else(|| unreachable!("no bucket of the model: {target:?}"));
        let backend = backend_number(&target.backend);
        let backend = backend.unwrap_or_else(|| unreachable!("no backend of the model: {target:?}"));
        Self { backend, store: (bucket / NAMES) as u8, bucket }
    }

    /// Returns the name of the bucket's record.
    pub(super) fn record(self) -> &'static str {
        static NAMES_OF_RECORDS: OnceLock<Vec<String>> = OnceLock::new();
        let names = NAMES_OF_RECORDS.get_or_init(|| {
            let place = |bucket: usize| Self { backend: 0, store: (bucket / NAMES) as u8, bucket };
            (0..BUCKETS).map(|bucket| place(bucket).target().record().to_string()).collect()
        });
        &names[self.bucket]
    }

    /// Returns the name of the bucket.
    pub(super) fn bucket_name(self) -> &'static str {
        bucket_name(self.bucket % NAMES)
    }

    pub(super) fn target(self) -> Target {
        let bucket = stowage_operator::api::BucketName::parse(bucket_name(self.bucket % NAMES));
        Target {
            backend: backend_name(self.backend).to_owned(),
            endpoint: endpoint(self.store),
            bucket: bucket.unwrap_or_else(|error| unreachable!("a constant of the model: {error}")),
        }
    }
}

/// Step of a pass, reduced to what the world needs.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Backend(u8),
    Holder(Place),
    /// Not modelled: no other claim opens a bucket of that name.
    PublicRival,
    Claim,
    Own,
    /// Has the number of the Secret's name.
    Internal(u32),
    Consumer(u32),
    CredentialsFor(Place),
    Bucket(Place),
    Owner(Place),
    Contents(Place),
    /// Has the version of the claim.
    Finalizer(u32, bool),
    Status(u32, u32),
    Create(u32),
    /// Has the version of the Secret.
    Patch(u32),
    Delete(u32),
    CreateBucket(Place),
    Purge(Place, u32),
    DeleteBucket(Place),
    Tag(Place, u32),
    /// Not modelled: the store does not implement versioning.
    Versioning,
    /// Has the number of the record's name, and the number of the backend.
    Consent(u32, u8),
    Access,
    /// Namespace of the access.
    Namespace,
    /// Summary of the claim that the access names.
    Word,
    Rest(Ending),
}

impl Call {
    /// Returns the bucket if the step is a call to the store.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Bucket(place)
            | Self::Owner(place)
            | Self::Contents(place)
            | Self::CreateBucket(place)
            | Self::Purge(place, _)
            | Self::DeleteBucket(place)
            | Self::Tag(place, _) => Some(*place),
            _ => None,
        }
    }

    /// Returns true if the step needs no call.
    pub(super) fn is_cached(&self) -> bool {
        matches!(self, Self::Backend(_) | Self::Holder(_) | Self::PublicRival)
    }

    /// Returns true if the step changes something.
    pub(super) fn is_act(&self) -> bool {
        matches!(
            self,
            Self::Finalizer(..)
                | Self::Status(..)
                | Self::Create(_)
                | Self::Patch(_)
                | Self::Delete(_)
                | Self::CreateBucket(_)
                | Self::Purge(..)
                | Self::DeleteBucket(_)
                | Self::Tag(..)
        )
    }
}

/// Time of the next look at a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// At the next change.
    Change,
    /// After this many seconds.
    After(u32),
    /// After a backoff.
    Retry,
}

/// A step that the planner returned.
pub(super) struct Planned {
    pub(super) view: u32,
    pub(super) step: Step,
    pub(super) call: Call,
}

/// Answer to a step of a pass, as numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Backend(Option<BackendFacts>),
    /// `None` if the bucket has no holder, else the number of the claim that holds it.
    Held(Option<usize>),
    /// Another claim has a key to the bucket.
    Suspect,
    /// The record cannot be parsed.
    Damaged,
    Claim(Option<u32>),
    Consent(ConsentRead),
    /// Has the number of the access's version.
    Access(Option<u32>),
    Namespace,
    Word(Heard),
    Secrets(Vec<u32>),
    Secret(Option<u32>),
    Absent,
    /// Has the number of its tags.
    Present(u32),
    Owner(OwnerSeen),
    Empty(bool),
    Created(bool),
    /// Number of deleted objects, and whether the bucket is empty now.
    Purged(u8, bool),
    /// A request of the slice failed.
    PurgeFailed,
    Deleted,
    Gone,
    NotEmpty,
    Exists,
    Done,
    Conflict,
    /// The API server did not answer.
    Kubernetes,
    /// The namespace is terminating.
    Terminating,
    /// The store did not answer.
    Upstream,
    /// The store was not called.
    NoUpstream,
    Unsupported,
}

/// Numbers of the objects read before a bucket is opened to the access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConsentRead {
    pub(super) record: Option<u32>,
    pub(super) own: Vec<u32>,
    /// True if the access names the claim and is not being deleted.
    pub(super) asks: bool,
    pub(super) backend: Option<BackendFacts>,
    pub(super) claim: Option<u32>,
}

/// Numbers of the objects that belong to the claim that the access names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Heard {
    pub(super) claim: Option<u32>,
    /// Internal Secrets of the claim.
    pub(super) own: Vec<u32>,
    /// The backends, as the cache has them.
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
}

/// Inputs for the view at the start of a pass over the access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessBeginning {
    pub(super) access: u32,
    pub(super) own: Vec<u32>,
    pub(super) consumers: Vec<u32>,
    pub(super) heard: Heard,
}

/// Inputs for the view at the start of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Beginning {
    pub(super) claim: u32,
    pub(super) own: Vec<u32>,
    pub(super) consumers: Vec<u32>,
    pub(super) missing: Option<Place>,
    /// Seconds during which a call without an answer may still be carried out.
    pub(super) unanswered: u32,
    pub(super) look: bool,
    /// The access, as the caches show it; `None` in a world without accesses.
    pub(super) asks: Option<Asks>,
}

/// The access, as the caches show it to a pass over a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asks {
    /// The watch shows an access that requests the claim's bucket.
    Shown,
    /// The watch doesn't show the access, but its record exists, so the watch may lag.
    Recorded,
    /// No access exists, or it requests something else.
    Not,
}

/// Next step of a sweep.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stride {
    Claim(usize),
    /// List all claims, or all accesses, and look for the UID.
    All,
    Own,
    Internal(u32),
    /// Patch a record.
    End(u32),
    Delete(u32),
    /// End: nothing is left, or the owner exists.
    Over,
    /// End, and sweep again once no pending create can land any more.
    Held,
    /// End, and try again.
    Retry,
}

/// Answer to a step of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SweepReply {
    Claim(Option<Uid>),
    All(bool),
    Secrets(Vec<u32>),
    Secret(Option<u32>),
    Deleted,
    Failed,
}

/// Message of a failure.
pub(super) const NO_ANSWER: &str = "no answer";

/// Returns the failure that a reply means, if it is one.
pub(super) fn failure(reply: &Reply) -> Option<Failure> {
    match reply {
        Reply::Conflict => Some(Failure::Conflict),
        Reply::Kubernetes => Some(Failure::Kubernetes(NO_ANSWER.to_owned())),
        Reply::Terminating => Some(Failure::NamespaceTerminating),
        Reply::Upstream => Some(Failure::Upstream(NO_ANSWER.to_owned())),
        Reply::NoUpstream => Some(Failure::NoUpstream("the backend points elsewhere".to_owned())),
        Reply::Unsupported => Some(Failure::Unsupported),
        _ => None,
    }
}

/// Returns the result of a POST that a reply means.
pub(super) fn posted(objects: &Objects, reply: &Reply) -> Posted {
    match reply {
        Reply::Secret(Some(number)) => Posted::Stored(objects.stored(*number)),
        Reply::Exists => Posted::NameTaken,
        reply => unreachable!("{reply:?} is no answer to a POST"),
    }
}

/// Returns when an object is looked at again after its pass.
pub(super) fn ending(rest: &Rest) -> Ending {
    match &rest.then {
        Then::AwaitChange => Ending::Change,
        Then::After(time) | Then::Wait(time) => Ending::After(u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
        Then::Retry(_) => Ending::Retry,
    }
}
