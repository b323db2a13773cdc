//! What is said between a pass or a sweep and the world: steps and answers, by numbers.

use std::sync::OnceLock;

use stowage_operator::plan::{Failure, OwnerSeen, Posted, Rest, Step, Target, Then};

use super::facts::{BACKENDS, BUCKETS, BackendFacts, NAMES, Uid};
use super::names::{backend_name, backend_number, bucket_name, bucket_number, endpoint};
use super::objects::Objects;

/// A bucket as the operator means it: by which backend, at which store.
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

    /// Name of the bucket's record.
    pub(super) fn record(self) -> &'static str {
        static NAMES_OF_RECORDS: OnceLock<Vec<String>> = OnceLock::new();
        let names = NAMES_OF_RECORDS.get_or_init(|| {
            let place = |bucket: usize| Self { backend: 0, store: (bucket / NAMES) as u8, bucket };
            (0..BUCKETS).map(|bucket| place(bucket).target().record().to_string()).collect()
        });
        &names[self.bucket]
    }

    /// Name of the bucket.
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

/// What a step of a pass comes down to.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Backend(u8),
    Holder(Place),
    /// Not modelled: nobody else opens a bucket of that name.
    PublicRival,
    Claim,
    Own,
    /// By the number of its name.
    Internal(u32),
    Consumer(u32),
    CredentialsFor(Place),
    Bucket(Place),
    Owner(Place),
    Contents(Place),
    /// Of the claim in this version.
    Finalizer(u32, bool),
    Status(u32, u32),
    Create(u32),
    /// Of the Secret in this version.
    Patch(u32),
    Delete(u32),
    CreateBucket(Place),
    Purge(Place, u32),
    DeleteBucket(Place),
    Tag(Place, u32),
    /// Not modelled: the store does not implement it.
    Versioning,
    /// By the number of the record's name, and that of the backend.
    Consent(u32, u8),
    Access,
    /// That of the access.
    Namespace,
    /// What is to be had of the claim that the access names.
    Word,
    Rest(Ending),
}

impl Call {
    /// The bucket that the store is asked about.
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

    /// Whether it is answered without asking anybody.
    pub(super) fn is_cached(&self) -> bool {
        matches!(self, Self::Backend(_) | Self::Holder(_) | Self::PublicRival)
    }

    /// Whether it changes something.
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

/// When a claim is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// When something changes.
    Change,
    /// After so many seconds.
    After(u32),
    /// After a backoff.
    Retry,
}

/// A step that the planner named.
pub(super) struct Planned {
    pub(super) view: u32,
    pub(super) step: Step,
    pub(super) call: Call,
}

/// An answer to a step of a pass, by numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Backend(Option<BackendFacts>),
    /// Nobody, or the claim of this number holds it.
    Held(Option<usize>),
    /// Somebody has a key to it.
    Suspect,
    /// The record can't be read.
    Damaged,
    Claim(Option<u32>),
    Consent(ConsentRead),
    /// By the number of its version.
    Access(Option<u32>),
    Namespace,
    Word(Heard),
    Secrets(Vec<u32>),
    Secret(Option<u32>),
    Absent,
    /// By the number of its tags.
    Present(u32),
    Owner(OwnerSeen),
    Empty(bool),
    Created(bool),
    /// How many objects went, and whether that was all.
    Purged(u8, bool),
    /// A request of the slice got no answer.
    PurgeFailed,
    Deleted,
    Gone,
    NotEmpty,
    Exists,
    Done,
    Conflict,
    /// The API server gave no answer.
    Kubernetes,
    /// The namespace is going away.
    Terminating,
    /// The store gave no answer.
    Upstream,
    /// The store was not asked.
    NoUpstream,
    Unsupported,
}

/// What was read before a bucket is opened to the access, by numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConsentRead {
    pub(super) record: Option<u32>,
    pub(super) own: Vec<u32>,
    /// The access names the claim, and stays.
    pub(super) asks: bool,
    pub(super) backend: Option<BackendFacts>,
    pub(super) claim: Option<u32>,
}

/// What there is of the claim that the access names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Heard {
    pub(super) claim: Option<u32>,
    /// Its internal Secrets.
    pub(super) own: Vec<u32>,
    /// The backends, as the cache has them.
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
}

/// What a pass over the access begins with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessBeginning {
    pub(super) access: u32,
    pub(super) own: Vec<u32>,
    pub(super) consumers: Vec<u32>,
    pub(super) heard: Heard,
}

/// What a pass begins with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Beginning {
    pub(super) claim: u32,
    pub(super) own: Vec<u32>,
    pub(super) consumers: Vec<u32>,
    pub(super) missing: Option<Place>,
    /// Seconds for which a call without an answer may still happen.
    pub(super) unanswered: u32,
    pub(super) look: bool,
    /// The access, as the caches show it; `None` = nobody in this world ever asks for a bucket.
    pub(super) asks: Option<Asks>,
}

/// The access, as the caches show it to a pass over a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asks {
    /// The watch shows that it asks for the claim's bucket.
    Shown,
    /// The watch doesn't show it, but its record is there: the watch may be behind.
    Recorded,
    /// There is none, or it asks for something else.
    Not,
}

/// What a sweep is to do next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stride {
    Claim(usize),
    /// Is it among all claims, or all accesses?
    All,
    Own,
    Internal(u32),
    /// A record is patched.
    End(u32),
    Delete(u32),
    /// Over: nothing is left, or it lives.
    Over,
    /// Over, to be taken up when no create can land any more.
    Held,
    /// Over, to be tried again.
    Retry,
}

/// An answer to a step of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SweepReply {
    Claim(Option<Uid>),
    All(bool),
    Secrets(Vec<u32>),
    Secret(Option<u32>),
    Deleted,
    Failed,
}

/// What a failure says.
pub(super) const NO_ANSWER: &str = "no answer";

/// The failure that a reply stands for, if it is one.
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

/// The answer to a POST that a reply stands for.
pub(super) fn posted(objects: &Objects, reply: &Reply) -> Posted {
    match reply {
        Reply::Secret(Some(number)) => Posted::Stored(objects.stored(*number)),
        Reply::Exists => Posted::NameTaken,
        reply => unreachable!("{reply:?} is no answer to a POST"),
    }
}

/// When one who rests is looked at again.
pub(super) fn ending(rest: &Rest) -> Ending {
    match &rest.then {
        Then::AwaitChange => Ending::Change,
        Then::After(time) | Then::Wait(time) => Ending::After(u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
        Then::Retry(_) => Ending::Retry,
    }
}
