//! Why a pass stops before everything is as it should be, and when it goes on.

use std::time::Duration;

use crate::api::{Reason, RecordName};

use super::cause::{BucketCause, Cause, DeletionCause, SecretCause, StepCause};
use super::step::Then;
use super::walk::Stops;

/// Why a pass stops before everything is as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    /// What stands in the way.
    pub(super) cause: Cause,
    /// Which condition besides `Ready` it belongs to.
    pub(super) concern: Concern,
    /// When to look again.
    pub(super) then: Then,
    /// The record that the claim waits for.
    pub(super) waits_for: Option<RecordName>,
}

impl Stop {
    /// Stops for a cause, which says when to look again and which condition it belongs to.
    pub(super) fn new(cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        Self { concern: concern(&cause), then: then(&cause), cause, waits_for: None }
    }

    /// The same, and it is over after this time.
    pub(super) fn waiting(self, time: Duration) -> Self {
        Self { then: Then::Wait(time), ..self }
    }

    /// The same, as a matter of this condition.
    pub(super) fn about(self, concern: Concern) -> Self {
        Self { concern, ..self }
    }

    /// The same, and the claim waits for this record's holder to let go.
    pub(super) fn until_released(self, record: RecordName) -> Self {
        Self { waits_for: Some(record), ..self }
    }

    /// Reason of `Ready=False`.
    pub(super) fn reason(&self) -> Reason {
        self.cause.reason()
    }

    /// Message of the condition: stable, without request ids or times.
    pub(super) fn message(&self) -> String {
        self.cause.to_string()
    }

    /// Where two things stand in the way: one is told, what waits for somebody before what is tried
    /// again, else the first; but what either waits for is waited for.
    fn beside(self, other: Self) -> Self {
        let is_hidden = other.reason().stalls() && !self.reason().stalls();
        let (told, hidden) = if is_hidden { (other, self) } else { (self, other) };
        let then = if told.then == Then::AwaitChange { hidden.then } else { told.then };
        Self { then, waits_for: told.waits_for.or(hidden.waits_for), ..told }
    }
}

impl Stops for Stop {
    fn then(&self) -> &Then {
        &self.then
    }
}

/// All that stands in the way, as one stop.
pub(super) fn together(stops: impl IntoIterator<Item = Option<Stop>>) -> Option<Stop> {
    stops.into_iter().flatten().reduce(Stop::beside)
}

/// Which condition besides `Ready` a stop belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// None.
    Ready,
    /// `BucketCreated`.
    Bucket,
    /// `CredentialsProvisioned`.
    Credentials,
}

/// The condition that a cause belongs to, where whoever stops for it does not say so.
fn concern(cause: &Cause) -> Concern {
    match cause {
        // Bucket and keys are there.
        Cause::Bucket(BucketCause::RecordDamaged { .. } | BucketCause::OpenElsewhere { .. }) => Concern::Ready,
        Cause::Bucket(_) => Concern::Bucket,
        Cause::Secret(
            SecretCause::CredentialDamaged { .. }
            | SecretCause::Conflict { .. }
            | SecretCause::StampDamaged { .. }
            | SecretCause::Forbidden { .. }
            | SecretCause::TooLarge { .. },
        ) => Concern::Credentials,
        Cause::Secret(_) | Cause::Claim(_) | Cause::Backend(_) | Cause::Deletion(_) | Cause::Step(_) => Concern::Ready,
    }
}

/// When a claim is looked at again that stops for a cause.
fn then(cause: &Cause) -> Then {
    match cause {
        Cause::Bucket(BucketCause::Contradictory { .. })
        | Cause::Deletion(DeletionCause::StoreFailed { .. })
        | Cause::Step(StepCause::StoreFailed { .. } | StepCause::ServerFailed { .. }) => Then::Retry(cause.to_string()),
        Cause::Deletion(DeletionCause::FillsAgain { .. }) => Then::Retry("the bucket is not empty".to_owned()),
        Cause::Deletion(DeletionCause::Purging) => Then::After(Duration::ZERO),
        // Somebody has to change something; the claim is woken when they do.
        Cause::Claim(_)
        | Cause::Backend(_)
        | Cause::Bucket(_)
        | Cause::Secret(_)
        | Cause::Deletion(_)
        | Cause::Step(_) => Then::AwaitChange,
    }
}

#[cfg(test)]
mod tests {
    use crate::api::{BucketName, ClaimRef, Endpoint};

    use super::super::cause::Missing;
    use super::*;

    #[test]
    fn of_all_that_stands_in_the_way_the_worst_is_told_and_everything_is_waited_for() {
        let kept =
            Stop::new(SecretCause::Kept { secret: "stowage-vc-1".into(), finalizers: "example.com/backup".into() });
        let bucket = BucketName::parse("photos").unwrap();
        let missing = Stop::new(BucketCause::Missing { bucket: bucket.clone(), how: Missing::Gone });
        assert_eq!(together([]), None);
        assert_eq!(together([Some(kept.clone()), None, Some(missing.clone())]), Some(missing.clone()));
        assert_eq!(together([Some(missing.clone()), Some(kept.clone())]), Some(missing.clone()));
        let failed = Stop::new(StepCause::StoreFailed { why: "it timed out".into() });
        let told = together([Some(kept.clone()), Some(failed.clone())]);
        assert_eq!(told, Some(Stop { then: failed.then.clone(), ..kept.clone() }), "of two alike the first");
        let record = RecordName::of(&Endpoint::parse("http://s3.example").unwrap(), &bucket);
        let holder = ClaimRef { namespace: "team-b".to_owned(), name: "films".to_owned() };
        let held =
            Stop::new(BucketCause::Held { bucket, holder, namespace: "team-a".into() }).until_released(record.clone());
        assert_eq!(together([Some(kept), Some(held.clone())]), Some(held));
        let told = together([Some(missing.clone()), Some(failed.clone().until_released(record.clone()))]);
        assert_eq!(told, Some(Stop { then: failed.then, waits_for: Some(record), ..missing }));
    }
}
