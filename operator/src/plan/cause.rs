//! Causes that keep a claim from being Ready, as typed facts.
//!
//! The condition's reason is derived from a cause only here, and its message only in `message`.

use crate::api::{BucketName, ClaimRef, Endpoint, Reason, ServedBy, TooLarge};

use super::step::Step;
use super::target::Target;

/// Cause of a stop. Its `Display` text is the condition's message: stable, without request ids or
/// times.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    /// A problem with the claim itself.
    Claim(ClaimCause),
    /// A problem with the backend.
    Backend(BackendCause),
    /// A problem with the bucket or its holder.
    Bucket(BucketCause),
    /// A problem with a Secret.
    Secret(SecretCause),
    /// Something that a deletion waits for.
    Deletion(DeletionCause),
    /// A step that was refused or failed.
    Step(StepCause),
}

/// Problem with the claim itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimCause {
    /// Paused by annotation.
    Paused,
    /// Paused by annotation while it is being deleted.
    PausedInDeletion,
    /// The claim is in this namespace, which contains Secrets of the operator (spec §2).
    OperatorNamespace { namespace: String },
    /// The spec of the claim is invalid.
    SpecInvalid { why: String },
    /// The backend's template yields no valid bucket name.
    NoBucketName { backend: String, why: String },
    /// S3 reserves names with this suffix for another kind of bucket.
    NameReserved { bucket: BucketName, ending: &'static str },
    /// The annotation names another operator, although this one has the claim's Secrets.
    ServedByAnother { operator: ServedBy },
}

/// Problem with the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackendCause {
    /// No backend has this name.
    Missing { backend: String },
    /// The spec of the backend is invalid.
    Invalid { backend: String, why: String },
    /// Another operator serves the backend.
    Anothers { backend: String, operator: Option<ServedBy> },
    /// The backend's allow-list excludes the claim's namespace.
    NotAllowed { backend: String, namespace: String },
    /// The probe of the backend fails, or has not run yet.
    NotReady { backend: String },
    /// The backend has a new endpoint, and the claim's bucket is not visible there.
    Moved { backend: String, now: Endpoint, held_at: Endpoint },
    /// The move to this bucket waits for the previous credential to expire.
    MoveWaits { to: Target },
}

/// Problem with the bucket or its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BucketCause {
    /// Another claim holds the bucket. `namespace` is that of the claim that is refused.
    Held { bucket: BucketName, holder: ClaimRef, namespace: String },
    /// Another claim has made a bucket of that name at another store public, and has held it for
    /// longer. `namespace` is that of the claim that is refused.
    OpenElsewhere { bucket: BucketName, rival: ClaimRef, namespace: String },
    /// Another claim has credentials for the bucket.
    OthersCredentials { bucket: BucketName },
    /// An administrator shares the bucket through the backend, so no claim can have it.
    Shared { bucket: BucketName, backend: String },
    /// The bucket record can't be parsed.
    RecordDamaged { bucket: BucketName, why: String },
    /// The bucket exists and does not belong to this claim.
    Exists { bucket: BucketName, why: NotTaken },
    /// The bucket of a claim that was bound is missing.
    Missing { bucket: BucketName, how: Missing },
    /// The store reports the bucket both as existing and as absent.
    Contradictory { bucket: BucketName },
}

/// Reason that an existing bucket is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// The admin credentials may not access the bucket.
    Forbidden,
    /// The admin credentials of another backend of the same endpoint may not access the bucket.
    ForbiddenThere,
    /// `adoptionPolicy: Never`.
    PolicyNever,
    /// `adoptionPolicy: Owned`, and the tags name no claim.
    PolicyOwned,
    /// The tags name another claim.
    AnotherClaims,
    /// The tags don't name this claim.
    NotThisClaims,
    /// Another account owns the bucket.
    AnotherAccounts,
    /// The store does not report the owning account.
    OwnerUntold,
}

/// Way in which the bucket of a bound claim is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The operator created the bucket, which no longer exists.
    Gone,
    /// The bucket was adopted, and it no longer exists.
    AdoptedGone,
    /// The bucket is not visible through the new backend of the same endpoint.
    NotThroughNewBackend,
    /// The bucket is not at the current endpoint of this backend.
    NotAt { backend: String, endpoint: Endpoint },
}

/// Problem with a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretCause {
    /// The current credential is damaged.
    CredentialDamaged { why: String },
    /// The consumer Secret can't be written.
    Conflict { secret: String, why: Foreign },
    /// The anonymous binding is damaged.
    BindingDamaged { why: String },
    /// A Secret has the name of a credential of this claim, but is not a credential.
    NotACredential { secret: String },
    /// A Secret notes another endpoint than the record does, and the bucket at the record's
    /// endpoint does not have the claim's tags.
    Elsewhere { secret: String, noted: Endpoint, held_at: Endpoint },
    /// The `expires-at` annotation of a credential can't be parsed.
    StampDamaged { secret: String },
    /// A deleted Secret waits for these finalizers, which are not ours.
    Kept { secret: String, finalizers: String },
    /// The Secret template sets a label or annotation that this operator does not allow.
    Forbidden { secret: String, key: String },
    /// The Secret template exceeds a size limit.
    TooLarge { secret: String, too_large: TooLarge },
}

/// Reason that an existing Secret with the wanted name is not overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The claim does not control it.
    NotControlled,
    /// `immutable: true`.
    Immutable,
    /// The type of the Secret is not `Opaque`.
    OtherType,
}

