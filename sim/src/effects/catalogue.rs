//! All faults there are, and which calls each makes sense for.

use super::call::CallKind;
use super::fault::{Actor, Applied, CrashPoint, Edit, Fault, Feature, HeadStatus, Rival, Tampering};
use super::s3_call::S3Operation;

impl Fault {
    /// Every fault once, those with a parameter for each word or for one number that is worth trying. A matrix of all
    /// single faults goes through these.
    pub fn all_single() -> Vec<Self> {
        let mut faults = vec![Self::LostRequest, Self::LostAnswer, Self::Hang, Self::Slow { millis: 2000 }];
        faults.extend(CrashPoint::ALL.map(Self::Crash));
        // Within the deadline of a call; and longer than all that the operator waits for.
        faults.extend([Self::Pause { seconds: 20 }, Self::Pause { seconds: 600 }, Self::Twin]);
        // Within the minute by which a key's Secret outlives its end (spec §3.3), and beyond it.
        faults.extend([-3600, -45, 45, 3600].map(|seconds| Self::Step { seconds }));
        // An operator that is behind the API server by more lets a rotation wait for as long.
        let operator = [3600, -45].map(|seconds| Self::Skew { actor: Actor::Operator, seconds });
        let gateway = [45, -45].map(|seconds| Self::Skew { actor: Actor::Gateway, seconds });
        let store = [3600, -3600].map(|seconds| Self::Skew { actor: Actor::Store, seconds });
        faults.extend(operator.into_iter().chain(gateway).chain(store));
        faults.push(Self::Lag { seconds: 20 });
        faults.push(Self::Conflict);
        faults.extend(Rival::ALL.map(Self::AlreadyExists));
        faults.extend(Applied::ALL.map(Self::ServerError));
        faults.push(Self::Throttle { seconds: 3 });
        faults.extend([Self::Forbidden, Self::Denied, Self::WebhookTimeout, Self::QuotaExceeded]);
        faults.extend([Self::NamespaceTerminating, Self::Stale { changes: 1 }, Self::Stale { changes: 5 }]);
        faults.extend([Self::Rewind, Self::Collapse, Self::WatchCut, Self::WatchGone, Self::WatchSilent]);
        faults.extend([Self::WatchDuplicate, Self::ExpiredContinue, Self::Shuffle, Self::GcLate, Self::Recreate]);
        faults.extend(Tampering::ALL.map(Self::Tamper));
        faults.extend(Edit::ALL.map(Self::Edit));
        faults.extend([Self::Unreachable, Self::InternalError, Self::SlowDown, Self::AccessDenied]);
        faults.extend(HeadStatus::ALL.map(Self::Head));
        let vital = [
            "ListBuckets",
            "GetBucketTagging",
            "CreateBucket",
            "PutBucketTagging",
            "ListObjectVersions",
            "DeleteObjects",
            "DeleteBucket",
        ];
        faults.extend(vital.into_iter().filter_map(S3Operation::named).map(Self::VerbDown));
        faults.extend([Self::AlreadyOwned, Self::BucketExists, Self::OkOnExisting, Self::PartialDelete, Self::Locked]);
        faults.extend([Self::LateWrite, Self::Vanish]);
        faults.extend([false, true].map(|empty| Self::Usurp { empty }));
        faults.extend([Self::CredentialsRevoked, Self::ClockSkew, Self::StaleRead, Self::ErrorIn200, Self::Truncated]);
        faults.extend(Feature::ALL.map(Self::NotImplemented));
        faults
    }

    /// Whether it is about the whole run, wherever in it it stands.
    pub fn is_of_run(self) -> bool {
        matches!(self, Self::Skew { .. })
    }

    /// Whether the fault makes sense for a call of this kind.
    ///
    /// # Errors
    ///
    /// Says which calls the fault is for.
    pub fn check(self, kind: CallKind) -> Result<(), &'static str> {
        use super::call::KubeVerb::{Create, Get, List, Watch};
        let kube = |fits: &[super::KubeVerb]| matches!(kind, CallKind::Kube(verb) if fits.contains(&verb));
        let s3 = |fits: fn(S3Operation) -> bool| matches!(kind, CallKind::S3(operation) if fits(operation));
        let (fits, needs) = match self {
            Self::LostRequest | Self::LostAnswer | Self::Hang | Self::Slow { .. } => (true, "any call"),
            Self::Crash(_) | Self::Pause { .. } | Self::Twin => (true, "any call"),
            Self::Step { .. } | Self::Skew { .. } => (true, "any call"),
            Self::Recreate | Self::Tamper(_) | Self::Edit(_) => (true, "any call"),
            Self::Conflict
            | Self::ServerError(_)
            | Self::Throttle { .. }
            | Self::Forbidden
            | Self::Denied
            | Self::WebhookTimeout
            | Self::Lag { .. }
            | Self::GcLate => (
                matches!(kind, CallKind::Kube(verb) if verb.is_write()),
                "Kubernetes writes (create, update, patch, delete, deletecollection)",
            ),
            Self::QuotaExceeded | Self::NamespaceTerminating => (
                matches!(kind, CallKind::Kube(verb) if verb.may_create()),
                "Kubernetes writes that may create (create, patch)",
            ),
            Self::AlreadyExists(_) => (kube(&[Create]), "Kubernetes creates"),
            Self::Stale { .. } => (kube(&[Get, List, Watch]), "Kubernetes reads (get, list, watch)"),
            Self::Rewind | Self::ExpiredContinue | Self::Shuffle => (kube(&[List]), "Kubernetes lists"),
            Self::Collapse | Self::WatchCut | Self::WatchGone | Self::WatchSilent | Self::WatchDuplicate => {
                (kube(&[Watch]), "Kubernetes watches")
            }
            Self::Unreachable
            | Self::InternalError
            | Self::SlowDown
            | Self::AccessDenied
            | Self::VerbDown(_)
            | Self::CredentialsRevoked
            | Self::ClockSkew => (s3(|_| true), "S3 calls"),
            Self::Head(_) => (s3(S3Operation::is_head), "HEAD requests (HeadBucket, HeadObject)"),
            Self::AlreadyOwned | Self::BucketExists | Self::OkOnExisting => {
                (s3(|operation| operation.name() == "CreateBucket"), "CreateBucket")
            }
            Self::PartialDelete => (s3(|operation| operation.name() == "DeleteObjects"), "DeleteObjects"),
            Self::Locked => (s3(S3Operation::deletes_objects), "DeleteObject and DeleteObjects"),
            Self::LateWrite => (s3(S3Operation::empties), "S3 calls that list or delete objects, and DeleteBucket"),
            Self::Vanish | Self::Usurp { .. } => (s3(S3Operation::is_on_bucket), "S3 calls on a bucket"),
            Self::StaleRead => (s3(S3Operation::is_read), "S3 reads"),
            Self::ErrorIn200 | Self::Truncated => {
                (s3(S3Operation::answers_in_xml), "S3 calls that are answered with an XML document")
            }
            Self::NotImplemented(feature) => {
                (matches!(kind, CallKind::S3(operation) if feature.has(operation)), "the S3 operations of that feature")
            }
        };
        if fits { Ok(()) } else { Err(needs) }
    }
}
