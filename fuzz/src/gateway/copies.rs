//! Sources of copies. An input is the value of `x-amz-copy-source`.

use stowage_api::BucketName;
use stowage_gateway::head::CopySource;

use super::reading;
use crate::held::held;

/// Above the total size of a bucket name, a key and a version id.
const MOST_HELD: usize = 4096;

/// Bucket, key and version of a source.
type Named = (Vec<u8>, Vec<u8>, Option<Vec<u8>>);

/// Checks that a source is accepted exactly if it names an object, and that every parser reads the
/// name of that object in the header written for the store.
pub(crate) fn play(input: &[u8]) {
    let (source, bytes) = held(|| CopySource::parse(input).ok());
    assert!(bytes <= MOST_HELD, "{bytes} bytes are held");
    let named = source.as_ref().map(|source| {
        let (bucket, key) = (source.bucket.as_str(), source.key.as_str());
        (bucket.as_bytes().to_vec(), key.as_bytes().to_vec(), source.version.clone())
    });
    let expected = str::from_utf8(input).ok().and_then(|_| meant(input)).filter(can_be);
    assert_eq!(named, expected);
    let (Some(source), Some(named)) = (source, named) else { return };
    let written = source.header();
    assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written}");
    assert_eq!(CopySource::parse(written.as_bytes()).ok(), Some(source), "{written}");
    assert_eq!(meant(written.as_bytes()).as_ref(), Some(&named), "{written}");
    assert_eq!(split_first(written.as_bytes()), Some(named), "{written}");
}

/// Parses a source like a store that decodes before it splits at the slash.
fn meant(header: &[u8]) -> Option<Named> {
    let (path, query) = reading::split(header, b'?');
    let path = reading::unescaped(path)?;
    let (bucket, key) = reading::split(path.strip_prefix(b"/").unwrap_or(&path), b'/');
    Some((bucket.to_vec(), key?.to_vec(), version(query)?))
}

/// Parses a source like a store that splits at the slash before it decodes.
fn split_first(header: &[u8]) -> Option<Named> {
    let (path, query) = reading::split(header, b'?');
    let (bucket, key) = reading::split(path.strip_prefix(b"/").unwrap_or(path), b'/');
    Some((reading::unescaped(bucket)?, reading::unescaped(key?)?, version(query)?))
}

/// Returns the version, if there is a query, in which no other parameter is allowed.
fn version(query: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
    let Some(query) = query else { return Some(None) };
    let [(name, value)] = <[_; 1]>::try_from(reading::query(query)?).ok()?;
    (name == b"versionId").then_some(Some(value))
}

fn can_be((bucket, key, version): &Named) -> bool {
    let is_bucket = str::from_utf8(bucket).is_ok_and(|bucket| BucketName::parse(bucket).is_ok());
    let is_id = version.as_ref().is_none_or(|id| reading::is_id(id));
    is_bucket && reading::is_key(key) && !names_version(key.clone()) && is_id
}

/// True if a store that decodes the key again, once or more often, finds a version in it.
fn names_version(mut key: Vec<u8>) -> bool {
    // The number of percent signs limits how often it can be decoded.
    for _ in 0..=key.len() {
        let lower = key.to_ascii_lowercase();
        if lower.windows(11).any(|window| window == b"?versionid=") {
            return true;
        }
        let (mut decoded, mut rest) = (Vec::new(), key.as_slice());
        while let [first, behind @ ..] = rest {
            let digits = behind.get(..2).and_then(|two| str::from_utf8(two).ok());
            let digits = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
            match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
                Some(byte) if *first == b'%' => {
                    decoded.push(byte);
                    rest = &behind[2..];
                }
                _ => {
                    decoded.push(*first);
                    rest = behind;
                }
            }
        }
        key = decoded;
    }
    false
}
