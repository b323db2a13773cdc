//! Conditional requests (RFC 9110 §13, in the order of precedence documented by Amazon S3).

use s3s::dto::{ETagCondition, Timestamp as WireTime};
use s3s::{S3ErrorCode, S3Result};

use super::convert::{etag, from_wire, length};
use super::errors::refuse;
use super::state::{Object, Version};

/// The conditions of a read, or of a copy on its source.
pub(super) struct ReadConditions<'a> {
    pub(super) if_match: Option<&'a ETagCondition>,
    pub(super) if_none_match: Option<&'a ETagCondition>,
    pub(super) if_modified_since: Option<&'a WireTime>,
    pub(super) if_unmodified_since: Option<&'a WireTime>,
}

impl ReadConditions<'_> {
    /// Checks the conditions. `unchanged` is the error code if the client has the object already:
    /// `NotModified` for reads, `PreconditionFailed` for copies.
    pub(super) fn check(&self, version: &Version, object: &Object, unchanged: S3ErrorCode) -> S3Result<()> {
        let modified = version.modified.as_second();
        let failed = match (self.if_match, self.if_unmodified_since) {
            (Some(condition), _) => !matches(condition, object),
            (None, Some(since)) => modified > from_wire(since)?.as_second(),
            (None, None) => false,
        };
        if failed {
            return Err(refuse(S3ErrorCode::PreconditionFailed));
        }
        let same = match (self.if_none_match, self.if_modified_since) {
            (Some(condition), _) => matches(condition, object),
            (None, Some(since)) => modified <= from_wire(since)?.as_second(),
            (None, None) => false,
        };
        if same { Err(refuse(unchanged)) } else { Ok(()) }
    }
}

/// Checks the conditions of a write against the current object of the key.
///
/// # Errors
/// `PreconditionFailed`; `NoSuchKey` for `If-Match` without an object; `NotImplemented` for
/// `If-None-Match` with an entity tag, which Amazon S3 does not support for writes either.
pub(super) fn check_write(
    current: Option<&Object>,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<()> {
    match (if_none_match, current) {
        (Some(condition), _) if !condition.is_any() => return Err(refuse(S3ErrorCode::NotImplemented)),
        (Some(_), Some(_)) => return Err(refuse(S3ErrorCode::PreconditionFailed)),
        _ => {}
    }
    match (if_match, current) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(refuse(S3ErrorCode::NoSuchKey)),
        (Some(condition), Some(object)) if matches(condition, object) => Ok(()),
        (Some(_), Some(_)) => Err(refuse(S3ErrorCode::PreconditionFailed)),
    }
}

/// The conditions of a deletion. Those on time and size are met if there is no object (Amazon S3,
/// DeleteObject).
pub(super) struct DeleteConditions<'a> {
    pub(super) if_match: Option<&'a ETagCondition>,
    pub(super) modified: Option<&'a WireTime>,
    pub(super) size: Option<i64>,
}

impl DeleteConditions<'_> {
    /// Checks the conditions against the object to delete, if it exists.
    ///
    /// # Errors
    /// `PreconditionFailed`; `NoSuchKey` for `If-Match` without an object.
    pub(super) fn check(&self, found: Option<(&Version, &Object)>) -> S3Result<()> {
        check_write(found.map(|(_, object)| object), self.if_match, None)?;
        let Some((version, object)) = found else { return Ok(()) };
        let modified = self.modified.map(from_wire).transpose()?;
        let is_other = modified.is_some_and(|modified| modified.as_second() != version.modified.as_second())
            || self.size.is_some_and(|size| size != length(object.data.len()));
        if is_other { Err(refuse(S3ErrorCode::PreconditionFailed)) } else { Ok(()) }
    }
}

fn matches(condition: &ETagCondition, object: &Object) -> bool {
    condition.as_etag().is_none_or(|expected| expected.weak_cmp(&etag(&object.etag)))
}
