//! Data about the entries of an access, and about the parties that consent to them.

use crate::api::{AccessReason, AccessRef, BucketName, BucketRecord, Claim, ClaimUid, Consent, Endpoint};

use super::super::asking::Asker;
use super::super::secret::{Stored, opened_record};

/// Operators that serve what an access requests, according to the annotations of claims and
/// S3Backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// This operator serves the claim or S3Backend of an entry that the access may know about.
    Here,
    /// This operator serves some entries, but none that the access may know about.
    Hidden,
    /// Another operator serves some entries, and this operator serves none.
    Elsewhere,
    /// No annotation names an operator.
    Unknown,
}

impl Lead {
    /// Combines all entries. The bool is true for an entry that this operator serves, and false for
    /// one that another serves.
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
    /// Endpoint of the bucket.
    pub endpoint: Endpoint,
    /// True if this is or was the endpoint of the S3Backend, because then the gateway finds the
    /// backend.
    pub is_there: bool,
}

/// Availability of a claim's bucket for the namespace of an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimWord {
    /// UID of the claim. `None` if it does not exist or is being deleted.
    pub uid: Option<ClaimUid>,
    /// True if the owner's spec admits the namespace. For a claim that can't be read, this is taken
    /// from the record.
    pub shared: bool,
    /// True if the claim is in a namespace that this operator does not serve. Then only its Secrets
    /// in the operator namespace are known.
    pub unwatched: bool,
    /// The bucket that the newest key of the claim opens.
    pub place: Option<Place>,
    /// Consent for the namespace in the record of that bucket, which the gateway enforces.
    pub opened: Option<Consent>,
}

impl ClaimWord {
    /// Combines the spec of a claim, the location of its bucket and the consent in its record, for
    /// the access at `at`. `own` are the claim's internal Secrets. `is_there` is true if an
    /// S3Backend is or was at an endpoint.
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

    /// Like [`Self::of`], for a claim in a namespace that is not served.
    ///
    /// Only its internal Secrets are used. Its record has what the gateway enforces, but not what
    /// the owner would consent to. `uid` is the UID of the claim, if its records have it.
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

/// Returns the consent for a namespace in the record of a claim's bucket, and the location of the
/// bucket.
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

/// State of a bucket that an administrator shares, for the namespace of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketWord {
    /// Not shared, or the backend does not exist.
    NotShared,
    /// Shared without effect: a claim holds the bucket or has a key to it.
    Held,
    /// Shared.
    Shared {
        /// The bucket.
        place: Place,
        /// Rights that are shared.
        consent: Consent,
    },
}

/// Cached data about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySeen {
    /// The entry is invalid, for this reason.
    Invalid(String),
    /// The entry names a claim.
    Claim(ClaimWord),
    /// The entry names a bucket.
    Bucket(BucketWord),
}

impl EntrySeen {
    /// Returns true if the claim or bucket belongs to the access's namespace or is shared with it.
    /// For any other, the access must not learn whether it exists.
    fn is_shared(&self) -> bool {
        match self {
            Self::Invalid(_) => false,
            Self::Claim(word) => word.shared,
            Self::Bucket(word) => *word != BucketWord::NotShared,
        }
    }
}

/// Describes a reason.
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
