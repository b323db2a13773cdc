//! The bucket and key of a request, from its host and path.

use http::HeaderMap;
use http::header::HOST;
use stowage_api::BucketName;

use super::operation::Level;
use super::reserved;
use crate::refusal::{Code, Refusal};
use crate::uri;
use crate::xml::is_carried;

/// Maximum length of a key in bytes (Amazon S3, "Object key naming guidelines").
const LONGEST_KEY: usize = 1024;

/// An object's key. Excludes keys of slashes alone and keys with segments that a store might
/// resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Parses a key sent by a client.
    ///
    /// # Errors
    /// Returns the errors of [`Key::held`]; `InvalidArgument` if a segment is a name that stores
    /// reserve, and for a character that XML 1.0 can't carry, because lists would show a different
    /// key.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let key = Self::held(bytes)?;
        if !key.as_str().chars().all(is_carried) {
            let message = "The key has a character that XML 1.0 can't carry: no list could name it.";
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        match reserved::find(key.as_str()) {
            None => Ok(key),
            Some(name) => {
                let message = format!("Stores keep names like {name} for themselves: no key may have one.");
                Err(Refusal::new(Code::InvalidArgument, message))
            }
        }
    }

    /// Parses a key of something that exists in a store. Reserved names are allowed.
    ///
    /// # Errors
    /// `KeyTooLongError` beyond 1,024 bytes; `InvalidURI` if it is not UTF-8; `InvalidArgument` if
    /// a segment is `.` or `..`, which stores and their proxies may resolve as paths, or if the key
    /// consists of slashes alone, which some strip from the end of a path: a request for the object
    /// then becomes one for its bucket.
    pub fn held(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > LONGEST_KEY {
            return Err(Refusal::new(Code::KeyTooLongError, "Your key is too long: it has more than 1024 bytes."));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(Refusal::new(Code::InvalidURI, "The key is not UTF-8."));
        };
        if text.split('/').any(|segment| segment == "." || segment == "..") {
            return Err(Refusal::new(Code::InvalidArgument, "A segment of the key is . or .., which can't be stored."));
        }
        if text.bytes().all(|byte| byte == b'/') {
            let message = "A key of slashes alone can't be told from its bucket.";
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The subject of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The account: all buckets of the caller.
    Service,
    /// A bucket.
    Bucket(BucketName),
    /// An object.
    Object(BucketName, Key),
}

impl Target {
    /// Returns the target of a decoded path. `bucket_of_host` is the bucket named by the host, if
    /// any.
    ///
    /// # Errors
    /// Returns the errors of [`Key::parse`]; `InvalidBucketName` for an invalid bucket name;
    /// `InvalidURI` for a path that doesn't begin with a slash.
    pub fn of(path: &[u8], bucket_of_host: Option<&str>) -> Result<Self, Refusal> {
        let Some(path) = path.strip_prefix(b"/") else {
            return Err(Refusal::new(Code::InvalidURI, "The path doesn't begin with a slash."));
        };
        let (bucket, key) = match bucket_of_host {
            Some(bucket) => (bucket.as_bytes(), path),
            None if path.is_empty() => return Ok(Self::Service),
            None => match memchr::memchr(b'/', path) {
                Some(slash) => (&path[..slash], &path[slash + 1..]),
                None => (path, &[][..]),
            },
        };
        let bucket = bucket_name(bucket)?;
        if key.is_empty() { Ok(Self::Bucket(bucket)) } else { Ok(Self::Object(bucket, Key::parse(key)?)) }
    }

    /// Returns the bucket, if one is named.
    #[must_use]
    pub fn bucket(&self) -> Option<&BucketName> {
        match self {
            Self::Service => None,
            Self::Bucket(bucket) | Self::Object(bucket, _) => Some(bucket),
        }
    }

    /// Returns the key, if one is named.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Object(_, key) => Some(key),
            Self::Service | Self::Bucket(_) => None,
        }
    }

    /// Returns the level of the target.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Service => Level::Service,
            Self::Bucket(_) => Level::Bucket,
            Self::Object(..) => Level::Object,
        }
    }
}

fn bucket_name(bytes: &[u8]) -> Result<BucketName, Refusal> {
    let name = std::str::from_utf8(bytes).ok().and_then(|text| BucketName::parse(text).ok());
    name.ok_or_else(|| Refusal::new(Code::InvalidBucketName, "The specified bucket is not valid."))
}

/// The domains below which a host names a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(Vec<String>);

impl Domains {
    /// Creates the set of these domains. Case is ignored.
    #[must_use]
    pub fn new(domains: impl IntoIterator<Item = String>) -> Self {
        let mut domains: Vec<String> =
            domains.into_iter().map(|domain| domain.trim_matches('.').to_ascii_lowercase()).collect();
        // The longest match comes first: `a.s3.example` may be a domain next to `s3.example`.
        domains.sort_by_key(|domain| std::cmp::Reverse(domain.len()));
        Self(domains)
    }

