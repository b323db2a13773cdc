//! Translation of an ObjectBucketClaim into the values that are pinned in its ObjectBucket, and
//! into the spec of a BucketClaim or BucketAccess (spec §9). Unsupported options are refused by
//! name, never ignored.

use crate::api::{
    AccessBucketRef, AccessEntry, AccessMode, AccessSecretRef, BackendRef, BucketAccessSpec, BucketClaimSpec,
    BucketClass, BucketName, ConnectionSecretRef, Deletion, DeletionPolicy, Obc, ObjectBucketEndpoint, Quantity, Quota,
    RotationMode, RotationPolicy, Word,
};

use super::halt::{Phase, Stop};
use super::kinds::{Shadow, ShadowSpec, Work, meanwhile};
use super::view::ObcSetting;
use super::words::{BACKEND, DAYS, EMPTY, MODE, Pins, deletion, mode, shadow_name};

/// Maximum length of a bucket name prefix, so that prefix, hyphen and UID form a valid bucket name.
const LONGEST_PREFIX: usize = 26;

/// Parameter of a storage class that gives access to an existing bucket.
const BROWNFIELD: &str = "bucketName";

/// The only supported key of `additionalConfig`.
const MAX_SIZE: &str = "maxSize";

fn invalid_class(obc: &Obc, why: &str) -> Stop {
    let class = obc.spec.storage_class_name.as_deref().unwrap_or_default();
    Stop::new(Phase::Failed, "InvalidStorageClass", format!("storage class {class}: {why}"))
}

fn invalid(why: String) -> Stop {
    Stop::new(Phase::Failed, "InvalidConfig", why)
}

/// Returns the values to pin for a claim of this class.
pub(super) fn pins(obc: &Obc, class: &BucketClass) -> Result<Pins, Stop> {
    let known = [BACKEND, EMPTY, DAYS, BROWNFIELD, MODE];
    if let Some(other) = class.parameters.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(invalid_class(obc, &format!("parameter {other} means nothing here")));
    }
    let parameter = |key: &str| class.parameters.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let Some(backend) = parameter(BACKEND) else {
        return Err(invalid_class(obc, "parameter backend has to name an S3Backend"));
    };
    let empties = match parameter(EMPTY) {
        Some("true") => true,
        Some("false") | None => false,
        Some(_) => return Err(invalid_class(obc, "parameter emptyBucket has to be true or false")),
    };
    let in_range = |text: &str| text.parse::<i32>().ok().filter(|days| (7..=3650).contains(days));
    let days = match parameter(DAYS) {
        None => None,
        Some(text) => match in_range(text) {
            Some(days) => Some(days),
            None => return Err(invalid_class(obc, "parameter rotationIntervalDays has to be from 7 to 3650")),
        },
    };
    let (work, bucket) = match (parameter(BROWNFIELD), parameter(MODE)) {
        (None, None) => (Work::Claim(deletion(class.deletes, empties)), bucket(obc)?),
        (None, Some(_)) => return Err(invalid_class(obc, "parameter mode means nothing without bucketName")),
        (Some(_), _) if empties => {
            return Err(invalid_class(obc, "parameter emptyBucket can't be true: the bucket is there, and stays"));
        }
        (Some(there), asked) => match asked.map_or(Some(AccessMode::default()), mode) {
            Some(mode) => (Work::Access(mode), bucket_there(obc, there)?),
            None => return Err(invalid_class(obc, "parameter mode has to be ReadOnly, WriteOnly or ReadWrite")),
        },
    };
    Ok(Pins {
        class: obc.spec.storage_class_name.clone().unwrap_or_default(),
        backend: backend.to_owned(),
        bucket,
        days,
        shadow: shadow_name(obc),
        work,
    })
}

/// Returns the values to pin if the ObjectBucket was lost: those of the existing BucketClaim or
/// BucketAccess, with a policy that destroys nothing.
pub(super) fn pins_of_lost(obc: &Obc, shadow: &Shadow) -> Result<Pins, Stop> {
    let (rotation, backend, bucket, work) = match &shadow.spec {
        ShadowSpec::Claim(spec) => {
            let bucket = spec.bucket_name.clone().map_or_else(|| bucket(obc), Ok)?;
            (&spec.rotation_policy, spec.backend_ref.name.clone(), bucket, Work::Claim(Deletion::Retain))
        }
        ShadowSpec::Access(spec) => {
            let entries = spec.buckets.get().unwrap_or_default();
            let one = match entries.as_slice() {
                [entry] => entry.bucket_ref.clone().zip(entry.mode.known()),
                [] | [_, _, ..] => None,
            };
            let Some((there, mode)) = one else {
                let why = "its ObjectBucket was lost, and its BucketAccess names no bucket; delete that";
                return Err(Stop::new(Phase::Failed, "ObjectBucketDamaged", why.to_owned()));
            };
            (&spec.rotation_policy, there.backend, there.name, Work::Access(mode))
        }
    };
    let days = (rotation.mode.known() == Some(RotationMode::TimeBased)).then_some(rotation.interval_days);
    Ok(Pins {
        class: obc.spec.storage_class_name.clone().unwrap_or_default(),
        backend,
        bucket,
        days,
        shadow: shadow_name(obc),
        work,
    })
}

/// Returns the name of the existing bucket that a class names. A `generateBucketName` of the claim
/// is ignored.
fn bucket_there(obc: &Obc, there: &str) -> Result<String, Stop> {
    if let Err(error) = BucketName::parse(there) {
        return Err(invalid_class(obc, &format!("parameter bucketName: {error}")));
    }
    match &obc.spec.bucket_name {
        Some(asked) if asked != there => {
            Err(invalid(format!("spec.bucketName asks for {asked}, and the storage class is for bucket {there} alone")))
        }
        Some(_) | None => Ok(there.to_owned()),
    }
}

