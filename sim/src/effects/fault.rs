//! The faults, and the calls that they can happen to.
//!
//! Most are decided on a single call, from the outside. Those that need a world with a past or with other people in it
//! are handed to the [`Surroundings`](super::Surroundings); a few last for a while, see `lasting`.

use super::s3_call::S3Operation;

/// What is done to a call. Names and meaning are those of a plan's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request never arrives: no effect, and the connection breaks.
    LostRequest,
    /// The request is carried out, then the connection breaks. The caller sees exactly what it sees of [`Fault::LostRequest`].
    LostAnswer,
    /// The request never arrives and no answer ever comes; only the caller's own deadline ends it.
    Hang,
    /// The request takes this long to arrive. A caller that gives up meanwhile has taken it back.
    Slow {
        /// Milliseconds on the way.
        millis: u64,
    },
    /// The operator dies at this point of the call.
    Crash(CrashPoint),
    /// Right before the request is sent, the operator's process stands still for this long; then the request is sent,
    /// unless its deadline has passed meanwhile.
    Pause {
        /// Seconds that it stands still.
        seconds: u32,
    },
    /// Right before the request is sent, the operator's process stands still, and a second operator starts and does what
    /// there is to do, until it rests. It is killed, and the first goes on with its request.
    Twin,

    /// Right before the request is sent, the operator's wall clock jumps.
    Step {
        /// Seconds that it jumps forward; negative ones back.
        seconds: i32,
    },
    /// Somebody's wall clock is off, from the beginning of the run to its end.
    Skew {
        /// Whose.
        actor: Actor,
        /// Seconds that it is ahead; negative ones behind.
        seconds: i32,
    },
    /// From this write on, the gateway hears of each change of a Secret this late, for the rest of the run.
    Lag {
        /// Seconds that it is late.
        seconds: u32,
    },

    /// A Kubernetes write is refused because a rival wrote first: 409, reason `Conflict`, not carried out.
    Conflict,
    /// A create finds its name taken by an object that was made a moment before: 409, reason `AlreadyExists`.
    AlreadyExists(Rival),
    /// A Kubernetes write is answered with 500, reason `InternalError`.
    ServerError(Applied),
    /// A Kubernetes write is answered with 429 and a `Retry-After`, not carried out.
    Throttle {
        /// Seconds the server asks to wait.
        seconds: u32,
    },
    /// A Kubernetes write is refused by RBAC: 403, reason `Forbidden`.
    Forbidden,
    /// A Kubernetes write is refused by an admission webhook that names no code of its own: 400, the API server's default.
    Denied,
    /// An admission webhook doesn't answer: ten seconds later 500, reason `InternalError`, not carried out.
    WebhookTimeout,
    /// Something can't be created because a ResourceQuota is used up: 403, reason `Forbidden`.
    QuotaExceeded,
    /// Something can't be created because its namespace is going away: 403 with the cause `NamespaceTerminating`.
    NamespaceTerminating,

    /// A GET or LIST is answered as the kind stood this many of its changes ago, own writes included, under that time's
    /// version. A watch tells each event once this many further changes of its kind are stored, or five seconds late.
    Stale {
        /// Changes that the answer is behind.
        changes: u32,
    },
    /// A LIST is answered as the kind stood half of its history ago, under that time's version.
    Rewind,
    /// A watch gathers changes for five seconds and tells one for each object: an object added and deleted meanwhile is
    /// never seen, one deleted and made again is modified.
    Collapse,
    /// A watch ends where its first event would have come.
    WatchCut,
    /// A watch begins with 410: its version is forgotten.
    WatchGone,
    /// A watch tells nothing and never ends; only the caller's own deadline ends it.
    WatchSilent,
    /// A watch tells each event twice.
    WatchDuplicate,
    /// A LIST is answered with 410, reason `Expired`, as one is whose continue token is too old.
    ExpiredContinue,
    /// A LIST is answered in reverse order.
    Shuffle,
    /// From this write on the cluster's own controllers (garbage collector, namespace controller) do nothing for a minute.
    GcLate,

    /// Right before the call, the claim that it concerns is deleted by hand, its finalizers stripped, and made again:
    /// same name and spec, new UID.
    Recreate,
    /// Right before the call, a third party lays hands on what belongs to the claim that the call concerns.
    Tamper(Tampering),
    /// Right before the call, its user edits the claim that the call concerns.
    Edit(Edit),

    /// Nothing listens at the S3 endpoint: the connection is refused.
    Unreachable,
    /// The S3 store answers 500 `InternalError`, not carried out.
    InternalError,
    /// The S3 store answers 503 `SlowDown`, not carried out.
    SlowDown,
    /// The S3 store answers 403 `AccessDenied`, not carried out.
    AccessDenied,
    /// An S3 HEAD request is answered with this status and, as HEAD is, without a body or an error code.
    Head(HeadStatus),
    /// From this S3 call on, and for a minute, this operation is answered with 503 `ServiceUnavailable`, not carried out.
    VerbDown(S3Operation),
    /// CreateBucket is answered with 409 `BucketAlreadyOwnedByYou`. There is such a bucket: if need be one is made, untagged.
    AlreadyOwned,
    /// CreateBucket is answered with 409 `BucketAlreadyExists`. There is such a bucket: if need be another account's.
    BucketExists,
    /// CreateBucket is answered with 200 although there is such a bucket: if need be one is made, untagged.
    OkOnExisting,
    /// DeleteObjects is answered with 200; in it the first key has an error of its own, and stays.
    PartialDelete,
    /// Right before the call, a legal hold is put on the first object of the bucket, for the rest of the run.
    Locked,
    /// Right before the call, an object and a multipart upload arrive in the bucket.
    LateWrite,
    /// Right before the call, the bucket is deleted by somebody else, with all that is in it.
    Vanish,
    /// Right before the call, the bucket is deleted and made again for another claim by the same account: it holds an
    /// object, and tags that name that claim.
    Usurp {
        /// Whether that claim has put nothing into it yet.
        empty: bool,
    },
    /// From this S3 call on, and for a minute, all of them are answered with 403 `InvalidAccessKeyId`.
    CredentialsRevoked,
    /// The S3 store answers 403 `RequestTimeTooSkewed`, not carried out.
    ClockSkew,
    /// An S3 read is answered from the state before the last write.
    StaleRead,
    /// The S3 store answers 200 with an error document, `InternalError`; not carried out.
    ErrorIn200,
    /// The second half of the answer's XML document is missing, and nothing else tells.
    Truncated,
    /// From this S3 call on, for the rest of the run, the store has no such feature: 501 `NotImplemented`.
    NotImplemented(Feature),
}

