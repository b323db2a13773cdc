//! Message and reason of every cause. They are read in conditions, and a changed message causes a
//! status write for every affected claim.

use std::time::Duration;

use crate::api::{BucketName, ServedBy};

use super::super::cause::{
    BackendCause, BucketCause, Cause, ClaimCause, DeletionCause, Foreign, Missing, NotTaken, SecretCause, StepCause,
};
use super::super::obstacle::Obstacle;
use super::super::stop::{Concern, Stop};
use super::*;

const WAY_OUT: &str =
    "to let the claim go and keep the bucket, set forceDelete: false and deletionPolicy: Retain in one patch";

fn name() -> String {
    "main".to_owned()
}

fn bucket() -> BucketName {
    record().bucket
}

fn why() -> String {
    "the reason".to_owned()
}

fn elsewhere() -> Endpoint {
    Endpoint::parse("http://elsewhere.example").unwrap()
}

fn another() -> ServedBy {
    ServedBy::operator("other-system", "elsewhere")
}

fn of_claims() -> Vec<(Cause, Reason, String)> {
    use ClaimCause::{
        NameReserved, NoBucketName, OperatorNamespace, Paused, PausedInDeletion, ServedByAnother, SpecInvalid,
    };
    let said = |cause: ClaimCause, reason, text: &str| (cause.into(), reason, text.to_owned());
    vec![
        said(Paused, Reason::Paused, "paused by annotation"),
        said(
            PausedInDeletion,
            Reason::Paused,
            "paused by annotation; access is revoked, the rest of the deletion waits",
        ),
        said(
            OperatorNamespace { namespace: NAMESPACE.into() },
            Reason::BackendNotAllowed,
            "claims are not allowed in namespace stowage-system, which holds secrets of the operator",
        ),
        said(SpecInvalid { why: why() }, Reason::TemplateInvalid, "the spec can't be read: the reason"),
        said(
            NoBucketName { backend: name(), why: why() },
            Reason::TemplateInvalid,
            "the template of S3Backend main gives this claim no bucket: the reason",
        ),
        said(
            NameReserved { bucket: bucket(), ending: "--x-s3" },
            Reason::TemplateInvalid,
            "bucket team-a-photos can't be had: S3 reserves the ending --x-s3 for another kind of bucket",
        ),
        said(
            ServedByAnother { operator: another() },
            Reason::ServedByAnother,
            "annotation broker.stowage.io/served-by names another operator (other-system/elsewhere), but this one has the \
             claim's keys and goes on to serve it; remove the annotation",
        ),
    ]
}

fn of_backends() -> Vec<(Cause, Reason, String)> {
    use BackendCause::{Anothers, Invalid, Missing, MoveWaits, Moved, NotAllowed, NotReady};
    let said = |cause: BackendCause, text: &str| (cause.into(), Reason::BackendNotReady, text.to_owned());
    let not_allowed = NotAllowed { backend: name(), namespace: "team-a".into() };
    vec![
        said(Missing { backend: name() }, "there is no S3Backend main"),
        said(Invalid { backend: name(), why: why() }, "S3Backend main: the reason"),
        said(
            Anothers { backend: name(), operator: Some(another()) },
            "S3Backend main is served by another operator (other-system/elsewhere, see its annotation \
             broker.stowage.io/served-by)",
        ),
        (not_allowed.into(), Reason::BackendNotAllowed, "S3Backend main does not allow namespace team-a".to_owned()),
        said(NotReady { backend: name() }, "S3Backend main is not Ready"),
        said(
            Moved { backend: name(), now: elsewhere(), held_at: at().endpoint },
            "S3Backend main now points to http://elsewhere.example, the bucket is held at http://s3.example",
        ),
        said(
            MoveWaits { to: at() },
            "the move to bucket team-a-photos at S3Backend main waits until the credential before the current one has \
             expired",
        ),
    ]
}

