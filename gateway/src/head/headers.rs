//! Which headers of a request go to the store: a closed set. What isn't in it is dropped where it
//! means nothing to S3, and refused where it does.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::refusal::{Code, Refusal};
use crate::uri::Pair;

/// What becomes of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The store gets it as it is.
    Forward,
    /// Nobody gets it: hop by hop, or of no meaning to a store.
    Drop,
    /// It is read here, and written anew where the store is to have it.
    Consume,
    /// `x-amz-acl`: what asks for nothing but the owner's access is dropped.
    Acl,
    /// It would open, lock or move something that is not the tenant's to configure.
    Deny,
    /// Session tokens are not known.
    Token,
    /// It is S3's, and nothing here understands it.
    Unknown,
}

/// Headers by their exact name.
const EXACT: [(&str, Rule); 54] = [
    ("cache-control", Rule::Forward),
    ("content-disposition", Rule::Forward),
    ("content-encoding", Rule::Consume),
    ("content-language", Rule::Forward),
    ("content-length", Rule::Consume),
    ("content-md5", Rule::Forward),
    ("content-type", Rule::Forward),
    ("expires", Rule::Forward),
    ("if-match", Rule::Forward),
    ("if-modified-since", Rule::Forward),
    ("if-none-match", Rule::Forward),
    ("if-unmodified-since", Rule::Forward),
    ("range", Rule::Forward),
    ("x-amz-acl", Rule::Acl),
    // Amazon's SDK for C++ sends the version of S3's interface along, which is one.
    ("x-amz-api-version", Rule::Drop),
    ("x-amz-bypass-governance-retention", Rule::Deny),
    ("x-amz-checksum-algorithm", Rule::Forward),
    ("x-amz-checksum-mode", Rule::Forward),
    ("x-amz-checksum-type", Rule::Forward),
    ("x-amz-content-sha256", Rule::Consume),
    ("x-amz-copy-source", Rule::Consume),
    ("x-amz-copy-source-if-match", Rule::Forward),
    ("x-amz-copy-source-if-modified-since", Rule::Forward),
    ("x-amz-copy-source-if-none-match", Rule::Forward),
    ("x-amz-copy-source-if-unmodified-since", Rule::Forward),
    ("x-amz-copy-source-range", Rule::Forward),
    ("x-amz-date", Rule::Consume),
    ("x-amz-decoded-content-length", Rule::Consume),
    ("x-amz-expected-bucket-owner", Rule::Forward),
    ("x-amz-if-match-initiated-time", Rule::Forward),
    ("x-amz-if-match-last-modified-time", Rule::Forward),
    ("x-amz-if-match-size", Rule::Forward),
    ("x-amz-max-parts", Rule::Forward),
    ("x-amz-metadata-directive", Rule::Forward),
    ("x-amz-mfa", Rule::Deny),
    ("x-amz-mp-object-size", Rule::Forward),
    ("x-amz-object-attributes", Rule::Forward),
    ("x-amz-object-ownership", Rule::Deny),
    ("x-amz-optional-object-attributes", Rule::Forward),
    ("x-amz-part-number-marker", Rule::Forward),
    ("x-amz-request-payer", Rule::Drop),
    ("x-amz-sdk-checksum-algorithm", Rule::Forward),
    ("x-amz-security-token", Rule::Token),
    ("x-amz-server-side-encryption", Rule::Forward),
    // It is about keys of a key management service, which are denied.
    ("x-amz-server-side-encryption-bucket-key-enabled", Rule::Drop),
    ("x-amz-source-expected-bucket-owner", Rule::Forward),
    ("x-amz-storage-class", Rule::Forward),
    ("x-amz-tagging", Rule::Forward),
    ("x-amz-tagging-directive", Rule::Forward),
    // The runtime of Amazon's own clients asks for a checksum behind an answer's body with it.
    ("x-amz-te", Rule::Drop),
    ("x-amz-trailer", Rule::Consume),
    ("x-amz-user-agent", Rule::Drop),
    ("x-amz-website-redirect-location", Rule::Deny),
    ("x-amzn-trace-id", Rule::Drop),
];

