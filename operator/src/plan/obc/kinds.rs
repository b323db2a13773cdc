//! Kinds of objects that serve an ObjectBucketClaim (spec §9): a BucketClaim, which has its own
//! bucket, or a BucketAccess, which opens an existing one. The class decides once, and the
//! ObjectBucket stores the decision.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use crate::api::{
    AccessMode, BucketAccess, BucketAccessSpec, BucketClaim, BucketClaimSpec, ConditionType, Deletion, DeletionPolicy,
    ObjectId, Quota, controlling_obc,
};

/// Kind of the object that serves an ObjectBucketClaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowKind {
    /// A BucketClaim.
    Claim,
    /// A BucketAccess.
    Access,
}

impl ShadowKind {
    /// Both kinds.
    pub(super) const ALL: [Self; 2] = [Self::Claim, Self::Access];

    /// Key of the ObjectBucket that has the object's name. Each kind has its own key: an earlier
    /// version, which knows only one kind, must not mistake the other for it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Claim => "shadow",
            Self::Access => "access",
        }
    }

    /// Returns the key of the ObjectBucket that has the object's UID, once the object exists.
    pub(super) const fn uid_key(self) -> &'static str {
        match self {
            Self::Claim => "shadowUID",
            Self::Access => "accessUID",
        }
    }

    /// Returns the reason of the Event about an object that is being deleted.
    pub(super) const fn leaving(self) -> &'static str {
        match self {
            Self::Claim => "BucketClaimLeaving",
            Self::Access => "BucketAccessLeaving",
        }
    }

    /// Returns the reason and message of the Event about an object that was deleted by hand.
    pub(super) const fn remade(self) -> (&'static str, &'static str) {
        match self {
            Self::Claim => (
                "BucketClaimRemade",
                "its BucketClaim was deleted and is made again; the bucket, where it is still there, is taken over \
                 and stays for good",
            ),
            Self::Access => ("BucketAccessRemade", "its BucketAccess was deleted and is made again, with another key"),
        }
    }
}

impl fmt::Display for ShadowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claim => "BucketClaim",
            Self::Access => "BucketAccess",
        })
    }
}

/// Kind of object and its main option, as decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A BucketClaim has a bucket, with this deletion policy at the end.
    Claim(Deletion),
    /// A BucketAccess opens an existing bucket with this mode. The bucket is never deleted.
    Access(AccessMode),
}

impl Work {
    /// Returns the kind of the object.
    pub fn kind(self) -> ShadowKind {
        match self {
            Self::Claim(_) => ShadowKind::Claim,
            Self::Access(_) => ShadowKind::Access,
        }
    }
}

/// Returns the deletion policy of a BucketClaim while the ObjectBucketClaim exists. It never
/// empties the bucket, so that deleting the BucketClaim by hand deletes no data. The final policy
/// is set when the ObjectBucketClaim is deleted.
pub(super) fn meanwhile(in_the_end: Deletion) -> Deletion {
    match in_the_end {
        Deletion::Retain => Deletion::Retain,
        Deletion::Delete | Deletion::Force => Deletion::Delete,
    }
}

/// Spec of the BucketClaim or BucketAccess.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowSpec {
    /// Spec of a BucketClaim.
    Claim(BucketClaimSpec),
    /// Spec of a BucketAccess.
    Access(BucketAccessSpec),
}

impl ShadowSpec {
    /// Returns the kind of the object.
    pub fn kind(&self) -> ShadowKind {
        match self {
            Self::Claim(_) => ShadowKind::Claim,
            Self::Access(_) => ShadowKind::Access,
        }
    }

    /// Returns the quota. A BucketAccess has none.
    pub(super) fn quota(&self) -> Option<&Quota> {
        match self {
            Self::Claim(spec) => spec.quota.as_ref(),
            Self::Access(_) => None,
        }
    }
}

/// A BucketClaim or BucketAccess to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewShadow {
    /// Name, namespace, labels, annotations and owner.
    pub metadata: ObjectMeta,
    /// Spec of the object.
    pub spec: ShadowSpec,
}

/// The BucketClaim or BucketAccess that serves an ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Name and UID of the ObjectBucketClaim that controls it.
    pub controller: Option<(String, String)>,
    /// True if the object has a deletion timestamp.
    pub deleting: bool,
    /// Spec of the object, which determines its kind.
    pub spec: ShadowSpec,
    /// Status, reason and message of `Ready`, if the status is for the current generation.
    pub ready: Option<(bool, String, String)>,
    /// True if the object waits for somebody to change something.
    pub stalled: bool,
    /// Name of the Secret with the connection.
    pub secret: Option<String>,
}

impl Shadow {
    /// Parses a BucketClaim.
    pub fn of_claim(raw: &BucketClaim) -> Self {
        let status = raw.status.clone().unwrap_or_default();
        let (ready, stalled) = told(raw.metadata.generation, status.observed_generation, &status.conditions);
        Self {
            id: ObjectId::of(raw),
            controller: controller(raw),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            spec: ShadowSpec::Claim(raw.spec.clone()),
            ready,
            stalled,
            secret: status.bound_secret_name,
        }
    }

    /// Parses a BucketAccess.
    pub fn of_access(raw: &BucketAccess) -> Self {
        let status = raw.status.clone().unwrap_or_default();
        let (ready, stalled) = told(raw.metadata.generation, status.observed_generation, &status.conditions);
        Self {
            id: ObjectId::of(raw),
            controller: controller(raw),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            spec: ShadowSpec::Access(raw.spec.clone()),
            ready,
            stalled,
            secret: status.bound_secret_name,
        }
    }

    /// Returns the kind of the object.
    pub fn kind(&self) -> ShadowKind {
        self.spec.kind()
    }

    /// Returns true if the ObjectBucketClaim with this UID controls it.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|(_, controller)| controller == uid)
    }
}

/// Returns the deletion policy in the spec of a BucketClaim.
pub(super) fn deletion_of(spec: &BucketClaimSpec) -> Deletion {
    match (spec.deletion_policy.known(), spec.force_delete) {
        (Some(DeletionPolicy::Retain) | None, _) => Deletion::Retain,
        (Some(DeletionPolicy::Delete), false) => Deletion::Delete,
        (Some(DeletionPolicy::Delete), true) => Deletion::Force,
    }
}

fn controller(raw: &impl ResourceExt) -> Option<(String, String)> {
    controlling_obc(raw.owner_references()).map(|(name, uid)| (name.to_owned(), uid.to_owned()))
}

/// Returns the `Ready` condition, and true if the object is `Stalled`, if the status is for this
/// generation.
fn told(
    generation: Option<i64>,
    observed: Option<i64>,
    conditions: &[Condition],
) -> (Option<(bool, String, String)>, bool) {
    if observed != generation {
        return (None, false);
    }
    let condition = |type_: ConditionType| conditions.iter().find(|it| it.type_ == type_.as_str());
    let ready = condition(ConditionType::Ready);
    let ready = ready.map(|it| (it.status == "True", it.reason.clone(), it.message.clone()));
    (ready, condition(ConditionType::Stalled).is_some_and(|it| it.status == "True"))
}
