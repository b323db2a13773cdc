//! ObjectBucketClaims and ObjectBuckets of `objectbucket.io/v1alpha1` (spec §9), defined by other
//! projects, with schemas that differ from cluster to cluster.
//!
//! Reading is lenient. A value of an unexpected type counts as absent, and strings and maps are
//! kept up to a bound. An invalid object therefore does not keep the others from being read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::identity::{ClaimRef, ObjectId};
use super::kept;
use super::names::is_object_name;
use super::{OBC_FINALIZER, OBC_GROUP};

/// API version of both kinds.
pub const OBC_VERSION: &str = "v1alpha1";
/// Label that names the provisioner of an object.
pub const OBC_PROVISIONER: &str = "bucket-provisioner";

/// Maximum number of entries kept of a map.
const MOST_ENTRIES: usize = 32;

/// Maximum number of bytes kept of a map.
const MOST_BYTES: usize = 4 << 10;

/// A request of a namespace for a bucket of a storage class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucketClaim {
    /// `objectbucket.io/v1alpha1`.
    #[serde(default)]
    pub api_version: String,
    /// `ObjectBucketClaim`.
    #[serde(default)]
    pub kind: String,
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Requested bucket.
    #[serde(default, deserialize_with = "lenient")]
    pub spec: ObjectBucketClaimSpec,
    /// Current status.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub status: Option<ObjectBucketStatus>,
}

/// Specification of an ObjectBucketClaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucketClaimSpec {
    /// Name of the storage class, which names the provisioner.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Name of the bucket.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub bucket_name: Option<String>,
    /// Prefix for a generated bucket name.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub generate_bucket_name: Option<String>,
    /// Name of the ObjectBucket, once it exists.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub object_bucket_name: Option<String>,
    /// Additional options under keys defined by provisioners. Empty values are ignored.
    #[serde(default, deserialize_with = "texts", skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_config: BTreeMap<String, String>,
}

/// Status of both kinds. It has only the field that every installed definition preserves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectBucketStatus {
    /// `Pending`, `Bound`, `Released` or `Failed`.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// A bucket provisioned for an ObjectBucketClaim. It is cluster-scoped, so that tenants cannot
/// write it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucket {
    /// `objectbucket.io/v1alpha1`.
    #[serde(default)]
    pub api_version: String,
    /// `ObjectBucket`.
    #[serde(default)]
    pub kind: String,
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Description of the bucket.
    #[serde(default, deserialize_with = "lenient")]
    pub spec: ObjectBucketSpec,
    /// Current status.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub status: Option<ObjectBucketStatus>,
}

/// Specification of an ObjectBucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucketSpec {
    /// Name of the storage class from which it was provisioned.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Policy for the bucket when the claim is deleted: `Delete` or `Retain`.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<String>,
    /// ObjectBucketClaim that owns the bucket.
    #[serde(default, deserialize_with = "lenient")]
    pub claim_ref: ObjectBucketClaimRef,
    /// Location of the bucket.
    #[serde(default, deserialize_with = "lenient")]
    pub endpoint: ObjectBucketEndpoint,
    /// State saved by the provisioner.
    #[serde(default, deserialize_with = "texts", skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_state: BTreeMap<String, String>,
}

/// Reference to an ObjectBucketClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucketClaimRef {
    /// `objectbucket.io/v1alpha1`.
    #[serde(default)]
    pub api_version: String,
    /// `ObjectBucketClaim`.
    #[serde(default)]
    pub kind: String,
    /// Namespace of the claim.
    #[serde(default)]
    pub namespace: String,
    /// Name of the claim.
    #[serde(default)]
    pub name: String,
    /// UID of the claim.
    #[serde(default)]
    pub uid: String,
}

/// Location of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectBucketEndpoint {
    /// Host, without a scheme.
    #[serde(default)]
    pub bucket_host: String,
    /// Port.
    #[serde(default)]
    pub bucket_port: i32,
    /// Name of the bucket.
    #[serde(default)]
    pub bucket_name: String,
    /// Region for which requests are signed.
    #[serde(default)]
    pub region: String,
    /// Always empty.
    #[serde(default)]
    pub sub_region: String,
    /// Copy of the claim's `additionalConfig`, for definitions that require it.
    #[serde(default, deserialize_with = "texts")]
    pub additional_config: BTreeMap<String, String>,
}