/// Headers by what their name begins with.
const PREFIXES: [(&str, Rule); 10] = [
    ("x-amz-checksum-", Rule::Forward),
    ("x-amz-copy-source-server-side-encryption-customer-", Rule::Forward),
    ("x-amz-grant-", Rule::Deny),
    // MinIO and its kin take these for the order to unpack an archive into objects of any name.
    ("x-amz-meta-minio-snowball-", Rule::Deny),
    ("x-amz-meta-snowball-auto-extract", Rule::Deny),
    ("x-amz-meta-", Rule::Forward),
    ("x-amz-object-lock-", Rule::Deny),
    ("x-amz-server-side-encryption-customer-", Rule::Forward),
    // Keys of a key management service are the store's account's, not the tenant's.
    ("x-amz-server-side-encryption-", Rule::Deny),
    ("x-amz-", Rule::Unknown),
];

fn rule(name: &str) -> Rule {
    if let Ok(at) = EXACT.binary_search_by_key(&name, |(exact, _)| exact) {
        return EXACT[at].1;
    }
    let of_prefix = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    of_prefix.map_or(Rule::Drop, |(_, rule)| *rule)
}

/// The headers of a request that go to the store as they are.
///
/// # Errors
/// `AccessDenied`, `InvalidToken` or `NotImplemented` for a header that may not go on;
/// `InvalidArgument` where one of S3's comes twice: whoever reads the first reads another request
/// than who reads the last.
pub fn forwarded(headers: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let mut forwarded = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        match rule(name.as_str()) {
            Rule::Drop | Rule::Consume => (),
            Rule::Forward if forwarded.contains_key(name) && !is_joined(name) => {
                return Err(
                    Refusal::new(Code::InvalidArgument, "A header is given twice.").with("ArgumentName", name.as_str())
                );
            }
            Rule::Forward => drop(forwarded.append(name.clone(), value.clone())),
            Rule::Acl if matches!(value.as_bytes(), b"" | b"private" | b"bucket-owner-full-control") => (),
            Rule::Acl | Rule::Deny => {
                return Err(Refusal::new(Code::AccessDenied, "Access Denied").with("HeaderName", name.as_str()));
            }
            Rule::Token => return Err(Refusal::new(Code::InvalidToken, "Session tokens are not known here.")),
            Rule::Unknown => {
                let message = "A header you provided implies functionality that is not implemented.";
                return Err(Refusal::new(Code::NotImplemented, message).with("Header", name.as_str()));
            }
        }
    }
    Ok(forwarded)
}

/// Whether several lines of this header are one list.
fn is_joined(name: &HeaderName) -> bool {
    // User metadata of one name is joined by Amazon S3 too.
    name.as_str().starts_with("x-amz-meta-") || matches!(name.as_str(), "cache-control" | "if-match" | "if-none-match")
}