fn of_buckets() -> Vec<(Cause, Reason, String)> {
    use BucketCause::{Contradictory, Held, OpenElsewhere, OthersCredentials, RecordDamaged, Shared};
    let said = |cause: BucketCause, reason, text: &str| (cause.into(), reason, text.to_owned());
    let films = || ClaimRef { namespace: "team-b".into(), name: "films".into() };
    let held = |namespace: &str, whose: &str| {
        let holder = films();
        let text = format!(
            "bucket team-a-photos is held by {whose}; give this claim another bucketName (in a new claim) or delete the \
             other"
        );
        said(Held { bucket: bucket(), holder, namespace: namespace.into() }, Reason::BucketNameConflict, &text)
    };
    let missing = |how: Missing, text: &str| {
        let text = format!("bucket team-a-photos was {text}");
        said(BucketCause::Missing { bucket: bucket(), how }, Reason::BucketMissing, &text)
    };
    vec![
        held("team-a", "a claim in another namespace"),
        held("team-b", "claim films"),
        said(
            OpenElsewhere { bucket: bucket(), rival: films(), namespace: "team-b".into() },
            Reason::BucketNameConflict,
            "a request without a key to bucket team-a-photos goes to the one that claim films has opened at another store \
             and held first; keys work; set anonymousAccess.mode: None, or give this claim another bucketName (in a new \
             claim)",
        ),
        said(
            Shared { bucket: bucket(), backend: name() },
            Reason::BucketNameConflict,
            "bucket team-a-photos is in sharedBuckets of S3Backend main: no claim can have it",
        ),
        said(
            OthersCredentials { bucket: bucket() },
            Reason::BucketNameConflict,
            "another claim has credentials for bucket team-a-photos",
        ),
        said(
            RecordDamaged { bucket: bucket(), why: why() },
            Reason::CreationInconsistent,
            "the record of bucket team-a-photos is damaged: the reason",
        ),
        missing(Missing::Gone, "there and is gone; it is not replaced by an empty one"),
        missing(Missing::AdoptedGone, "taken over and is gone; it is not made again"),
        missing(Missing::NotThroughNewBackend, "there and is not to be seen through the new backend"),
        missing(
            Missing::NotAt { backend: name(), endpoint: elsewhere() },
            "there and is not at http://elsewhere.example, where S3Backend main points to now",
        ),
        said(
            Contradictory { bucket: bucket() },
            Reason::BackendError,
            "the store says of bucket team-a-photos both that it is there and that it is not",
        ),
    ]
}

fn of_secrets() -> Vec<(Cause, Reason, String)> {
    use SecretCause::{
        BindingDamaged, Conflict, CredentialDamaged, Elsewhere, Forbidden, Kept, NotACredential, StampDamaged, TooLarge,
    };
    let said = |cause: SecretCause, reason, text: &str| (cause.into(), reason, text.to_owned());
    let conflict = |why: Foreign, text: &str| {
        let text = format!("Secret photos-s3 {text}; remove it or give writeConnectionSecretToRef another name");
        said(Conflict { secret: CONSUMER.into(), why }, Reason::SecretConflict, &text)
    };
    vec![
        said(
            CredentialDamaged { why: why() },
            Reason::CreationInconsistent,
            "the current credential is damaged: the reason; a rotate request replaces it",
        ),
        conflict(Foreign::NotControlled, "exists and is not this claim's"),
        conflict(Foreign::Immutable, "is immutable"),
        conflict(Foreign::OtherType, "has a type other than Opaque"),
        said(
            BindingDamaged { why: why() },
            Reason::CreationInconsistent,
            "public access can't be given: the reason; delete that Secret to have it made anew",
        ),
        said(
            NotACredential { secret: "vc-copy".into() },
            Reason::CreationInconsistent,
            "Secret vc-copy looks like a credential of this claim and is none; delete that Secret",
        ),
        said(
            StampDamaged { secret: "vc-old".into() },
            Reason::CreationInconsistent,
            "annotation expires-at of Secret vc-old is damaged; delete that Secret",
        ),
        said(
            Elsewhere { secret: "vc-old".into(), noted: elsewhere(), held_at: at().endpoint },
            Reason::CreationInconsistent,
            "Secret vc-old is for the store at http://elsewhere.example, the bucket is held at http://s3.example and its \
             tags there don't name this claim; delete that Secret to have another made for http://s3.example",
        ),
        said(
            Forbidden { secret: CONSUMER.into(), key: "example.com/x".into() },
            Reason::TemplateInvalid,
            "Secret photos-s3 is not brought up to date: this operator lets spec.secretTemplate write no example.com/x \
             (--secret-metadata-prefix)",
        ),
        said(
            TooLarge { secret: CONSUMER.into(), too_large: crate::api::TooLarge { size: 300_000 } },
            Reason::TemplateInvalid,
            "Secret photos-s3 is not brought up to date: what spec.secretTemplate.data asks for has 300000 bytes; 262144 are \
             the most",
        ),
        said(
            Kept { secret: "vc-old".into(), finalizers: "example.com/backup".into() },
            Reason::BackendError,
            "can't delete Secret vc-old: it waits for its finalizers (example.com/backup), which are not the operator's",
        ),
    ]
}

