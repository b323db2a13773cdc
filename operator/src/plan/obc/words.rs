//! What is known of the objects around an ObjectBucketClaim, as far as it matters (spec §9).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use crate::api::{
    AccessMode, Deletion, OBC_FINALIZER, OBC_PROVISIONER, Obc, ObjectBucket, ObjectBucketClaimRef,
    ObjectBucketEndpoint, ObjectId, controlling_obc,
};

use super::kinds::{ShadowKind, Work};

/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Keys of what an ObjectBucket remembers, besides those of [`ShadowKind`]; four are parameters of
/// a storage class, too. Who made it.
pub(super) const PROVISIONER: &str = "provisioner";
/// The S3Backend.
pub(super) const BACKEND: &str = "backend";
/// Whether the bucket is emptied before it is deleted.
pub(super) const EMPTY: &str = "emptyBucket";
/// Days between two rotations.
pub(super) const DAYS: &str = "rotationIntervalDays";
/// How far a bucket is opened that is there.
pub(super) const MODE: &str = "mode";

/// What was decided once, and stands in the ObjectBucket: whatever becomes of class and claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The storage class.
    pub class: String,
    /// Name of the S3Backend.
    pub backend: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Days between two rotations, if they come by themselves.
    pub days: Option<i32>,
    /// Name of the object that does the work.
    pub shadow: String,
    /// What that work is.
    pub work: Work,
}

impl Pins {
    /// What an ObjectBucket pins. `None` = that can't be read; one that names two objects, or none,
    /// can't.
    fn read(raw: &ObjectBucket) -> Option<Self> {
        let (spec, state) = (&raw.spec, &raw.spec.additional_state);
        let mut named = ShadowKind::ALL.into_iter().filter_map(|kind| Some((kind, state.get(kind.key())?)));
        let (Some((kind, shadow)), None) = (named.next(), named.next()) else { return None };
        let work = match kind {
            ShadowKind::Claim => {
                let empties = state.get(EMPTY).map(String::as_str) == Some("true");
                Work::Claim(deletion(spec.reclaim_policy.as_deref() == Some("Delete"), empties))
            }
            ShadowKind::Access => Work::Access(mode(state.get(MODE)?)?),
        };
        Some(Self {
            class: spec.storage_class_name.clone().unwrap_or_default(),
            backend: state.get(BACKEND)?.clone(),
            bucket: Some(spec.endpoint.bucket_name.clone()).filter(|name| !name.is_empty())?,
            days: match state.get(DAYS) {
                None => None,
                Some(days) => Some(days.parse().ok()?),
            },
            shadow: shadow.clone(),
            work,
        })
    }

    /// What stands in the ObjectBucket for it, besides its own fields.
    pub(super) fn state(&self) -> BTreeMap<&'static str, String> {
        let of_work = match self.work {
            Work::Claim(in_the_end) => (in_the_end == Deletion::Force).then(|| (EMPTY, "true".to_owned())),
            Work::Access(mode) => Some((MODE, mode.as_str().to_owned())),
        };
        let days = self.days.map(|days| (DAYS, days.to_string()));
        let always = [(BACKEND, self.backend.clone()), (self.work.kind().key(), self.shadow.clone())];
        always.into_iter().chain(of_work).chain(days).collect()
    }

    /// The reclaim policy of the ObjectBucket: what becomes of the bucket.
    pub(super) fn reclaim_policy(&self) -> &'static str {
        match self.work {
            Work::Claim(Deletion::Delete | Deletion::Force) => "Delete",
            Work::Claim(Deletion::Retain) | Work::Access(_) => "Retain",
        }
    }
}

/// What becomes of a bucket of a class that deletes, or not, and empties, or not.
pub(super) fn deletion(deletes: bool, empties: bool) -> Deletion {
    match (deletes, empties) {
        (false, _) => Deletion::Retain,
        (true, false) => Deletion::Delete,
        (true, true) => Deletion::Force,
    }
}

/// The mode of this word.
pub(super) fn mode(word: &str) -> Option<AccessMode> {
    AccessMode::ALL.into_iter().find(|mode| mode.as_str() == word)
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
    /// UID of the object that does the work, once there was one.
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
        let pins = Pins::read(raw);
        let shadow_uid = pins.as_ref().and_then(|pins| state.get(pins.work.kind().uid_key()).cloned());
        Self {
            id: ObjectId::of(raw),
            name: raw.name_any(),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            claim: spec.claim_ref.clone(),
            provisioner: state.get(PROVISIONER).cloned(),
            endpoint: spec.endpoint.clone(),
            pins,
            shadow_uid,
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

/// Name of the object that does the work for an ObjectBucketClaim.
pub fn shadow_name(obc: &Obc) -> String {
    let usual = format!("{SHADOW}{}", obc.at.name);
    if usual.len() <= LONGEST_NAME {
        return usual;
    }
    // A name of the API server has one byte for each character.
    let cut: String = usual.chars().take(200).collect();
    format!("{}-{}", cut.trim_end_matches(['-', '.']), first_digits(obc.uid()))
}

/// What the names of such objects begin with.
pub const SHADOW: &str = "obc-";

fn first_digits(uid: &str) -> String {
    uid.chars().filter(char::is_ascii_hexdigit).take(8).collect()
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
