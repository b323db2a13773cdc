//! Condition types and reasons (spec §1), and the merge of new conditions into a status.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Types of the conditions that the operator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// Everything that the spec requests exists.
    Ready,
    /// The bucket exists and belongs to this claim.
    BucketCreated,
    /// The consumer Secret contains a working credential.
    CredentialsProvisioned,
    /// kstatus: the object is being processed and needs no action by a user. Present only while
    /// true.
    Reconciling,
    /// kstatus: a user has to change something. Present only while true.
    Stalled,
}

impl ConditionType {
    /// Every type that the operator writes. Conditions of other types are preserved.
    pub const ALL: [Self; 5] =
        [Self::Ready, Self::BucketCreated, Self::CredentialsProvisioned, Self::Reconciling, Self::Stalled];

    /// Returns the value of the field `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::BucketCreated => "BucketCreated",
            Self::CredentialsProvisioned => "CredentialsProvisioned",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
        }
    }
}

/// Reasons of a claim's conditions (spec §1). `Display` writes the value of the field `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Ready: bucket and credentials exist.
    Bound,
    /// The backend is missing, or not Ready for its current generation.
    BackendNotReady,
    /// The backend does not allow the claim's namespace, or the namespace is one of the operator's.
    BackendNotAllowed,
    /// The template cannot be parsed or produces no valid bucket name for this claim.
    TemplateInvalid,
    /// Another claim holds the bucket.
    BucketNameConflict,
    /// A bucket of that name exists, and the adoption policy forbids adopting it.
    BucketExists,
    /// The bucket existed and has disappeared.
    BucketMissing,
    /// A Secret with the consumer Secret's name exists and does not belong to the claim.
    SecretConflict,
    /// The operator's internal Secrets for the claim are damaged.
    CreationInconsistent,
    /// The claim's annotation names another operator, which this operator overrules.
    ServedByAnother,
    /// The store or the API server refused a request or failed.
    BackendError,
    /// Deletion waits: the bucket is not empty.
    BucketNotEmpty,
    /// Deletion continues: the bucket is being emptied.
    Purging,
    /// Deletion waits for an action by a user.
    DeletionBlocked,
    /// The claim is paused.
    Paused,
    /// BucketCreated: the bucket was created for this claim.
    CreatedOnBackend,
    /// BucketCreated: the bucket was adopted.
    Adopted,
    /// BucketCreated: the name is reserved, and the bucket does not exist yet.
    Creating,
    /// CredentialsProvisioned: the consumer Secret is written.
    SecretWritten,
    /// CredentialsProvisioned: the credentials are revoked because the claim is being deleted.
    Revoked,
}

impl Reason {
    /// Returns true if a claim that is not Ready for this reason is `Stalled`. For every other
    /// reason except `Paused` it is `Reconciling` (spec §1).
    pub fn stalls(self) -> bool {
        matches!(
            self,
            Self::BackendNotAllowed
                | Self::TemplateInvalid
                | Self::BucketNameConflict
                | Self::BucketExists
                | Self::BucketMissing
                | Self::SecretConflict
                | Self::CreationInconsistent
                | Self::ServedByAnother
                | Self::BucketNotEmpty
                | Self::DeletionBlocked
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variants have the names that the contract gives to the reasons.
        fmt::Debug::fmt(self, f)
    }
}

/// Reasons of a backend's `Ready` condition (spec §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackendReason {
    /// ListBuckets with the admin credentials succeeded.
    EndpointReachable,
    /// The endpoint does not respond.
    EndpointUnreachable,
    /// The admin or CA Secret is missing, malformed, not trusted or not readable, or the store
    /// responded with 401 or 403.
    CredentialsInvalid,
    /// The bucket name template cannot be parsed.
    TemplateInvalid,
    /// The store responded with an error.
    BackendError,
}

impl BackendReason {
    /// Returns true if a user has to change something. The other reasons are retried automatically.
    pub fn stalls(self) -> bool {
        matches!(self, Self::CredentialsInvalid | Self::TemplateInvalid)
    }
}

