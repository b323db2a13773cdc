//! Operations on objects: put, get, head, copy, delete, tags.

use s3s::dto::*;
use s3s::{S3ErrorCode, S3Response, S3Result};

use super::call::Call;
use super::conditions::{DeleteConditions, ReadConditions, check_write};
use super::convert::{self, OBJECT_TAGS, attributes, hold_status, length, mode_name, tag_set, to_wire};
use super::data::Data;
use super::disturbance::Disturbance;
use super::errors::{refuse, refuse_because};
use super::lock::Release;
use super::locks;
use super::payload::Payload;
use super::state::{Attributes, Bucket, Content, Deletion, Object, Version, Versioning};

pub(super) fn put(call: &mut Call<'_>, mut input: PutObjectInput, payload: Payload) -> S3Result<PutObjectOutput> {
    let asked = convert::protection(
        input.object_lock_mode.as_ref(),
        input.object_lock_retain_until_date.as_ref(),
        input.object_lock_legal_hold_status.as_ref(),
    )?;
    let tags = convert::tags_from_header(input.tagging.as_deref())?;
    let now = call.now;
    let bucket = call.bucket(&input.bucket)?;
    check_write(current(bucket, &input.key), input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let object = Object {
        data: payload.data,
        etag: payload.etag.clone(),
        checksum: payload.checksum.clone(),
        attributes: attributes!(input),
        tags,
        protection: locks::protection_of_new(bucket, asked, now)?,
        has_hold: input.object_lock_legal_hold_status.is_some(),
    };
    let version_id = store(call, &input.bucket, &input.key, object)?;
    Ok(PutObjectOutput {
        e_tag: Some(convert::etag(&payload.etag)),
        checksum_crc32: payload.checksum.checksum_crc32,
        checksum_crc32c: payload.checksum.checksum_crc32c,
        checksum_crc64nvme: payload.checksum.checksum_crc64nvme,
        checksum_sha1: payload.checksum.checksum_sha1,
        checksum_sha256: payload.checksum.checksum_sha256,
        version_id,
        ..PutObjectOutput::default()
    })
}

/// Returns the current object of a key, if any.
pub(super) fn current<'b>(bucket: &'b Bucket, key: &str) -> Option<&'b Object> {
    bucket.keys.get(key)?.last()?.object()
}

/// Stores an object as the newest version. Returns the version id for the response.
pub(super) fn store(call: &mut Call<'_>, bucket: &str, key: &str, object: Object) -> S3Result<Option<String>> {
    let (sequence, now) = (call.state.next_sequence(), call.now);
    let bucket = call.bucket(bucket)?;
    let shown = bucket.versioning != Versioning::Unversioned;
    let id = bucket.put(key, Content::Object(Box::new(object)), sequence, now).id();
    Ok(shown.then_some(id))
}

/// Result of a read: an object, or a part of it.
struct Found<'b> {
    version: &'b Version,
    object: &'b Object,
    version_id: Option<String>,
    data: Data,
    content_range: Option<String>,
    /// Checksums of the whole object, sent only with all of its bytes.
    checksum: Checksum,
}

fn find<'b>(bucket: &'b Bucket, input: &GetObjectInput) -> S3Result<Found<'b>> {
    let (version, object) = bucket.object(&input.key, input.version_id.as_deref())?;
    ReadConditions {
        if_match: input.if_match.as_ref(),
        if_none_match: input.if_none_match.as_ref(),
        if_modified_since: input.if_modified_since.as_ref(),
        if_unmodified_since: input.if_unmodified_since.as_ref(),
    }
    .check(version, object, S3ErrorCode::NotModified)?;
    if input.part_number.is_some() {
        return Err(refuse(S3ErrorCode::NotImplemented));
    }
    let (data, content_range) = slice(&object.data, input.range)?;
    let wanted = input.checksum_mode.is_some() && content_range.is_none();
    let checksum = if wanted { object.checksum.clone() } else { Checksum::default() };
    Ok(Found { version, object, version_id: bucket.shown_id(version), data, content_range, checksum })
}