fn of_deletions() -> Vec<(Cause, Reason, String)> {
    use DeletionCause::{
        BackendAnothers, BackendInvalid, BackendMissing, BackendMoved, Denied, FillsAgain, Forbidden, NotEmpty,
        ObjectsRefused, Purging, StoreFailed, Unanswered,
    };
    let said = |cause: DeletionCause, reason, text: &str| (cause.into(), reason, text.to_owned());
    let blocked =
        |cause: DeletionCause, text: &str| said(cause, Reason::DeletionBlocked, &format!("{text}; {WAY_OUT}"));
    let moved = BackendMoved { backend: name(), bucket: bucket(), then: at().endpoint, now: elsewhere() };
    vec![
        blocked(
            BackendMissing { backend: name(), bucket: bucket() },
            "there is no S3Backend main to delete bucket team-a-photos with",
        ),
        blocked(
            BackendInvalid { backend: name(), bucket: bucket(), why: why() },
            "bucket team-a-photos can't be deleted, S3Backend main: the reason",
        ),
        blocked(
            BackendAnothers { backend: name(), bucket: bucket(), operator: Some(another()) },
            "bucket team-a-photos can't be deleted: S3Backend main is served by another operator (other-system/elsewhere, \
             see its annotation broker.stowage.io/served-by)",
        ),
        blocked(
            moved,
            "bucket team-a-photos is at http://s3.example, S3Backend main now points to http://elsewhere.example",
        ),
        blocked(Forbidden { bucket: bucket() }, "the store does not let us see whose bucket team-a-photos is"),
        blocked(
            ObjectsRefused { bucket: bucket(), code: "AccessDenied".into() },
            "bucket team-a-photos holds objects that the store refuses to delete (AccessDenied), perhaps under object \
             lock",
        ),
        blocked(Denied { why: why() }, "the reason"),
        said(StoreFailed { why: why() }, Reason::BackendError, &format!("the reason; {WAY_OUT}")),
        said(
            NotEmpty { bucket: bucket() },
            Reason::BucketNotEmpty,
            &format!("bucket team-a-photos is not empty; empty it, or set forceDelete: true, or {WAY_OUT}"),
        ),
        said(Purging, Reason::Purging, "the bucket is being emptied"),
        said(
            Unanswered,
            Reason::BackendError,
            "a call to the store got no answer and may still be carried out: that is waited for",
        ),
        said(
            FillsAgain { bucket: bucket() },
            Reason::Purging,
            &format!(
                "all that bucket team-a-photos showed is deleted, and it is not empty: somebody writes to it, or the \
                 store hides what it holds; {WAY_OUT}"
            ),
        ),
    ]
}

fn of_steps() -> Vec<(Cause, Reason, String)> {
    use StepCause::{NamespaceTerminating, Refused, ServerFailed, StoreDenied, StoreFailed, Unsupported};
    let said = |cause: StepCause, text: &str| (cause.into(), Reason::BackendError, text.to_owned());
    let step = "create bucket team-a-photos";
    vec![
        said(StoreFailed { why: why() }, "the reason"),
        said(StoreDenied { why: why() }, "the reason"),
        said(Refused { step: step.into(), why: why() }, "can't create bucket team-a-photos: the reason"),
        said(ServerFailed { step: step.into(), why: why() }, "can't create bucket team-a-photos: the reason"),
        said(Unsupported { step: step.into() }, "can't create bucket team-a-photos: the store does not implement it"),
        said(
            NamespaceTerminating { step: step.into(), namespace: NAMESPACE.into() },
            "can't create bucket team-a-photos: namespace stowage-system is being deleted, or gone",
        ),
    ]
}

fn of_existing_buckets() -> Vec<(Cause, Reason, String)> {
    let exists = |why: NotTaken, text: &str| {
        let text = format!("bucket team-a-photos exists and is not taken over: {text}");
        (BucketCause::Exists { bucket: bucket(), why }.into(), Reason::BucketExists, text)
    };
    vec![
        exists(NotTaken::Forbidden, "it belongs to somebody else or is in another region"),
        exists(NotTaken::ForbiddenThere, "it is not the new backend's to use"),
        exists(NotTaken::PolicyNever, "the backend's adoptionPolicy is Never"),
        exists(NotTaken::PolicyOwned, "its tags don't name this claim, and the backend's adoptionPolicy is Owned"),
        exists(NotTaken::AnotherClaims, "its tags name another claim"),
        exists(NotTaken::NotThisClaims, "its tags don't name this claim"),
        exists(NotTaken::AnotherAccounts, "it is of another account of the store"),
        exists(
            NotTaken::OwnerUntold,
            "the store does not tell which account owns it; where no other account makes buckets, set the backend's \
             adoptionProof: SoleAccount",
        ),
    ]
}

/// Returns every cause with its reason and its message.
fn all() -> Vec<(Cause, Reason, String)> {
    [of_claims(), of_backends(), of_buckets(), of_existing_buckets(), of_secrets(), of_deletions(), of_steps()].concat()
}

