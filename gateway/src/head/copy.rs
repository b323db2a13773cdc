//! The source of a copy: parsed once, and written again for the store.

use http::HeaderMap;
use stowage_api::BucketName;

use super::headers::kept;
use super::operation::{Operation, is_id};
use super::target::{Key, Target};
use crate::refusal::{Code, Refusal};
use crate::uri;

/// The source of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The bucket.
    pub bucket: BucketName,
    /// The object's key.
    pub key: Key,
    /// The version id, if not the present version.
    pub version: Option<Vec<u8>>,
}

impl CopySource {
    /// Parses `x-amz-copy-source`: `bucket/key`, percent-encoded, with or without a leading slash
    /// and a trailing `?versionId=…` (Amazon S3, CopyObject).
    ///
    /// # Errors
    /// `InvalidArgument` if it is malformed, and for a key in which a store could find a version
    /// id; `NotImplemented` for an access point; those of [`Target::of`].
    pub fn parse(header: &[u8]) -> Result<Self, Refusal> {
        let refuse =
            || Refusal::new(Code::InvalidArgument, "Copy Source must mention the source bucket and key: /bucket/key");
        let text = std::str::from_utf8(header).map_err(|_| refuse())?;
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        let path = uri::decode_path(path)?;
        if path.starts_with(b"arn:") {
            return Err(Refusal::new(Code::NotImplemented, "Copies from access points are not implemented."));
        }
        let path = if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() };
        let Target::Object(bucket, key) = Target::of(&path, None)? else { return Err(refuse()) };
        if names_version(key.as_str().as_bytes()) {
            let message = "A key with ?versionId= in it can't be the source of a copy.";
            return Err(Refusal::new(Code::InvalidArgument, message).with("ArgumentName", "x-amz-copy-source"));
        }
        let version = query.map(version).transpose()?;
        Ok(Self { bucket, key, version })
    }

    /// Returns the header for the store.
    #[must_use]
    pub fn header(&self) -> String {
        let path = format!("/{}/{}", self.bucket, uri::encode_path(self.key.as_str().as_bytes()));
        match &self.version {
            Some(version) => format!("{path}?versionId={}", uri::encode(version)),
            None => path,
        }
    }
}

/// Maximum size of a tag in bytes: 128 characters of its key and 256 of its value, in UTF-8 (Amazon
/// S3, "Categorizing your storage using tags").
const MOST_OF_TAG: u64 = 4 * (128 + 256);

/// Returns the number of bytes that a copy takes over from its source besides the content, by the
/// headers of the request and of a HEAD of the source. Each tag counts with its maximum size, as a
/// HEAD only returns their number.
#[must_use]
pub fn taken_over(operation: Operation, request: &HeaderMap, source: &HeaderMap) -> u64 {
    if operation != Operation::CopyObject {
        return 0;
    }
    let takes_over = |directive: &str| request.get(directive).is_none_or(|directive| directive == "COPY");
    let metadata = if takes_over("x-amz-metadata-directive") { kept(operation, source) } else { 0 };
    let count = source.get("x-amz-tagging-count").and_then(|count| count.to_str().ok()?.parse::<u64>().ok());
    let count = count.filter(|_| takes_over("x-amz-tagging-directive"));
    metadata.saturating_add(count.unwrap_or(0).saturating_mul(MOST_OF_TAG))
}

/// Returns true if a key contains `?versionId=`, plain or encoded any number of times.
///
/// Some stores decode the whole header before they look for it (versitygw 1.8.0,
/// `ParseCopySource`). The key would then name a past version, which the mode of an access doesn't
/// allow.
fn names_version(key: &[u8]) -> bool {
    const MARK: &[u8] = b"?versionid=";
    let mut key = key.to_ascii_lowercase();
    loop {
        if memchr::memmem::find(&key, MARK).is_some() {
            return true;
        }
        // Each round with something to decode shortens the key by at least two bytes.
        let decoded: Vec<u8> = percent_encoding::percent_decode(&key).collect();
        if decoded.len() == key.len() {
            return false;
        }
        key = decoded.to_ascii_lowercase();
    }
}

fn version(query: &str) -> Result<Vec<u8>, Refusal> {
    match uri::parse_query(query)?.as_slice() {
        [pair] if pair.name == b"versionId" && is_id(&pair.value) => Ok(pair.value.clone()),
        _ => Err(Refusal::new(Code::InvalidArgument, "The source of a copy takes no parameter but versionId.")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sent(header: &str) -> Result<String, Code> {
        CopySource::parse(header.as_bytes()).map(|source| source.header()).map_err(|refusal| refusal.code)
    }

    #[rstest]
    #[case("photos/a", "/photos/a")]
    #[case("/photos/a%20b", "/photos/a%20b")]
    #[case("photos%2Fa+b", "/photos/a%2Bb")]
    #[case("/photos//a//b", "/photos//a//b")]
    #[case("/photos/a%3Fb?versionId=x%2By", "/photos/a%3Fb?versionId=x%2By")]
    #[case("/photos/\u{e4}", "/photos/%C3%A4")]
    fn a_source_is_written_anew(#[case] header: &str, #[case] expected: &str) {
        assert_eq!(sent(header).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case("photos", Code::InvalidArgument)]
    #[case("/photos/", Code::InvalidArgument)]
    #[case("", Code::InvalidArgument)]
    #[case("//photos/a", Code::InvalidBucketName)]
    #[case("photos/../other/a", Code::InvalidArgument)]
    #[case("photos/a?versionId=", Code::InvalidArgument)]
    #[case("photos/a?versionId=1&versionId=2", Code::InvalidArgument)]
    #[case("photos/a?acl", Code::InvalidArgument)]
    #[case("photos/a%", Code::InvalidURI)]
    #[case("arn:aws:s3:us-east-1:1:accesspoint/x/object/a", Code::NotImplemented)]
    #[case("arn%3Aaws:s3:::photos/a", Code::NotImplemented)]
    #[case("/photos/a%3FversionId%3DV1", Code::InvalidArgument)]
    #[case("photos/a%3FversionId=V1", Code::InvalidArgument)]
    #[case("photos/a%3fversionid%3dV1", Code::InvalidArgument)]
    #[case("photos/a%253FversionId%253DV1", Code::InvalidArgument)]
    #[case("photos/a%25253FversionId%3DV1", Code::InvalidArgument)]
    #[case("photos/a%3F%76ersionId%3DV1", Code::InvalidArgument)]
    #[case("photos/a%3FversionId=V1?versionId=V2", Code::InvalidArgument)]
    fn what_is_no_source_is_refused(#[case] header: &str, #[case] code: Code) {
        assert_eq!(sent(header), Err(code));
    }
}