    /// Returns the bucket that this host names, if it is below one of the domains.
    #[must_use]
    pub fn bucket<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = without_port(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        // A domain itself doesn't name a bucket below a shorter domain.
        if self.0.iter().any(|domain| name.eq_ignore_ascii_case(domain)) {
            return None;
        }
        self.0.iter().find_map(|domain| {
            let at = name.len().checked_sub(domain.len() + 1)?;
            let below = name.is_char_boundary(at) && name[at..].starts_with('.');
            (below && name[at + 1..].eq_ignore_ascii_case(domain)).then(|| &name[..at])
        })
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns the `Host` header of a request.
///
/// # Errors
/// `InvalidRequest` if there is none or more than one, if it is not text, or if the request line
/// names another host.
pub fn host<'a>(headers: &'a HeaderMap, authority: Option<&str>) -> Result<&'a str, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    };
    let host = host.ok_or_else(|| Refusal::new(Code::InvalidRequest, "A request has one Host header."))?;
    if authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(host)) {
        return Err(Refusal::new(Code::InvalidRequest, "The Host header and the first line name different hosts."));
    }
    Ok(host)
}

/// Returns the path-style path of a target, for the request to a store.
#[must_use]
pub fn path_of(target: &Target) -> String {
    match target {
        Target::Service => "/".to_owned(),
        Target::Bucket(bucket) => format!("/{bucket}"),
        Target::Object(bucket, key) => format!("/{bucket}/{}", uri::encode_path(key.as_str().as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn target(path: &str) -> Result<String, Code> {
        let path = uri::decode_path(path).map_err(|refusal| refusal.code)?;
        Target::of(&path, None).map(|target| path_of(&target)).map_err(|refusal| refusal.code)
    }

    #[rstest]
    #[case("/", "/")]
    #[case("/photos", "/photos")]
    #[case("/photos/", "/photos")]
    #[case("/photos/a", "/photos/a")]
    #[case("/photos//a//b/", "/photos//a//b/")]
    #[case("/photos/a%2Fb%20c+d~", "/photos/a/b%20c%2Bd~")]
    #[case("/phot%6Fs/%C3%A4", "/photos/%C3%A4")]
    #[case("/photos/a%2520b", "/photos/a%2520b")]
    #[case("/photos/...", "/photos/...")]
    #[case("/photos/a%0d%0ab%09", "/photos/a%0D%0Ab%09")]
    #[case("/photos/a%ef%bf%bd%7f", "/photos/a%EF%BF%BD%7F")]
    fn a_path_is_read_once_and_written_once(#[case] path: &str, #[case] sent: &str) {
        assert_eq!(target(path).as_deref(), Ok(sent));
    }

    // covers: 6.characters
    #[rstest]
    #[case("//photos/a", Code::InvalidBucketName)]
    #[case("/Photos/a", Code::InvalidBucketName)]
    #[case("/photos%2Fa/b", Code::InvalidArgument)]
    #[case("/..%2Fa", Code::InvalidBucketName)]
    #[case("/photos/../other/a", Code::InvalidArgument)]
    #[case("/photos/%2e%2e/other", Code::InvalidArgument)]
    #[case("/photos/a/.", Code::InvalidArgument)]
    #[case("/photos//", Code::InvalidArgument)]
    #[case("/photos/%2f%2F/", Code::InvalidArgument)]
    #[case("/photos/%ff", Code::InvalidURI)]
    #[case("/photos/a%00", Code::InvalidArgument)]
    #[case("/photos/%01z", Code::InvalidArgument)]
    #[case("/photos/%1f", Code::InvalidArgument)]
    #[case("/photos/%ef%bf%be", Code::InvalidArgument)]
    #[case("photos", Code::InvalidURI)]
    #[case("*", Code::InvalidURI)]
    fn what_others_would_read_otherwise_is_refused(#[case] path: &str, #[case] code: Code) {
        // `%2F` is a slash like any other.
        let expected = if path == "/photos%2Fa/b" { Ok("/photos/a/b".to_owned()) } else { Err(code) };
        assert_eq!(target(path), expected);
    }

    #[test]
    fn a_key_has_1024_bytes_at_most() {
        let longest = format!("/photos/{}", "x".repeat(1024));
        assert!(target(&longest).is_ok());
        assert_eq!(target(&format!("{longest}x")), Err(Code::KeyTooLongError));
    }

    #[rstest]
    #[case("photos.s3.example", Some("photos"))]
    #[case("Photos.S3.Example:8443", Some("Photos"))]
    #[case("a.b.s3.example.", Some("a.b"))]
    #[case("photos.eu.s3.example", Some("photos"))]
    #[case("eu.s3.example", None)]
    #[case("s3.example", None)]
    #[case("s3.example:8000", None)]
    #[case("xs3.example", None)]
    #[case("photos.other", None)]
    #[case("[::1]:8000", None)]
    #[case(".s3.example", Some(""))]
    fn a_host_below_a_domain_names_a_bucket(#[case] host: &str, #[case] bucket: Option<&str>) {
        let domains = Domains::new(["s3.example".to_owned(), "eu.S3.example.".to_owned()]);
        assert_eq!(domains.bucket(host), bucket);
    }

    #[test]
    fn a_bucket_of_the_host_leaves_the_path_to_the_key() {
        let of = |path: &[u8]| Target::of(path, Some("photos")).map(|target| path_of(&target));
        assert_eq!(of(b"/"), Ok("/photos".to_owned()));
        assert_eq!(of(b"/other/a"), Ok("/photos/other/a".to_owned()));
        assert!(Target::of(b"/a", Some("")).is_err());
    }
}
