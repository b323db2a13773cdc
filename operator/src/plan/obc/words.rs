//! What is known of the objects around an ObjectBucketClaim, as far as it matters (spec §9).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use crate::api::{
    BucketClaim, BucketClaimSpec, ConditionType, Deletion, DeletionPolicy, OBC_FINALIZER, OBC_PROVISIONER, Obc,
    ObjectBucket, ObjectBucketClaimRef, ObjectBucketEndpoint, ObjectId, controlling_obc,
};

/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Keys of what an ObjectBucket remembers, three of which are parameters of a storage class, too:
/// who made it.
pub(super) const PROVISIONER: &str = "provisioner";
/// The S3Backend.
pub(super) const BACKEND: &str = "backend";
/// Whether the bucket is emptied before it is deleted.
pub(super) const EMPTY: &str = "emptyBucket";
/// Days between two rotations.
pub(super) const DAYS: &str = "rotationIntervalDays";
/// Name of the BucketClaim.
pub(super) const CLAIM: &str = "shadow";
/// UID of the BucketClaim.
pub(super) const CLAIM_UID: &str = "shadowUID";

/// What was decided once, and stands in the ObjectBucket: whatever becomes of class and claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The storage class.
    pub class: String,
    /// Whether the bucket is deleted with its claim.
    pub deletes: bool,
    /// Whether it is emptied before.
    pub empties: bool,
    /// Name of the S3Backend.
    pub backend: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Days between two rotations, if they come by themselves.
    pub days: Option<i32>,
    /// Name of the BucketClaim that does the work.
    pub shadow: String,
}

impl Pins {
    /// What the BucketClaim says while the claim is there: who deletes that one by hand deletes no
    /// data. The rest is added once the claim goes.
    pub(super) fn meanwhile(&self) -> Deletion {
        if self.deletes { Deletion::Delete } else { Deletion::Retain }
    }

    /// What becomes of the bucket.
    pub(super) fn deletion(&self) -> Deletion {
        match (self.deletes, self.empties) {
            (false, _) => Deletion::Retain,
            (true, false) => Deletion::Delete,
            (true, true) => Deletion::Force,
        }
    }
}

/// An ObjectBucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Which object, in which version.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// Every finalizer, in order.
    pub finalizers: Vec<String>,
    /// Whose it is.
    pub claim: ObjectBucketClaimRef,
    /// Who made it, by its own word.
    pub provisioner: Option<String>,
    /// Where the bucket is.
    pub endpoint: ObjectBucketEndpoint,
    /// What it pins; `None` = that can't be read.
    pub pins: Option<Pins>,
    /// UID of the BucketClaim, once there was one.
    pub shadow_uid: Option<String>,
    /// Its phase.
    pub phase: Option<String>,
    /// Has a status at all.
    pub has_status: bool,
}

impl Bucket {
    /// Parses one.
    pub fn parse(raw: &ObjectBucket) -> Self {
        let (spec, state) = (&raw.spec, &raw.spec.additional_state);
        let pins = || {
            let days = state.get(DAYS).map(|days| days.parse::<i32>().ok());
            Some(Pins {
                class: spec.storage_class_name.clone().unwrap_or_default(),
                deletes: spec.reclaim_policy.as_deref() == Some("Delete"),
                empties: state.get(EMPTY).map(String::as_str) == Some("true"),
                backend: state.get(BACKEND)?.clone(),
                bucket: Some(spec.endpoint.bucket_name.clone()).filter(|name| !name.is_empty())?,
                days: match days {
                    None => None,
                    Some(days) => Some(days?),
                },
                shadow: state.get(CLAIM)?.clone(),
            })
        };
        Self {
            id: ObjectId::of(raw),
            name: raw.name_any(),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            claim: spec.claim_ref.clone(),
            provisioner: state.get(PROVISIONER).cloned(),
            endpoint: spec.endpoint.clone(),
            pins: pins(),
            shadow_uid: state.get(CLAIM_UID).cloned(),
            phase: raw.status.as_ref().and_then(|status| status.phase.clone()),
            has_status: raw.status.is_some(),
        }
    }

    /// Whether the finalizer is on it.
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == OBC_FINALIZER)
    }
}

