//! What is known of the entries of an access: whose word it is, and what it says.

use crate::api::{AccessReason, AccessRef, BucketName, BucketRecord, Claim, ClaimUid, Consent, Endpoint};

use super::super::asking::Asker;
use super::super::secret::{Stored, opened_record};

/// Operators that serve what an access asks for, by the notes on claims and S3Backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// This one serves the claim or the S3Backend of an entry that the access may know of.
    Here,
    /// This one serves those of some entries, but none that the access may know of.
    Hidden,
    /// Another one serves those of some entries, and this one none.
    Elsewhere,
    /// None is noted.
    Unknown,
}

impl Lead {
    /// `serves` is true for an entry that leads here, false for one that leads elsewhere.
    pub fn of<'a>(entries: impl Iterator<Item = (Option<bool>, &'a EntrySeen)>) -> Self {
        let known = entries.filter_map(|(serves, seen)| Some((serves?, seen)));
        known.fold(Self::Unknown, |lead, (here, seen)| match (lead, here) {
            (Self::Here, _) => Self::Here,
            (_, true) if seen.is_shared() => Self::Here,
            (Self::Hidden, _) | (_, true) => Self::Hidden,
            (Self::Elsewhere | Self::Unknown, false) => Self::Elsewhere,
        })
    }
}

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

impl ClaimWord {
    /// Whether the owner of a claim lets the namespace of the access `at` in, where the claim's
    /// bucket is, and whether its record says so. `own` are the claim's internal Secrets;
    /// `is_there` tells whether an S3Backend is, or was, at an endpoint.
    pub fn of(
        at: &AccessRef,
        asker: Option<&Asker>,
        claim: Option<&Claim>,
        own: &[Stored],
        is_there: impl Fn(&str, &Endpoint) -> bool,
    ) -> Self {
        let Some(claim) = claim.filter(|claim| !claim.deleting) else { return Self::default() };
        let labels = asker.map(|asker| &asker.labels);
        let is_own = claim.at.namespace == at.namespace;
        let (opened, place) = of_record(&claim.uid, asker, own, is_there);
        Self {
            uid: Some(claim.uid.clone()),
            shared: is_own || claim.sharing.consent(&at.namespace, labels).is_some(),
            unwatched: false,
            place,
            opened,
        }
    }

    /// The same of a claim in a namespace that isn't served, by its internal Secrets alone: its
    /// record says what the gateway goes by, and no record says what its owner would consent to.
    /// `uid` is the claim's, as far as its records tell it.
    pub fn unwatched(
        asker: Option<&Asker>,
        uid: Option<ClaimUid>,
        own: &[Stored],
        is_there: impl Fn(&str, &Endpoint) -> bool,
    ) -> Self {
        let (opened, place) = match &uid {
            Some(uid) => of_record(uid, asker, own, is_there),
            None => (None, None),
        };
        Self { uid, shared: opened.is_some(), unwatched: true, place, opened }
    }
}

/// What the record of a claim's bucket lets a namespace do, and where the bucket is.
fn of_record(
    uid: &ClaimUid,
    asker: Option<&Asker>,
    own: &[Stored],
    is_there: impl Fn(&str, &Endpoint) -> bool,
) -> (Option<Consent>, Option<Place>) {
    let record = opened_record(uid, own);
    let opened = |record: &BucketRecord| record.accesses.get(&asker?.uid).filter(|_| !record.ending).cloned();
    let opened = record.as_ref().and_then(opened);
    let place = record.map(|BucketRecord { bucket, backend, endpoint, .. }| Place {
        is_there: is_there(&backend, &endpoint),
        bucket,
        backend,
        endpoint,
    });
    (opened, place)
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

impl EntrySeen {
    /// True where the claim or bucket is of the access's namespace, or shared with it. Of all
    /// others it isn't told whether they are there.
    fn is_shared(&self) -> bool {
        match self {
            Self::Invalid(_) => false,
            Self::Claim(word) => word.shared,
            Self::Bucket(word) => *word != BucketWord::NotShared,
        }
    }
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
        AccessReason::ServedByAnother => "another operator is noted to serve the access",
        AccessReason::SpecInvalid => "the entry can't be read",
        AccessReason::OperatorNamespace => "the namespace is one of the operator's own",
        AccessReason::ServerError => "the API server failed",
        AccessReason::DeletionBlocked => "the deletion waits for somebody",
        AccessReason::Paused => "the access is paused",
    }
}
