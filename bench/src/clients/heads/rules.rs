//! Rules for a request that a store receives on behalf of a sender, whatever the sender requested:
//! no name beyond the rights of its key, no version without a right to versions, and no header that
//! the operation doesn't have.
//!
//! This code is independent of the gateway's, except for the gateway's table of headers.

use std::collections::BTreeMap;

use stowage_gateway::head::{Operation as O, reaches_store};

use super::read::{Read, SOURCE, split, unescaped};
use super::xml::{self, Element};

/// Extent to which a key opens a bucket.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// True if only current objects may be read and listed.
    pub(super) is_read_only: bool,
    /// Prefix of its keys.
    pub(super) prefix: &'static str,
}

/// Buckets that a sender's key opens.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights {
    pub(super) buckets: BTreeMap<String, Grant>,
    /// True if the source of a copy has to be looked up before, and the copy pinned to the result.
    pub(super) pins: bool,
}

/// Checks a request against the rights of a key.
///
/// # Errors
/// Names the rule that it breaks.
pub(super) fn check(read: &Read, rights: &Rights) -> Result<(), String> {
    let grant = rights.grant(&read.bucket)?;
    if grant.is_read_only && !reads_present(read) {
        return Err(format!("{} of a bucket that is only read", read.operation.name()));
    }
    check_place(read, grant)?;
    if let Some(key) = read.key.as_ref().filter(|_| makes_version(read)) {
        check_segments(&String::from_utf8_lossy(key))?;
    }
    check_headers(read)?;
    check_body(read, grant)?;
    if matches!(read.operation, O::CopyObject | O::UploadPartCopy) {
        check_source(read, rights)?;
    }
    Ok(())
}

impl Rights {
    fn grant(&self, bucket: &str) -> Result<&Grant, String> {
        self.buckets.get(bucket).ok_or_else(|| format!("bucket {bucket:?}, which the key doesn't open"))
    }
}

/// True if the operation reads current objects or lists them.
fn reads_present(read: &Read) -> bool {
    let reads = matches!(
        read.operation,
        O::GetBucketVersioning
            | O::GetObject
            | O::GetObjectAttributes
            | O::GetObjectTagging
            | O::HeadBucket
            | O::HeadObject
            | O::ListObjects
            | O::ListObjectsV2
    );
    reads && read.parameter("versionId").is_none()
}

/// True if the operation creates an object version, or turns the current version into a noncurrent
/// one.
fn makes_version(read: &Read) -> bool {
    match read.operation {
        O::CompleteMultipartUpload | O::CopyObject | O::CreateMultipartUpload | O::PutObject => true,
        O::DeleteObject => read.parameter("versionId").is_none(),
        _ => false,
    }
}

/// Checks that no segment is empty: versitygw hides the versions of such a key, and all buckets
/// here have versioning.
fn check_segments(key: &str) -> Result<(), String> {
    if key.starts_with('/') || key.contains("//") {
        return Err(format!("the key {key:?}, with an empty segment"));
    }
    Ok(())
}

/// Parameters that determine the start of a list.
const PLACES: [&str; 5] = ["continuation-token", "key-marker", "marker", "prefix", "start-after"];

fn check_place(read: &Read, grant: &Grant) -> Result<(), String> {
    if let Some(key) = &read.key {
        check_key(key, grant)?;
    }
    let lists =
        matches!(read.operation, O::ListMultipartUploads | O::ListObjectVersions | O::ListObjects | O::ListObjectsV2);
    let prefix = read.parameter("prefix").unwrap_or_default();
    if lists && !prefix.starts_with(grant.prefix.as_bytes()) {
        return Err(format!("a list of {:?}, beyond {:?}", String::from_utf8_lossy(prefix), grant.prefix));
    }
    for value in PLACES.iter().filter_map(|name| read.parameter(name)) {
        let text = String::from_utf8_lossy(value);
        // The last segment may be incomplete.
        let (folders, last) = text.rsplit_once('/').unwrap_or(("", &*text));
        if last == ".." || has_ways(folders) || is_reserved(&format!("{folders}/-")) {
            return Err(format!("a list from {text:?}"));
        }
    }
    for id in ["versionId", "uploadId"].iter().filter_map(|name| read.parameter(name)) {
        check_id(id)?;
    }
    Ok(())
}

/// True if a segment is `.` or `..`.
fn has_ways(path: &str) -> bool {
    path.split('/').any(|segment| segment == "." || segment == "..")
}

/// True if a segment is reserved by a store: versitygw, MinIO, and SeaweedFS with two names.
fn is_reserved(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let names = [".sgwtmp", ".minio.sys", ".uploads"];
    key.split('/').any(|segment| names.contains(&segment)) || key.contains(".versions/")
}