/// Returns the bytes of a range, and the Content-Range header.
fn slice(data: &Data, range: Option<Range>) -> S3Result<(Data, Option<String>)> {
    let Some(range) = range else { return Ok((data.clone(), None)) };
    let total = data.len();
    let unsatisfiable = || refuse(S3ErrorCode::InvalidRange);
    if total == 0 {
        return Err(unsatisfiable());
    }
    let found = range.check(total as u64).map_err(|_| unsatisfiable())?;
    let position = |at: u64| usize::try_from(at).map_err(|_| unsatisfiable());
    let part = data.slice(position(found.start)?..position(found.end)?);
    Ok((part, Some(format!("bytes {}-{}/{total}", found.start, found.end - 1))))
}

/// Content type of objects that were stored without one, as in Amazon S3.
const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";

/// Returns the response to a read. GetObject and HeadObject have the same fields in different
/// types.
macro_rules! read_output {
    ($output:ident, $found:expr) => {{
        let Found { version, object, version_id, data, content_range, checksum } = $found;
        let attributes = &object.attributes;
        let protection = &object.protection;
        let content_type = attributes.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE);
        let retention = protection.retention;
        let has_checksum = checksum != Checksum::default();
        $output {
            accept_ranges: Some("bytes".to_owned()),
            cache_control: attributes.cache_control.clone(),
            content_disposition: attributes.content_disposition.clone(),
            content_encoding: attributes.content_encoding.clone(),
            content_language: attributes.content_language.clone(),
            content_length: Some(length(data.len())),
            content_range,
            content_type: Some(content_type.to_owned()),
            e_tag: Some(convert::etag(&object.etag)),
            last_modified: Some(to_wire(version.modified)),
            metadata: Some(attributes.metadata.clone().into_iter().collect()),
            object_lock_legal_hold_status: hold_status(object),
            object_lock_mode: retention.map(|held| ObjectLockMode::from_static(mode_name(held.mode))),
            object_lock_retain_until_date: retention.map(|held| to_wire(held.until)),
            checksum_type: has_checksum.then(|| ChecksumType::from_static(ChecksumType::FULL_OBJECT)),
            checksum_crc32: checksum.checksum_crc32,
            checksum_crc32c: checksum.checksum_crc32c,
            checksum_crc64nvme: checksum.checksum_crc64nvme,
            checksum_sha1: checksum.checksum_sha1,
            checksum_sha256: checksum.checksum_sha256,
            version_id,
            ..$output::default()
        }
    }};
}

pub(super) fn get(call: &mut Call<'_>, input: GetObjectInput) -> S3Result<GetObjectOutput> {
    let found = find(call.bucket(&input.bucket)?, &input)?;
    let tag_count = i32::try_from(found.object.tags.len()).ok().filter(|count| *count > 0);
    let body = found.data.body()?;
    Ok(GetObjectOutput { body: Some(body), tag_count, ..read_output!(GetObjectOutput, found) })
}

/// Returns the head of the response to a read. s3s does not support the tag count in it.
pub(super) fn head(call: &mut Call<'_>, input: HeadObjectInput) -> S3Result<S3Response<HeadObjectOutput>> {
    let like_get = GetObjectInput {
        bucket: input.bucket,
        checksum_mode: input.checksum_mode,
        if_match: input.if_match,
        if_modified_since: input.if_modified_since,
        if_none_match: input.if_none_match,
        if_unmodified_since: input.if_unmodified_since,
        key: input.key,
        part_number: input.part_number,
        range: input.range,
        version_id: input.version_id,
        ..GetObjectInput::default()
    };
    let found = find(call.bucket(&like_get.bucket)?, &like_get)?;
    let tags = found.object.tags.len();
    let mut response = S3Response::new(read_output!(HeadObjectOutput, found));
    if tags > 0 {
        response.headers.insert("x-amz-tagging-count", tags.into());
    }
    Ok(response)
}

/// Returns the attributes of an object that the request names.
pub(super) fn attributes(call: &mut Call<'_>, input: GetObjectAttributesInput) -> S3Result<GetObjectAttributesOutput> {
    let names = |name: &str| input.object_attributes.iter().any(|asked| asked.as_str() == name);
    let bucket = call.bucket(&input.bucket)?;
    let (version, object) = bucket.object(&input.key, input.version_id.as_deref())?;
    // The entity tag of a multipart object ends with the number of parts.
    let parts = object.etag.split_once('-').and_then(|(_, parts)| parts.parse().ok());
    let parts = parts.map(|count| GetObjectAttributesParts { total_parts_count: Some(count), ..Default::default() });
    let has_checksum = object.checksum != Checksum::default();
    Ok(GetObjectAttributesOutput {
        checksum: Some(object.checksum.clone()).filter(|_| has_checksum && names(ObjectAttributes::CHECKSUM)),
        e_tag: names(ObjectAttributes::ETAG).then(|| convert::etag(&object.etag)),
        last_modified: Some(to_wire(version.modified)),
        object_parts: parts.filter(|_| names(ObjectAttributes::OBJECT_PARTS)),
        object_size: names(ObjectAttributes::OBJECT_SIZE).then(|| length(object.data.len())),
        storage_class: names(ObjectAttributes::STORAGE_CLASS)
            .then(|| StorageClass::from_static(StorageClass::STANDARD)),
        version_id: bucket.shown_id(version),
        ..GetObjectAttributesOutput::default()
    })
}