impl Fault {
    /// Whether it may go on, or leave something behind, once its call is answered: a clock that is off, a watch that hides
    /// something, a feature or a verb that the store is without, an object that can't be deleted.
    pub fn outlasts_its_call(self) -> bool {
        match self {
            Self::Step { .. } | Self::Skew { .. } | Self::Lag { .. } | Self::GcLate => true,
            Self::Stale { .. } | Self::Collapse | Self::WatchSilent | Self::WatchDuplicate => true,
            Self::VerbDown(_) | Self::CredentialsRevoked | Self::NotImplemented(_) | Self::Locked => true,
            Self::Tamper(what) => what == Tampering::KeepInternal,
            _ => false,
        }
    }
}

/// A closed set of words that may stand in the brackets of a fault.
macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order in which a person reads them.
            pub const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// As a plan writes it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

parameter! {
    /// Where in a call the operator dies.
    CrashPoint {
        /// Before the request reaches the world.
        Before = "before",
        /// After it is carried out, before the answer is back.
        AfterEffect = "after-effect",
        /// After the answer is back, before the next call of this life is carried out.
        AfterAnswer = "after-answer",
    }
}

parameter! {
    /// Who has a wall clock that may be off.
    Actor {
        /// The operator.
        Operator = "operator",
        /// The gateway, which ends keys by it.
        Gateway = "gateway",
        /// The store.
        Store = "store",
    }
}