fn check_key(key: &[u8], grant: &Grant) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(key) else { return Err("a key that is not UTF-8".to_owned()) };
    let wrong = if !text.starts_with(grant.prefix) {
        "beyond what the key opens"
    } else if has_ways(text) {
        "with a way through folders"
    } else if text.bytes().all(|byte| byte == b'/') {
        "of slashes alone"
    } else if is_reserved(text) {
        "with a name that stores keep"
    } else if text.len() > 1024 {
        "that is too long"
    } else if text.contains(|c: char| c < ' ' && !"\t\n\r".contains(c) || matches!(c, '\u{fffe}' | '\u{ffff}')) {
        "with a character that no list can have"
    } else {
        return Ok(());
    };
    Err(format!("the key {text:?}, {wrong}"))
}

/// Checks an id that a store may use in a file path.
fn check_id(id: &[u8]) -> Result<(), String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+=-".contains(byte);
    if !id.is_empty() && id.iter().all(is_plain) && id != b"." && id != b".." {
        return Ok(());
    }
    Err(format!("the id {:?}", String::from_utf8_lossy(id)))
}

/// True for operations with a document.
fn has_document(operation: O) -> bool {
    matches!(operation, O::CompleteMultipartUpload | O::DeleteObjects | O::PutObjectTagging)
}

/// True for headers that the gateway sets: those of its signature, the body's length, and those
/// that it generates from parsed values.
fn is_own(read: &Read, name: &str) -> bool {
    let stores = matches!(read.operation, O::PutObject | O::UploadPart);
    match name {
        "authorization" | "host" | "x-amz-content-sha256" | "x-amz-date" => true,
        "content-length" => stores || has_document(read.operation),
        "content-md5" => has_document(read.operation),
        "content-type" => {
            has_document(read.operation) && read.values(name).iter().all(|value| *value == b"application/xml")
        }
        "x-amz-decoded-content-length" | "x-amz-trailer" => stores,
        "x-amz-copy-source-if-match" | SOURCE => matches!(read.operation, O::CopyObject | O::UploadPartCopy),
        _ => false,
    }
}

fn check_headers(read: &Read) -> Result<(), String> {
    for (name, value) in &read.headers {
        let is_empty_length = name == "content-length" && value == b"0";
        if !is_own(read, name) && !is_empty_length && !reaches_store(read.operation, name) {
            return Err(format!("the header {name} with {}", read.operation.name()));
        }
        let is_list =
            name.starts_with("x-amz-meta-") || matches!(name.as_str(), "cache-control" | "if-match" | "if-none-match");
        if !is_list && read.values(name).len() > 1 {
            return Err(format!("the header {name} twice"));
        }
        let text = String::from_utf8_lossy(value).to_ascii_lowercase();
        if name == "content-encoding" && text.contains("aws-chunked") {
            return Err("the framing as an encoding".to_owned());
        }
    }
    Ok(())
}

fn check_body(read: &Read, grant: &Grant) -> Result<(), String> {
    match read.operation {
        O::DeleteObjects => check_deletion(&document(read, "Delete")?, grant),
        O::CompleteMultipartUpload => {
            let root = document(read, "CompleteMultipartUpload")?;
            check_fields(&root, &["Part"])?;
            root.children.iter().try_for_each(check_checksums)
        }
        O::PutObjectTagging => {
            let root = document(read, "Tagging")?;
            check_fields(&root, &["TagSet"])?;
            for set in &root.children {
                check_fields(set, &["Tag"])?;
                set.children.iter().try_for_each(|tag| check_once(tag, &["Key", "Value"]))?;
            }
            Ok(())
        }
        O::PutObject | O::UploadPart => Ok(()),
        _ if read.body.is_empty() => Ok(()),
        operation => Err(format!("a body with {}", operation.name())),
    }
}

/// Parses the document of a request, which must not contain sections, comments or a document type.
fn document(read: &Read, root: &str) -> Result<Element, String> {
    if read.body.windows(2).any(|two| two == b"<!") {
        return Err("a section, comment or document type".to_owned());
    }
    let found = xml::read(&read.body)?;
    if found.name == root { Ok(found) } else { Err(format!("a document <{}>", found.name)) }
}

/// Checks that an element has only children with these names.
fn check_fields(element: &Element, names: &[&str]) -> Result<(), String> {
    let strange = element.children.iter().find(|child| !names.contains(&child.name.as_str()));
    strange.map_or(Ok(()), |child| Err(format!("<{}> in <{}>", child.name, element.name)))
}

/// Checks that an element has only children with these names, each at most once and without
/// children.
fn check_once(element: &Element, names: &[&str]) -> Result<(), String> {
    check_fields(element, names)?;
    for child in &element.children {
        if element.all(&child.name).count() > 1 || !child.children.is_empty() {
            return Err(format!("<{}> twice, or not a text, in <{}>", child.name, element.name));
        }
    }
    Ok(())
}