/// Source of a copy.
pub(super) struct Source {
    pub(super) object: Object,
    pub(super) version_id: Option<String>,
    bucket: String,
    key: String,
    is_current: bool,
}

/// Reads the source of a copy.
///
/// # Errors
/// Returns the errors of a read of that object; `NotImplemented` for access points and Outposts.
pub(super) fn source(call: &mut Call<'_>, from: &CopySource, conditions: &ReadConditions<'_>) -> S3Result<Source> {
    let CopySource::Bucket { bucket: name, key, version_id } = from else {
        return Err(refuse(S3ErrorCode::NotImplemented));
    };
    let bucket = call.bucket(name)?;
    let (version, object) = bucket.object(key, version_id.as_deref())?;
    conditions.check(version, object, S3ErrorCode::PreconditionFailed)?;
    let newest = bucket.version(key, None)?.sequence;
    Ok(Source {
        object: object.clone(),
        version_id: bucket.shown_id(version),
        bucket: name.to_string(),
        key: key.to_string(),
        is_current: version.sequence == newest,
    })
}

pub(super) fn copy(call: &mut Call<'_>, mut input: CopyObjectInput) -> S3Result<CopyObjectOutput> {
    let conditions = ReadConditions {
        if_match: input.copy_source_if_match.as_ref(),
        if_none_match: input.copy_source_if_none_match.as_ref(),
        if_modified_since: input.copy_source_if_modified_since.as_ref(),
        if_unmodified_since: input.copy_source_if_unmodified_since.as_ref(),
    };
    let source = source(call, &input.copy_source, &conditions)?;
    let directive = input.metadata_directive.as_ref().map(MetadataDirective::as_str);
    let replaces = directive == Some(MetadataDirective::REPLACE);
    let same = source.bucket == input.bucket && source.key == input.key && source.is_current;
    if same && !replaces {
        let message = "This copy request is illegal because it is trying to copy an object to itself without changing \
                       the object's metadata, storage class, website redirect location or encryption attributes.";
        return Err(refuse_because(S3ErrorCode::InvalidRequest, message));
    }
    let asked = convert::protection(
        input.object_lock_mode.as_ref(),
        input.object_lock_retain_until_date.as_ref(),
        input.object_lock_legal_hold_status.as_ref(),
    )?;
    let tagging = input.tagging_directive.as_ref().map(TaggingDirective::as_str);
    let tags = match tagging {
        Some(TaggingDirective::REPLACE) => convert::tags_from_header(input.tagging.as_deref())?,
        _ => source.object.tags,
    };
    let attributes: Attributes = if replaces { attributes!(input) } else { source.object.attributes };
    let now = call.now;
    let protection = locks::protection_of_new(call.bucket(&input.bucket)?, asked, now)?;
    // The entity tag of a copy is that of a single write, even if the source is a multipart object.
    let Payload { data, etag, checksum } = Payload::trusted(source.object.data)?;
    let has_hold = input.object_lock_legal_hold_status.is_some();
    let object = Object { data, etag: etag.clone(), checksum, attributes, tags, protection, has_hold };
    let version_id = store(call, &input.bucket, &input.key, object)?;
    let result = CopyObjectResult {
        e_tag: Some(convert::etag(&etag)),
        last_modified: Some(to_wire(now)),
        ..CopyObjectResult::default()
    };
    Ok(CopyObjectOutput {
        copy_object_result: Some(result),
        copy_source_version_id: source.version_id,
        version_id,
        ..CopyObjectOutput::default()
    })
}

