use rstest::rstest;

use super::*;
use crate::uri::parse_query;

fn of(method: &str, level: Level, query: &str) -> Result<Operation, Code> {
    let method = method.parse().expect("a method");
    let query = parse_query(query).expect("a query");
    Operation::of(&method, level, &query, false).map(|(operation, _)| operation).map_err(|refusal| refusal.code)
}

use Level::{Bucket, Object, Service};

#[rstest]
#[case("GET", Service, "", Operation::ListBuckets)]
#[case("GET", Service, "x-id=ListBuckets&max-buckets=3", Operation::ListBuckets)]
#[case("HEAD", Bucket, "", Operation::HeadBucket)]
#[case("PUT", Bucket, "", Operation::CreateBucket)]
#[case("GET", Bucket, "acl", Operation::GetBucketAcl)]
#[case("GET", Bucket, "encryption", Operation::GetBucketEncryption)]
#[case("GET", Bucket, "tagging", Operation::GetBucketTagging)]
#[case("GET", Bucket, "versioning", Operation::GetBucketVersioning)]
#[case("GET", Bucket, "object-lock", Operation::GetObjectLockConfiguration)]
#[case("GET", Bucket, "publicAccessBlock", Operation::GetPublicAccessBlock)]
#[case("GET", Object, "acl&versionId=7", Operation::GetObjectAcl)]
#[case("GET", Bucket, "location", Operation::GetBucketLocation)]
#[case("GET", Bucket, "location=", Operation::GetBucketLocation)]
#[case("GET", Bucket, "", Operation::ListObjects)]
#[case("GET", Bucket, "prefix=a&marker=b&delimiter=/", Operation::ListObjects)]
#[case("GET", Bucket, "prefix=dir/.", Operation::ListObjects)]
#[case("GET", Bucket, "prefix=...%2Fa", Operation::ListObjects)]
#[case("GET", Object, "uploadId=2~aB_c.d-e%3D", Operation::ListParts)]
#[case("GET", Bucket, "list-type=2&prefix=&start-after=b", Operation::ListObjectsV2)]
#[case("GET", Bucket, "list%2Dtype=%32", Operation::ListObjectsV2)]
#[case("GET", Bucket, "versions&key-marker=k", Operation::ListObjectVersions)]
#[case("GET", Bucket, "versions&key-marker=k&version-id-marker=", Operation::ListObjectVersions)]
#[case("GET", Bucket, "prefix=.uploads", Operation::ListObjects)]
#[case("GET", Object, "response-content-disposition=attachment;%20filename=%C3%A4", Operation::GetObject)]
#[case("GET", Bucket, "uploads&max-uploads=9", Operation::ListMultipartUploads)]
#[case("POST", Bucket, "delete", Operation::DeleteObjects)]
#[case("GET", Object, "versionId=7&response-content-type=a", Operation::GetObject)]
#[case("HEAD", Object, "partNumber=1", Operation::HeadObject)]
#[case("GET", Object, "attributes", Operation::GetObjectAttributes)]
#[case("GET", Object, "tagging&versionId=7", Operation::GetObjectTagging)]
#[case("PUT", Object, "tagging", Operation::PutObjectTagging)]
#[case("DELETE", Object, "tagging", Operation::DeleteObjectTagging)]
#[case("GET", Object, "uploadId=u&x-id=ListParts", Operation::ListParts)]
#[case("PUT", Object, "x-id=PutObject", Operation::PutObject)]
#[case("PUT", Object, "partNumber=10000&uploadId=u", Operation::UploadPart)]
#[case("POST", Object, "uploads=", Operation::CreateMultipartUpload)]
#[case("POST", Object, "uploadId=u", Operation::CompleteMultipartUpload)]
#[case("DELETE", Object, "uploadId=u", Operation::AbortMultipartUpload)]
#[case("DELETE", Object, "versionId=null", Operation::DeleteObject)]
fn an_operation_is_known_by_its_row(
    #[case] method: &str,
    #[case] level: Level,
    #[case] query: &str,
    #[case] operation: Operation,
) {
    assert_eq!(of(method, level, query), Ok(operation));
}