fn check_checksums(part: &Element) -> Result<(), String> {
    let names: Vec<&str> = part.children.iter().map(|child| child.name.as_str()).collect();
    let known: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("Checksum")).collect();
    check_once(part, &[&["PartNumber", "ETag"][..], &known].concat())
}

fn check_deletion(root: &Element, grant: &Grant) -> Result<(), String> {
    check_fields(root, &["Object", "Quiet"])?;
    let count = root.all("Object").count();
    if !(1..=1000).contains(&count) {
        return Err(format!("{count} objects"));
    }
    for object in root.all("Object") {
        check_once(object, &["Key", "VersionId", "ETag", "LastModifiedTime", "Size"])?;
        let key = object.all("Key").next().ok_or("an object without a key")?;
        check_key(key.text.as_bytes(), grant)?;
        object.all("VersionId").try_for_each(|id| check_id(id.text.as_bytes()))?;
        if object.all("VersionId").next().is_none() {
            check_segments(&key.text)?;
        }
    }
    Ok(())
}

/// Bucket, key and version of a source.
#[derive(Debug, PartialEq)]
struct Source {
    bucket: Vec<u8>,
    key: Vec<u8>,
    version: Option<Vec<u8>>,
}

fn check_source(read: &Read, rights: &Rights) -> Result<(), String> {
    let [header] = read.values(SOURCE)[..] else { return Err("a copy without its one source".to_owned()) };
    let told = String::from_utf8_lossy(header).into_owned();
    let readings = [as_written(header), decoded_before(header)];
    let [Some(source), Some(other)] = readings else { return Err(format!("the source {told:?}")) };
    if source != other {
        return Err(format!("the source {told:?}, which is read as {source:?} and as {other:?}"));
    }
    let bucket = String::from_utf8_lossy(&source.bucket);
    let grant = rights.grant(&bucket).map_err(|why| format!("a source in {why}"))?;
    check_key(&source.key, grant).map_err(|why| format!("as a source {why}"))?;
    if let Some(id) = &source.version {
        check_id(id)?;
        if grant.is_read_only {
            return Err(format!("the version {:?} of a source that is only read", String::from_utf8_lossy(id)));
        }
    }
    check_pin(read, rights)
}

/// Checks that a copy is pinned to the source that was looked up, and that only the copy of a part
/// has a range.
fn check_pin(read: &Read, rights: &Rights) -> Result<(), String> {
    let pins = read.values("x-amz-copy-source-if-match");
    let is_tag = |value: &&[u8]| !value.is_empty() && *value != b"*" && !value.contains(&b',');
    if rights.pins && !matches!(pins[..], [pin] if is_tag(&pin)) {
        return Err("a source that is not pinned".to_owned());
    }
    let is_range = |value: &&[u8]| {
        let text = String::from_utf8_lossy(value);
        let numbers = text.strip_prefix("bytes=").and_then(|text| text.split_once('-'));
        numbers.is_some_and(
            |(first, last)| matches!((first.parse::<u64>(), last.parse::<u64>()), (Ok(a), Ok(b)) if a <= b),
        )
    };
    match read.values("x-amz-copy-source-range").iter().find(|range| !is_range(range)) {
        Some(range) => Err(format!("the range {:?} of a source", String::from_utf8_lossy(range))),
        None => Ok(()),
    }
}

/// Parses a source like a store that splits off the query before it decodes.
fn as_written(header: &[u8]) -> Option<Source> {
    let (path, query) = cut(header, b"?");
    let (bucket, key) = split(path.strip_prefix(b"/").unwrap_or(path));
    let version = query.map(|query| unescaped(query.strip_prefix(b"versionId=")?));
    let version = match version {
        None => None,
        Some(version) => Some(version?),
    };
    Some(Source { bucket: unescaped(bucket)?, key: unescaped(key?)?, version })
}

/// Parses a source like a store that decodes everything first (versitygw).
fn decoded_before(header: &[u8]) -> Option<Source> {
    let header = unescaped(header)?;
    let (path, version) = cut(&header, b"?versionId=");
    let (bucket, key) = split(path.strip_prefix(b"/").unwrap_or(path));
    Some(Source { bucket: bucket.to_vec(), key: key?.to_vec(), version: version.map(<[u8]>::to_vec) })
}

/// Splits a text at the first occurrence of a mark.
fn cut<'a>(text: &'a [u8], mark: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match text.windows(mark.len()).position(|window| window == mark) {
        Some(at) => (&text[..at], Some(&text[at + mark.len()..])),
        None => (text, None),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
