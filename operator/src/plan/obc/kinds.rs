//! What does the work of an ObjectBucketClaim (spec §9): a BucketClaim, which has a bucket of its
//! own, or a BucketAccess, which opens one that is there. Which of the two was decided once, by the
//! class, and stands in the ObjectBucket from then on.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use crate::api::{
    AccessMode, BucketAccess, BucketAccessSpec, BucketClaim, BucketClaimSpec, ConditionType, Deletion, DeletionPolicy,
    ObjectId, Quota, controlling_obc,
};

/// Which kind does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowKind {
    /// A BucketClaim.
    Claim,
    /// A BucketAccess.
    Access,
}

impl ShadowKind {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Claim, Self::Access];

    /// The key of an ObjectBucket under which its name stands. One for each: who knows of one kind
    /// alone, as an earlier version does, must not take the other for it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Claim => "shadow",
            Self::Access => "access",
        }
    }

    /// The same of its UID, once there was one.
    pub(super) const fn uid_key(self) -> &'static str {
        match self {
            Self::Claim => "shadowUID",
            Self::Access => "accessUID",
        }
    }

    /// Reason of the Event that says that it is on its way out.
    pub(super) const fn leaving(self) -> &'static str {
        match self {
            Self::Claim => "BucketClaimLeaving",
            Self::Access => "BucketAccessLeaving",
        }
    }

    /// Reason and words of the Event that says that it was deleted by hand.
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

/// The work, as it was decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A BucketClaim has a bucket, and in the end this becomes of it.
    Claim(Deletion),
    /// A BucketAccess opens a bucket that is there, so far. Nothing ever becomes of it.
    Access(AccessMode),
}

impl Work {
    /// Which kind does it.
    pub fn kind(self) -> ShadowKind {
        match self {
            Self::Claim(_) => ShadowKind::Claim,
            Self::Access(_) => ShadowKind::Access,
        }
    }
}

/// What a BucketClaim says while the ObjectBucketClaim is there: who deletes that one by hand
/// deletes no data. The rest is added once the ObjectBucketClaim goes.
pub(super) fn meanwhile(in_the_end: Deletion) -> Deletion {
    match in_the_end {
        Deletion::Retain => Deletion::Retain,
        Deletion::Delete | Deletion::Force => Deletion::Delete,
    }
}

/// What the object asks for that does the work.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowSpec {
    /// A BucketClaim's.
    Claim(BucketClaimSpec),
    /// A BucketAccess's.
    Access(BucketAccessSpec),
}

impl ShadowSpec {
    /// Whose it is.
    pub fn kind(&self) -> ShadowKind {
        match self {
            Self::Claim(_) => ShadowKind::Claim,
            Self::Access(_) => ShadowKind::Access,
        }
    }

    /// Its quota. An access has none.
    pub(super) fn quota(&self) -> Option<&Quota> {
        match self {
            Self::Claim(spec) => spec.quota.as_ref(),
            Self::Access(_) => None,
        }
    }
}

/// The object that does the work, as it is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewShadow {
    /// Name, namespace, owner.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: ShadowSpec,
}

/// The object that does the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// Which object, in which version.
    pub id: ObjectId,
    /// Name and UID of the ObjectBucketClaim that controls it.
    pub controller: Option<(String, String)>,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// What it asks for, and so which kind it is.
    pub spec: ShadowSpec,
    /// Status, reason and message of `Ready`, if they speak of this spec.
    pub ready: Option<(bool, String, String)>,
    /// Somebody has to change something.
    pub stalled: bool,
    /// The Secret that holds the connection.
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

    /// Which kind it is.
    pub fn kind(&self) -> ShadowKind {
        self.spec.kind()
    }

    /// Whether the ObjectBucketClaim of this UID controls it.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|(_, controller)| controller == uid)
    }
}

/// What becomes of the bucket, by the spec of a BucketClaim.
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

/// What `Ready` says, and whether it is `Stalled`, where the status speaks of this generation.
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