impl fmt::Display for BackendReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variants have the names that the contract gives to the reasons.
        fmt::Debug::fmt(self, f)
    }
}

/// Reasons of an access's `Ready` condition and of its entries (spec §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessReason {
    /// The key is published, and every entry opens its bucket.
    Open,
    /// The bucket's owner does not consent, or there is no such claim or bucket.
    NotShared,
    /// The claim is in a namespace that this operator does not serve, so its owner's consent is
    /// unknown.
    NotWatched,
    /// The claim has no bucket yet.
    ClaimNotBound,
    /// The backend is missing, or has another endpoint than the bucket.
    BackendNotReady,
    /// The consent has not taken effect yet.
    ConsentPending,
    /// The consent covers other objects, or another mode than the entry requests.
    BeyondConsent,
    /// Another entry resolves to the same bucket, or to a bucket of the same name.
    SameBucket,
    /// A claim holds the bucket that an administrator shares.
    HeldByClaim,
    /// The next key will open the bucket. It waits for the previous key to end.
    KeyPending,
    /// A Secret with the consumer Secret's name exists and does not belong to the access.
    SecretConflict,
    /// The operator's internal Secrets for the access are damaged.
    CreationInconsistent,
    /// The access's annotation names another operator.
    ServedByAnother,
    /// The spec, or an entry, cannot be parsed.
    SpecInvalid,
    /// The namespace is one of the operator's.
    OperatorNamespace,
    /// The API server refused a request or failed.
    ServerError,
    /// Deletion waits for an action by a user.
    DeletionBlocked,
    /// The access is paused.
    Paused,
}

impl AccessReason {
    /// Every reason.
    pub const ALL: [Self; 18] = [
        Self::Open,
        Self::NotShared,
        Self::NotWatched,
        Self::ClaimNotBound,
        Self::BackendNotReady,
        Self::ConsentPending,
        Self::BeyondConsent,
        Self::SameBucket,
        Self::HeldByClaim,
        Self::KeyPending,
        Self::SecretConflict,
        Self::CreationInconsistent,
        Self::ServedByAnother,
        Self::SpecInvalid,
        Self::OperatorNamespace,
        Self::ServerError,
        Self::DeletionBlocked,
        Self::Paused,
    ];

    /// Returns the value used in conditions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::NotShared => "NotShared",
            Self::NotWatched => "NotWatched",
            Self::ClaimNotBound => "ClaimNotBound",
            Self::BackendNotReady => "BackendNotReady",
            Self::ConsentPending => "ConsentPending",
            Self::BeyondConsent => "BeyondConsent",
            Self::SameBucket => "SameBucket",
            Self::HeldByClaim => "HeldByClaim",
            Self::KeyPending => "KeyPending",
            Self::SecretConflict => "SecretConflict",
            Self::CreationInconsistent => "CreationInconsistent",
            Self::ServedByAnother => "ServedByAnother",
            Self::SpecInvalid => "SpecInvalid",
            Self::OperatorNamespace => "OperatorNamespace",
            Self::ServerError => "ServerError",
            Self::DeletionBlocked => "DeletionBlocked",
            Self::Paused => "Paused",
        }
    }

    /// Returns true if a user has to change something. Every other reason except `Paused` is
    /// `Reconciling`.
    pub fn stalls(self) -> bool {
        matches!(
            self,
            Self::NotShared
                | Self::NotWatched
                | Self::BeyondConsent
                | Self::SameBucket
                | Self::HeldByClaim
                | Self::SecretConflict
                | Self::CreationInconsistent
                | Self::ServedByAnother
                | Self::SpecInvalid
                | Self::OperatorNamespace
                | Self::DeletionBlocked
        )
    }
}

impl fmt::Display for AccessReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Maximum length of a condition's message, in bytes. Only a message that names two endpoints of
/// maximum length comes close.
pub const LONGEST_MESSAGE: usize = 4096;