// covers: 6.overrides, 6.reserved
/// Known vulnerabilities of other gateways: a parameter in another spelling, or next to the one
/// that is looked for.
#[rstest]
#[case("PUT", Object, "acl", Code::AccessDenied)]
#[case("PUT", Object, "%61cl", Code::AccessDenied)]
#[case("GET", Bucket, "%70olicy", Code::AccessDenied)]
#[case("GET", Bucket, "list-type=2&policy", Code::AccessDenied)]
#[case("PUT", Object, "tagging&acl", Code::AccessDenied)]
#[case("PUT", Object, "retention=", Code::AccessDenied)]
#[case("PUT", Bucket, "acl", Code::AccessDenied)]
#[case("GET", Bucket, "acl&policy", Code::AccessDenied)]
#[case("GET", Bucket, "acl=1", Code::InvalidArgument)]
#[case("GET", Bucket, "list-type=2&versioning", Code::AccessDenied)]
#[case("PUT", Bucket, "versioning", Code::AccessDenied)]
#[case("DELETE", Bucket, "", Code::AccessDenied)]
#[case("DELETE", Bucket, "tagging", Code::AccessDenied)]
#[case("POST", Object, "select&select-type=2", Code::AccessDenied)]
#[case("POST", Object, "restore", Code::AccessDenied)]
#[case("PUT", Bucket, "tagging", Code::AccessDenied)]
#[case("GET", Bucket, "list-type=2&tagging", Code::NotImplemented)]
#[case("GET", Bucket, "ACL", Code::NotImplemented)]
#[case("GET", Object, "something", Code::NotImplemented)]
#[case("GET", Object, "uploadId=u&versionId=v", Code::NotImplemented)]
#[case("PUT", Object, "uploadId=u", Code::NotImplemented)]
#[case("PUT", Object, "append&position=0", Code::NotImplemented)]
#[case("POST", Bucket, "", Code::MalformedPOSTRequest)]
#[case("POST", Bucket, "x-id=PostObject", Code::MalformedPOSTRequest)]
#[case("PUT", Service, "", Code::NotImplemented)]
#[case("POST", Object, "", Code::NotImplemented)]
#[case("TRACE", Object, "", Code::MethodNotAllowed)]
#[case("PATCH", Object, "", Code::MethodNotAllowed)]
#[case("GET", Bucket, "list-type=1", Code::InvalidArgument)]
#[case("GET", Bucket, "prefix=a&prefix=b", Code::InvalidArgument)]
#[case("GET", Bucket, "uploads&%75ploads", Code::InvalidArgument)]
#[case("GET", Bucket, "versions=1", Code::InvalidArgument)]
#[case("PUT", Object, "partNumber=0&uploadId=u", Code::InvalidArgument)]
#[case("PUT", Object, "partNumber=10001&uploadId=u", Code::InvalidArgument)]
#[case("PUT", Object, "partNumber=%2B1&uploadId=u", Code::InvalidArgument)]
#[case("PUT", Object, "partNumber=1&uploadId=", Code::InvalidArgument)]
#[case("DELETE", Object, "uploadId=..%2F..%2Fvictim", Code::InvalidArgument)]
#[case("DELETE", Object, "uploadId=..", Code::InvalidArgument)]
#[case("GET", Object, "versionId=a%2Fb", Code::InvalidArgument)]
#[case("GET", Bucket, "prefix=..%2Fother", Code::InvalidArgument)]
#[case("GET", Bucket, "list-type=2&start-after=a/./b", Code::InvalidArgument)]
#[case("GET", Bucket, "versions&key-marker=..", Code::InvalidArgument)]
#[case("GET", Bucket, "list-type=2&continuation-token=..%2Fother%2F", Code::InvalidArgument)]
#[case("GET", Bucket, "versions&key-marker=a&version-id-marker=..%2Fb", Code::InvalidArgument)]
#[case("GET", Bucket, "uploads&key-marker=a&upload-id-marker=a%2Fb", Code::InvalidArgument)]
#[case("GET", Bucket, "list-type=2&prefix=.sgwtmp/multipart/", Code::InvalidArgument)]
#[case("GET", Bucket, "prefix=a/.uploads/", Code::InvalidArgument)]
#[case("GET", Object, "response-content-type=a%0D%0Ax:%20y", Code::InvalidArgument)]
#[case("HEAD", Object, "response-expires=a%00", Code::InvalidArgument)]
fn what_is_not_known_goes_nowhere(#[case] method: &str, #[case] level: Level, #[case] query: &str, #[case] code: Code) {
    assert_eq!(of(method, level, query), Err(code));
}

#[test]
fn a_source_makes_it_a_copy() {
    let query = parse_query("uploadId=u&partNumber=1").expect("a query");
    let found = Operation::of(&Method::PUT, Object, &query, true).expect("it is known");
    assert_eq!(found.0, Operation::UploadPartCopy);
    assert_eq!(Operation::of(&Method::PUT, Object, &[], true).map(|found| found.0), Ok(Operation::CopyObject));
}

#[test]
fn what_goes_on_is_sorted_and_without_the_spoken_name() {
    let query = parse_query("x-id=ListObjectsV2&prefix=a%20b&list-type=2").expect("a query");
    let (_, query) = Operation::of(&Method::GET, Bucket, &query, false).expect("it is known");
    assert_eq!(query, parse_query("list-type=2&prefix=a%20b").expect("a query"));
}

/// A bucket itself must never be written with the method sent to the store: that would create or
/// delete it. Operations on its configuration don't reach the store.
#[test]
fn no_row_writes_a_bucket() {
    for row in ROWS.iter().filter(|row| !row.operation.is_about_configuration()) {
        let writes = matches!(row.method, Method::PUT | Method::DELETE);
        assert!(row.level == Object || !writes, "{:?}", row.operation);
        assert!(row.method != Method::POST || row.level == Object || row.asks == ["delete"], "{:?}", row.operation);
    }
}

/// If two rows of the same method and level required the same names, the order of the rows would
/// decide.
#[test]
fn no_two_rows_mean_the_same_request() {
    for (at, row) in ROWS.iter().enumerate() {
        for other in ROWS.iter().skip(at + 1).filter(|other| other.method == row.method && other.level == row.level) {
            assert!(row.asks != other.asks, "{:?} and {:?}", row.operation, other.operation);
        }
    }
}
