//! Validated names, and identifiers derived from other data instead of drawn at random.

use std::borrow::Borrow;
use std::fmt;
use std::net::Ipv4Addr;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};
use url::Url;

use super::identity::{AccessUid, ClaimUid};
use super::wire::{ACCESS_CREDENTIAL_PREFIX, CREDENTIAL_PREFIX, RECORD_PREFIX};

/// Error for a string that is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: {why}")]
pub struct InvalidName {
    /// Kind of name expected.
    pub what: &'static str,
    /// The string that was parsed.
    pub text: String,
    /// Rule that the string violates.
    pub why: &'static str,
}

/// Suffixes reserved for directory buckets and buckets on Outposts, which names of general purpose
/// buckets cannot have (Amazon S3 User Guide, "General purpose bucket naming rules"). SDKs send
/// requests for such buckets to other hosts.
const RESERVED: [&str; 3] = ["--x-s3", "--xa-s3", "--op-s3"];

/// A bucket name: 3 to 63 characters of `a-z 0-9 . -`, a letter or digit at both ends, no two dots
/// in a row, not an IPv4 address (spec §1, `spec.bucketName`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(String);

impl BucketName {
    /// Parses a bucket name.
    ///
    /// # Errors
    /// Returns an error if `text` violates one of the rules.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let invalid = |why| Err(InvalidName { what: "bucket name", text: text.to_owned(), why });
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-';
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = text.as_bytes();
        if !(3..=63).contains(&bytes.len()) {
            invalid("it must have 3 to 63 characters")
        } else if !bytes.iter().all(|b| inner(*b)) {
            invalid("only a-z 0-9 . - may stand in it")
        } else if !edge(bytes.first()) || !edge(bytes.last()) {
            invalid("it must start and end with a letter or digit")
        } else if text.contains("..") {
            invalid("it must not contain two dots in a row")
        } else if looks_like_ipv4(text) {
            invalid("it must not look like an IP address")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the suffix that S3 reserves for another kind of bucket, if the name has one.
    pub fn reserved_ending(&self) -> Option<&'static str> {
        RESERVED.into_iter().find(|ending| self.0.ends_with(ending))
    }
}

