//! What can stand in a claim's way, as facts with types. Reason and message of the condition are
//! made from them, and nowhere else.

use std::fmt;

use crate::api::{BucketName, ClaimRef, Endpoint, Reason};

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
}

/// What is wrong with the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackendCause {
    /// There is none of this name.
    Missing { backend: String },
    /// Its spec can't be read.
    Invalid { backend: String, why: String },
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
    /// Another claim has credentials for it.
    OthersCredentials { bucket: BucketName },
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
    /// The time from which a credential is not accepted can't be read.
    StampDamaged { secret: String },
    /// One that is deleted waits for these finalizers of others.
    Kept { secret: String, finalizers: String },
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
            },
            Self::Backend(cause) => match cause {
                BackendCause::NotAllowed { .. } => Reason::BackendNotAllowed,
                BackendCause::Missing { .. }
                | BackendCause::Invalid { .. }
                | BackendCause::NotReady { .. }
                | BackendCause::Moved { .. }
                | BackendCause::MoveWaits { .. } => Reason::BackendNotReady,
            },
            Self::Bucket(cause) => match cause {
                BucketCause::Held { .. } | BucketCause::OthersCredentials { .. } => Reason::BucketNameConflict,
                BucketCause::RecordDamaged { .. } => Reason::CreationInconsistent,
                BucketCause::Exists { .. } => Reason::BucketExists,
                BucketCause::Missing { .. } => Reason::BucketMissing,
                BucketCause::Contradictory { .. } => Reason::BackendError,
            },
            Self::Secret(cause) => match cause {
                SecretCause::Conflict { .. } => Reason::SecretConflict,
                SecretCause::Kept { .. } => Reason::BackendError,
                SecretCause::CredentialDamaged { .. }
                | SecretCause::BindingDamaged { .. }
                | SecretCause::NotACredential { .. }
                | SecretCause::StampDamaged { .. } => Reason::CreationInconsistent,
            },
            Self::Deletion(cause) => match cause {
                DeletionCause::NotEmpty { .. } => Reason::BucketNotEmpty,
                DeletionCause::Purging | DeletionCause::FillsAgain { .. } => Reason::Purging,
                DeletionCause::StoreFailed { .. } => Reason::BackendError,
                DeletionCause::BackendMissing { .. }
                | DeletionCause::BackendInvalid { .. }
                | DeletionCause::BackendMoved { .. }
                | DeletionCause::Forbidden { .. }
                | DeletionCause::ObjectsRefused { .. }
                | DeletionCause::Denied { .. } => Reason::DeletionBlocked,
            },
            Self::Step(_) => Reason::BackendError,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(cause) => cause.fmt(f),
            Self::Backend(cause) => cause.fmt(f),
            Self::Bucket(cause) => cause.fmt(f),
            Self::Secret(cause) => cause.fmt(f),
            Self::Deletion(cause) => cause.fmt(f),
            Self::Step(cause) => cause.fmt(f),
        }
    }
}

impl fmt::Display for ClaimCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => write!(f, "paused by annotation"),
            Self::PausedInDeletion => {
                write!(f, "paused by annotation; access is revoked, the rest of the deletion waits")
            }
            Self::OperatorNamespace { namespace } => {
                write!(f, "claims are not allowed in namespace {namespace}, which holds secrets of the operator")
            }
            Self::SpecInvalid { why } => write!(f, "the spec can't be read: {why}"),
            Self::NoBucketName { backend, why } => {
                write!(f, "the template of S3Backend {backend} gives this claim no bucket: {why}")
            }
            Self::NameReserved { bucket, ending } => {
                write!(f, "bucket {bucket} can't be had: S3 reserves the ending {ending} for another kind of bucket")
            }
        }
    }
}

impl fmt::Display for BackendCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { backend } => write!(f, "there is no S3Backend {backend}"),
            Self::Invalid { backend, why } => write!(f, "S3Backend {backend}: {why}"),
            Self::NotAllowed { backend, namespace } => {
                write!(f, "S3Backend {backend} does not allow namespace {namespace}")
            }
            Self::NotReady { backend } => write!(f, "S3Backend {backend} is not Ready"),
            Self::Moved { backend, now, held_at } => {
                write!(f, "S3Backend {backend} now points to {now}, the bucket is held at {held_at}")
            }
            Self::MoveWaits { to: Target { bucket, backend, .. } } => write!(
                f,
                "the move to bucket {bucket} at S3Backend {backend} waits until the credential before the current one \
                 has expired"
            ),
        }
    }
}