/// The checksums of nothing, as a header has them.
const OF_NOTHING: [(&[u8], &[u8]); 5] = [
    (b"x-amz-checksum-crc32", b"AAAAAA=="),
    (b"x-amz-checksum-crc32c", b"AAAAAA=="),
    (b"x-amz-checksum-crc64nvme", b"AAAAAAAAAAA="),
    (b"x-amz-checksum-sha1", b"2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    (b"x-amz-checksum-sha256", b"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
];

/// Whether a parameter is a checksum that a presigner has made of a body that it didn't have, as
/// Amazon's SDK for JavaScript does since its version 3.729. It says nothing of the body that will
/// come.
fn is_of_nothing(pair: &Pair) -> bool {
    OF_NOTHING.iter().any(|(name, value)| pair.name.eq_ignore_ascii_case(name) && pair.value == *value)
}

/// Makes headers of the `x-amz-*` parameters that presigners have moved into the query, and takes
/// them out of it. What remains is for the operation. The parameters of the signature itself are
/// gone before. A checksum of nothing is dropped, with the name of its algorithm.
///
/// # Errors
/// `InvalidArgument` where a header of the name is there too, or a value can't be one.
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

/// The content encoding without `aws-chunked`, which is a framing of the way here; `None` where
/// nothing is left. What is left keeps its spaces: it is given back as it was sent.
#[must_use]
pub fn content_encoding(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut kept: Vec<u8> = Vec::new();
    for value in headers.get_all(http::header::CONTENT_ENCODING) {
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

    #[test]
    fn the_table_is_in_order() {
        assert!(EXACT.is_sorted_by_key(|(name, _)| name));
    }

    #[rstest]
    #[case("x-amz-meta-colour", Ok(true))]
    #[case("x-amz-checksum-xxhash128", Ok(true))]
    #[case("x-amz-server-side-encryption-customer-key", Ok(true))]
    #[case("if-none-match", Ok(true))]
    #[case("range", Ok(true))]
    #[case("connection", Ok(false))]
    #[case("transfer-encoding", Ok(false))]
    #[case("authorization", Ok(false))]
    #[case("cookie", Ok(false))]
    #[case("x-forwarded-for", Ok(false))]
    #[case("x-minio-extract", Ok(false))]
    #[case("expect", Ok(false))]
    #[case("x-amz-copy-source", Ok(false))]
    #[case("x-amz-api-version", Ok(false))]
    #[case("x-amz-server-side-encryption-bucket-key-enabled", Ok(false))]
    #[case("x-amz-meta-snowball-auto-extract", Err(Code::AccessDenied))]
    #[case("x-amz-meta-minio-snowball-prefix", Err(Code::AccessDenied))]
    #[case("x-amz-acl", Err(Code::AccessDenied))]
    #[case("x-amz-grant-read", Err(Code::AccessDenied))]
    #[case("x-amz-object-lock-mode", Err(Code::AccessDenied))]
    #[case("x-amz-bypass-governance-retention", Err(Code::AccessDenied))]
    #[case("x-amz-website-redirect-location", Err(Code::AccessDenied))]
    #[case("x-amz-server-side-encryption-aws-kms-key-id", Err(Code::AccessDenied))]
    #[case("x-amz-security-token", Err(Code::InvalidToken))]
    #[case("x-amz-write-offset-bytes", Err(Code::NotImplemented))]
    #[case("x-amz-rename-source", Err(Code::NotImplemented))]
    #[case("x-amz-something-new", Err(Code::NotImplemented))]
    fn a_header_goes_on_is_dropped_or_refused(#[case] name: &'static str, #[case] expected: Result<bool, Code>) {
        let found = forwarded(&headers(&[(name, "v")])).map(|kept| kept.contains_key(name));
        assert_eq!(found.map_err(|refusal| refusal.code), expected);
    }

    #[test]
    fn an_acl_that_opens_nothing_is_dropped() {
        for acl in ["", "private", "bucket-owner-full-control"] {
            let kept = forwarded(&headers(&[("x-amz-acl", acl)]));
            assert_eq!(kept, Ok(HeaderMap::new()));
        }
    }

    #[test]
    fn one_of_two_is_nobodys_choice() {
        let twice = headers(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
        assert_eq!(forwarded(&twice).map_err(|refusal| refusal.code), Err(Code::InvalidArgument));
        let list = headers(&[("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")]);
        assert_eq!(forwarded(&list), Ok(list.clone()));
    }

    #[test]
    fn what_a_presigner_moved_comes_back() {
        let query = parse_query("X-Amz-Meta-A=b%20c&prefix=p&x-amz-acl=public-read").expect("a query");
        let mut found = HeaderMap::new();
        let rest = hoisted(query, &mut found).expect("they are headers");
        assert_eq!(rest, parse_query("prefix=p").expect("a query"));
        assert_eq!(found, headers(&[("x-amz-meta-a", "b c"), ("x-amz-acl", "public-read")]));
        assert_eq!(forwarded(&found).map_err(|refusal| refusal.code), Err(Code::AccessDenied));
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