#[test]
fn each_cause_has_its_reason_and_its_text() {
    for (cause, reason, text) in all() {
        let stop = Stop::new(cause.clone());
        assert_eq!((stop.reason(), stop.message()), (reason, text.clone()), "{cause:?}");
        assert!(!text.is_empty() && !text.ends_with('.') && !text.contains('\n'), "{text}");
    }
}

#[test]
fn of_each_cause_it_is_told_what_would_change_it() {
    for (cause, reason, message) in all() {
        let obstacle = Obstacle::of(&Stop::new(cause.clone()));
        assert_eq!((obstacle.reason, &obstacle.message), (reason, &message));
        let told = &obstacle.remedies;
        assert!((1..=3).contains(&told.len()), "{cause:?}: {told:?}");
        let reads_on = |it: &&String| !it.is_empty() && !it.ends_with('.') && !it.contains(['\n', '{']);
        assert_eq!(told.iter().filter(reads_on).count(), told.len(), "{told:?}");
        assert_ne!(told.first(), Some(&message), "that it is so changes nothing");
    }
}

#[test]
fn a_claim_is_looked_at_again_when_something_changes_unless_time_alone_may_help() {
    let contradictory = BucketCause::Contradictory { bucket: bucket() };
    let contradiction = contradictory.to_string();
    let step = "create bucket team-a-photos".to_owned();
    let others: [(Cause, Then); 6] = [
        (
            StepCause::ServerFailed { step, why: why() }.into(),
            Then::Retry("can't create bucket team-a-photos: the reason".to_owned()),
        ),
        (contradictory.into(), Then::Retry(contradiction)),
        (StepCause::StoreFailed { why: why() }.into(), Then::Retry(why())),
        (DeletionCause::StoreFailed { why: why() }.into(), Then::Retry(format!("the reason; {WAY_OUT}"))),
        (DeletionCause::FillsAgain { bucket: bucket() }.into(), Then::Retry("the bucket is not empty".to_owned())),
        (DeletionCause::Purging.into(), Then::After(Duration::ZERO)),
    ];
    let mut found = 0;
    for (cause, ..) in all() {
        let other = others.iter().find(|(other, _)| *other == cause);
        found += usize::from(other.is_some());
        let expected = other.map_or(Then::AwaitChange, |(_, then)| then.clone());
        assert_eq!(Stop::new(cause.clone()).then, expected, "{cause:?}");
    }
    assert_eq!(found, others.len());
}

#[test]
fn what_is_wrong_with_bucket_or_credentials_is_told_by_their_condition_too() {
    let of = |concern: Concern| {
        let stops = all().into_iter().map(|(cause, ..)| Stop::new(cause));
        stops.filter(|stop| stop.concern == concern).map(|stop| stop.reason().to_string()).collect::<Vec<_>>()
    };
    let mut bucket = of(Concern::Bucket);
    bucket.dedup();
    assert_eq!(bucket, ["BucketNameConflict", "BucketMissing", "BackendError", "BucketExists"]);
    let mut credentials = of(Concern::Credentials);
    credentials.dedup();
    assert_eq!(credentials, ["CreationInconsistent", "SecretConflict", "CreationInconsistent", "TemplateInvalid"]);
}

/// Returns the message in the status for a step that failed, for a claim that stays and for one
/// that is being deleted.
fn failed(given: &Given, step: &Step, failure: &Failure) -> (String, String) {
    let told = |deleting: bool| {
        let mut given = given.clone();
        given.claim.deleting = deleting;
        let mut view = given.read();
        view.learn(Answer::Failed(step.clone(), failure.clone()));
        let ready = told(&view).conditions.into_iter().find(|c| c.type_ == "Ready").expect("always");
        format!("{}: {}", ready.reason, ready.message)
    };
    (told(false), told(true))
}

#[test]
fn a_deletion_that_the_store_does_not_let_pass_says_how_it_can_be_got_out_of() {
    let of = |failure: Failure| failed(&holding(|_| {}), &Step::Look(Look::Contents(at())), &failure);
    let both = |reason: &str, end: &str, text: &str| (format!("{reason}: {text}"), format!("{end}: {text}; {WAY_OUT}"));
    assert_eq!(of(Failure::Upstream(why())), both("BackendError", "BackendError", "the reason"));
    assert_eq!(of(Failure::NoUpstream(why())), both("BackendError", "BackendError", "the reason"));
    assert_eq!(of(Failure::UpstreamDenied(why())), both("BackendError", "DeletionBlocked", "the reason"));
    let unsupported = "can't look whether bucket team-a-photos is empty: the store does not implement it";
    assert_eq!(of(Failure::Unsupported), both("BackendError", "DeletionBlocked", unsupported));
    let refused = "BackendError: can't look whether bucket team-a-photos is empty: the reason";
    assert_eq!(of(Failure::Refused(why())), (refused.to_owned(), refused.to_owned()));
}
