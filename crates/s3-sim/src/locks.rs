//! Operations of object lock. Its rules are in [`lock`](super::lock).

use jiff::Timestamp;
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::call::Call;
use super::convert::{from_wire, hold_status, mode_name, retention_mode, to_wire};
use super::errors::{invalid_argument, refuse, refuse_because};
use super::lock::{DefaultRetention as Default_, LockConfiguration, Period, Protection, Release, Retention};
use super::state::{Bucket, Versioning};

fn bucket<'c>(call: &'c mut Call<'_>, name: &str) -> S3Result<&'c mut Bucket> {
    if !call.dialect.object_lock {
        return Err(refuse(S3ErrorCode::NotImplemented));
    }
    call.bucket(name)
}

/// Returns a bucket, if it has object lock.
fn locked<'c>(call: &'c mut Call<'_>, name: &str) -> S3Result<&'c mut Bucket> {
    let bucket = bucket(call, name)?;
    if bucket.lock.is_some() { Ok(bucket) } else { Err(no_lock()) }
}

fn no_lock() -> S3Error {
    refuse_because(S3ErrorCode::InvalidRequest, "Bucket is missing Object Lock Configuration")
}

/// Returns the protection of a new object: that requested by the write, otherwise the bucket's
/// default.
///
/// # Errors
/// `InvalidRequest` if the bucket has no object lock, `InvalidArgument` for a date that is not in
/// the future.
pub(super) fn protection_of_new(bucket: &Bucket, asked: Protection, now: Timestamp) -> S3Result<Protection> {
    let Some(configuration) = &bucket.lock else {
        return if asked == Protection::default() { Ok(asked) } else { Err(no_lock()) };
    };
    let mut protection = Protection { retention: None, legal_hold: asked.legal_hold };
    let retention = asked.retention.or_else(|| configuration.retention_at(now));
    if retention.is_some() {
        protection.set_retention(retention, now, Release::Normal)?;
    }
    Ok(protection)
}

pub(super) fn get_configuration(
    call: &mut Call<'_>,
    input: GetObjectLockConfigurationInput,
) -> S3Result<GetObjectLockConfigurationOutput> {
    let bucket = bucket(call, &input.bucket)?;
    let found = bucket.lock.ok_or_else(|| refuse(S3ErrorCode::ObjectLockConfigurationNotFoundError))?;
    let rule = found.default.map(|default| {
        let (days, years) = match default.period {
            Period::Days(days) => (Some(days), None),
            Period::Years(years) => (None, Some(years)),
        };
        let mode = Some(ObjectLockRetentionMode::from_static(mode_name(default.mode)));
        ObjectLockRule { default_retention: Some(DefaultRetention { days, mode, years }) }
    });
    let object_lock_enabled = Some(ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED));
    let configuration = ObjectLockConfiguration { object_lock_enabled, rule };
    Ok(GetObjectLockConfigurationOutput { object_lock_configuration: Some(configuration) })
}

pub(super) fn put_configuration(
    call: &mut Call<'_>,
    input: PutObjectLockConfigurationInput,
) -> S3Result<PutObjectLockConfigurationOutput> {
    let bucket = bucket(call, &input.bucket)?;
    if bucket.versioning != Versioning::Enabled {
        let message = "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration";
        return Err(refuse_because(S3ErrorCode::InvalidBucketState, message));
    }
    let malformed = || refuse(S3ErrorCode::MalformedXML);
    let configuration = input.object_lock_configuration.ok_or_else(malformed)?;
    let enabled = configuration.object_lock_enabled.as_ref().map(ObjectLockEnabled::as_str);
    if enabled != Some(ObjectLockEnabled::ENABLED) {
        return Err(malformed());
    }
    let default = configuration.rule.and_then(|rule| rule.default_retention);
    bucket.lock = Some(LockConfiguration { default: default.map(default_retention).transpose()? });
    Ok(PutObjectLockConfigurationOutput::default())
}

fn default_retention(given: DefaultRetention) -> S3Result<Default_> {
    let mode = given.mode.ok_or_else(|| refuse(S3ErrorCode::MalformedXML))?;
    let mode = retention_mode(mode.as_str())?;
    let period = match (given.days, given.years) {
        (Some(days), None) if (1..=36_500).contains(&days) => Period::Days(days),
        (None, Some(years)) if (1..=100).contains(&years) => Period::Years(years),
        (Some(_), Some(_)) | (None, None) => return Err(refuse(S3ErrorCode::MalformedXML)),
        _ => return Err(invalid_argument("Default retention period must be a positive integer value.")),
    };
    Ok(Default_ { mode, period })
}

pub(super) fn get_retention(call: &mut Call<'_>, input: GetObjectRetentionInput) -> S3Result<GetObjectRetentionOutput> {
    let bucket = locked(call, &input.bucket)?;
    let object = bucket.lockable(&input.key, input.version_id.as_deref())?;
    let held = object.protection.retention;
    let held = held.ok_or_else(|| refuse(S3ErrorCode::NoSuchObjectLockConfiguration))?;
    let retention = ObjectLockRetention {
        mode: Some(ObjectLockRetentionMode::from_static(mode_name(held.mode))),
        retain_until_date: Some(to_wire(held.until)),
    };
    Ok(GetObjectRetentionOutput { retention: Some(retention) })
}

pub(super) fn put_retention(call: &mut Call<'_>, input: PutObjectRetentionInput) -> S3Result<PutObjectRetentionOutput> {
    let release = Release::from_header(input.bypass_governance_retention);
    let given = input.retention.unwrap_or_default();
    let retention = match (given.mode, given.retain_until_date) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            Some(Retention { mode: retention_mode(mode.as_str())?, until: from_wire(&until)? })
        }
        _ => return Err(refuse(S3ErrorCode::MalformedXML)),
    };
    let now = call.now;
    let bucket = locked(call, &input.bucket)?;
    bucket.lockable(&input.key, input.version_id.as_deref())?;
    let object = bucket.object_mut(&input.key, input.version_id.as_deref())?;
    object.protection.set_retention(retention, now, release)?;
    Ok(PutObjectRetentionOutput::default())
}

pub(super) fn get_legal_hold(
    call: &mut Call<'_>,
    input: GetObjectLegalHoldInput,
) -> S3Result<GetObjectLegalHoldOutput> {
    let bucket = locked(call, &input.bucket)?;
    let object = bucket.lockable(&input.key, input.version_id.as_deref())?;
    let status = hold_status(object).ok_or_else(|| refuse(S3ErrorCode::NoSuchObjectLockConfiguration))?;
    let legal_hold = ObjectLockLegalHold { status: Some(status) };
    Ok(GetObjectLegalHoldOutput { legal_hold: Some(legal_hold) })
}

pub(super) fn put_legal_hold(
    call: &mut Call<'_>,
    input: PutObjectLegalHoldInput,
) -> S3Result<PutObjectLegalHoldOutput> {
    let status = input.legal_hold.and_then(|hold| hold.status);
    let on = match status.as_ref().map(ObjectLockLegalHoldStatus::as_str) {
        Some(ObjectLockLegalHoldStatus::ON) => true,
        Some(ObjectLockLegalHoldStatus::OFF) => false,
        _ => return Err(refuse(S3ErrorCode::MalformedXML)),
    };
    let bucket = locked(call, &input.bucket)?;
    bucket.lockable(&input.key, input.version_id.as_deref())?;
    let object = bucket.object_mut(&input.key, input.version_id.as_deref())?;
    (object.protection.legal_hold, object.has_hold) = (on, true);
    Ok(PutObjectLegalHoldOutput::default())
}
