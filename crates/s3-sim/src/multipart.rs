//! Multipart uploads.

use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Result};

use super::call::Call;
use super::conditions::{ReadConditions, check_write};
use super::convert::{self, attributes, etag, length, owner, to_wire};
use super::data::Data;
use super::errors::{invalid_argument, refuse, refuse_because};
use super::payload::Payload;
use super::state::{Object, Part as Stored, Upload, upload_id, upload_sequence};
use super::{locks, objects};

/// Returns an upload in a bucket to which the caller has access.
fn upload<'c>(call: &'c mut Call<'_>, bucket: &str, key: &str, id: &str) -> S3Result<&'c mut Upload> {
    let bucket = call.bucket(bucket)?;
    let place = upload_sequence(id).map(|sequence| (key.to_owned(), sequence));
    place.and_then(|place| bucket.uploads.get_mut(&place)).ok_or_else(|| refuse(S3ErrorCode::NoSuchUpload))
}

pub(super) fn create(
    call: &mut Call<'_>,
    mut input: CreateMultipartUploadInput,
) -> S3Result<CreateMultipartUploadOutput> {
    let asked = convert::protection(
        input.object_lock_mode.as_ref(),
        input.object_lock_retain_until_date.as_ref(),
        input.object_lock_legal_hold_status.as_ref(),
    )?;
    let tags = convert::tags_from_header(input.tagging.as_deref())?;
    let (sequence, now) = (call.state.next_sequence(), call.now);
    let bucket = call.bucket(&input.bucket)?;
    let protection = locks::protection_of_new(bucket, asked, now)?;
    let has_hold = input.object_lock_legal_hold_status.is_some();
    let template = Object { attributes: attributes!(input), tags, protection, has_hold, ..Object::default() };
    let upload = Upload { initiated: now, template, parts: Default::default() };
    bucket.uploads.insert((input.key.clone(), sequence), upload);
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload_id(sequence)),
        ..CreateMultipartUploadOutput::default()
    })
}

pub(super) fn upload_part(call: &mut Call<'_>, input: UploadPartInput, payload: Payload) -> S3Result<UploadPartOutput> {
    let place = Place { bucket: &input.bucket, key: &input.key, id: &input.upload_id, number: input.part_number };
    let Payload { data, etag: tag, checksum } = payload;
    store_part(call, &place, data, &tag)?;
    Ok(UploadPartOutput {
        e_tag: Some(etag(&tag)),
        checksum_crc32: checksum.checksum_crc32,
        checksum_crc32c: checksum.checksum_crc32c,
        checksum_crc64nvme: checksum.checksum_crc64nvme,
        checksum_sha1: checksum.checksum_sha1,
        checksum_sha256: checksum.checksum_sha256,
        ..UploadPartOutput::default()
    })
}

/// Target of a part.
struct Place<'a> {
    bucket: &'a str,
    key: &'a str,
    id: &'a str,
    number: i32,
}

fn store_part(call: &mut Call<'_>, place: &Place<'_>, data: Data, etag: &str) -> S3Result<()> {
    if !(1..=10_000).contains(&place.number) {
        return Err(invalid_argument("Part number must be an integer between 1 and 10000, inclusive"));
    }
    let now = call.now;
    let upload = upload(call, place.bucket, place.key, place.id)?;
    upload.parts.insert(place.number, Stored { data, etag: etag.to_owned(), modified: now });
    Ok(())
}

pub(super) fn copy_part(call: &mut Call<'_>, input: UploadPartCopyInput) -> S3Result<UploadPartCopyOutput> {
    let conditions = ReadConditions {
        if_match: input.copy_source_if_match.as_ref(),
        if_none_match: input.copy_source_if_none_match.as_ref(),
        if_modified_since: input.copy_source_if_modified_since.as_ref(),
        if_unmodified_since: input.copy_source_if_unmodified_since.as_ref(),
    };
    let source = objects::source(call, &input.copy_source, &conditions)?;
    let part = part_of(&source.object.data, input.copy_source_range.as_deref())?;
    let Payload { data, etag: tag, .. } = Payload::trusted(part)?;
    let place = Place { bucket: &input.bucket, key: &input.key, id: &input.upload_id, number: input.part_number };
    store_part(call, &place, data, &tag)?;
    let result =
        CopyPartResult { e_tag: Some(etag(&tag)), last_modified: Some(to_wire(call.now)), ..CopyPartResult::default() };
    Ok(UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: source.version_id,
        ..UploadPartCopyOutput::default()
    })
}

/// Returns a range of a source. Unlike in a read, a range beyond the end is rejected.
fn part_of(data: &Data, range: Option<&str>) -> S3Result<Data> {
    let Some(range) = range else { return Ok(data.clone()) };
    let invalid = || {
        invalid_argument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy",
        )
    };
    let parsed = Range::parse(range).map_err(|_| invalid())?;
    let Range::Int { first, last: Some(last) } = parsed else { return Err(invalid()) };
    let (first, last) = (usize::try_from(first), usize::try_from(last));
    let (Ok(first), Ok(last)) = (first, last) else { return Err(invalid()) };
    if last >= data.len() {
        let message = format!("Range specified is not valid for source object of size: {}", data.len());
        return Err(invalid_argument(message));
    }
    Ok(data.slice(first..last + 1))
}

