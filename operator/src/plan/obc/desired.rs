//! What an ObjectBucketClaim comes to: what is pinned once, and what its BucketClaim asks for (spec
//! §9). What can't be given is refused by name, never passed over.

use crate::api::{
    BackendRef, BucketClaimSpec, BucketClass, BucketName, ConnectionSecretRef, Deletion, DeletionPolicy, Obc,
    ObjectBucketEndpoint, Quantity, Quota, RotationMode, RotationPolicy, Word,
};

use super::view::{ObcSetting, Phase, Stop};
use super::words::{BACKEND, DAYS, EMPTY, Pins, Shadow, shadow_name};

/// Of a prefix so much is kept: with a hyphen and a UID that is a bucket's name.
const LONGEST_PREFIX: usize = 26;

/// The one by which a class gives access to a bucket that is there.
const BROWNFIELD: &str = "bucketName";

/// The key of `additionalConfig` that is understood.
const MAX_SIZE: &str = "maxSize";

fn invalid_class(obc: &Obc, why: &str) -> Stop {
    let class = obc.spec.storage_class_name.as_deref().unwrap_or_default();
    Stop::new(Phase::Failed, "InvalidStorageClass", format!("storage class {class}: {why}"))
}

fn invalid(why: String) -> Stop {
    Stop::new(Phase::Failed, "InvalidConfig", why)
}

/// What is pinned of a claim of this class.
pub(super) fn pins(obc: &Obc, class: &BucketClass) -> Result<Pins, Stop> {
    let known = [BACKEND, EMPTY, DAYS, BROWNFIELD];
    if let Some(other) = class.parameters.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(invalid_class(obc, &format!("parameter {other} means nothing here")));
    }
    let parameter = |key: &str| class.parameters.get(key).map(String::as_str).filter(|value| !value.is_empty());
    if parameter(BROWNFIELD).is_some() {
        let why = "parameter bucketName, for a bucket that is there, is not served; use a BucketAccess";
        return Err(invalid_class(obc, why));
    }
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
    Ok(Pins {
        class: obc.spec.storage_class_name.clone().unwrap_or_default(),
        deletes: class.deletes,
        empties,
        backend: backend.to_owned(),
        bucket: bucket(obc)?,
        days,
        shadow: shadow_name(obc),
    })
}

/// What is pinned where the ObjectBucket was lost: by the BucketClaim, and nothing is destroyed.
pub(super) fn pins_of_lost(obc: &Obc, shadow: &Shadow) -> Result<Pins, Stop> {
    let rotation = &shadow.spec.rotation_policy;
    let days = (rotation.mode.known() == Some(RotationMode::TimeBased)).then_some(rotation.interval_days);
    Ok(Pins {
        class: obc.spec.storage_class_name.clone().unwrap_or_default(),
        deletes: false,
        empties: false,
        backend: shadow.spec.backend_ref.name.clone(),
        bucket: shadow.spec.bucket_name.clone().map_or_else(|| bucket(obc), Ok)?,
        days,
        shadow: shadow_name(obc),
    })
}

/// Name of the bucket: the one that is given, or one made up of prefix and UID, so that it is the
/// same in every try.
fn bucket(obc: &Obc) -> Result<String, Stop> {
    let name = match (&obc.spec.bucket_name, &obc.spec.generate_bucket_name) {
        (Some(name), _) => name.clone(),
        (None, Some(prefix)) => {
            let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
            format!("{prefix}-{}", obc.uid())
        }
        (None, None) => return Err(invalid("one of spec.bucketName and spec.generateBucketName is needed".to_owned())),
    };
    match BucketName::parse(&name) {
        Ok(_) => Ok(name),
        Err(error) => Err(invalid(format!("spec.bucketName: {error}"))),
    }
}

/// The quota, if `additionalConfig` asks for nothing else.
pub(super) fn quota(obc: &Obc) -> Result<Option<String>, Stop> {
    let unknown: Vec<&str> =
        obc.spec.additional_config.keys().map(String::as_str).filter(|key| *key != MAX_SIZE).collect();
    if !unknown.is_empty() {
        let note = format!("spec.additionalConfig asks for what is not served here: {}", unknown.join(", "));
        return Err(Stop::new(Phase::Failed, "UnsupportedConfig", note));
    }
    let Some(text) = obc.spec.additional_config.get(MAX_SIZE) else { return Ok(None) };
    match Quantity::Text(text.clone()).bytes() {
        Ok(_) => Ok(Some(text.clone())),
        Err(error) => Err(invalid(format!("spec.additionalConfig.maxSize: {error}"))),
    }
}

/// What the BucketClaim is to ask for. Everything else in it is nobody's.
pub(super) fn shadow(obc: &Obc, pins: &Pins, quota: Option<Quota>, deletion: Deletion) -> BucketClaimSpec {
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

/// The deletion policy that means this.
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

/// Where the bucket is, as consumers are told: through the gateway.
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

/// What the owner has edited though it can't be changed any more.
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