/// The names that the ObjectBucket of a claim may have, the usual one first. Two claims, such as
/// `c` of `a-b` and `b-c` of `a`, may come to one of them.
pub fn bucket_names(obc: &Obc) -> [String; 2] {
    let usual = format!("obc-{}-{}", obc.at.namespace, obc.at.name);
    let own = format!("obc-{}", obc.uid());
    let other = format!("{usual}-{}", first_digits(obc.uid()));
    let fitting = |name: String| if name.len() <= LONGEST_NAME { name } else { own.clone() };
    [fitting(usual), fitting(other)]
}

/// Name of the BucketClaim that does the work for an ObjectBucketClaim.
pub fn shadow_name(obc: &Obc) -> String {
    let usual = format!("{SHADOW}{}", obc.at.name);
    if usual.len() <= LONGEST_NAME {
        return usual;
    }
    // A name of the API server has one byte for each character.
    let cut: String = usual.chars().take(200).collect();
    format!("{}-{}", cut.trim_end_matches(['-', '.']), first_digits(obc.uid()))
}

/// What the names of such BucketClaims begin with.
pub const SHADOW: &str = "obc-";

fn first_digits(uid: &str) -> String {
    uid.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// The BucketClaim that does the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// Which object, in which version.
    pub id: ObjectId,
    /// Name and UID of the ObjectBucketClaim that controls it.
    pub controller: Option<(String, String)>,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// What it asks for.
    pub spec: BucketClaimSpec,
    /// Status, reason and message of `Ready`, if they speak of this spec.
    pub ready: Option<(bool, String, String)>,
    /// Somebody has to change something.
    pub stalled: bool,
    /// The Secret that holds the connection.
    pub secret: Option<String>,
}

impl Shadow {
    /// Parses one.
    pub fn parse(raw: &BucketClaim) -> Self {
        let status = raw.status.clone().unwrap_or_default();
        let is_current = status.observed_generation == raw.metadata.generation;
        let condition = |type_: ConditionType| status.conditions.iter().find(|it| it.type_ == type_.as_str());
        let ready = condition(ConditionType::Ready).filter(|_| is_current);
        let owner = controlling_obc(raw.owner_references());
        Self {
            id: ObjectId::of(raw),
            controller: owner.map(|(name, uid)| (name.to_owned(), uid.to_owned())),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            spec: raw.spec.clone(),
            ready: ready.map(|it| (it.status == "True", it.reason.clone(), it.message.clone())),
            stalled: is_current && condition(ConditionType::Stalled).is_some_and(|it| it.status == "True"),
            secret: status.bound_secret_name,
        }
    }

    /// Whether the ObjectBucketClaim of this UID controls it.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|(_, controller)| controller == uid)
    }

    /// What becomes of the bucket, by its spec.
    pub(super) fn deletion(&self) -> Deletion {
        match (self.spec.deletion_policy.known(), self.spec.force_delete) {
            (Some(DeletionPolicy::Retain) | None, _) => Deletion::Retain,
            (Some(DeletionPolicy::Delete), false) => Deletion::Delete,
            (Some(DeletionPolicy::Delete), true) => Deletion::Force,
        }
    }
}

/// The ConfigMap that tells where the bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which object, in which version.
    pub id: ObjectId,
    /// UID of the ObjectBucketClaim that controls it.
    pub controller: Option<String>,
    /// Value of the label that names a provisioner.
    pub label: Option<String>,
    /// Has labels at all.
    pub labelled: bool,
    /// Has data at all.
    pub has_data: bool,
    /// What it says, of the keys that are ours.
    pub data: BTreeMap<&'static str, String>,
}

/// The keys of the ConfigMap.
pub const CONFIG_KEYS: [&str; 5] = ["BUCKET_HOST", "BUCKET_NAME", "BUCKET_PORT", "BUCKET_REGION", "BUCKET_SUBREGION"];

impl Told {
    /// Parses one.
    pub fn parse(raw: &ConfigMap) -> Self {
        let data = raw.data.clone().unwrap_or_default();
        Self {
            id: ObjectId::of(raw),
            controller: controlling_obc(raw.owner_references()).map(|(_, uid)| uid.to_owned()),
            label: raw.labels().get(OBC_PROVISIONER).cloned(),
            labelled: raw.metadata.labels.is_some(),
            has_data: raw.data.is_some(),
            data: CONFIG_KEYS.into_iter().filter_map(|key| Some((key, data.get(key)?.clone()))).collect(),
        }
    }
}