macro_rules! foreign {
    ($type:ty, $scope:ty, $kind:literal, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                OBC_GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                OBC_VERSION.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

foreign!(ObjectBucketClaim, NamespaceResourceScope, "ObjectBucketClaim", "objectbucketclaims");
foreign!(ObjectBucket, ClusterResourceScope, "ObjectBucket", "objectbuckets");

/// Deserializes a value, or its default if it is invalid.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Deserializes a string; `None` if it is empty or not a string.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().filter(|text| !text.is_empty()).map(cut))
}

/// Deserializes a map of strings. Values of other types are converted to their JSON text.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let word = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(cut(text)),
        other => Some(cut(&other.to_string())),
    };
    let entries = value.as_object().into_iter().flatten().filter_map(|(key, value)| Some((cut(key), word(value)?)));
    let mut room = MOST_BYTES;
    let fits = |(key, value): &(String, String)| {
        let size = 2 * size_of::<String>() + key.len() + value.len();
        room.checked_sub(size).map(|left| room = left).is_some()
    };
    Ok(entries.filter(|(_, value)| !value.is_empty()).take(MOST_ENTRIES).take_while(fits).collect())
}

/// Copies a string up to a bound that no name exceeds, so a truncated copy is never a valid name.
fn cut(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at > kept::LONGEST).unwrap_or(text.len());
    text[..end].to_owned()
}

/// A parsed ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq)]
pub struct Obc {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Namespace and name.
    pub at: ClaimRef,
    /// True if the object has a deletion timestamp.
    pub deleting: bool,
    /// Finalizers in order, as far as they are kept.
    pub finalizers: Vec<String>,
    /// Value of the label that names the provisioner.
    pub label: Option<String>,
    /// True if `metadata.labels` exists; otherwise a JSON patch has to create the map.
    pub labelled: bool,
    /// Specification of the claim.
    pub spec: ObjectBucketClaimSpec,
    /// Current phase.
    pub phase: Option<String>,
    /// True if `status` exists.
    pub has_status: bool,
}

impl Obc {
    /// Parses an ObjectBucketClaim.
    pub fn parse(raw: &ObjectBucketClaim) -> Self {
        Self {
            id: ObjectId::of(raw),
            at: ClaimRef { namespace: raw.namespace().unwrap_or_default(), name: raw.name_any() },
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            label: raw.labels().get(OBC_PROVISIONER).cloned(),
            labelled: raw.metadata.labels.is_some(),
            spec: ObjectBucketClaimSpec {
                // An invalid class name counts as absent.
                storage_class_name: raw.spec.storage_class_name.clone().filter(|name| is_object_name(name)),
                ..raw.spec.clone()
            },
            phase: raw.status.as_ref().and_then(|status| status.phase.clone()),
            has_status: raw.status.is_some(),
        }
    }

    /// Returns the claim's UID.
    pub fn uid(&self) -> &str {
        &self.id.uid
    }

    /// Returns true if the object has the finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == OBC_FINALIZER)
    }

    /// Returns a controller owner reference to this claim, for objects in its namespace.
    pub fn owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: format!("{OBC_GROUP}/{OBC_VERSION}"),
            kind: "ObjectBucketClaim".to_owned(),
            name: self.at.name.clone(),
            uid: self.id.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// Returns name and UID of the ObjectBucketClaim that controls an object.
pub fn controlling_obc(owners: &[OwnerReference]) -> Option<(&str, &str)> {
    let group = |owner: &&OwnerReference| owner.api_version.split('/').next() == Some(OBC_GROUP);
    let mut controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    let owner = controllers.next().filter(group).filter(|owner| owner.kind == "ObjectBucketClaim")?;
    Some((&owner.name, &owner.uid))
}

/// The parts of a StorageClass that concern buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketClass {
    /// Provisioner that serves the class.
    pub provisioner: String,
    /// True if buckets of this class are deleted with their claim.
    pub deletes: bool,
    /// Parameters of the class.
    pub parameters: BTreeMap<String, String>,
}

impl BucketClass {
    /// Parses a storage class. With any reclaim policy other than `Delete`, the bucket is retained.
    pub fn parse(raw: &StorageClass) -> Self {
        Self {
            provisioner: raw.provisioner.clone(),
            deletes: raw.reclaim_policy.as_deref() == Some("Delete"),
            parameters: raw.parameters.clone().unwrap_or_default(),
        }
    }
}

/// Copies the parts of an ObjectBucketClaim that a cache keeps.
pub fn kept_obc(of: &ObjectBucketClaim) -> ObjectBucketClaim {
    ObjectBucketClaim { metadata: kept::metadata(&of.metadata, &[OBC_PROVISIONER], &[]), ..of.clone() }
}

