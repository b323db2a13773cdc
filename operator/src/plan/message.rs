//! Messages of conditions, made from causes.

use std::fmt;

use crate::api::wire::SERVED_BY;
use crate::api::{ClaimRef, ServedBy};

use super::cause::{
    BackendCause, BucketCause, Cause, ClaimCause, DeletionCause, Foreign, Missing, NotTaken, SecretCause, StepCause,
};
use super::target::Target;

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
            Self::ServedByAnother { operator } => write!(
                f,
                "annotation {SERVED_BY} names another operator ({operator}), but this one has the claim's keys and goes on \
                 to serve it; remove the annotation"
            ),
        }
    }
}

impl fmt::Display for BackendCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { backend } => write!(f, "there is no S3Backend {backend}"),
            Self::Invalid { backend, why } => write!(f, "S3Backend {backend}: {why}"),
            Self::Anothers { backend, operator } => anothers(f, backend, operator.as_ref()),
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

/// Writes the message about a backend that another operator serves, for claims and for deletions.
/// It names the annotation that decides.
fn anothers(f: &mut fmt::Formatter<'_>, backend: &str, operator: Option<&ServedBy>) -> fmt::Result {
    let operator = operator.map_or("nobody", ServedBy::as_str);
    write!(f, "S3Backend {backend} is served by another operator ({operator}, see its annotation {SERVED_BY})")
}

/// Describes another claim without its name if it is in another namespace, so that tenants don't
/// learn about each other.
fn whose(claim: &ClaimRef, namespace: &str) -> String {
    if claim.namespace == namespace {
        format!("claim {}", claim.name)
    } else {
        "a claim in another namespace".to_owned()
    }
}

impl fmt::Display for BucketCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { bucket, holder, namespace } => {
                let whose = whose(holder, namespace);
                write!(
                    f,
                    "bucket {bucket} is held by {whose}; give this claim another bucketName (in a new claim) or delete \
                     the other"
                )
            }
            Self::OpenElsewhere { bucket, rival, namespace } => {
                let whose = whose(rival, namespace);
                write!(
                    f,
                    "a request without a key to bucket {bucket} goes to the one that {whose} has opened at another store \
                     and held first; keys work; set anonymousAccess.mode: None, or give this claim another bucketName (in \
                     a new claim)"
                )
            }
            Self::OthersCredentials { bucket } => write!(f, "another claim has credentials for bucket {bucket}"),
            Self::Shared { bucket, backend } => {
                write!(f, "bucket {bucket} is in sharedBuckets of S3Backend {backend}: no claim can have it")
            }
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
            Self::AnotherAccounts => "it is of another account of the store",
            Self::OwnerUntold => {
                "the store does not tell which account owns it; where no other account makes buckets, set the backend's \
                 adoptionProof: SoleAccount"
            }
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
            Self::Elsewhere { secret, noted, held_at } => write!(
                f,
                "Secret {secret} is for the store at {noted}, the bucket is held at {held_at} and its tags there don't name \
                 this claim; delete that Secret to have another made for {held_at}"
            ),
            Self::StampDamaged { secret } => {
                write!(f, "annotation expires-at of Secret {secret} is damaged; delete that Secret")
            }
            Self::Forbidden { secret, key } => write!(
                f,
                "Secret {secret} is not brought up to date: this operator lets spec.secretTemplate write no {key} \
                 (--secret-metadata-prefix)"
            ),
            Self::TooLarge { secret, too_large } => {
                write!(f, "Secret {secret} is not brought up to date: {too_large}")
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

/// Instruction for releasing a claim that can't be deleted. Both fields go in one patch, because
/// forceDelete without Delete is refused.
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
            Self::BackendAnothers { backend, bucket, operator } => {
                write!(f, "bucket {bucket} can't be deleted: ")?;
                anothers(f, backend, operator.as_ref())?;
                write!(f, "; {WAY_OUT}")
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
            Self::Unanswered => {
                write!(f, "a call to the store got no answer and may still be carried out: that is waited for")
            }
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
            Self::Refused { step, why } | Self::ServerFailed { step, why } => write!(f, "can't {step}: {why}"),
            Self::Unsupported { step } => write!(f, "can't {step}: the store does not implement it"),
            Self::NamespaceTerminating { step, namespace } => {
                write!(f, "can't {step}: namespace {namespace} is being deleted, or gone")
            }
        }
    }
}
