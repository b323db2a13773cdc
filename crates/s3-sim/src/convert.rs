//! Conversions between the types of the protocol and those of the store.

use std::collections::BTreeMap;

use jiff::Timestamp;
use s3s::dto::{self, TimestampFormat};
use s3s::{S3ErrorCode, S3Result};

use super::errors::{invalid_argument, refuse_because};
use super::lock::{Protection, Retention, RetentionMode};
use super::state::{Attributes, Object};

/// Converts a time to the protocol's type.
pub(super) fn to_wire(time: Timestamp) -> dto::Timestamp {
    std::time::SystemTime::from(time).into()
}

/// Converts a time from the protocol's type.
///
/// # Errors
/// `InvalidArgument` for a time that cannot be represented.
pub(super) fn from_wire(time: &dto::Timestamp) -> S3Result<Timestamp> {
    let invalid = || invalid_argument("The date is not valid");
    let mut text = Vec::new();
    time.format(TimestampFormat::DateTime, &mut text).map_err(|_| invalid())?;
    String::from_utf8_lossy(&text).parse().map_err(|_| invalid())
}

/// Converts an entity tag to the protocol's type.
pub(super) fn etag(value: &str) -> dto::ETag {
    dto::ETag::Strong(value.to_owned())
}

/// Converts an account to the protocol's type of an owner.
pub(super) fn owner(account: &str) -> dto::Owner {
    dto::Owner { display_name: None, id: Some(account.to_owned()) }
}

/// Converts a length to the protocol's type.
pub(super) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("nothing in memory is longer than i64::MAX bytes")
}

/// Maximum number of tags on a bucket and on an object.
pub(super) const BUCKET_TAGS: usize = 50;
pub(super) const OBJECT_TAGS: usize = 10;

/// Converts a tag set from the protocol's type.
///
/// # Errors
/// `InvalidTag` for a key that is empty, repeated or longer than 128 characters, and for a value
/// longer than 256; `BadRequest` for too many tags.
pub(super) fn tags(set: Vec<dto::Tag>, most: usize) -> S3Result<BTreeMap<String, String>> {
    if set.len() > most {
        let what = if most == BUCKET_TAGS { "Bucket" } else { "Object" };
        let message = format!("{what} tag count cannot be greater than {most}");
        let mut error = refuse_because(S3ErrorCode::Custom("BadRequest".into()), message);
        error.set_status_code(http::StatusCode::BAD_REQUEST);
        return Err(error);
    }
    let mut tags = BTreeMap::new();
    for tag in set {
        let (key, value) = (tag.key.unwrap_or_default(), tag.value.unwrap_or_default());
        if key.is_empty() || key.chars().count() > 128 {
            return Err(refuse_because(S3ErrorCode::InvalidTag, "The TagKey you have provided is invalid"));
        }
        if value.chars().count() > 256 {
            return Err(refuse_because(S3ErrorCode::InvalidTag, "The TagValue you have provided is invalid"));
        }
        if tags.insert(key, value).is_some() {
            let message = "Cannot provide multiple Tags with the same key";
            return Err(refuse_because(S3ErrorCode::InvalidTag, message));
        }
    }
    Ok(tags)
}

/// Parses the header `x-amz-tagging`, which has the form of a query string.
///
/// # Errors
/// Like [`tags`].
pub(super) fn tags_from_header(header: Option<&str>) -> S3Result<BTreeMap<String, String>> {
    let pairs = header.into_iter().flat_map(|header| header.split('&')).filter(|pair| !pair.is_empty());
    let set = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        dto::Tag { key: Some(url_decode(key)), value: Some(url_decode(value)) }
    });
    tags(set.collect(), OBJECT_TAGS)
}

/// Converts a tag set to the protocol's type.
pub(super) fn tag_set(tags: &BTreeMap<String, String>) -> Vec<dto::Tag> {
    let tag = |(key, value): (&String, &String)| dto::Tag { key: Some(key.clone()), value: Some(value.clone()) };
    tags.iter().map(tag).collect()
}

fn url_decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let escape: Vec<u8> = bytes.by_ref().take(2).collect();
                let mut value = [0];
                match hex::decode_to_slice(&escape, &mut value) {
                    Ok(()) => decoded.push(value[0]),
                    Err(_) => decoded.extend(escape),
                }
            }
            _ => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Takes the stored headers from an input. They have the same names in all four kinds of writes.
macro_rules! attributes {
    ($input:expr) => {
        crate::convert::named_attributes(
            [
                $input.cache_control.take(),
                $input.content_disposition.take(),
                $input.content_encoding.take(),
                $input.content_language.take(),
                $input.content_type.take(),
            ],
            $input.metadata.take(),
        )
    };
}
pub(super) use attributes;