/// Copies the parts of an ObjectBucket that a cache keeps.
pub fn kept_object_bucket(of: &ObjectBucket) -> ObjectBucket {
    let mut kept = ObjectBucket { metadata: kept::metadata(&of.metadata, &[OBC_PROVISIONER], &[]), ..of.clone() };
    let ObjectBucketClaimRef { api_version, kind, namespace, name, uid } = &mut kept.spec.claim_ref;
    let ObjectBucketEndpoint { bucket_host, bucket_name, region, sub_region, .. } = &mut kept.spec.endpoint;
    for text in [api_version, kind, namespace, name, uid, bucket_host, bucket_name, region, sub_region] {
        if text.capacity() > kept::LONGEST {
            *text = cut(text);
        }
    }
    kept
}

/// Copies the parts of a StorageClass that a cache keeps.
pub fn kept_class(of: &StorageClass) -> StorageClass {
    let texts = |map: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        map.iter().take(MOST_ENTRIES).map(|(key, value)| (cut(key), cut(value))).collect()
    };
    StorageClass {
        metadata: kept::metadata(&of.metadata, &[], &[]),
        provisioner: cut(&of.provisioner),
        parameters: of.parameters.as_ref().map(texts),
        reclaim_policy: of.reclaim_policy.as_deref().map(cut),
        ..StorageClass::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(spec: Value) -> ObjectBucketClaimSpec {
        let raw: ObjectBucketClaim = serde_json::from_value(json!({"spec": spec})).expect("anything can be read");
        raw.spec
    }

    // covers: 9.crds
    #[test]
    fn whatever_stands_in_one_it_can_be_read() {
        for odd in [json!(null), json!("a text"), json!([]), json!({"bucketName": 5, "additionalConfig": []})] {
            assert_eq!(spec(odd), ObjectBucketClaimSpec::default());
        }
        let config = json!({"maxObjects": 1000, "maxSize": "2G", "none": null, "empty": "", "b": true});
        let read = spec(json!({"storageClassName": "buckets", "additionalConfig": config, "bucketName": ""}));
        assert_eq!((read.storage_class_name.as_deref(), read.bucket_name), (Some("buckets"), None));
        let expected = [("b", "true"), ("maxObjects", "1000"), ("maxSize", "2G")];
        assert_eq!(read.additional_config, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        let raw: ObjectBucketClaim = serde_json::from_value(json!({"status": {"phase": 3}, "spec": {}})).expect("it");
        assert_eq!(Obc::parse(&raw).phase, None);
    }

    // covers: 3.5.memory
    #[test]
    fn of_texts_and_maps_no_more_is_kept_than_a_bound() {
        let long = "ä".repeat(1 << 20);
        let config: BTreeMap<String, &str> = (0..1000).map(|number| (format!("{number}"), long.as_str())).collect();
        let read = spec(json!({"bucketName": long, "additionalConfig": config}));
        assert!(read.bucket_name.is_some_and(|name| name.len() > 256 && name.capacity() < 300));
        let config = read.additional_config;
        let size = |text: &String| size_of::<String>() + text.capacity();
        let taken: usize = config.iter().map(|(key, value)| size(key) + size(value)).sum();
        assert!(!config.is_empty() && taken <= MOST_BYTES, "{taken} bytes");
        let short: BTreeMap<String, &str> = (0..1000).map(|number| (format!("{number}"), "x")).collect();
        assert_eq!(spec(json!({"additionalConfig": short})).additional_config.len(), MOST_ENTRIES);
    }

    // covers: 3.5.memory
    #[test]
    fn of_an_object_bucket_no_more_is_kept_than_a_bound() {
        let long = "x".repeat(1 << 20);
        let claim = json!({"apiVersion": long, "kind": long, "namespace": long, "name": "photos", "uid": long});
        let endpoint = json!({"bucketHost": long, "bucketName": long, "region": long, "subRegion": long});
        let spec = json!({"claimRef": claim, "endpoint": endpoint});
        let raw: ObjectBucket = serde_json::from_value(json!({"spec": spec})).expect("anything can be read");
        let ObjectBucketSpec { claim_ref, endpoint, .. } = kept_object_bucket(&raw).spec;
        assert_eq!(claim_ref.name, "photos");
        let cut = [claim_ref.api_version, claim_ref.kind, claim_ref.namespace, claim_ref.uid];
        let all = cut.iter().chain([&endpoint.bucket_host, &endpoint.bucket_name, &endpoint.region]);
        for text in all.chain([&endpoint.sub_region]) {
            assert!(text.len() > kept::LONGEST && text.capacity() < 300, "one that is cut is none");
        }
    }

    #[test]
    fn a_policy_that_is_not_known_keeps_the_bucket() {
        let class = |policy: Value| {
            let raw = json!({"provisioner": "p", "reclaimPolicy": policy});
            BucketClass::parse(&serde_json::from_value(raw).expect("a class")).deletes
        };
        assert!(class(json!("Delete")) && !class(json!("Retain")) && !class(json!("Recycle")) && !class(json!(null)));
    }
}