impl fmt::Display for BucketCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { bucket, holder, namespace } => {
                // Tenants of one namespace don't learn who is in another.
                let whose = if holder.namespace == *namespace {
                    format!("claim {}", holder.name)
                } else {
                    "a claim in another namespace".to_owned()
                };
                write!(
                    f,
                    "bucket {bucket} is held by {whose}; give this claim another bucketName (in a new claim) or delete \
                     the other"
                )
            }
            Self::OthersCredentials { bucket } => write!(f, "another claim has credentials for bucket {bucket}"),
            Self::RecordDamaged { bucket, why } => write!(f, "the record of bucket {bucket} is damaged: {why}"),
            Self::Exists { bucket, why } => write!(f, "bucket {bucket} exists and is not taken over: {why}"),
            Self::Missing { bucket, how: Missing::AdoptedGone } => {
                write!(f, "bucket {bucket} was taken over and is gone; it is not made again")
            }
            Self::Missing { bucket, how: Missing::Gone } => {
                write!(f, "bucket {bucket} was there and is gone; it is not replaced by an empty one")
            }
            Self::Missing { bucket, how: Missing::NotThroughNewBackend } => {
                write!(f, "bucket {bucket} was there and is not to be seen through the new backend")
            }
            Self::Missing { bucket, how: Missing::NotAt { backend, endpoint } } => {
                write!(f, "bucket {bucket} was there and is not at {endpoint}, where S3Backend {backend} points to now")
            }
            Self::Contradictory { bucket } => {
                write!(f, "the store says of bucket {bucket} both that it is there and that it is not")
            }
        }
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forbidden => "it belongs to somebody else or is in another region",
            Self::ForbiddenThere => "it is not the new backend's to use",
            Self::PolicyNever => "the backend's adoptionPolicy is Never",
            Self::PolicyOwned => "its tags don't name this claim, and the backend's adoptionPolicy is Owned",
            Self::AnotherClaims => "its tags name another claim",
            Self::NotThisClaims => "its tags don't name this claim",
        })
    }
}

impl fmt::Display for SecretCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CredentialDamaged { why } => {
                write!(f, "the current credential is damaged: {why}; a rotate request replaces it")
            }
            Self::Conflict { secret, why } => {
                write!(f, "Secret {secret} {why}; remove it or give writeConnectionSecretToRef another name")
            }
            Self::BindingDamaged { why } => {
                write!(f, "public access can't be given: {why}; delete that Secret to have it made anew")
            }
            Self::NotACredential { secret } => {
                write!(f, "Secret {secret} looks like a credential of this claim and is none; delete that Secret")
            }
            Self::StampDamaged { secret } => {
                write!(f, "annotation expires-at of Secret {secret} is damaged; delete that Secret")
            }
            Self::Kept { secret, finalizers } => write!(
                f,
                "can't delete Secret {secret}: it waits for its finalizers ({finalizers}), which are not the operator's"
            ),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotControlled => "exists and is not this claim's",
            Self::Immutable => "is immutable",
            Self::OtherType => "has a type other than Opaque",
        })
    }
}

/// How a claim that can't be deleted is let go. Both in one patch: forceDelete without Delete is
/// refused.
const WAY_OUT: &str =
    "to let the claim go and keep the bucket, set forceDelete: false and deletionPolicy: Retain in one patch";

impl fmt::Display for DeletionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackendMissing { backend, bucket } => {
                write!(f, "there is no S3Backend {backend} to delete bucket {bucket} with; {WAY_OUT}")
            }
            Self::BackendInvalid { backend, bucket, why } => {
                write!(f, "bucket {bucket} can't be deleted, S3Backend {backend}: {why}; {WAY_OUT}")
            }
            Self::BackendMoved { backend, bucket, then, now } => {
                write!(f, "bucket {bucket} is at {then}, S3Backend {backend} now points to {now}; {WAY_OUT}")
            }
            Self::Forbidden { bucket } => {
                write!(f, "the store does not let us see whose bucket {bucket} is; {WAY_OUT}")
            }
            Self::ObjectsRefused { bucket, code } => write!(
                f,
                "bucket {bucket} holds objects that the store refuses to delete ({code}), perhaps under object lock; \
                 {WAY_OUT}"
            ),
            Self::Denied { why } | Self::StoreFailed { why } => write!(f, "{why}; {WAY_OUT}"),
            Self::NotEmpty { bucket } => {
                write!(f, "bucket {bucket} is not empty; empty it, or set forceDelete: true, or {WAY_OUT}")
            }
            Self::Purging => write!(f, "the bucket is being emptied"),
            Self::FillsAgain { bucket } => write!(
                f,
                "all that bucket {bucket} showed is deleted, and it is not empty: somebody writes to it, or the store \
                 hides what it holds; {WAY_OUT}"
            ),
        }
    }
}

impl fmt::Display for StepCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreFailed { why } | Self::StoreDenied { why } => f.write_str(why),
            Self::Refused { step, why } => write!(f, "can't {step}: {why}"),
            Self::Unsupported { step } => write!(f, "can't {step}: the store does not implement it"),
            Self::NamespaceTerminating { step, namespace } => {
                write!(f, "can't {step}: namespace {namespace} is being deleted, or gone")
            }
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