/// Returns `text` if it has at most `most` bytes, otherwise its beginning and an ellipsis.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    const ELLIPSIS: char = '\u{2026}';
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most.saturating_sub(ELLIPSIS.len_utf8()));
    Cow::Owned(format!("{}{ELLIPSIS}", &text[..end]))
}

/// Merges the `wanted` conditions into the `current` ones.
///
/// Messages are shortened to [`LONGEST_MESSAGE`]. A condition whose status did not change keeps its
/// transition time. Conditions in `current` of types that the operator does not write are appended.
pub fn merge_conditions(current: &[Condition], mut wanted: Vec<Condition>, now: &Time) -> Vec<Condition> {
    for condition in wanted.iter_mut().filter(|condition| condition.message.len() > LONGEST_MESSAGE) {
        condition.message = shortened(&condition.message, LONGEST_MESSAGE).into_owned();
    }
    let foreign = current.iter().filter(|c| ConditionType::ALL.iter().all(|ours| ours.as_str() != c.type_)).cloned();
    let ours = wanted.into_iter().map(|mut condition| {
        let unchanged = current.iter().find(|c| c.type_ == condition.type_ && c.status == condition.status);
        condition.last_transition_time = unchanged.map_or(now, |c| &c.last_transition_time).clone();
        condition
    });
    ours.chain(foreign).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    // covers: 1.condition.stalled
    #[test]
    fn the_reasons_that_somebody_must_do_something_about_are_those_of_the_contract() {
        use Reason::*;
        let stalled = [
            BackendNotAllowed,
            TemplateInvalid,
            BucketNameConflict,
            BucketExists,
            BucketMissing,
            SecretConflict,
            CreationInconsistent,
            ServedByAnother,
            BucketNotEmpty,
            DeletionBlocked,
        ];
        assert!(stalled.iter().all(|reason| reason.stalls()));
        assert!(![BackendNotReady, BackendError, Purging, Paused].iter().any(|reason| reason.stalls()));
    }

    fn condition(type_: &str, status: &str, second: i64) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            observed_generation: None,
            reason: "Reason".to_owned(),
            message: String::new(),
            last_transition_time: Time(Timestamp::from_second(second).unwrap()),
        }
    }

    // covers: 1.condition.length
    #[test]
    fn messages_have_an_end_and_it_is_the_same_again() {
        let long = Condition { message: "\u{fc}".repeat(LONGEST_MESSAGE), ..condition("Ready", "False", 1) };
        let merged = merge_conditions(&[], vec![long.clone()], &long.last_transition_time);
        assert!((LONGEST_MESSAGE - 1..=LONGEST_MESSAGE).contains(&merged[0].message.len()));
        assert!(merged[0].message.ends_with("\u{fc}\u{2026}"));
        assert_eq!(merge_conditions(&merged, vec![long.clone()], &long.last_transition_time), merged);
    }

    #[test]
    fn what_is_short_enough_is_whole() {
        assert_eq!(shortened("four", 4), "four");
        assert_eq!(shortened("fives", 4), "f\u{2026}");
    }

    // covers: 1.condition.foreign, 1.status.atRest
    #[test]
    fn times_are_kept_where_the_status_is_and_conditions_of_others_always() {
        let current = [condition("Ready", "True", 1), condition("Stalled", "True", 1), condition("theirs", "True", 1)];
        let wanted = vec![condition("Ready", "True", 5), condition("BucketCreated", "False", 5)];
        let now = Time(Timestamp::from_second(5).unwrap());
        let merged = merge_conditions(&current, wanted, &now);
        let expected =
            [condition("Ready", "True", 1), condition("BucketCreated", "False", 5), condition("theirs", "True", 1)];
        assert_eq!(merged, expected);
        assert_eq!(merge_conditions(&current, vec![condition("Ready", "False", 9)], &now)[0].last_transition_time, now);
    }
}
