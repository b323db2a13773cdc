//! Listings of objects, versions and unfinished uploads, in pages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use s3s::S3Result;
use s3s::dto::*;

use super::call::Call;
use super::convert::{etag, length, owner, to_wire};
use super::errors::invalid_argument;
use super::listing::{Last, Window, url_encode};
use super::state::{Bucket, Object as Stored, Version, upload_id, upload_sequence, version_sequence};

/// Returns the maximum number of entries requested by the client, as returned in MaxKeys, and the
/// actual limit.
fn limits(asked: Option<i32>, name: &str, page_size: usize) -> S3Result<(i32, usize)> {
    let most = asked.unwrap_or(1000).min(1000);
    let limit = usize::try_from(most)
        .map_err(|_| invalid_argument(format!("Argument {name} must be an integer between 0 and 2147483647")))?;
    Ok((most, limit.min(page_size)))
}

/// Writes keys in the requested encoding: unchanged or URL-encoded.
struct Encoding<'a>(Option<&'a EncodingType>);

impl Encoding<'_> {
    fn key(&self, key: &str) -> String {
        match self.0.map(EncodingType::as_str) {
            Some(EncodingType::URL) => url_encode(key),
            _ => key.to_owned(),
        }
    }

    fn optional(&self, key: Option<&String>) -> Option<String> {
        key.map(|key| self.key(key))
    }

    fn prefixes(&self, prefixes: &[String]) -> Option<Vec<CommonPrefix>> {
        let entry = |prefix: &String| CommonPrefix { prefix: Some(self.key(prefix)) };
        (!prefixes.is_empty()).then(|| prefixes.iter().map(entry).collect())
    }
}

/// Iterates over the keys after the marker whose newest version is an object.
fn live<'b>(
    bucket: &'b Bucket,
    marker: &'b str,
) -> impl Iterator<Item = (&'b str, (&'b str, &'b Version, &'b Stored))> {
    let after = bucket.keys.iter().filter(move |(key, _)| key.as_str() > marker);
    after.filter_map(|(key, versions)| {
        let version = versions.last()?;
        Some((key.as_str(), (key.as_str(), version, version.object()?)))
    })
}

fn object_entry(key: String, version: &Version, object: &Stored, owner: Option<Owner>) -> Object {
    Object {
        e_tag: Some(etag(&object.etag)),
        key: Some(key),
        last_modified: Some(to_wire(version.modified)),
        owner,
        size: Some(length(object.data.len())),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Object::default()
    }
}

pub(super) fn objects(call: &mut Call<'_>, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let (max_keys, limit) = limits(input.max_keys, "max-keys", call.dialect.page_size)?;
    let account = owner(call.account);
    let bucket = call.bucket(&input.bucket)?;
    let marker = input.marker.as_deref().unwrap_or_default();
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let window = Window { prefix, delimiter: input.delimiter.as_deref(), marker, limit };
    let page = window.page(live(bucket, marker));
    let encoding = Encoding(input.encoding_type.as_ref());
    let entries = page.items.into_iter();
    let entries =
        entries.map(|(key, version, object)| object_entry(encoding.key(key), version, object, Some(account.clone())));
    let is_truncated = page.next.is_some();
    // Without a delimiter, clients continue from the last key themselves.
    let next_marker = page.next.filter(|_| input.delimiter.is_some()).map(Last::into_marker);
    Ok(ListObjectsOutput {
        contents: Some(entries.collect()),
        common_prefixes: encoding.prefixes(&page.prefixes),
        delimiter: encoding.optional(input.delimiter.as_ref()),
        is_truncated: Some(is_truncated),
        marker: Some(encoding.key(marker)),
        max_keys: Some(max_keys),
        next_marker: encoding.optional(next_marker.as_ref()),
        prefix: Some(encoding.key(prefix)),
        encoding_type: input.encoding_type.clone(),
        name: Some(input.bucket),
        ..ListObjectsOutput::default()
    })
}

