//! Parsed objects around an ObjectBucketClaim, reduced to the fields that matter (spec §9).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use crate::api::{
    AccessMode, Deletion, OBC_FINALIZER, OBC_PROVISIONER, Obc, ObjectBucket, ObjectBucketClaimRef,
    ObjectBucketEndpoint, ObjectId, controlling_obc,
};

use super::kinds::{ShadowKind, Work};

/// Maximum length of an object name.
const LONGEST_NAME: usize = 253;

/// Key of an ObjectBucket for the provisioner that created it.
///
/// The four constants below are keys as well, and are also parameters of a storage class. Further
/// keys are in [`ShadowKind`].
pub(super) const PROVISIONER: &str = "provisioner";
/// Key for the name of the S3Backend.
pub(super) const BACKEND: &str = "backend";
/// Key for the flag that the bucket is emptied before its deletion.
pub(super) const EMPTY: &str = "emptyBucket";
/// Key for the days between two rotations.
pub(super) const DAYS: &str = "rotationIntervalDays";
/// Key for the access mode to an existing bucket.
pub(super) const MODE: &str = "mode";

/// Values decided once and stored in the ObjectBucket. Later changes of class and claim don't
/// affect them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The storage class.
    pub class: String,
    /// Name of the S3Backend.
    pub backend: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Days between two rotations, if keys are rotated by time.
    pub days: Option<i32>,
    /// Name of the BucketClaim or BucketAccess.
    pub shadow: String,
    /// Kind of the BucketClaim or BucketAccess, with its main option.
    pub work: Work,
}

impl Pins {
    /// Parses the pinned values of an ObjectBucket. `None` if they are invalid, for example if they
    /// name no object or two.
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

    /// Returns the keys and values to store in the ObjectBucket, besides its own fields.
    pub(super) fn state(&self) -> BTreeMap<&'static str, String> {
        let of_work = match self.work {
            Work::Claim(in_the_end) => (in_the_end == Deletion::Force).then(|| (EMPTY, "true".to_owned())),
            Work::Access(mode) => Some((MODE, mode.as_str().to_owned())),
        };
        let days = self.days.map(|days| (DAYS, days.to_string()));
        let always = [(BACKEND, self.backend.clone()), (self.work.kind().key(), self.shadow.clone())];
        always.into_iter().chain(of_work).chain(days).collect()
    }

    /// Returns the reclaim policy of the ObjectBucket.
    pub(super) fn reclaim_policy(&self) -> &'static str {
        match self.work {
            Work::Claim(Deletion::Delete | Deletion::Force) => "Delete",
            Work::Claim(Deletion::Retain) | Work::Access(_) => "Retain",
        }
    }
}

/// Returns the deletion policy of a class, from its reclaim policy and its `emptyBucket` parameter.
pub(super) fn deletion(deletes: bool, empties: bool) -> Deletion {
    match (deletes, empties) {
        (false, _) => Deletion::Retain,
        (true, false) => Deletion::Delete,
        (true, true) => Deletion::Force,
    }
}

/// Parses an access mode.
pub(super) fn mode(word: &str) -> Option<AccessMode> {
    AccessMode::ALL.into_iter().find(|mode| mode.as_str() == word)
}

/// An ObjectBucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Name of the ObjectBucket.
    pub name: String,
    /// True if the ObjectBucket has a deletion timestamp.
    pub deleting: bool,
    /// All finalizers, in order.
    pub finalizers: Vec<String>,
    /// Reference to the ObjectBucketClaim of the ObjectBucket.
    pub claim: ObjectBucketClaimRef,
    /// Provisioner that the ObjectBucket names as its creator.
    pub provisioner: Option<String>,
    /// Location of the bucket.
    pub endpoint: ObjectBucketEndpoint,
    /// Pinned values, or `None` if they are invalid.
    pub pins: Option<Pins>,
    /// UID of the BucketClaim or BucketAccess, once that exists.
    pub shadow_uid: Option<String>,
    /// Phase of the ObjectBucket.
    pub phase: Option<String>,
    /// True if the ObjectBucket has a status.
    pub has_status: bool,
}

impl Bucket {
    /// Parses an ObjectBucket.
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

    /// Returns true if the ObjectBucket has our finalizer.
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == OBC_FINALIZER)
    }
}

/// Returns the names that the ObjectBucket of a claim may have, the usual one first. Two claims may
/// have the same usual name, such as `c` in `a-b` and `b-c` in `a`.
pub fn bucket_names(obc: &Obc) -> [String; 2] {
    let usual = format!("obc-{}-{}", obc.at.namespace, obc.at.name);
    let own = format!("obc-{}", obc.uid());
    let other = format!("{usual}-{}", first_digits(obc.uid()));
    let fitting = |name: String| if name.len() <= LONGEST_NAME { name } else { own.clone() };
    [fitting(usual), fitting(other)]
}

/// Returns the name of the BucketClaim or BucketAccess for an ObjectBucketClaim.
pub fn shadow_name(obc: &Obc) -> String {
    let usual = format!("{SHADOW}{}", obc.at.name);
    if usual.len() <= LONGEST_NAME {
        return usual;
    }
    // Object names have one byte per character.
    let cut: String = usual.chars().take(200).collect();
    format!("{}-{}", cut.trim_end_matches(['-', '.']), first_digits(obc.uid()))
}

/// Prefix of those names.
pub const SHADOW: &str = "obc-";

fn first_digits(uid: &str) -> String {
    uid.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// The ConfigMap with the location of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// UID of the ObjectBucketClaim that controls it.
    pub controller: Option<String>,
    /// Value of the provisioner label.
    pub label: Option<String>,
    /// True if `metadata.labels` exists.
    pub labelled: bool,
    /// True if `data` exists.
    pub has_data: bool,
    /// Values of our keys.
    pub data: BTreeMap<&'static str, String>,
}

/// The keys of the ConfigMap.
pub const CONFIG_KEYS: [&str; 5] = ["BUCKET_HOST", "BUCKET_NAME", "BUCKET_PORT", "BUCKET_REGION", "BUCKET_SUBREGION"];

impl Told {
    /// Parses a ConfigMap.
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
