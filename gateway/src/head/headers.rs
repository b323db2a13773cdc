//! Selection of the request headers that are forwarded, by the table of [`super::rules`]. A header
//! that is not in the table is dropped if S3 ignores it, and refused if S3 defines it.

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::operation::Operation as O;
use super::rules::{Elsewhere, MAKE, Rule, rule};
use crate::refusal::{Code, Refusal};
use crate::uri::{self, Pair};

/// The owner of all buckets and objects, as shown to tenants.
pub const OWNER: &str = "stowage";
/// Maximum size of user metadata in bytes, names and values together (Amazon S3, "Working with
/// object metadata").
const MOST_METADATA: usize = 2 << 10;
/// Maximum number of tags of an object (Amazon S3, "Categorizing your storage using tags").
const MOST_TAGS: usize = 10;

/// Returns the headers of a request that are forwarded with this operation.
///
/// # Errors
/// `AccessDenied`, `InvalidToken` or `NotImplemented` for a header that must not be forwarded;
/// `InvalidArgument` for a repeated header that is not a list, or an invalid value;
/// `MetadataTooLarge` for more than 2 KiB of user metadata.
pub fn forwarded(operation: O, headers: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let mut forwarded = HeaderMap::new();
    for (name, value) in headers {
        let goes = match rule(name.as_str()) {
            Rule::Drop | Rule::Consume => None,
            Rule::Kept => MAKE.contains(&operation).then(|| value.clone()),
            Rule::Of(operations, _) if operations.contains(&operation) => Some(value.clone()),
            Rule::Of(_, Elsewhere::Dropped) => None,
            // All lines of the header are merged at the first one.
            Rule::Encoding if forwarded.contains_key(name) => None,
            Rule::Encoding => content_encoding(headers).filter(|_| MAKE.contains(&operation)),
            Rule::Directive if operation == O::CopyObject => Some(directive(name, value)?),
            Rule::Directive => None,
            Rule::Range if operation == O::UploadPartCopy => Some(range(value)?),
            Rule::Tags => MAKE.contains(&operation).then(|| tags(value)).transpose()?,
            Rule::Owner if value.as_bytes() == OWNER.as_bytes() => None,
            Rule::Acl if matches!(value.as_bytes(), b"" | b"private" | b"bucket-owner-full-control") => None,
            Rule::Acl | Rule::Deny | Rule::Owner => {
                return Err(Refusal::new(Code::AccessDenied, "Access Denied").with("HeaderName", name.as_str()));
            }
            Rule::Token => return Err(Refusal::new(Code::InvalidToken, "Session tokens are not known here.")),
            Rule::Of(_, Elsewhere::Refused) | Rule::Range | Rule::Unknown => {
                let message = "A header you provided implies functionality that is not implemented.";
                return Err(Refusal::new(Code::NotImplemented, message).with("Header", name.as_str()));
            }
        };
        let Some(value) = goes else { continue };
        if forwarded.contains_key(name) && !is_joined(name) {
            return Err(argument(name, "A header is given twice."));
        }
        forwarded.append(name.clone(), value);
    }
    check_metadata(&forwarded)?;
    Ok(forwarded)
}

/// Returns the number of bytes of the headers that a store keeps with an object, names included. An
/// operation that creates no object keeps none: the `Content-Type` of its document doesn't count,
/// for example.
#[must_use]
pub fn kept(operation: O, forwarded: &HeaderMap) -> u64 {
    if !MAKE.contains(&operation) {
        return 0;
    }
    let is_kept = |name: &HeaderName| matches!(rule(name.as_str()), Rule::Kept | Rule::Encoding | Rule::Tags);
    let kept = forwarded.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
}

fn check_metadata(forwarded: &HeaderMap) -> Result<(), Refusal> {
    let length = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().strip_prefix("x-amz-meta-").map(|name| name.len() + value.len())
    };
    let length: usize = forwarded.iter().filter_map(length).sum();
    if length > MOST_METADATA {
        let message = "Your metadata headers exceed the maximum allowed metadata size.";
        let refusal = Refusal::new(Code::MetadataTooLarge, message).with("Size", length.to_string());
        return Err(refusal.with("MaxSizeAllowed", MOST_METADATA.to_string()));
    }
    Ok(())
}

