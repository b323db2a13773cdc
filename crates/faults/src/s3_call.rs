//! Parsing of S3 requests: method, path-style URI and headers to operation, bucket and key.

use std::fmt;

use http::{HeaderMap, Method, Uri, header};

use super::s3_routes::{Level, ROUTES};

/// An S3 operation by its name in the AWS service model, such as `CreateBucket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct S3Operation(&'static str);

/// Copies differ from the plain operations only by the header `x-amz-copy-source`.
const COPY_OBJECT: &str = "CopyObject";
const UPLOAD_PART_COPY: &str = "UploadPartCopy";

impl S3Operation {
    /// Any request that is not a known operation. Plans cannot name it.
    pub const UNKNOWN: Self = Self("Unknown");

    /// Returns the operation with this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|operation| operation.0 == name)
    }

    /// Returns every operation that a plan can name.
    pub fn all() -> impl Iterator<Item = Self> {
        ROUTES.iter().map(|route| route.3).chain([COPY_OBJECT, UPLOAD_PART_COPY]).map(Self)
    }

    /// Returns its name in the AWS service model.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns true for HEAD requests. Their answers have no body and so no error code.
    pub fn is_head(self) -> bool {
        self.0.starts_with("Head")
    }

    /// Returns true if the operation changes nothing.
    pub fn is_read(self) -> bool {
        self.is_head() || self.0.starts_with("Get") || self.0.starts_with("List")
    }

    /// Returns true if its path names a bucket.
    pub fn is_on_bucket(self) -> bool {
        self != Self::UNKNOWN && self.0 != "ListBuckets"
    }

    /// Returns true if the body of an answer with status 200 is an XML document.
    pub fn answers_in_xml(self) -> bool {
        const NOT_XML: [&str; 3] = ["GetObject", "GetObjectTorrent", "GetBucketPolicy"];
        const WRITES: [&str; 5] =
            ["DeleteObjects", "CreateMultipartUpload", "CompleteMultipartUpload", COPY_OBJECT, UPLOAD_PART_COPY];
        (self.is_read() && !self.is_head() && !NOT_XML.contains(&self.0)) || WRITES.contains(&self.0)
    }

    /// Returns true if the operation deletes objects or versions.
    pub fn deletes_objects(self) -> bool {
        matches!(self.0, "DeleteObject" | "DeleteObjects")
    }

    /// Returns true if the operation is used to empty and delete a bucket.
    pub fn empties(self) -> bool {
        const LISTS: [&str; 4] = ["ListObjects", "ListObjectsV2", "ListObjectVersions", "ListMultipartUploads"];
        self.deletes_objects() || LISTS.contains(&self.0) || matches!(self.0, "AbortMultipartUpload" | "DeleteBucket")
    }
}

impl fmt::Display for S3Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A request to an S3 store, addressed in path style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Call {
    /// Operation of the request.
    pub operation: S3Operation,
    /// Bucket, if the path names one.
    pub bucket: Option<String>,
    /// Key of the object as in the URI (percent-encoded, so without line breaks).
    pub key: Option<String>,
}

impl S3Call {
    /// Parses a request.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path().trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let level = match (bucket, key) {
            ("", _) => Level::Root,
            (_, "") => Level::Bucket,
            _ => Level::Object,
        };
        let operation = operation_of(method, level, uri.query().unwrap_or_default());
        Self { operation: copying(operation, headers), bucket: non_empty(bucket), key: non_empty(key) }
    }

    /// Returns the access key id that a request names, in its header or, if presigned, in its
    /// query. The signature is not verified.
    pub fn signer<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
        let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let in_header =
            authorization.and_then(|text| text.split("Credential=").nth(1)).and_then(|scope| scope.split('/').next());
        let in_query = || {
            let pairs = uri.query().unwrap_or_default().split('&');
            let scope = pairs.filter_map(|pair| pair.strip_prefix("X-Amz-Credential=")).next()?;
            scope.split(['/', '%']).next()
        };
        in_header.or_else(in_query).filter(|id| !id.is_empty())
    }

    /// Parses the text form without its prefix `s3:`.
    pub(super) fn told(text: &str) -> Self {
        let (operation, path) = text.split_once(' ').unwrap_or((text, ""));
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let operation = S3Operation::named(operation).unwrap_or(S3Operation::UNKNOWN);
        Self { operation, bucket: non_empty(bucket), key: non_empty(key) }
    }
}

impl fmt::Display for S3Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3:{}", self.operation)?;
        if let Some(bucket) = &self.bucket {
            write!(f, " {bucket}")?;
        }
        if let Some(key) = &self.key {
            write!(f, "/{key}")?;
        }
        Ok(())
    }
}

