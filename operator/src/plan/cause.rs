//! What can stand in a claim's way, as facts with types. The condition's reason is made from them
//! here, its message in `message`, and both nowhere else.

use crate::api::{BucketName, ClaimRef, Endpoint, Reason, ServedBy, TooLarge};

use super::step::Step;
use super::target::Target;

/// What stands in the way. Its text is the condition's message: stable, without request ids or
/// times.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    /// The claim itself.
    Claim(ClaimCause),
    /// The backend.
    Backend(BackendCause),
    /// The bucket, or who holds it.
    Bucket(BucketCause),
    /// A Secret.
    Secret(SecretCause),
    /// What a deletion waits for.
    Deletion(DeletionCause),
    /// A step that was refused or failed.
    Step(StepCause),
}

/// What is wrong with the claim itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimCause {
    /// Paused by annotation.
    Paused,
    /// Paused by annotation while it is being deleted.
    PausedInDeletion,
    /// It is in this namespace, which holds Secrets of the operator (spec §2).
    OperatorNamespace { namespace: String },
    /// Its spec can't be read.
    SpecInvalid { why: String },
    /// The backend's template gives it no bucket name.
    NoBucketName { backend: String, why: String },
    /// S3 reserves names with this ending for another kind of bucket.
    NameReserved { bucket: BucketName, ending: &'static str },
    /// Its annotation names this other operator, and its Secrets are here.
    ServedByAnother { operator: ServedBy },
}

/// What is wrong with the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackendCause {
    /// There is none of this name.
    Missing { backend: String },
    /// Its spec can't be read.
    Invalid { backend: String, why: String },
    /// Another operator serves it.
    Anothers { backend: String, operator: Option<ServedBy> },
    /// It does not let the claim's namespace in.
    NotAllowed { backend: String, namespace: String },
    /// Its probe fails, or has not been made yet.
    NotReady { backend: String },
    /// It points elsewhere, where the claim's bucket is not seen.
    Moved { backend: String, now: Endpoint, held_at: Endpoint },
    /// The move to this bucket waits for the credential before the current one to expire.
    MoveWaits { to: Target },
}

/// What is wrong with the bucket, or who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BucketCause {
    /// Another claim holds it; the claim that is refused is in this namespace.
    Held { bucket: BucketName, holder: ClaimRef, namespace: String },
    /// Another claim opens a bucket of that name at another store, and holds it for longer; the
    /// claim that is told is in this namespace.
    OpenElsewhere { bucket: BucketName, rival: ClaimRef, namespace: String },
    /// Another claim has credentials for it.
    OthersCredentials { bucket: BucketName },
    /// An administrator shares it by the backend, as one that no claim has.
    Shared { bucket: BucketName, backend: String },
    /// Its record can't be read.
    RecordDamaged { bucket: BucketName, why: String },
    /// It is there and is not this claim's.
    Exists { bucket: BucketName, why: NotTaken },
    /// That of a claim which was bound is missing.
    Missing { bucket: BucketName, how: Missing },
    /// The store says both that it is there and that it is not.
    Contradictory { bucket: BucketName },
}

/// Why a bucket that is there is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// We may not look at it.
    Forbidden,
    /// We may not look at it through another backend of the same endpoint.
    ForbiddenThere,
    /// `adoptionPolicy: Never`
    PolicyNever,
    /// `adoptionPolicy: Owned`, and its tags name nobody.
    PolicyOwned,
    /// Its tags name another claim.
    AnotherClaims,
    /// Its tags don't name this claim.
    NotThisClaims,
    /// The account that owns it is not ours.
    AnotherAccounts,
    /// The store does not say which account owns it.
    OwnerUntold,
}

/// How the bucket of a claim that was bound is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It was made, and is gone.
    Gone,
    /// It was taken over, and is gone.
    AdoptedGone,
    /// It can't be seen through the new backend of the same endpoint.
    NotThroughNewBackend,
    /// It is not at the endpoint that this backend has now.
    NotAt { backend: String, endpoint: Endpoint },
}

/// What is wrong with a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretCause {
    /// That of the credential aimed at is damaged.
    CredentialDamaged { why: String },
    /// That which the tenant is to have can't be written.
    Conflict { secret: String, why: Foreign },
    /// That which gives public access is damaged.
    BindingDamaged { why: String },
    /// One has the name of a credential of this claim, and is none.
    NotACredential { secret: String },
    /// One notes another endpoint than the record, where the bucket is not seen to be the claim's.
    Elsewhere { secret: String, noted: Endpoint, held_at: Endpoint },
    /// The time from which a credential is not accepted can't be read.
    StampDamaged { secret: String },
    /// One that is deleted waits for these finalizers of others.
    Kept { secret: String, finalizers: String },
    /// Its template has a label or annotation that none may write.
    Forbidden { secret: String, key: String },
    /// Its template asks for too much.
    TooLarge { secret: String, too_large: TooLarge },
}

/// Why a Secret of the wanted name is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The claim does not control it.
    NotControlled,
    /// `immutable: true`
    Immutable,
    /// Its type is not `Opaque`.
    OtherType,
}

/// What a deletion waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeletionCause {
    /// There is no backend to delete the bucket with.
    BackendMissing { backend: String, bucket: BucketName },
    /// The backend's spec can't be read.
    BackendInvalid { backend: String, bucket: BucketName, why: String },
    /// Another operator serves the backend.
    BackendAnothers { backend: String, bucket: BucketName, operator: Option<ServedBy> },
    /// The backend points elsewhere.
    BackendMoved { backend: String, bucket: BucketName, then: Endpoint, now: Endpoint },
    /// The store does not let us see whose the bucket is.
    Forbidden { bucket: BucketName },
    /// The store refuses to delete objects, with this code.
    ObjectsRefused { bucket: BucketName, code: String },
    /// The store refuses us.
    Denied { why: String },
    /// The bucket is not empty, and is not to be emptied.
    NotEmpty { bucket: BucketName },
    /// The bucket is being emptied.
    Purging,
    /// All that the bucket showed is deleted, and it is not empty.
    FillsAgain { bucket: BucketName },
    /// A call to the store got no answer, and may still be carried out.
    Unanswered,
    /// The store failed or gave no answer.
    StoreFailed { why: String },
}

/// Why a step was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepCause {
    /// The store failed or gave no answer.
    StoreFailed { why: String },
    /// The store refuses us.
    StoreDenied { why: String },
    /// The API server failed or gave no answer: whether it happened is unknown.
    ServerFailed { step: String, why: String },
    /// The API server refuses.
    Refused { step: String, why: String },
    /// The store does not know the operation.
    Unsupported { step: String },
    /// The namespace that is written to is going away.
    NamespaceTerminating { step: String, namespace: String },
}

impl StepCause {
    /// The store does not know the operation of this step.
    pub(super) fn unsupported(step: &Step) -> Self {
        Self::Unsupported { step: step.to_string() }
    }
}

impl Cause {
    /// Reason of `Ready=False` (spec §1).
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