fn argument(name: &HeaderName, message: &'static str) -> Refusal {
    Refusal::new(Code::InvalidArgument, message).with("ArgumentName", name.as_str())
}

fn directive(name: &HeaderName, value: &HeaderValue) -> Result<HeaderValue, Refusal> {
    let known = matches!(value.as_bytes(), b"COPY" | b"REPLACE");
    known.then(|| value.clone()).ok_or_else(|| argument(name, "A directive is COPY or REPLACE."))
}

/// Parses the range of a copied part: its first and last byte. S3 knows no other form.
fn range(value: &HeaderValue) -> Result<HeaderValue, Refusal> {
    let refuse = || {
        let message = "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are \
            the zero-based offsets of the first and last bytes to copy";
        Refusal::new(Code::InvalidArgument, message).with("ArgumentName", "x-amz-copy-source-range")
    };
    let digits =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let numbers = value.to_str().ok().and_then(|text| text.strip_prefix("bytes=")?.split_once('-'));
    let (first, last) = numbers.and_then(|(first, last)| Some((digits(first)?, digits(last)?))).ok_or_else(refuse)?;
    if last < first {
        return Err(refuse());
    }
    HeaderValue::from_str(&format!("bytes={first}-{last}")).map_err(|_| refuse())
}

/// Parses the tags of a header, which are encoded like a query, and writes them again.
fn tags(value: &HeaderValue) -> Result<HeaderValue, Refusal> {
    let refuse = || {
        let message = "The header x-amz-tagging has up to ten tags as a query, each once.";
        Refusal::new(Code::InvalidArgument, message).with("ArgumentName", "x-amz-tagging")
    };
    let tags = value.to_str().ok().and_then(|text| uri::parse_query(text).ok()).ok_or_else(refuse)?;
    let is_text = |pair: &Pair| !pair.name.is_empty() && [&pair.name, &pair.value].iter().all(|it| is_utf_8(it));
    let is_repeated = |(at, tag): (usize, &Pair)| tags.iter().take(at).any(|other| other.name == tag.name);
    if tags.len() > MOST_TAGS || !tags.iter().all(is_text) || tags.iter().enumerate().any(is_repeated) {
        return Err(refuse());
    }
    let written = tags.iter().map(|tag| format!("{}={}", uri::encode(&tag.name), uri::encode(&tag.value)));
    HeaderValue::from_str(&written.collect::<Vec<_>>().join("&")).map_err(|_| refuse())
}

fn is_utf_8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

/// Returns true if several lines of this header form one list.
fn is_joined(name: &HeaderName) -> bool {
    // Amazon S3 also joins user metadata of the same name.
    name.as_str().starts_with("x-amz-meta-") || matches!(name.as_str(), "cache-control" | "if-match" | "if-none-match")
}

