//! Reasons that a pass stops before the claim is as it should be, with the time of the next pass.

use std::time::Duration;

use crate::api::{Reason, RecordName};

use super::cause::{BucketCause, Cause, DeletionCause, SecretCause, StepCause};
use super::step::Then;
use super::walk::Stops;

/// Reason that a pass stops before the claim is as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    /// Cause of the stop.
    pub(super) cause: Cause,
    /// Condition that the stop affects besides `Ready`.
    pub(super) concern: Concern,
    /// Time of the next pass.
    pub(super) then: Then,
    /// Record that the claim waits for.
    pub(super) waits_for: Option<RecordName>,
}

impl Stop {
    /// Creates a stop. The cause determines the time of the next pass and the condition.
    pub(super) fn new(cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        Self { concern: concern(&cause), then: then(&cause), cause, waits_for: None }
    }

    /// Sets the next pass to happen after this time.
    pub(super) fn waiting(self, time: Duration) -> Self {
        Self { then: Then::Wait(time), ..self }
    }

    /// Sets the condition that the stop affects.
    pub(super) fn about(self, concern: Concern) -> Self {
        Self { concern, ..self }
    }

    /// Waits for the holder of this record to release it.
    pub(super) fn until_released(self, record: RecordName) -> Self {
        Self { waits_for: Some(record), ..self }
    }

    /// Returns the reason of `Ready=False`.
    pub(super) fn reason(&self) -> Reason {
        self.cause.reason()
    }

    /// Returns the message of the condition. Stable: without request ids or times.
    pub(super) fn message(&self) -> String {
        self.cause.to_string()
    }

    /// Merges two stops into one.
    ///
    /// A cause that waits for a person is reported in preference to one that is retried; otherwise
    /// the first is reported. The result waits for everything that either of them waits for.
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

/// Merges all stops into one.
pub(super) fn together(stops: impl IntoIterator<Item = Option<Stop>>) -> Option<Stop> {
    stops.into_iter().flatten().reduce(Stop::beside)
}

/// Condition that a stop affects besides `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// No other condition.
    Ready,
    /// `BucketCreated`.
    Bucket,
    /// `CredentialsProvisioned`.
    Credentials,
}

/// Default condition for a cause, for callers that don't name one.
fn concern(cause: &Cause) -> Concern {
    match cause {
        // Bucket and keys exist.
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

/// Returns the time of the next pass over a claim that stops for this cause.
fn then(cause: &Cause) -> Then {
    match cause {
        Cause::Bucket(BucketCause::Contradictory { .. })
        | Cause::Deletion(DeletionCause::StoreFailed { .. })
        | Cause::Step(StepCause::StoreFailed { .. } | StepCause::ServerFailed { .. }) => Then::Retry(cause.to_string()),
        Cause::Deletion(DeletionCause::FillsAgain { .. }) => Then::Retry("the bucket is not empty".to_owned()),
        Cause::Deletion(DeletionCause::Purging) => Then::After(Duration::ZERO),
        // A person has to change something, and that change wakes the claim.
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
