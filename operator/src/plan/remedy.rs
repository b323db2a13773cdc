//! Remedies for every cause. A message may already say what to do; a remedy is an event that
//! resolves the cause by itself.

use crate::api::wire::{PAUSED, ROTATE, SERVED_BY};

use super::cause::{
    BackendCause, BucketCause, Cause, ClaimCause, DeletionCause, Foreign, Missing, NotTaken, SecretCause, StepCause,
};

/// Note for changes of a bucket, which no watch reports.
const SEEN: &str = "(no watch tells of that: it is seen at the next look, --resync-interval says how often)";

/// Remedy that releases a claim which can't be deleted.
const LET_GO: &str =
    "the claim is given forceDelete: false and deletionPolicy: Retain in one patch, which keeps the bucket";

/// Note for steps that are retried automatically.
const TRIED_AGAIN: &str = "(it is tried again by itself, at distances of half a second up to five minutes)";

/// Returns the remedies. Each completes the sentence "it goes on when …".
pub(super) fn remedies(cause: &Cause) -> Vec<String> {
    match cause {
        Cause::Claim(cause) => of_claim(cause),
        Cause::Backend(cause) => of_backend(cause),
        Cause::Bucket(cause) => of_bucket(cause),
        Cause::Secret(cause) => of_secret(cause),
        Cause::Deletion(cause) => of_deletion(cause),
        Cause::Step(cause) => of_step(cause),
    }
}

fn of_claim(cause: &ClaimCause) -> Vec<String> {
    match cause {
        ClaimCause::Paused | ClaimCause::PausedInDeletion => {
            vec![format!("annotation {PAUSED} is taken off the claim")]
        }
        ClaimCause::OperatorNamespace { .. } => vec!["the claim is made in another namespace".to_owned()],
        ClaimCause::SpecInvalid { .. } => vec!["the spec of the claim is mended".to_owned()],
        ClaimCause::NoBucketName { backend, .. } => vec![
            format!("bucketNameTemplate of S3Backend {backend} is mended"),
            "the claim is made anew, with a bucketName".to_owned(),
        ],
        ClaimCause::NameReserved { .. } => vec!["the claim is made anew, with another bucketName".to_owned()],
        ClaimCause::ServedByAnother { .. } => vec![
            format!("annotation {SERVED_BY} is taken off the claim"),
            format!("annotation {SERVED_BY} of the claim's S3Backend names that operator as well, which takes over"),
        ],
    }
}

fn of_backend(cause: &BackendCause) -> Vec<String> {
    match cause {
        BackendCause::Missing { backend } => {
            vec![format!("S3Backend {backend} is made"), "backendRef names another".to_owned()]
        }
        BackendCause::Invalid { backend, .. } => vec![format!("the spec of S3Backend {backend} is mended")],
        BackendCause::Anothers { backend, .. } => vec![
            format!("annotation {SERVED_BY} of S3Backend {backend} names this operator, once the other has ended"),
            "the other operator goes on".to_owned(),
        ],
        BackendCause::NotAllowed { backend, namespace } => vec![
            format!("allowedNamespaces of S3Backend {backend} lets namespace {namespace} in"),
            "backendRef names another".to_owned(),
        ],
        BackendCause::NotReady { backend } => {
            vec![format!("S3Backend {backend} turns Ready: its own conditions say what it waits for")]
        }
        BackendCause::Moved { backend, now, held_at } => vec![
            format!("S3Backend {backend} points to {held_at} again"),
            format!("the bucket is at {now} with the tags of this claim {SEEN}"),
        ],
        BackendCause::MoveWaits { .. } => vec!["time passes: the credential before the current one expires".to_owned()],
    }
}

fn of_bucket(cause: &BucketCause) -> Vec<String> {
    match cause {
        BucketCause::Held { .. } => vec![
            "the claim that holds the bucket is deleted".to_owned(),
            "this claim is made anew, with another bucketName".to_owned(),
        ],
        BucketCause::OpenElsewhere { .. } => vec![
            "anonymousAccess.mode of this claim is None".to_owned(),
            "the other claim ends its public access".to_owned(),
        ],
        BucketCause::OthersCredentials { bucket } => {
            vec![format!("the other claim's credentials for bucket {bucket} are gone")]
        }
        BucketCause::Shared { bucket, backend } => {
            vec![format!("bucket {bucket} is taken out of sharedBuckets of S3Backend {backend}")]
        }
        BucketCause::RecordDamaged { bucket, .. } => {
            vec![format!("the record of bucket {bucket}, a Secret of the operator's namespace, is mended")]
        }
        BucketCause::Exists { bucket, why } => not_taken(bucket.as_str(), *why),
        BucketCause::Missing { bucket, how } => missing(bucket.as_str(), how),
        BucketCause::Contradictory { .. } => vec![format!("the store says one thing {TRIED_AGAIN}")],
    }
}