fn operation_of(method: &Method, level: Level, query: &str) -> S3Operation {
    let keys: Vec<&str> = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key)).collect();
    ROUTES
        .iter()
        .find(|(m, l, needed, _)| *m == method.as_str() && *l == level && needed.iter().all(|key| keys.contains(key)))
        .map_or(S3Operation::UNKNOWN, |route| S3Operation(route.3))
}

fn copying(operation: S3Operation, headers: &HeaderMap) -> S3Operation {
    match operation.0 {
        "PutObject" if headers.contains_key("x-amz-copy-source") => S3Operation(COPY_OBJECT),
        "UploadPart" if headers.contains_key("x-amz-copy-source") => S3Operation(UPLOAD_PART_COPY),
        _ => operation,
    }
}

fn non_empty(part: &str) -> Option<String> {
    (!part.is_empty()).then(|| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("GET", "http://s3.local/", "s3:ListBuckets")]
    #[case("PUT", "http://s3.local/photos", "s3:CreateBucket photos")]
    #[case("PUT", "http://s3.local/photos/", "s3:CreateBucket photos")]
    #[case("HEAD", "http://s3.local/photos", "s3:HeadBucket photos")]
    #[case("DELETE", "http://s3.local/photos", "s3:DeleteBucket photos")]
    #[case("GET", "/photos?tagging", "s3:GetBucketTagging photos")]
    #[case("PUT", "/photos?tagging=", "s3:PutBucketTagging photos")]
    #[case("PUT", "/photos?versioning", "s3:PutBucketVersioning photos")]
    #[case("GET", "/photos?list-type=2&prefix=a", "s3:ListObjectsV2 photos")]
    #[case("GET", "/photos?prefix=a", "s3:ListObjects photos")]
    #[case("GET", "/photos?versions&max-keys=5", "s3:ListObjectVersions photos")]
    #[case("GET", "/photos?uploads", "s3:ListMultipartUploads photos")]
    #[case("POST", "/photos?delete", "s3:DeleteObjects photos")]
    #[case("PUT", "/photos/a/b%20c.txt?x-id=PutObject", "s3:PutObject photos/a/b%20c.txt")]
    #[case("GET", "/photos/a?x-id=GetObject", "s3:GetObject photos/a")]
    #[case("DELETE", "/photos/a?versionId=7", "s3:DeleteObject photos/a")]
    #[case("DELETE", "/photos/a?uploadId=7&x-id=AbortMultipartUpload", "s3:AbortMultipartUpload photos/a")]
    #[case("PUT", "/photos/a?partNumber=1&uploadId=7", "s3:UploadPart photos/a")]
    #[case("POST", "/photos/a?uploadId=7", "s3:CompleteMultipartUpload photos/a")]
    #[case("POST", "/photos", "s3:Unknown photos")]
    fn reads_requests_as_the_service_model_does(#[case] method: &str, #[case] uri: &str, #[case] expected: &str) {
        let method = method.parse().unwrap();
        let call = S3Call::read(&method, &uri.parse().unwrap(), &HeaderMap::new());
        assert_eq!(call.to_string(), expected);
    }

    #[rstest]
    #[case(
        "/b",
        Some("AWS4-HMAC-SHA256 Credential=AKIA1/20260101/us-east-1/s3/aws4_request, Signature=0"),
        Some("AKIA1")
    )]
    #[case("/b?X-Amz-Credential=AKIA2%2F20260101&X-Amz-Signature=0", None, Some("AKIA2"))]
    #[case("/b", None, None)]
    #[case("/b", Some("Bearer x"), None)]
    fn the_signer_is_found(#[case] uri: &str, #[case] authorization: Option<&str>, #[case] expected: Option<&str>) {
        let value = authorization.map(|text| (header::AUTHORIZATION, text.parse().unwrap()));
        let headers = HeaderMap::from_iter(value);
        assert_eq!(S3Call::signer(&uri.parse().unwrap(), &headers), expected);
    }

    #[rstest]
    #[case("/photos/a", "s3:CopyObject photos/a")]
    #[case("/photos/a?partNumber=1&uploadId=7", "s3:UploadPartCopy photos/a")]
    fn a_copy_source_makes_it_a_copy(#[case] uri: &str, #[case] expected: &str) {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-amz-copy-source"),
            http::HeaderValue::from_static("/other/key"),
        )]);
        let call = S3Call::read(&Method::PUT, &uri.parse().unwrap(), &headers);
        assert_eq!(call.to_string(), expected);
    }

    #[test]
    fn names_are_unique_and_found() {
        let mut names: Vec<_> = S3Operation::all().collect();
        names.sort_unstable();
        let total = names.len();
        names.dedup();
        // Operations such as `ListBucketAnalyticsConfigurations` share a path with their GET, and
        // still have one row each.
        assert_eq!(names.len(), total);
        assert!(names.iter().all(|o| S3Operation::named(o.name()) == Some(*o)));
        assert_eq!(S3Operation::named("Unknown"), None);
    }
}