/// Something that a deletion waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeletionCause {
    /// The backend needed to delete the bucket is missing.
    BackendMissing { backend: String, bucket: BucketName },
    /// The spec of the backend is invalid.
    BackendInvalid { backend: String, bucket: BucketName, why: String },
    /// Another operator serves the backend.
    BackendAnothers { backend: String, bucket: BucketName, operator: Option<ServedBy> },
    /// The backend has another endpoint now.
    BackendMoved { backend: String, bucket: BucketName, then: Endpoint, now: Endpoint },
    /// The store denies access to the bucket's owner or tags.
    Forbidden { bucket: BucketName },
    /// The store refuses to delete objects, with this error code.
    ObjectsRefused { bucket: BucketName, code: String },
    /// The store denies a request.
    Denied { why: String },
    /// The bucket is not empty, and the claim does not allow emptying it.
    NotEmpty { bucket: BucketName },
    /// The bucket is being emptied.
    Purging,
    /// Everything that was listed is deleted, but the bucket is still not empty.
    FillsAgain { bucket: BucketName },
    /// A request to the store got no answer and may still take effect.
    Unanswered,
    /// The store failed or did not answer.
    StoreFailed { why: String },
}

/// Reason that a step was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepCause {
    /// The store failed or did not answer.
    StoreFailed { why: String },
    /// The store denies the request.
    StoreDenied { why: String },
    /// The API server failed or did not answer, so the outcome is unknown.
    ServerFailed { step: String, why: String },
    /// The API server refuses the request.
    Refused { step: String, why: String },
    /// The store does not support the operation.
    Unsupported { step: String },
    /// The namespace of the object to write is terminating.
    NamespaceTerminating { step: String, namespace: String },
}

impl StepCause {
    /// Returns the cause for a store that does not support the operation of this step.
    pub(super) fn unsupported(step: &Step) -> Self {
        Self::Unsupported { step: step.to_string() }
    }
}

impl Cause {
    /// Returns the reason of `Ready=False` (spec §1).
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Claim(cause) => match cause {
                ClaimCause::Paused | ClaimCause::PausedInDeletion => Reason::Paused,
                ClaimCause::OperatorNamespace { .. } => Reason::BackendNotAllowed,
                ClaimCause::SpecInvalid { .. } | ClaimCause::NoBucketName { .. } | ClaimCause::NameReserved { .. } => {
                    Reason::TemplateInvalid
                }
                ClaimCause::ServedByAnother { .. } => Reason::ServedByAnother,
            },
            Self::Backend(cause) => match cause {
                BackendCause::NotAllowed { .. } => Reason::BackendNotAllowed,
                BackendCause::Missing { .. }
                | BackendCause::Invalid { .. }
                | BackendCause::Anothers { .. }
                | BackendCause::NotReady { .. }
                | BackendCause::Moved { .. }
                | BackendCause::MoveWaits { .. } => Reason::BackendNotReady,
            },
            Self::Bucket(cause) => match cause {
                BucketCause::Held { .. }
                | BucketCause::OpenElsewhere { .. }
                | BucketCause::OthersCredentials { .. }
                | BucketCause::Shared { .. } => Reason::BucketNameConflict,
                BucketCause::RecordDamaged { .. } => Reason::CreationInconsistent,
                BucketCause::Exists { .. } => Reason::BucketExists,
                BucketCause::Missing { .. } => Reason::BucketMissing,
                BucketCause::Contradictory { .. } => Reason::BackendError,
            },
            Self::Secret(cause) => match cause {
                SecretCause::Conflict { .. } => Reason::SecretConflict,
                SecretCause::Kept { .. } => Reason::BackendError,
                SecretCause::Forbidden { .. } | SecretCause::TooLarge { .. } => Reason::TemplateInvalid,
                SecretCause::CredentialDamaged { .. }
                | SecretCause::BindingDamaged { .. }
                | SecretCause::NotACredential { .. }
                | SecretCause::Elsewhere { .. }
                | SecretCause::StampDamaged { .. } => Reason::CreationInconsistent,
            },
            Self::Deletion(cause) => match cause {
                DeletionCause::NotEmpty { .. } => Reason::BucketNotEmpty,
                DeletionCause::Purging | DeletionCause::FillsAgain { .. } => Reason::Purging,
                DeletionCause::StoreFailed { .. } | DeletionCause::Unanswered => Reason::BackendError,
                DeletionCause::BackendMissing { .. }
                | DeletionCause::BackendInvalid { .. }
                | DeletionCause::BackendAnothers { .. }
                | DeletionCause::BackendMoved { .. }
                | DeletionCause::Forbidden { .. }
                | DeletionCause::ObjectsRefused { .. }
                | DeletionCause::Denied { .. } => Reason::DeletionBlocked,
            },
            Self::Step(_) => Reason::BackendError,
        }
    }
}

macro_rules! causes {
    ($($group:ident($cause:ident)),+) => {
        $(impl From<$cause> for Cause {
            fn from(cause: $cause) -> Self {
                Self::$group(cause)
            }
        })+
    };
}

causes!(
    Claim(ClaimCause),
    Backend(BackendCause),
    Bucket(BucketCause),
    Secret(SecretCause),
    Deletion(DeletionCause),
    Step(StepCause)
);