pub(super) fn delete(call: &mut Call<'_>, input: DeleteObjectInput) -> S3Result<DeleteObjectOutput> {
    let release = Release::from_header(input.bypass_governance_retention);
    let (sequence, now) = (call.state.next_sequence(), call.now);
    let bucket = call.bucket(&input.bucket)?;
    let conditions = DeleteConditions {
        if_match: input.if_match.as_ref(),
        modified: input.if_match_last_modified_time.as_ref(),
        size: input.if_match_size,
    };
    conditions.check(bucket.object(&input.key, input.version_id.as_deref()).ok())?;
    let Deletion { delete_marker, version_id } =
        bucket.delete(&input.key, input.version_id.as_deref(), sequence, now, release)?;
    let delete_marker = delete_marker.then_some(true);
    Ok(DeleteObjectOutput { delete_marker, version_id, ..DeleteObjectOutput::default() })
}

/// Maximum number of keys in a DeleteObjects.
const DELETE_LIMIT: usize = 1000;

pub(super) fn delete_many(call: &mut Call<'_>, input: DeleteObjectsInput) -> S3Result<DeleteObjectsOutput> {
    let objects = input.delete.objects;
    if objects.is_empty() || objects.len() > DELETE_LIMIT {
        return Err(refuse(S3ErrorCode::MalformedXML));
    }
    let release = Release::from_header(input.bypass_governance_retention);
    call.bucket(&input.bucket)?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for ObjectIdentifier { key, version_id, e_tag, last_modified_time, size } in objects {
        let (sequence, now) = (call.state.next_sequence(), call.now);
        let stays = call.disturbance.take() == Some(Disturbance::PartialDelete);
        let bucket = call.bucket(&input.bucket)?;
        let if_match = e_tag.map(ETagCondition::ETag);
        let conditions = DeleteConditions { if_match: if_match.as_ref(), modified: last_modified_time.as_ref(), size };
        let deletion = if stays {
            Err(refuse(S3ErrorCode::InternalError))
        } else {
            let found = bucket.object(&key, version_id.as_deref()).ok();
            conditions.check(found).and_then(|()| bucket.delete(&key, version_id.as_deref(), sequence, now, release))
        };
        match deletion {
            Ok(deletion) => deleted.push(deleted_entry(key, version_id, deletion)),
            Err(error) => errors.push(Error {
                code: Some(error.code().as_str().to_owned()),
                key: Some(key),
                message: error.message().map(str::to_owned),
                version_id,
            }),
        }
    }
    let quiet = input.delete.quiet == Some(true);
    Ok(DeleteObjectsOutput {
        deleted: Some(deleted).filter(|_| !quiet),
        errors: Some(errors).filter(|errors| !errors.is_empty()),
        ..DeleteObjectsOutput::default()
    })
}

fn deleted_entry(key: String, version_id: Option<String>, deletion: Deletion) -> DeletedObject {
    DeletedObject {
        delete_marker: deletion.delete_marker.then_some(true),
        delete_marker_version_id: deletion.version_id.filter(|_| deletion.delete_marker),
        key: Some(key),
        version_id,
    }
}

pub(super) fn get_tagging(call: &mut Call<'_>, input: GetObjectTaggingInput) -> S3Result<GetObjectTaggingOutput> {
    let bucket = call.bucket(&input.bucket)?;
    let (version, object) = bucket.object(&input.key, input.version_id.as_deref())?;
    Ok(GetObjectTaggingOutput { tag_set: tag_set(&object.tags), version_id: bucket.shown_id(version) })
}

pub(super) fn put_tagging(call: &mut Call<'_>, input: PutObjectTaggingInput) -> S3Result<PutObjectTaggingOutput> {
    let tags = convert::tags(input.tagging.tag_set, OBJECT_TAGS)?;
    let bucket = call.bucket(&input.bucket)?;
    let version_id = bucket.shown_id(bucket.version(&input.key, input.version_id.as_deref())?);
    bucket.object_mut(&input.key, input.version_id.as_deref())?.tags = tags;
    Ok(PutObjectTaggingOutput { version_id })
}

pub(super) fn delete_tagging(
    call: &mut Call<'_>,
    input: DeleteObjectTaggingInput,
) -> S3Result<DeleteObjectTaggingOutput> {
    let bucket = call.bucket(&input.bucket)?;
    let version_id = bucket.shown_id(bucket.version(&input.key, input.version_id.as_deref())?);
    bucket.object_mut(&input.key, input.version_id.as_deref())?.tags.clear();
    Ok(DeleteObjectTaggingOutput { version_id })
}