pub(super) fn objects_v2(call: &mut Call<'_>, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    let (max_keys, limit) = limits(input.max_keys, "max-keys", call.dialect.page_size)?;
    let account = owner(call.account);
    let bucket = call.bucket(&input.bucket)?;
    let token = input.continuation_token.as_deref().map(decode_token).transpose()?;
    let marker = token.or_else(|| input.start_after.clone()).unwrap_or_default();
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let window = Window { prefix, delimiter: input.delimiter.as_deref(), marker: &marker, limit };
    let page = window.page(live(bucket, &marker));
    let encoding = Encoding(input.encoding_type.as_ref());
    let with_owner = input.fetch_owner == Some(true);
    let entries = page.items.into_iter().map(|(key, version, object)| {
        object_entry(encoding.key(key), version, object, with_owner.then(|| account.clone()))
    });
    let contents: Vec<Object> = entries.collect();
    let count = contents.len() + page.prefixes.len();
    Ok(ListObjectsV2Output {
        contents: Some(contents),
        common_prefixes: encoding.prefixes(&page.prefixes),
        continuation_token: input.continuation_token,
        delimiter: encoding.optional(input.delimiter.as_ref()),
        is_truncated: Some(page.next.is_some()),
        key_count: i32::try_from(count).ok(),
        max_keys: Some(max_keys),
        next_continuation_token: page.next.map(|last| encode_token(&last.into_marker())),
        prefix: Some(encoding.key(prefix)),
        start_after: encoding.optional(input.start_after.as_ref()),
        encoding_type: input.encoding_type.clone(),
        name: Some(input.bucket),
        ..ListObjectsV2Output::default()
    })
}

/// Encodes a continuation token. The token is opaque: a client that passes a key instead fails.
fn encode_token(marker: &str) -> String {
    URL_SAFE_NO_PAD.encode(marker)
}

fn decode_token(token: &str) -> S3Result<String> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| invalid_argument("The continuation token provided is incorrect"))
}

/// A version in a listing.
struct Listed<'b> {
    key: &'b str,
    version: &'b Version,
    is_latest: bool,
}

/// Iterates over all versions after the markers: by key, and within a key the newest first.
///
/// A marker may name a version that has been deleted since, for instance by a client that deletes
/// page by page. The version id still determines the position. This does not apply to a deleted
/// `null` version: all versions of its key are listed then, which may repeat some but omits none.
fn versions_after<'b>(
    bucket: &'b Bucket,
    key_marker: &'b str,
    version_marker: Option<&'b str>,
) -> impl Iterator<Item = (&'b str, Listed<'b>)> {
    let below = version_marker.map(|id| {
        let versions = bucket.keys.get(key_marker).into_iter().flatten();
        let mut found = versions.filter(|version| version.id() == id).map(|version| version.sequence);
        found.next().or_else(|| version_sequence(id)).unwrap_or(u64::MAX)
    });
    bucket.keys.iter().filter(move |(key, _)| key.as_str() >= key_marker).flat_map(move |(key, versions)| {
        let newest = versions.len().saturating_sub(1);
        let newest_first = versions.iter().enumerate().rev();
        newest_first.filter_map(move |(index, version)| {
            let shown = key.as_str() > key_marker || below.is_some_and(|below| version.sequence < below);
            let listed = Listed { key, version, is_latest: index == newest };
            shown.then_some((key.as_str(), listed))
        })
    })
}

pub(super) fn versions(call: &mut Call<'_>, input: ListObjectVersionsInput) -> S3Result<ListObjectVersionsOutput> {
    let (max_keys, limit) = limits(input.max_keys, "max-keys", call.dialect.page_size)?;
    let version_marker = input.version_id_marker.as_deref();
    match (input.key_marker.as_deref(), version_marker) {
        (_, Some("")) => return Err(invalid_argument("A version-id marker cannot be empty.")),
        (None | Some(""), Some(_)) => {
            let message = "A version-id marker cannot be specified without a key marker.";
            return Err(invalid_argument(message));
        }
        _ => {}
    }
    let account = owner(call.account);
    let bucket = call.bucket(&input.bucket)?;
    let key_marker = input.key_marker.as_deref().unwrap_or_default();
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let window = Window { prefix, delimiter: input.delimiter.as_deref(), marker: key_marker, limit };
    let page = window.page(versions_after(bucket, key_marker, version_marker));
    let encoding = Encoding(input.encoding_type.as_ref());
    let next_version = match &page.next {
        Some(Last::Item(_)) => page.items.last().map(|listed| listed.version.id()),
        Some(Last::Prefix(_)) | None => None,
    };
    let is_truncated = page.next.is_some();
    let next_key = page.next.map(Last::into_marker);
    let (versions, delete_markers) = split_versions(&page.items, &encoding, &account);
    Ok(ListObjectVersionsOutput {
        common_prefixes: encoding.prefixes(&page.prefixes),
        delete_markers: Some(delete_markers),
        delimiter: encoding.optional(input.delimiter.as_ref()),
        is_truncated: Some(is_truncated),
        key_marker: Some(encoding.key(key_marker)),
        max_keys: Some(max_keys),
        next_key_marker: encoding.optional(next_key.as_ref()),
        next_version_id_marker: next_version,
        prefix: Some(encoding.key(prefix)),
        version_id_marker: input.version_id_marker.clone(),
        versions: Some(versions),
        encoding_type: input.encoding_type.clone(),
        name: Some(input.bucket),
        ..ListObjectVersionsOutput::default()
    })
}