fn not_taken(bucket: &str, why: NotTaken) -> Vec<String> {
    let otherwise = match why {
        NotTaken::Forbidden | NotTaken::ForbiddenThere => {
            format!("the store lets the operator's credentials see bucket {bucket} {SEEN}")
        }
        NotTaken::PolicyNever => "adoptionPolicy of the backend is Owned or Any".to_owned(),
        NotTaken::PolicyOwned => {
            format!("adoptionPolicy of the backend is Any, or bucket {bucket} has the tags of this claim")
        }
        NotTaken::AnotherClaims | NotTaken::NotThisClaims => {
            format!("bucket {bucket} has the tags of this claim {SEEN}")
        }
        NotTaken::AnotherAccounts => "the backend has credentials of the account that owns the bucket".to_owned(),
        NotTaken::OwnerUntold => "adoptionProof of the backend is SoleAccount".to_owned(),
    };
    vec![
        otherwise,
        format!("bucket {bucket} is gone {SEEN}"),
        "the claim is made anew, with another bucketName".to_owned(),
    ]
}

fn missing(bucket: &str, how: &Missing) -> Vec<String> {
    let back = match how {
        Missing::Gone | Missing::AdoptedGone => format!("bucket {bucket} is there again, with its data {SEEN}"),
        Missing::NotThroughNewBackend => format!("the new backend's credentials see bucket {bucket} {SEEN}"),
        Missing::NotAt { backend, endpoint } => {
            format!("S3Backend {backend} points to where bucket {bucket} is, or it is at {endpoint} {SEEN}")
        }
    };
    vec![back, "the claim is deleted, and made anew for an empty bucket".to_owned()]
}

fn of_secret(cause: &SecretCause) -> Vec<String> {
    match cause {
        SecretCause::CredentialDamaged { .. } => vec![format!("annotation {ROTATE} of the claim asks for another key")],
        SecretCause::Conflict { secret, why } => {
            let otherwise = match why {
                Foreign::NotControlled => format!("Secret {secret} is deleted"),
                Foreign::Immutable => format!("Secret {secret}, which is immutable, is deleted"),
                Foreign::OtherType => format!("Secret {secret}, which is of another type, is deleted"),
            };
            vec![otherwise, "writeConnectionSecretToRef gives another name".to_owned()]
        }
        SecretCause::Forbidden { key, .. } => vec![
            format!("{key} is taken out of spec.secretTemplate"),
            "whoever runs the operator allows it with --secret-metadata-prefix".to_owned(),
        ],
        SecretCause::TooLarge { .. } => vec!["spec.secretTemplate.data asks for less".to_owned()],
        SecretCause::BindingDamaged { .. } => {
            vec!["the Secret that gives public access is deleted: it is made anew".to_owned()]
        }
        SecretCause::NotACredential { secret }
        | SecretCause::Elsewhere { secret, .. }
        | SecretCause::StampDamaged { secret } => vec![format!("Secret {secret} is deleted")],
        SecretCause::Kept { secret, finalizers } => {
            vec![format!("whoever put them on takes the finalizers {finalizers} off Secret {secret}")]
        }
    }
}

fn of_deletion(cause: &DeletionCause) -> Vec<String> {
    let or_let_go = |first: String| vec![first, LET_GO.to_owned()];
    match cause {
        DeletionCause::BackendMissing { backend, .. } => or_let_go(format!("S3Backend {backend} is made again")),
        DeletionCause::BackendInvalid { backend, .. } => {
            or_let_go(format!("the spec of S3Backend {backend} is mended"))
        }
        DeletionCause::BackendAnothers { backend, .. } => or_let_go(format!(
            "annotation {SERVED_BY} of S3Backend {backend} names this operator, once the other has ended"
        )),
        DeletionCause::BackendMoved { backend, then, .. } => {
            or_let_go(format!("S3Backend {backend} points to {then} again"))
        }
        DeletionCause::Forbidden { bucket } => {
            or_let_go(format!("the store lets the operator's credentials see bucket {bucket} {SEEN}"))
        }
        DeletionCause::ObjectsRefused { bucket, .. } => {
            or_let_go(format!("the store lets the objects of bucket {bucket} be deleted {SEEN}"))
        }
        DeletionCause::Denied { .. } => or_let_go(format!("the store lets the operator's credentials do it {SEEN}")),
        DeletionCause::NotEmpty { bucket } => vec![
            format!(
                "bucket {bucket} is emptied (it is looked at every half minute, in the end every --resync-interval)"
            ),
            "the claim is given forceDelete: true".to_owned(),
            LET_GO.to_owned(),
        ],
        DeletionCause::Purging => vec!["time passes: the bucket is emptied slice by slice".to_owned()],
        DeletionCause::FillsAgain { bucket } => {
            or_let_go(format!("whoever writes to bucket {bucket} stops {TRIED_AGAIN}"))
        }
        DeletionCause::Unanswered => vec!["time passes: the deadline of that call is over".to_owned()],
        DeletionCause::StoreFailed { .. } => or_let_go(format!("the store does it {TRIED_AGAIN}")),
    }
}

fn of_step(cause: &StepCause) -> Vec<String> {
    match cause {
        StepCause::StoreFailed { .. } => vec![format!("the store does it {TRIED_AGAIN}")],
        StepCause::StoreDenied { .. } => {
            vec![format!("the store lets the operator's credentials do it {SEEN}")]
        }
        StepCause::ServerFailed { .. } => vec![format!("the API server does it {TRIED_AGAIN}")],
        StepCause::Refused { .. } => {
            vec!["what refuses it lets it through: a right, a quota, a policy or a webhook".to_owned()]
        }
        StepCause::Unsupported { .. } => vec!["the claim no longer asks for it".to_owned()],
        StepCause::NamespaceTerminating { namespace, .. } => vec![format!("namespace {namespace} is made again")],
    }
}
