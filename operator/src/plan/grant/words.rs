//! What is known of the entries of an access: whose word it is, and what it says.

use crate::api::{AccessReason, BucketName, ClaimUid, Consent, Endpoint};

/// A bucket at a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The bucket.
    pub bucket: BucketName,
    /// Name of the S3Backend.
    pub backend: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The S3Backend is, or was, there: so the gateway finds it.
    pub is_there: bool,
}

/// What is to be had of a claim, for the namespace of an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimWord {
    /// UID of the claim; `None` = there is none, or it is on its way out.
    pub uid: Option<ClaimUid>,
    /// Its owner lets the namespace in, by the spec; of a claim that can't be asked, by the record.
    pub shared: bool,
    /// It is in a namespace that this operator doesn't serve. All that is known of it is what its
    /// Secrets in the operator namespace say.
    pub unwatched: bool,
    /// The bucket that its newest key opens.
    pub place: Option<Place>,
    /// What the record of that bucket lets the namespace do, which is what the gateway goes by.
    pub opened: Option<Consent>,
}

/// What an administrator says of a bucket that no claim has, for the namespace of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketWord {
    /// Nothing, or there is no such backend.
    NotShared,
    /// It is shared, and void: a claim holds the bucket, or has a key to it.
    Held,
    /// It is shared.
    Shared {
        /// The bucket.
        place: Place,
        /// How far.
        consent: Consent,
    },
}

/// What the caches say of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySeen {
    /// It can't be read; says why.
    Invalid(String),
    /// The claim that it names.
    Claim(ClaimWord),
    /// The bucket that it names.
    Bucket(BucketWord),
}

/// What a reason means, in words.
pub(super) fn words(reason: AccessReason) -> &'static str {
    match reason {
        AccessReason::Open => "every entry opens",
        AccessReason::NotShared => "its owner does not share it with this namespace, or there is none",
        AccessReason::NotWatched => {
            "this operator doesn't serve the claim's namespace, so what its owner consents to isn't known"
        }
        AccessReason::ClaimNotBound => "the claim has no bucket yet",
        AccessReason::BackendNotReady => "the S3Backend is missing, or elsewhere than the bucket",
        AccessReason::ConsentPending => "the consent has not taken effect yet",
        AccessReason::BeyondConsent => "mode or prefix is beyond what its owner consents to",
        AccessReason::SameBucket => "two entries come to one bucket, or to two of one name",
        AccessReason::HeldByClaim => "a claim holds the bucket that is shared",
        AccessReason::KeyPending => "the next key opens it, once the one before has ended",
        AccessReason::SecretConflict => "the name of the Secret is taken",
        AccessReason::CreationInconsistent => "what the operator remembers is damaged",
        AccessReason::SpecInvalid => "the entry can't be read",
        AccessReason::OperatorNamespace => "the namespace is one of the operator's own",
        AccessReason::ServerError => "the API server failed",
        AccessReason::DeletionBlocked => "the deletion waits for somebody",
        AccessReason::Paused => "the access is paused",
    }
}