fn split_versions(
    items: &[Listed<'_>],
    encoding: &Encoding<'_>,
    account: &Owner,
) -> (Vec<ObjectVersion>, Vec<DeleteMarkerEntry>) {
    let (mut versions, mut markers) = (Vec::new(), Vec::new());
    for Listed { key, version, is_latest } in items {
        let key = Some(encoding.key(key));
        let last_modified = Some(to_wire(version.modified));
        let (is_latest, version_id, owner) = (Some(*is_latest), Some(version.id()), Some(account.clone()));
        match version.object() {
            Some(object) => versions.push(ObjectVersion {
                e_tag: Some(etag(&object.etag)),
                is_latest,
                key,
                last_modified,
                owner,
                size: Some(length(object.data.len())),
                storage_class: Some(ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD)),
                version_id,
                ..ObjectVersion::default()
            }),
            None => markers.push(DeleteMarkerEntry { is_latest, key, last_modified, owner, version_id }),
        }
    }
    (versions, markers)
}

pub(super) fn uploads(call: &mut Call<'_>, input: ListMultipartUploadsInput) -> S3Result<ListMultipartUploadsOutput> {
    let (max_uploads, limit) = limits(input.max_uploads, "max-uploads", call.dialect.page_size)?;
    let account = owner(call.account);
    let bucket = call.bucket(&input.bucket)?;
    let key_marker = input.key_marker.as_deref().unwrap_or_default();
    // Without a key marker the upload id marker is ignored, as documented.
    let id_marker = input.upload_id_marker.as_deref().filter(|_| !key_marker.is_empty());
    let above = id_marker.and_then(upload_sequence);
    let after = bucket.uploads.iter().filter(|((key, sequence), _)| {
        key.as_str() > key_marker || (key == key_marker && above.is_some_and(|above| *sequence > above))
    });
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let window = Window { prefix, delimiter: input.delimiter.as_deref(), marker: key_marker, limit };
    let page = window.page(after.map(|((key, sequence), upload)| (key.as_str(), (key, *sequence, upload))));
    let encoding = Encoding(input.encoding_type.as_ref());
    let next_id = match &page.next {
        Some(Last::Item(_)) => page.items.last().map(|(_, sequence, _)| upload_id(*sequence)),
        Some(Last::Prefix(_)) | None => None,
    };
    let is_truncated = page.next.is_some();
    let next_key = page.next.map(Last::into_marker);
    let entries = page.items.into_iter().map(|(key, sequence, upload)| MultipartUpload {
        initiated: Some(to_wire(upload.initiated)),
        key: Some(encoding.key(key)),
        owner: Some(account.clone()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        upload_id: Some(upload_id(sequence)),
        ..MultipartUpload::default()
    });
    Ok(ListMultipartUploadsOutput {
        uploads: Some(entries.collect()),
        common_prefixes: encoding.prefixes(&page.prefixes),
        delimiter: encoding.optional(input.delimiter.as_ref()),
        is_truncated: Some(is_truncated),
        key_marker: Some(encoding.key(key_marker)),
        max_uploads: Some(max_uploads),
        next_key_marker: encoding.optional(next_key.as_ref()),
        next_upload_id_marker: next_id,
        prefix: Some(encoding.key(prefix)),
        upload_id_marker: input.upload_id_marker.clone(),
        encoding_type: input.encoding_type.clone(),
        bucket: Some(input.bucket),
        ..ListMultipartUploadsOutput::default()
    })
}