/// Creates attributes from headers in the order of the fields of [`Attributes`]. See
/// [`attributes!`].
pub(super) fn named_attributes(headers: [Option<String>; 5], metadata: Option<dto::Metadata>) -> Attributes {
    let [cache_control, content_disposition, content_encoding, content_language, content_type] = headers;
    Attributes {
        cache_control,
        // The encoding used for the upload's framing is not a property of the object.
        content_encoding: content_encoding.and_then(|value| without_framing(&value)),
        content_disposition,
        content_language,
        content_type,
        metadata: metadata.into_iter().flatten().collect(),
    }
}

fn without_framing(encoding: &str) -> Option<String> {
    let codings = encoding.split(',').map(str::trim).filter(|coding| *coding != "aws-chunked");
    let kept: Vec<&str> = codings.filter(|coding| !coding.is_empty()).collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

/// Converts a retention mode from the protocol's type.
///
/// # Errors
/// `MalformedXML` for an unknown mode.
pub(super) fn retention_mode(mode: &str) -> S3Result<RetentionMode> {
    match mode {
        dto::ObjectLockRetentionMode::GOVERNANCE => Ok(RetentionMode::Governance),
        dto::ObjectLockRetentionMode::COMPLIANCE => Ok(RetentionMode::Compliance),
        _ => Err(super::errors::refuse(S3ErrorCode::MalformedXML)),
    }
}

/// Converts a retention mode to the protocol's type.
pub(super) fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => dto::ObjectLockRetentionMode::GOVERNANCE,
        RetentionMode::Compliance => dto::ObjectLockRetentionMode::COMPLIANCE,
    }
}

/// Returns the status of an object's legal hold; `None` if it was never set.
pub(super) fn hold_status(object: &Object) -> Option<dto::ObjectLockLegalHoldStatus> {
    let known = match (object.protection.legal_hold, object.has_hold) {
        (true, _) => dto::ObjectLockLegalHoldStatus::ON,
        (false, true) => dto::ObjectLockLegalHoldStatus::OFF,
        (false, false) => return None,
    };
    Some(dto::ObjectLockLegalHoldStatus::from_static(known))
}

/// Returns the protection requested by the headers of a write.
///
/// # Errors
/// `InvalidArgument` if only one of mode and date is given, or if the date is invalid.
pub(super) fn protection(
    mode: Option<&dto::ObjectLockMode>,
    until: Option<&dto::Timestamp>,
    legal_hold: Option<&dto::ObjectLockLegalHoldStatus>,
) -> S3Result<Protection> {
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(mode), Some(until)) => Some(Retention { mode: retention_mode(mode.as_str())?, until: from_wire(until)? }),
        _ => {
            let message = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied";
            return Err(invalid_argument(message));
        }
    };
    let on = dto::ObjectLockLegalHoldStatus::ON;
    let legal_hold = legal_hold.is_some_and(|status| status.as_str() == on);
    Ok(Protection { retention, legal_hold })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(key: &str) -> dto::Tag {
        dto::Tag { key: Some(key.to_owned()), value: Some(String::new()) }
    }

    fn code(set: Vec<dto::Tag>) -> Option<S3ErrorCode> {
        tags(set, 2).err().map(|error| error.code().clone())
    }

    #[test]
    fn tag_sets_have_rules() {
        assert_eq!(code(vec![tag("a"), tag("b")]), None);
        assert_eq!(code(vec![tag("a"), tag("a")]), Some(S3ErrorCode::InvalidTag));
        assert_eq!(code(vec![tag("")]), Some(S3ErrorCode::InvalidTag));
        assert_eq!(code(vec![tag(&"k".repeat(129))]), Some(S3ErrorCode::InvalidTag));
        assert_eq!(code(vec![tag("a"), tag("b"), tag("c")]), Some(S3ErrorCode::Custom("BadRequest".into())));
    }

    #[test]
    fn the_tagging_header_is_a_query() {
        let tags = tags_from_header(Some("a=1&b%20c=%C3%BC+d&e")).expect("valid tags");
        let expected = [("a", "1"), ("b c", "ü d"), ("e", "")];
        assert!(tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(expected));
    }

    #[test]
    fn times_survive_the_wire() {
        let time: Timestamp = "2026-11-20T10:00:00.123Z".parse().expect("a time");
        assert_eq!(from_wire(&to_wire(time)).ok(), Some(time));
    }

    #[test]
    fn the_framing_of_an_upload_is_not_kept() {
        assert_eq!(without_framing("aws-chunked"), None);
        assert_eq!(without_framing("gzip,aws-chunked").as_deref(), Some("gzip"));
    }

    #[test]
    fn retention_headers_come_in_pairs() {
        let mode = dto::ObjectLockMode::from_static("GOVERNANCE");
        assert!(protection(Some(&mode), None, None).is_err());
        assert!(protection(None, None, None).is_ok());
    }
}