parameter! {
    /// Whether a request that is answered with an error was carried out nevertheless.
    Applied {
        /// It was.
        Applied = "applied",
        /// It was not.
        Not = "not",
    }
}

parameter! {
    /// Whose object it is that took a name.
    Rival {
        /// A stranger's, with other content and nobody's labels.
        Foreign = "foreign",
        /// The very object that the request wanted, as if an earlier attempt had landed.
        Own = "own",
    }
}

parameter! {
    /// Status of a HEAD answer.
    HeadStatus {
        /// The bucket is in another region.
        Moved = "301",
        /// Among others, what some stores send for a wrong region.
        BadRequest = "400",
        /// Somebody else's bucket, or no right to look.
        Forbidden = "403",
    }
}

parameter! {
    /// What a third party does. Where there is no such object it does nothing.
    Tampering {
        /// Overwrites the key in the consumer Secret.
        EditConsumer = "edit-consumer",
        /// Has the consumer Secret tell of the last generation that there can be, with the id that follows from it.
        ForgeConsumer = "forge-consumer",
        /// Takes all data out of the consumer Secret.
        EmptyConsumer = "empty-consumer",
        /// Deletes the consumer Secret.
        DeleteConsumer = "delete-consumer",
        /// Takes all labels off the consumer Secret.
        RelabelConsumer = "relabel-consumer",
        /// Takes the owner references off the consumer Secret.
        DisownConsumer = "disown-consumer",
        /// Takes all labels off the claim's internal Secrets.
        RelabelInternal = "relabel-internal",
        /// Puts a finalizer on the claim's internal Secrets, as a backup tool does, and takes it off five minutes later.
        KeepInternal = "keep-internal",
        /// Deletes the claim's internal Secrets that hold credentials.
        DeleteCredential = "delete-credential",
        /// Deletes the claim's bucket record.
        DeleteRecord = "delete-record",
        /// Takes all finalizers off the claim.
        StripFinalizers = "strip-finalizers",
    }
}

parameter! {
    /// What the user of a claim changes in it.
    Edit {
        /// `deletionPolicy: Retain`, without force.
        Retain = "retain",
        /// `deletionPolicy: Delete`.
        Delete = "delete",
        /// `deletionPolicy: Delete` with `forceDelete`.
        Force = "force",
        /// `forceDelete: false`.
        NoForce = "no-force",
        /// A new value of the annotation that asks for a rotation.
        Rotate = "rotate",
        /// Another quota.
        Quota = "quota",
        /// Another name for the consumer Secret.
        Rename = "rename",
        /// The annotation that pauses the claim.
        Pause = "pause",
        /// That annotation gone.
        Resume = "resume",
    }
}

parameter! {
    /// What a store may be without.
    Feature {
        /// Bucket tagging.
        Tagging = "tagging",
        /// Versioning, and with it the list of versions.
        Versioning = "versioning",
        /// Multipart uploads.
        Uploads = "uploads",
    }
}

impl HeadStatus {
    /// The status as a number.
    pub fn code(self) -> u16 {
        match self {
            Self::Moved => 301,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
        }
    }
}

impl Feature {
    /// Whether an operation is a part of it.
    pub fn has(self, operation: S3Operation) -> bool {
        match self {
            Self::Tagging => operation.name().ends_with("BucketTagging"),
            Self::Versioning => {
                operation.name().ends_with("BucketVersioning") || operation.name() == "ListObjectVersions"
            }
            Self::Uploads => operation.name().contains("MultipartUpload"),
        }
    }
}
