//! The parts of a store's response that a client may see: nothing about the gateway's key, the
//! store's vendor or its location.

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, StatusCode};

use super::xml;
use crate::head::content_encoding;

/// Maximum length in bytes of an error that is read.
pub const LONGEST_ERROR: usize = 64 << 10;

/// Response headers with a meaning for an S3 client.
const KEPT: [&str; 13] = [
    "accept-ranges",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "retry-after",
    "vary",
];

/// S3 headers that the store may not set: the gateway has its own ids and region, and the store's
/// account is hidden.
const OURS: [&str; 6] = [
    "x-amz-bucket-region",
    "x-amz-id-2",
    "x-amz-request-charged",
    "x-amz-request-id",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-website-redirect-location",
];

/// Error codes about the gateway's own key or signature. The client has another.
const ABOUT_OUR_KEY: [&str; 9] = [
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "MissingSecurityHeader",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "XMinioInvalidAccessKeyId",
];

/// Error elements that a client may need. Others name the gateway's key, its region or its host.
const TOLD: [&str; 22] = [
    "ActualObjectSize",
    "ArgumentName",
    "ArgumentValue",
    "BucketName",
    "CalculatedDigest",
    "ClientComputedContentSHA256",
    "Condition",
    "ETag",
    "ExpectedDigest",
    "Key",
    "MaxSizeAllowed",
    "Method",
    "MinSizeAllowed",
    "PartNumber",
    "ProposedSize",
    "RangeRequested",
    "ResourceType",
    "S3ComputedContentSHA256",
    "StorageClass",
    "TagKey",
    "UploadId",
    "VersionId",
];

/// Returns the headers of a store's response that are passed to the client.
#[must_use]
pub fn headers(headers: &HeaderMap) -> HeaderMap {
    let is_kept = |name: &HeaderName| {
        let name = name.as_str();
        KEPT.binary_search(&name).is_ok() || name.starts_with("x-amz-") && OURS.binary_search(&name).is_err()
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name) && **name != CONTENT_ENCODING);
    let mut kept: HeaderMap = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    // Some stores keep the framing of an upload with the object.
    if let Some(encoding) = content_encoding(headers) {
        kept.insert(CONTENT_ENCODING, encoding);
    }
    kept
}

/// A store's error, classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// An error about the client's request.
    Told {
        /// The store's code.
        code: String,
        /// The store's message.
        message: String,
        /// Elements by name.
        details: Vec<(&'static str, String)>,
    },
    /// An error about the gateway's key or signature.
    OurKey(String),
    /// Not an S3 error, such as one of a proxy in front of the store.
    NotS3,
}

/// Classifies a store's error. `key_id` is the id of the gateway's key for the store.
#[must_use]
pub fn error(status: StatusCode, body: &[u8], key_id: &str) -> StoreError {
    // A redirect concerns the gateway's operator only.
    if status.is_redirection() {
        return StoreError::NotS3;
    }
    let Some((_, elements)) = xml::flat(body).filter(|(root, _)| root == "Error") else { return StoreError::NotS3 };
    let text = |name: &str| elements.iter().find(|(element, _)| element == name).map(|(_, text)| text.as_str());
    let Some(code) = text("Code").filter(|code| is_code(code)) else { return StoreError::NotS3 };
    if ABOUT_OUR_KEY.binary_search(&code).is_ok() {
        return StoreError::OurKey(code.to_owned());
    }
    let names_us = |text: &str| text.contains("arn:") || (!key_id.is_empty() && text.contains(key_id));
    let message = match text("Message") {
        _ if code == "AccessDenied" => "Access Denied",
        Some(message) if !names_us(message) => message,
        _ => "The store refused the request.",
    };
    let detail = |name: &'static str| text(name).filter(|text| !names_us(text)).map(|text| (name, text.to_owned()));
    StoreError::Told {
        code: code.to_owned(),
        message: message.chars().take(1024).collect(),
        details: TOLD.iter().filter_map(|name| detail(name)).collect(),
    }
}

fn is_code(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_tables_are_in_order() {
        assert!(KEPT.is_sorted() && OURS.is_sorted() && ABOUT_OUR_KEY.is_sorted() && TOLD.is_sorted());
    }

    #[rstest]
    #[case("etag", true)]
    #[case("x-amz-meta-a", true)]
    #[case("x-amz-version-id", true)]
    #[case("x-amz-checksum-crc32", true)]
    #[case("server", false)]
    #[case("x-rgw-object-type", false)]
    #[case("x-minio-deployment-id", false)]
    #[case("x-amz-id-2", false)]
    #[case("x-amz-request-id", false)]
    #[case("x-amz-bucket-region", false)]
    #[case("location", false)]
    #[case("access-control-allow-origin", false)]
    #[case("set-cookie", false)]
    #[case("transfer-encoding", false)]
    #[case("connection", false)]
    fn a_header_of_an_answer_is_shown_or_not(#[case] name: &'static str, #[case] shown: bool) {
        let answer = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("v"))]);
        assert_eq!(headers(&answer).contains_key(name), shown);
    }

    // covers: 6.encoding
    #[rstest]
    #[case("aws-chunked", None)]
    #[case("aws-chunked,gzip", Some("gzip"))]
    #[case("gzip", Some("gzip"))]
    fn the_framing_of_an_upload_is_no_encoding_of_an_object(
        #[case] kept: &'static str,
        #[case] told: Option<&'static str>,
    ) {
        let answer = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(kept))]);
        assert_eq!(headers(&answer).get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()), told);
    }

    fn read(code: &str, more: &str) -> StoreError {
        let body = format!("<Error><Code>{code}</Code>{more}</Error>");
        error(StatusCode::FORBIDDEN, body.as_bytes(), "AKIAOURS")
    }

    #[test]
    fn what_is_about_the_request_is_told() {
        let found = read("NoSuchKey", "<Message>gone</Message><Key>a</Key><AWSAccessKeyId>AKIAOURS</AWSAccessKeyId>");
        let details = vec![("Key", "a".to_owned())];
        assert_eq!(found, StoreError::Told { code: "NoSuchKey".to_owned(), message: "gone".to_owned(), details });
    }

    #[rstest]
    #[case("AccessDenied", "<Message>User: arn:aws:iam::1:user/stowage may not</Message>", "Access Denied")]
    #[case("InvalidRequest", "<Message>key AKIAOURS is odd</Message>", "The store refused the request.")]
    #[case("InvalidRequest", "", "The store refused the request.")]
    fn our_names_are_not(#[case] code: &str, #[case] more: &str, #[case] expected: &str) {
        let StoreError::Told { message, .. } = read(code, more) else { panic!("it is about the request") };
        assert_eq!(message, expected);
    }

    #[test]
    fn our_key_is_our_business() {
        for code in ABOUT_OUR_KEY {
            assert_eq!(read(code, "<StringToSign>s</StringToSign>"), StoreError::OurKey(code.to_owned()));
        }
    }

    #[test]
    fn a_page_is_no_word_of_a_store() {
        for body in ["<html><body>403</body></html>", "", "{}", "<Error/>", "<Error><Code>a b</Code></Error>"] {
            assert_eq!(error(StatusCode::FORBIDDEN, body.as_bytes(), ""), StoreError::NotS3, "{body}");
        }
        let moved = b"<Error><Code>PermanentRedirect</Code><Endpoint>inner</Endpoint></Error>";
        assert_eq!(error(StatusCode::MOVED_PERMANENTLY, moved, ""), StoreError::NotS3);
    }
}