/// The checksums of an empty body, as header values.
const OF_NOTHING: [(&[u8], &[u8]); 5] = [
    (b"x-amz-checksum-crc32", b"AAAAAA=="),
    (b"x-amz-checksum-crc32c", b"AAAAAA=="),
    (b"x-amz-checksum-crc64nvme", b"AAAAAAAAAAA="),
    (b"x-amz-checksum-sha1", b"2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    (b"x-amz-checksum-sha256", b"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
];

/// Returns true if a parameter is the checksum of an empty body.
///
/// Presigners compute it when they don't have the body, such as Amazon's SDK for JavaScript since
/// version 3.729. It says nothing about the body that will be sent.
fn is_of_nothing(pair: &Pair) -> bool {
    OF_NOTHING.iter().any(|(name, value)| pair.name.eq_ignore_ascii_case(name) && pair.value == *value)
}

/// Moves the `x-amz-*` parameters of a presigned query to the headers, and returns the rest of the
/// query.
///
/// The parameters of the signature itself have been removed before. The checksum of an empty body
/// is dropped, together with the name of its algorithm.
///
/// # Errors
/// `InvalidArgument` if a header of that name is present too, or a value is not a valid header
/// value.
pub fn hoisted(query: Vec<Pair>, headers: &mut HeaderMap) -> Result<Vec<Pair>, Refusal> {
    let is_header = |pair: &Pair| pair.name.get(..6).is_some_and(|begin| begin.eq_ignore_ascii_case(b"x-amz-"));
    let (hoisted, remaining): (Vec<Pair>, Vec<Pair>) = query.into_iter().partition(is_header);
    let says_nothing = hoisted.iter().any(is_of_nothing);
    let names_algorithm = |pair: &Pair| pair.name.eq_ignore_ascii_case(b"x-amz-sdk-checksum-algorithm");
    for pair in hoisted {
        if is_of_nothing(&pair) || says_nothing && names_algorithm(&pair) {
            continue;
        }
        let refuse = || Refusal::new(Code::InvalidArgument, "A header in the query can't be read, or is given twice.");
        let name = HeaderName::from_bytes(&pair.name).map_err(|_| refuse())?;
        let value = HeaderValue::from_bytes(&pair.value).map_err(|_| refuse())?;
        if headers.insert(name, value).is_some() {
            return Err(refuse());
        }
    }
    Ok(remaining)
}

/// Returns the content encoding without `aws-chunked`, which only frames the transfer, or `None` if
/// nothing is left. The rest keeps its spaces, because it is returned as it was sent.
#[must_use]
pub fn content_encoding(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut kept: Vec<u8> = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for token in value.as_bytes().split(|byte| *byte == b',') {
            let coding = token.trim_ascii();
            if coding.is_empty() || coding.eq_ignore_ascii_case(b"aws-chunked") {
                continue;
            }
            if !kept.is_empty() {
                kept.push(b',');
            }
            kept.extend_from_slice(token);
        }
    }
    let kept = kept.trim_ascii();
    if kept.is_empty() { None } else { HeaderValue::from_bytes(kept).ok() }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::uri::parse_query;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    // covers: 6.headers
    #[rstest]
    #[case(O::PutObject, "x-amz-meta-colour", Ok(true))]
    #[case(O::GetObject, "x-amz-meta-colour", Ok(false))]
    #[case(O::UploadPart, "x-amz-meta-colour", Ok(false))]
    #[case(O::PutObject, "x-amz-checksum-xxhash128", Ok(true))]
    #[case(O::PutObject, "x-amz-checksum-made-up", Err(Code::NotImplemented))]
    #[case(O::GetObject, "x-amz-checksum-crc32", Ok(false))]
    #[case(O::PutObject, "x-amz-server-side-encryption-customer-key", Ok(true))]
    #[case(O::DeleteObject, "x-amz-server-side-encryption-customer-key", Ok(false))]
    #[case(O::PutObject, "if-none-match", Ok(true))]
    #[case(O::UploadPart, "if-none-match", Err(Code::NotImplemented))]
    #[case(O::PutObjectTagging, "if-match", Err(Code::NotImplemented))]
    #[case(O::PutObject, "if-unmodified-since", Err(Code::NotImplemented))]
    #[case(O::DeleteObject, "x-amz-if-match-size", Ok(true))]
    #[case(O::PutObject, "x-amz-if-match-size", Err(Code::NotImplemented))]
    #[case(O::AbortMultipartUpload, "x-amz-if-match-initiated-time", Ok(true))]
    #[case(O::GetObject, "range", Ok(true))]
    #[case(O::PutObject, "range", Ok(false))]
    #[case(O::CopyObject, "x-amz-copy-source-if-match", Ok(true))]
    #[case(O::PutObject, "x-amz-copy-source-if-match", Err(Code::NotImplemented))]
    #[case(O::CopyObject, "x-amz-copy-source-range", Err(Code::NotImplemented))]
    #[case(O::PutObject, "x-amz-copy-source-range", Err(Code::NotImplemented))]
    #[case(O::UploadPartCopy, "x-amz-copy-source-range", Err(Code::InvalidArgument))]
    #[case(O::CopyObject, "x-amz-metadata-directive", Err(Code::InvalidArgument))]
    #[case(O::PutObject, "x-amz-metadata-directive", Ok(false))]
    #[case(O::PutObject, "content-type", Ok(true))]
    #[case(O::DeleteObjects, "content-type", Ok(false))]
    #[case(O::DeleteObjects, "content-md5", Ok(true))]
    #[case(O::PutObject, "connection", Ok(false))]
    #[case(O::PutObject, "transfer-encoding", Ok(false))]
    #[case(O::PutObject, "authorization", Ok(false))]
    #[case(O::PutObject, "cookie", Ok(false))]
    #[case(O::PutObject, "x-forwarded-for", Ok(false))]
    #[case(O::PutObject, "x-minio-extract", Ok(false))]
    #[case(O::PutObject, "expect", Ok(false))]
    #[case(O::CopyObject, "x-amz-copy-source", Ok(false))]
    #[case(O::PutObject, "x-amz-api-version", Ok(false))]
    #[case(O::PutObject, "x-amz-server-side-encryption-bucket-key-enabled", Ok(false))]
    #[case(O::PutObject, "x-amz-expected-bucket-owner", Err(Code::AccessDenied))]
    #[case(O::CopyObject, "x-amz-source-expected-bucket-owner", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-meta-snowball-auto-extract", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-meta-minio-snowball-prefix", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-acl", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-grant-read", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-object-lock-mode", Err(Code::AccessDenied))]
    #[case(O::DeleteObject, "x-amz-bypass-governance-retention", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-website-redirect-location", Err(Code::AccessDenied))]
    #[case(O::PutObject, "x-amz-server-side-encryption-aws-kms-key-id", Err(Code::AccessDenied))]
    #[case(O::GetObject, "x-amz-security-token", Err(Code::InvalidToken))]
    #[case(O::PutObject, "x-amz-write-offset-bytes", Err(Code::NotImplemented))]
    #[case(O::PutObject, "x-amz-rename-source", Err(Code::NotImplemented))]
    #[case(O::GetObject, "x-amz-something-new", Err(Code::NotImplemented))]
    fn a_header_goes_on_is_dropped_or_refused(
        #[case] operation: O,
        #[case] name: &'static str,
        #[case] expected: Result<bool, Code>,
    ) {
        let found = forwarded(operation, &headers(&[(name, "v")])).map(|kept| kept.contains_key(name));
        assert_eq!(found.map_err(|refusal| refusal.code), expected);
    }

    #[rstest]
    #[case("bytes=0-0", Some("bytes=0-0"))]
    #[case("bytes=007-10", Some("bytes=7-10"))]
    #[case("bytes=5-", None)]
    #[case("bytes=-5", None)]
    #[case("bytes=5-4", None)]
    #[case("bytes=+0-5", None)]
    #[case("bytes=0-5,7-9", None)]
    #[case("bytes=0-99999999999999999999", None)]
    #[case("Bytes=0-5", None)]
    #[case("0-5", None)]
    fn a_range_of_a_copy_has_one_form(#[case] text: &'static str, #[case] written: Option<&'static str>) {
        let found = forwarded(O::UploadPartCopy, &headers(&[("x-amz-copy-source-range", text)]));
        assert_eq!(found.ok(), written.map(|written| headers(&[("x-amz-copy-source-range", written)])));
    }

    #[rstest]
    #[case("a=b&c=", Some("a=b&c="))]
    #[case("a+b=%C3%A4%26", Some("a%20b=%C3%A4%26"))]
    #[case("a=1&%61=2", None)]
    #[case("=b", None)]
    #[case("a=%ff", None)]
    #[case("a=%", None)]
    #[case("a&b&c&d&e&f&g&h&i&j&k", None)]
    fn tags_are_written_from_what_was_read(#[case] text: &'static str, #[case] written: Option<&'static str>) {
        let found = forwarded(O::PutObject, &headers(&[("x-amz-tagging", text)]));
        assert_eq!(found.ok(), written.map(|written| headers(&[("x-amz-tagging", written)])));
    }

    #[test]
    fn an_account_is_the_one_that_is_told() {
        for name in ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"] {
            assert_eq!(forwarded(O::CopyObject, &headers(&[(name, "stowage")])), Ok(HeaderMap::new()));
        }
    }

    #[test]
    fn metadata_has_a_length() {
        let of = |length: usize| {
            let value = HeaderValue::from_str(&"x".repeat(length)).expect("a value");
            forwarded(O::PutObject, &HeaderMap::from_iter([(HeaderName::from_static("x-amz-meta-a"), value)]))
        };
        assert_eq!(of(2047).map(|it| kept(O::PutObject, &it)), Ok(2047 + 12));
        assert_eq!(of(2048).map_err(|refusal| refusal.code), Err(Code::MetadataTooLarge));
    }

    #[test]
    fn an_acl_that_opens_nothing_is_dropped() {
        for acl in ["", "private", "bucket-owner-full-control"] {
            let kept = forwarded(O::PutObject, &headers(&[("x-amz-acl", acl)]));
            assert_eq!(kept, Ok(HeaderMap::new()));
        }
    }

    #[test]
    fn one_of_two_is_nobodys_choice() {
        let twice = headers(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
        assert_eq!(forwarded(O::GetObject, &twice).map_err(|refusal| refusal.code), Err(Code::InvalidArgument));
        let list = headers(&[("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")]);
        assert_eq!(forwarded(O::PutObject, &list), Ok(list.clone()));
    }

    // covers: 6.encoding
    #[test]
    fn the_encoding_of_all_lines_is_one() {
        let lines = headers(&[("content-encoding", "aws-chunked"), ("content-encoding", "gzip, aws-chunked")]);
        assert_eq!(forwarded(O::PutObject, &lines), Ok(headers(&[("content-encoding", "gzip")])));
        assert_eq!(forwarded(O::UploadPart, &lines), Ok(HeaderMap::new()));
    }

    #[test]
    fn what_a_presigner_moved_comes_back() {
        let query = parse_query("X-Amz-Meta-A=b%20c&prefix=p&x-amz-acl=public-read").expect("a query");
        let mut found = HeaderMap::new();
        let rest = hoisted(query, &mut found).expect("they are headers");
        assert_eq!(rest, parse_query("prefix=p").expect("a query"));
        assert_eq!(found, headers(&[("x-amz-meta-a", "b c"), ("x-amz-acl", "public-read")]));
        assert_eq!(forwarded(O::PutObject, &found).map_err(|refusal| refusal.code), Err(Code::AccessDenied));
    }

    #[rstest]
    #[case("x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32", &[])]
    #[case("X-Amz-Checksum-Crc64nvme=AAAAAAAAAAA%3D", &[])]
    #[case("x-amz-checksum-sha256=47DEQpj8HBSa%2B%2FTImW%2B5JCeuQeRkm5NMpJWZG3hSuFU%3D", &[])]
    #[case(
        "x-amz-checksum-crc32=HYZs4w%3D%3D&x-amz-sdk-checksum-algorithm=CRC32",
        &[("x-amz-checksum-crc32", "HYZs4w=="), ("x-amz-sdk-checksum-algorithm", "CRC32")]
    )]
    #[case("x-amz-checksum-sha256=AAAAAA%3D%3D", &[("x-amz-checksum-sha256", "AAAAAA==")])]
    #[case("x-amz-checksum-mode=ENABLED", &[("x-amz-checksum-mode", "ENABLED")])]
    fn a_checksum_of_a_body_that_was_not_there_is_none(
        #[case] query: &str,
        #[case] expected: &[(&'static str, &'static str)],
    ) {
        let mut found = HeaderMap::new();
        hoisted(parse_query(query).expect("a query"), &mut found).expect("they are headers");
        assert_eq!(found, headers(expected));
    }

    #[test]
    fn a_header_and_its_double_in_the_query_are_refused() {
        let query = parse_query("x-amz-meta-a=1").expect("a query");
        assert!(hoisted(query, &mut headers(&[("x-amz-meta-a", "1")])).is_err());
        let query = parse_query("x-amz-meta-a=%0d%0ahost:b").expect("a query");
        assert!(hoisted(query, &mut HeaderMap::new()).is_err());
    }

    #[rstest]
    #[case("aws-chunked", None)]
    #[case("AWS-Chunked, gzip", Some("gzip"))]
    #[case("gzip,aws-chunked,br", Some("gzip,br"))]
    #[case("gzip", Some("gzip"))]
    #[case("deflate, gzip", Some("deflate, gzip"))]
    #[case("aws-chunked, deflate, gzip", Some("deflate, gzip"))]
    #[case("gzip, aws-chunked", Some("gzip"))]
    fn the_framing_is_no_encoding(#[case] header: &'static str, #[case] kept: Option<&'static str>) {
        let found = content_encoding(&headers(&[("content-encoding", header)]));
        assert_eq!(found, kept.map(HeaderValue::from_static));
    }
}