/// Ordering and hash are those of the string.
impl Borrow<str> for BucketName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Returns true for four groups of digits with any values, like the rule of the CRD.
fn looks_like_ipv4(text: &str) -> bool {
    let groups: Vec<&str> = text.split('.').collect();
    text.parse::<Ipv4Addr>().is_ok()
        || (groups.len() == 4 && groups.iter().all(|g| !g.is_empty() && g.bytes().all(|b| b.is_ascii_digit())))
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An http or https URL with a host, without user info, path, query or fragment.
///
/// The URL is normalized, so that two backends with the same endpoint are recognized (spec §3.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(String);

impl Endpoint {
    /// Parses and normalizes a URL: lower case host, no default port, no trailing slash.
    ///
    /// # Errors
    /// Returns an error if `text` is not such a URL.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let invalid = |why| InvalidName { what: "endpoint", text: text.to_owned(), why };
        let url = Url::parse(text).map_err(|_| invalid("it is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("its scheme must be http or https"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it needs a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("credentials don't belong into it"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("path, query and fragment must be empty"));
        }
        Ok(Self(url.origin().ascii_serialization()))
    }

    /// Returns the URL, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns host and port. An IPv6 address has no brackets.
    pub fn host_and_port(&self) -> (String, u16) {
        let url = Url::parse(&self.0).ok();
        let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        (host.trim_matches(['[', ']']).to_owned(), port)
    }

    /// Returns true if both are known to be the same store, in any spelling.
    pub fn is_alias_of(&self, other: &Self) -> bool {
        self == other || self.plain() == other.plain()
    }

    /// Returns a canonical spelling, by which aliases of the same store are recognized.
    ///
    /// It has no dot at the end of the host, no cluster domain after `.svc`, and only the region in
    /// a host of Amazon S3. Names of records are derived from the spelling in the backend, not from
    /// this one.
    pub fn plain(&self) -> String {
        const CLUSTER: &str = ".cluster.local";
        let Some((scheme, authority)) = self.0.split_once("://") else { return self.0.clone() };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = host.strip_suffix(CLUSTER).filter(|service| service.ends_with(".svc")).unwrap_or(host);
        match (amazon(host), port) {
            // Amazon S3 gives the same answers over http.
            (Some(host), None) => host,
            (_, Some(port)) => format!("{scheme}://{host}:{port}"),
            (None, None) => format!("{scheme}://{host}"),
        }
    }
}

/// Returns the canonical host of Amazon S3 in a region for any of its names: `s3.amazonaws.com` for
/// us-east-1, and those with a hyphen, for dual stack and for FIPS (AWS General Reference, "Amazon
/// Simple Storage Service endpoints and quotas").
fn amazon(host: &str) -> Option<String> {
    let (rest, domain) = ["amazonaws.com", "amazonaws.com.cn"]
        .iter()
        .find_map(|domain| Some((host.strip_suffix(domain)?.strip_suffix('.')?, domain)))?;
    let region = match rest {
        "s3" | "s3-external-1" => "us-east-1",
        _ => {
            let rest = ["s3-fips.", "s3.", "s3-"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
            rest.strip_prefix("dualstack.").unwrap_or(rest)
        }
    };
    (!region.is_empty() && !region.contains('.')).then(|| format!("s3.{region}.{domain}"))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Name of the record of an (endpoint, bucket) pair: `br-` and the first 40 hex digits of the
/// SHA-256 of both (spec §2).
///
/// Kubernetes guarantees that names are unique, so a bucket has at most one holder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName(String);

impl RecordName {
    /// Returns the name for this bucket at this endpoint.
    pub fn of(endpoint: &Endpoint, bucket: &BucketName) -> Self {
        let digest = digest(&[endpoint.as_str(), "/", bucket.as_str()]);
        let mut name = RECORD_PREFIX.to_owned();
        HEXLOWER.encode_append(&digest[..20], &mut name);
        Self(name)
    }

    /// Parses a name created by [`RecordName::of`].
    ///
    /// # Errors
    /// Returns an error if it is not `br-` and 40 lower case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = text.strip_prefix(RECORD_PREFIX).filter(|rest| rest.len() == 40 && rest.bytes().all(is_digit));
        let name = digits.map(|_| Self(text.to_owned()));
        let why = "it is br- and 40 hexadecimal digits in lower case";
        name.ok_or_else(|| InvalidName { what: "name of a bucket record", text: text.to_owned(), why })
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digits that identify the bucket: the name without its prefix.
    pub fn digits(&self) -> &str {
        self.0.strip_prefix(RECORD_PREFIX).unwrap_or(&self.0)
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An access key id: `AKIA` and 16 characters of base32, derived from claim UID and rotation
/// generation (spec §2).
///
/// Creating one generation twice therefore fails with a name conflict, instead of leaving two keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessKeyId(String);

impl AccessKeyId {
    /// Returns the id of the claim's credential of this generation.
    pub fn of(uid: &ClaimUid, generation: u64) -> Self {
        Self::of_owner(uid.as_str(), generation)
    }

    /// Returns the id of the access's credential of this generation.
    pub fn of_access(uid: &AccessUid, generation: u64) -> Self {
        Self::of_owner(uid.as_str(), generation)
    }

    fn of_owner(uid: &str, generation: u64) -> Self {
        let digest = digest(&[uid, "/", &generation.to_string()]);
        let mut id = String::with_capacity(20);
        id.push_str("AKIA");
        BASE32_NOPAD.encode_append(&digest[..10], &mut id);
        Self(id)
    }

    /// Returns the id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the credential's internal Secret: `vc-` and the id in lower case (spec
    /// §2).
    pub fn secret_name(&self) -> String {
        self.name_after(CREDENTIAL_PREFIX)
    }

    /// Returns the name of the internal Secret for a credential of an access: `va-` and the id in
    /// lower case (spec §8).
    pub fn access_secret_name(&self) -> String {
        self.name_after(ACCESS_CREDENTIAL_PREFIX)
    }

    fn name_after(&self, prefix: &str) -> String {
        let mut name = String::with_capacity(23);
        name.push_str(prefix);
        name.push_str(&self.0);
        name.make_ascii_lowercase();
        name
    }
}

impl fmt::Display for AccessKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the SHA-256 of the concatenated parts.
fn digest(parts: &[&str]) -> [u8; 32] {
    parts.iter().fold(Sha256::new(), |all, part| all.chain_update(part)).finalize().into()
}

/// Returns true if an object can have this name: 1 to 253 characters of `a-z 0-9 - .` without a
/// leading dot (Kubernetes, "Object Names and IDs").
///
/// Other strings are never sent to the API server, where they could change the meaning of a URL.
#[must_use]
pub fn is_object_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    (1..=253).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with('.')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("photos--x-s3", Some("--x-s3"))]
    #[case("photos--use1-az4--x-s3", Some("--x-s3"))]
    #[case("photos--op-s3", Some("--op-s3"))]
    #[case("photos-s3", None)]
    fn endings_of_other_kinds_of_buckets(#[case] text: &str, #[case] ending: Option<&str>) {
        assert_eq!(BucketName::parse(text).unwrap().reserved_ending(), ending);
    }

    // covers: 1.claim.bucketName
    #[rstest]
    #[case("abc", true)]
    #[case("ab", false)]
    #[case("a.b-c", true)]
    #[case("Abc", false)]
    #[case("-abc", false)]
    #[case("abc.", false)]
    #[case("a..b", false)]
    #[case("192.168.1.1", false)]
    #[case("999.999.999.999", false)]
    #[case("192.168.1", true)]
    fn bucket_names(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(BucketName::parse(text).is_ok(), valid, "{text}");
    }

    // covers: 1.claim.bucketName
    #[test]
    fn bucket_names_have_63_characters_at_most() {
        assert!(BucketName::parse(&"a".repeat(63)).is_ok());
        assert!(BucketName::parse(&"a".repeat(64)).is_err());
    }

    // covers: 1.backend.endpoint
    #[rstest]
    #[case("http://S3.example:80/", Some("http://s3.example"))]
    #[case("https://s3.example:9000", Some("https://s3.example:9000"))]
    #[case("http://[::1]:9000", Some("http://[::1]:9000"))]
    #[case("ftp://s3.example", None)]
    #[case("http://u:p@s3.example", None)]
    #[case("http://s3.example/x", None)]
    #[case("http://s3.example?x", None)]
    #[case("s3.example", None)]
    fn endpoints_have_one_spelling(#[case] text: &str, #[case] spelling: Option<&str>) {
        assert_eq!(Endpoint::parse(text).ok().as_ref().map(Endpoint::as_str), spelling);
    }

    // covers: 3.2.record.aliases
    #[rstest]
    #[case("http://minio.storage.svc:9000", "http://minio.storage.svc.cluster.local:9000", true)]
    #[case("http://minio.storage.svc:9000", "http://minio.storage.svc.cluster.local.:9000", true)]
    #[case("https://s3.example", "https://s3.example./", true)]
    #[case("https://s3.amazonaws.com", "https://s3.us-east-1.amazonaws.com", true)]
    #[case("https://s3.amazonaws.com", "http://s3-external-1.amazonaws.com", true)]
    #[case("https://s3.eu-west-1.amazonaws.com", "https://s3-eu-west-1.amazonaws.com", true)]
    #[case("https://s3.eu-west-1.amazonaws.com", "https://s3.dualstack.eu-west-1.amazonaws.com", true)]
    #[case("https://s3.eu-west-1.amazonaws.com", "https://s3-fips.dualstack.eu-west-1.amazonaws.com", true)]
    #[case("https://s3.cn-north-1.amazonaws.com.cn", "https://s3.cn-north-1.amazonaws.com.cn.", true)]
    #[case("https://s3.eu-west-1.amazonaws.com", "https://s3.eu-west-2.amazonaws.com", false)]
    #[case("https://s3.amazonaws.com", "https://s3.us-east-1.amazonaws.com:8443", false)]
    #[case("https://s3.eu-west-1.amazonaws.com", "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", false)]
    #[case("https://s3.example", "http://s3.example", false)]
    #[case("https://s3.example", "https://s3.example:9000", false)]
    #[case("http://minio.storage.svc:9000", "http://minio.storage:9000", false)]
    #[case("http://minio.svc.cluster.local", "http://minio.svc", true)]
    #[case("http://minio.cluster.local", "http://minio", false)]
    #[case("http://[::1]:9000", "http://[::1]:9001", false)]
    #[case("http://[::1]", "http://[::2]", false)]
    fn endpoints_of_one_store_are_known_by_whatever_spelling(
        #[case] one: &str,
        #[case] other: &str,
        #[case] same: bool,
    ) {
        let (one, other) = (Endpoint::parse(one).unwrap(), Endpoint::parse(other).unwrap());
        assert_eq!(
            (one.is_alias_of(&other), other.is_alias_of(&one)),
            (same, same),
            "{} {}",
            one.plain(),
            other.plain()
        );
    }

    // covers: 2.credential.id
    #[test]
    fn an_access_key_id_is_derived_from_uid_and_generation() {
        let uid = ClaimUid::new("0f7c5b1e-0000-4000-8000-000000000001");
        let first = AccessKeyId::of(&uid, 1);
        assert_eq!(first, AccessKeyId::of(&uid, 1));
        assert_ne!(first, AccessKeyId::of(&uid, 2));
        assert_eq!(first.as_str().len(), 20);
        assert!(first.as_str().starts_with("AKIA"));
        assert_eq!(first.secret_name(), format!("vc-{}", first.as_str().to_lowercase()));
    }

    /// Derived names exist in clusters. If the derivation changed, existing objects would not be
    /// found.
    #[test]
    fn derived_names_are_what_they_have_always_been() {
        let endpoint = Endpoint::parse("http://s3.example").unwrap();
        let record = RecordName::of(&endpoint, &BucketName::parse("team-a-photos").unwrap());
        assert_eq!(record.as_str(), "br-0256d38414e1bdd362c6fc38acbb3d9931ec5283");
        let id = AccessKeyId::of(&ClaimUid::new("0f7c5b1e-0000-4000-8000-000000000001"), 1);
        assert_eq!(id.as_str(), "AKIASIOPRPITJZKGFNYL");
    }
}