pub(super) fn complete(
    call: &mut Call<'_>,
    input: CompleteMultipartUploadInput,
) -> S3Result<CompleteMultipartUploadOutput> {
    let least = call.dialect.minimum_part_size;
    let listed = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    let upload = upload(call, &input.bucket, &input.key, &input.upload_id)?;
    let (data, tag) = assemble(upload, &listed, least)?;
    if input.mpu_object_size.is_some_and(|size| size != length(data.len())) {
        let message = "The provided 'x-amz-mp-object-size' header does not match what was computed.";
        return Err(refuse_because(S3ErrorCode::InvalidRequest, message));
    }
    let object = Object { data, etag: tag.clone(), ..upload.template.clone() };
    let bucket = call.bucket(&input.bucket)?;
    let current = objects::current(bucket, &input.key);
    check_write(current, input.if_match.as_ref(), input.if_none_match.as_ref())?;
    bucket.uploads.retain(|(_, sequence), _| upload_id(*sequence) != input.upload_id);
    let version_id = objects::store(call, &input.bucket, &input.key, object)?;
    Ok(CompleteMultipartUploadOutput {
        e_tag: Some(etag(&tag)),
        location: Some(format!("/{}/{}", input.bucket, input.key)),
        bucket: Some(input.bucket),
        key: Some(input.key),
        version_id,
        ..CompleteMultipartUploadOutput::default()
    })
}

/// Combines the listed parts into the data and the entity tag of an object.
fn assemble(upload: &Upload, listed: &[CompletedPart], least: usize) -> S3Result<(Data, String)> {
    if listed.is_empty() {
        return Err(refuse(S3ErrorCode::MalformedXML));
    }
    let numbers: Vec<i32> = listed.iter().map(|part| part.part_number.unwrap_or_default()).collect();
    if !numbers.is_sorted_by(|left, right| left < right) {
        return Err(refuse(S3ErrorCode::InvalidPartOrder));
    }
    let mut parts = Vec::with_capacity(listed.len());
    for (number, completed) in numbers.iter().zip(listed) {
        let part = upload.parts.get(number);
        let same = |part: &&Stored| completed.e_tag.as_ref().is_none_or(|tag| tag.value() == part.etag);
        parts.push(part.filter(same).ok_or_else(|| refuse(S3ErrorCode::InvalidPart))?);
    }
    let all_but_last = &parts[..parts.len() - 1];
    if all_but_last.iter().any(|part| part.data.len() < least) {
        return Err(refuse(S3ErrorCode::EntityTooSmall));
    }
    let mut digest = Md5::new();
    for part in &parts {
        digest.update(&hex::decode(&part.etag).expect("the store made this tag by encoding a digest"));
    }
    let data = Data::joined(parts.iter().map(|part| &part.data));
    Ok((data, format!("{}-{}", hex::encode(digest.finalize()), parts.len())))
}

pub(super) fn abort(call: &mut Call<'_>, input: AbortMultipartUploadInput) -> S3Result<AbortMultipartUploadOutput> {
    upload(call, &input.bucket, &input.key, &input.upload_id)?;
    let bucket = call.bucket(&input.bucket)?;
    bucket.uploads.retain(|(_, sequence), _| upload_id(*sequence) != input.upload_id);
    Ok(AbortMultipartUploadOutput::default())
}

pub(super) fn parts(call: &mut Call<'_>, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    let account = owner(call.account);
    let page_size = call.dialect.page_size;
    let most = input.max_parts.unwrap_or(1000).min(1000);
    let limit = usize::try_from(most)
        .map_err(|_| invalid_argument("Argument max-parts must be an integer between 0 and 2147483647"))?;
    let after = input.part_number_marker.unwrap_or(0);
    let upload = upload(call, &input.bucket, &input.key, &input.upload_id)?;
    let mut rest = upload.parts.iter().filter(|(number, _)| **number > after);
    let page = rest.by_ref().take(limit.min(page_size));
    let entry = |(number, part): (&i32, &Stored)| Part {
        e_tag: Some(etag(&part.etag)),
        last_modified: Some(to_wire(part.modified)),
        part_number: Some(*number),
        size: Some(length(part.data.len())),
        ..Part::default()
    };
    let parts: Vec<Part> = page.map(entry).collect();
    let last = parts.last().and_then(|part| part.part_number);
    Ok(ListPartsOutput {
        bucket: Some(input.bucket),
        is_truncated: Some(limit > 0 && rest.next().is_some()),
        key: Some(input.key),
        max_parts: Some(most),
        next_part_number_marker: last,
        owner: Some(account),
        part_number_marker: input.part_number_marker,
        parts: Some(parts),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        upload_id: Some(input.upload_id),
        ..ListPartsOutput::default()
    })
}