/// Returns the name of the bucket: the given one, or a name derived from prefix and UID, so that it
/// is the same in every attempt.
fn bucket(obc: &Obc) -> Result<String, Stop> {
    let (field, name) = match (&obc.spec.bucket_name, &obc.spec.generate_bucket_name) {
        (Some(name), _) => ("bucketName", name.clone()),
        (None, Some(prefix)) => {
            let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
            ("generateBucketName", format!("{prefix}-{}", obc.uid()))
        }
        (None, None) => return Err(invalid("one of spec.bucketName and spec.generateBucketName is needed".to_owned())),
    };
    match BucketName::parse(&name) {
        Ok(_) => Ok(name),
        Err(error) => Err(invalid(format!("spec.{field}: {error}"))),
    }
}

/// Returns the quota. Refuses other keys of `additionalConfig`; for an existing bucket, every key.
pub(super) fn quota(obc: &Obc, work: Work) -> Result<Option<String>, Stop> {
    let (known, why) = match work {
        Work::Claim(_) => (Some(MAX_SIZE), "spec.additionalConfig asks for what is not served here"),
        Work::Access(_) => (None, "spec.additionalConfig asks for what is not served of a bucket that is there"),
    };
    let keys = obc.spec.additional_config.keys().map(String::as_str);
    let unknown: Vec<&str> = keys.filter(|key| Some(*key) != known).collect();
    if !unknown.is_empty() {
        return Err(Stop::new(Phase::Failed, "UnsupportedConfig", format!("{why}: {}", unknown.join(", "))));
    }
    let Some(text) = obc.spec.additional_config.get(MAX_SIZE) else { return Ok(None) };
    match Quantity::Text(text.clone()).bytes() {
        Ok(_) => Ok(Some(text.clone())),
        Err(error) => Err(invalid(format!("spec.additionalConfig.maxSize: {error}"))),
    }
}

/// Returns the wanted spec of the BucketClaim or BucketAccess. Any other content of it is
/// overwritten.
pub(super) fn shadow(obc: &Obc, pins: &Pins, quota: Option<Quota>) -> ShadowSpec {
    match pins.work {
        Work::Claim(in_the_end) => ShadowSpec::Claim(claim(obc, pins, quota, meanwhile(in_the_end))),
        Work::Access(mode) => ShadowSpec::Access(access(obc, pins, mode)),
    }
}

fn claim(obc: &Obc, pins: &Pins, quota: Option<Quota>, deletion: Deletion) -> BucketClaimSpec {
    BucketClaimSpec {
        backend_ref: BackendRef { name: pins.backend.clone() },
        bucket_name: Some(pins.bucket.clone()),
        deletion_policy: Word::from(policy(deletion)),
        force_delete: deletion == Deletion::Force,
        write_connection_secret_to_ref: Some(ConnectionSecretRef { name: Some(obc.at.name.clone()) }),
        rotation_policy: rotation(pins),
        anonymous_access: Default::default(),
        quota,
        versioning: None,
        sharing: None,
        secret_template: None,
    }
}

fn access(obc: &Obc, pins: &Pins, mode: AccessMode) -> BucketAccessSpec {
    let there = AccessBucketRef { backend: pins.backend.clone(), name: pins.bucket.clone() };
    let entry = AccessEntry { claim_ref: None, bucket_ref: Some(there), mode: Word::from(mode), prefix: None };
    BucketAccessSpec {
        buckets: vec![entry].into(),
        write_connection_secret_to_ref: AccessSecretRef { name: obc.at.name.clone() },
        secret_template: None,
        rotation_policy: rotation(pins),
    }
}

/// Returns the `deletionPolicy` of a BucketClaim for this kind of deletion.
pub(super) fn policy(deletion: Deletion) -> DeletionPolicy {
    match deletion {
        Deletion::Retain => DeletionPolicy::Retain,
        Deletion::Delete | Deletion::Force => DeletionPolicy::Delete,
    }
}

fn rotation(pins: &Pins) -> RotationPolicy {
    let policy = RotationPolicy::default();
    match pins.days {
        None => policy,
        Some(days) => RotationPolicy { mode: Word::from(RotationMode::TimeBased), interval_days: days, ..policy },
    }
}

/// Returns the endpoint for consumers, which is the gateway's.
pub(super) fn endpoint(setting: &ObcSetting, pins: &Pins) -> ObjectBucketEndpoint {
    let url = setting.gateway.endpoint.as_str();
    let (scheme, authority) = url.split_once("://").unwrap_or(("http", url));
    let given = authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = given.unwrap_or((authority, if scheme == "https" { 443 } else { 80 }));
    ObjectBucketEndpoint {
        bucket_host: host.to_owned(),
        bucket_port: i32::from(port),
        bucket_name: pins.bucket.clone(),
        region: setting.gateway.region.clone(),
        ..ObjectBucketEndpoint::default()
    }
}

/// Returns a stop if an immutable field of the claim was edited.
pub(super) fn changed(obc: &Obc, pins: &Pins) -> Option<Stop> {
    let differs = |field: &Option<String>, pinned: &str| field.as_ref().is_some_and(|it| it != pinned);
    let what = if differs(&obc.spec.bucket_name, &pins.bucket) {
        format!("spec.bucketName can't be changed: the bucket is {}", pins.bucket)
    } else if !pins.class.is_empty() && differs(&obc.spec.storage_class_name, &pins.class) {
        format!("spec.storageClassName can't be changed: the bucket was made of {}", pins.class)
    } else {
        return None;
    };
    Some(Stop::new(Phase::Bound, "SpecChanged", what))
}
