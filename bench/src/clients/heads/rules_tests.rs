use rstest::rstest;

use super::super::recorder::Received;
use super::*;

fn grant(is_read_only: bool, prefix: &'static str) -> Grant {
    Grant { is_read_only, prefix }
}

/// Rights of the claim's key.
fn owner() -> Rights {
    Rights { buckets: [("photos".to_owned(), grant(false, ""))].into(), pins: false }
}

/// Rights of an access: a part of one bucket, and the current objects of another.
fn guest() -> Rights {
    let buckets = [("photos".to_owned(), grant(false, "shared/")), ("films".to_owned(), grant(true, ""))];
    Rights { buckets: buckets.into(), pins: true }
}

fn judged(head: &str, body: &str, rights: &Rights) -> Result<(), String> {
    let received =
        Received { head: head.replace('|', "\r\n").into_bytes(), body: body.as_bytes().to_vec(), is_whole: true };
    check(&Read::of(&received).unwrap(), rights)
}

const COPY: &str = "PUT /photos/shared/b HTTP/1.1|x-amz-copy-source";

#[rstest]
#[case("GET /photos/a HTTP/1.1|host: a|range: bytes=0-1", owner())]
#[case("GET /photos/a//b/?versionId=x HTTP/1.1", owner())]
#[case("DELETE /photos//a?versionId=x HTTP/1.1", owner())]
#[case("GET /photos?versioning= HTTP/1.1", guest())]
#[case("PUT /photos/a HTTP/1.1|content-length: 0|x-amz-meta-a: 1|x-amz-meta-a: 2", owner())]
#[case("GET /photos?prefix=shared%2Fx&marker=shared%2Fa HTTP/1.1|host: a", guest())]
#[case("GET /films/reel HTTP/1.1", guest())]
#[case("HEAD /photos HTTP/1.1", guest())]
#[case("PUT /photos/shared/b HTTP/1.1|x-amz-copy-source: /films/reel|x-amz-copy-source-if-match: \"a\"", guest())]
#[case("PUT /photos/b HTTP/1.1|x-amz-copy-source: /photos/a%3Fb?versionId=x", owner())]
fn what_a_key_opens_is_in_order(#[case] head: &str, #[case] rights: Rights) {
    assert_eq!(judged(head, "", &rights), Ok(()));
}

#[rstest]
#[case("GET /films/reel HTTP/1.1", owner(), "bucket \"films\", which the key doesn't open")]
#[case("GET /photos/a HTTP/1.1", guest(), "the key \"a\", beyond what the key opens")]
#[case("GET /photos/shared/../a HTTP/1.1", guest(), "the key \"shared/../a\", with a way through folders")]
#[case("DELETE /photos/%2e%2e/films/reel HTTP/1.1", owner(), "the key \"../films/reel\", with a way through folders")]
#[case("DELETE /photos// HTTP/1.1", owner(), "the key \"/\", of slashes alone")]
#[case("PUT /photos/.sgwtmp/hidden HTTP/1.1", owner(), "the key \".sgwtmp/hidden\", with a name that stores keep")]
#[case("GET /photos/a.versions/x HTTP/1.1", owner(), "the key \"a.versions/x\", with a name that stores keep")]
#[case("GET /photos/%ff HTTP/1.1", owner(), "a key that is not UTF-8")]
#[case("GET /photos/a%01 HTTP/1.1", owner(), "the key \"a\\u{1}\", with a character that no list can have")]
#[case("PUT /photos/a//b HTTP/1.1", owner(), "the key \"a//b\", with an empty segment")]
#[case("DELETE /photos//a HTTP/1.1", owner(), "the key \"/a\", with an empty segment")]
#[case("GET /films/reel?versionId=x HTTP/1.1", guest(), "GetObject of a bucket that is only read")]
#[case("GET /films?versions HTTP/1.1", guest(), "ListObjectVersions of a bucket that is only read")]
#[case("PUT /films/reel HTTP/1.1", guest(), "PutObject of a bucket that is only read")]
#[case("GET /photos/a?versionId=.. HTTP/1.1", owner(), "the id \"..\"")]
#[case("GET /photos/a?uploadId=a%2Fb HTTP/1.1", owner(), "the id \"a/b\"")]
#[case("GET /photos HTTP/1.1", guest(), "a list of \"\", beyond \"shared/\"")]
#[case("GET /photos?prefix=secret%2F HTTP/1.1", guest(), "a list of \"secret/\", beyond \"shared/\"")]
#[case("GET /photos?prefix=..%2Ffilms HTTP/1.1", owner(), "a list from \"../films\"")]
#[case("GET /photos?marker=a%2F.. HTTP/1.1", owner(), "a list from \"a/..\"")]
#[case("GET /photos?marker=.sgwtmp%2Fa HTTP/1.1", owner(), "a list from \".sgwtmp/a\"")]
#[case("GET /photos/a HTTP/1.1|x-amz-acl: private", owner(), "the header x-amz-acl with GetObject")]
#[case("GET /photos/a HTTP/1.1|x-amz-meta-a: b", owner(), "the header x-amz-meta-a with GetObject")]
#[case("PUT /photos/a HTTP/1.1|x-minio-extract: true", owner(), "the header x-minio-extract with PutObject")]
#[case("PUT /photos/a HTTP/1.1|transfer-encoding: chunked", owner(), "the header transfer-encoding with PutObject")]
#[case("PUT /photos/a HTTP/1.1|x-amz-expected-bucket-owner: a", owner(), "the header x-amz-expected-bucket-owner")]
#[case("GET /photos/a HTTP/1.1|content-length: 3", owner(), "the header content-length with GetObject")]
#[case("GET /photos/a HTTP/1.1|range: bytes=0-1|range: bytes=2-3", owner(), "the header range twice")]
#[case("PUT /photos/a HTTP/1.1|content-encoding: gzip, aws-chunked", owner(), "the framing as an encoding")]
fn what_is_beyond_it_is_seen(#[case] head: &str, #[case] rights: Rights, #[case] why: &str) {
    let found = judged(head, "", &rights).unwrap_err();
    assert!(found.starts_with(why), "{found}");
}

#[rstest]
#[case("/other/a", "a source in bucket \"other\"")]
#[case("/photos/a", "as a source the key \"a\", beyond what the key opens")]
#[case("/photos/shared/../a", "as a source the key \"shared/../a\", with a way through folders")]
#[case("/films/.minio.sys/a", "as a source the key \".minio.sys/a\", with a name that stores keep")]
#[case("/films/reel?versionId=x", "the version \"x\" of a source that is only read")]
#[case("/films/reel%3FversionId%3Dx", "the source \"/films/reel%3FversionId%3Dx\", which is read as")]
#[case("/films/reel?acl", "the source \"/films/reel?acl\"")]
#[case("/films", "the source \"/films\"")]
#[case("/films/reel|x-amz-copy-source: /films/a", "the header x-amz-copy-source twice")]
#[case("/films/reel", "a source that is not pinned")]
#[case("/films/reel|x-amz-copy-source-if-match: *", "a source that is not pinned")]
#[case("/films/reel|x-amz-copy-source-if-match: \"a\", \"b\"", "a source that is not pinned")]
#[case("/films/reel|x-amz-copy-source-range: bytes=0-0", "the header x-amz-copy-source-range with CopyObject")]
fn a_source_is_the_guests_and_pinned(#[case] source: &str, #[case] why: &str) {
    let found = judged(&format!("{COPY}: {source}"), "", &guest()).unwrap_err();
    assert!(found.starts_with(why), "{found}");
}

#[test]
fn a_part_of_a_source_is_from_here_to_there() {
    let judged = |range: &str| {
        let target = "PUT /photos/b?partNumber=1&uploadId=x HTTP/1.1|x-amz-copy-source: /photos/a";
        judged(&format!("{target}|x-amz-copy-source-range: {range}"), "", &owner())
    };
    assert_eq!(judged("bytes=0-3"), Ok(()));
    assert_eq!(judged("bytes=3-0"), Err("the range \"bytes=3-0\" of a source".to_owned()));
    assert_eq!(judged("bytes=0-"), Err("the range \"bytes=0-\" of a source".to_owned()));
}

const DELETE: &str = "POST /photos?delete= HTTP/1.1|content-type: application/xml|content-md5: a";
const COMPLETE: &str = "POST /photos/shared/a?uploadId=x HTTP/1.1|content-type: application/xml";
const TAG: &str = "PUT /photos/shared/a?tagging= HTTP/1.1|content-type: application/xml";

#[rstest]
#[case(DELETE, "<Delete><Object><Key>shared/a</Key><VersionId>x</VersionId></Object><Quiet>true</Quiet></Delete>")]
#[case(
    COMPLETE,
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>"
)]
#[case(TAG, "<Tagging><TagSet><Tag><Key>a</Key><Value>..</Value></Tag></TagSet></Tagging>")]
fn a_document_of_what_a_key_opens_is_in_order(#[case] head: &str, #[case] body: &str) {
    assert_eq!(judged(head, body, &guest()), Ok(()));
}

#[rstest]
#[case(DELETE, "<Delete><Object><Key>a</Key></Object></Delete>", "the key \"a\", beyond what the key opens")]
#[case(DELETE, "<Delete><Object><Key>shared/../a</Key></Object></Delete>", "the key \"shared/../a\", with a way")]
#[case(DELETE, "<Delete><Object><Key>shared/&#46;./a</Key></Object></Delete>", "the key \"shared/../a\", with a way")]
#[case(
    DELETE,
    "<Delete><Object><Key>shared/.sgwtmp/a</Key></Object></Delete>",
    "the key \"shared/.sgwtmp/a\", with a name"
)]
#[case(
    DELETE,
    "<Delete><Object><Key>shared//a</Key></Object></Delete>",
    "the key \"shared//a\", with an empty segment"
)]
#[case(DELETE, "<Delete><Object><Key></Key></Object></Delete>", "the key \"\", beyond")]
#[case(DELETE, "<Delete><Object><Key>shared/a</Key><VersionId>../b</VersionId></Object></Delete>", "the id \"../b\"")]
#[case(DELETE, "<Delete><Object><Key>shared/a</Key><Key>b</Key></Object></Delete>", "<Key> twice")]
#[case(DELETE, "<Delete><Object><Key>shared/a</Key><Extra/></Object></Delete>", "<Extra> in <Object>")]
#[case(DELETE, "<Delete><Object/></Delete>", "an object without a key")]
#[case(DELETE, "<Delete></Delete>", "0 objects")]
#[case(
    DELETE,
    "<Delete><Object><Key><![CDATA[shared/a]]></Key></Object></Delete>",
    "a section, comment or document type"
)]
#[case(DELETE, "<!DOCTYPE a><Delete/>", "a section, comment or document type")]
#[case(DELETE, "<Tagging/>", "a document <Tagging>")]
#[case(DELETE, "", "a document")]
#[case(COMPLETE, "<CompleteMultipartUpload><Part><Key>a</Key></Part></CompleteMultipartUpload>", "<Key> in <Part>")]
#[case(TAG, "<Tagging><TagSet><Tag><Key>a</Key><Key>b</Key></Tag></TagSet></Tagging>", "<Key> twice")]
#[case("DELETE /photos/shared/a HTTP/1.1", "a", "a body with DeleteObject")]
#[case("POST /photos/shared/a?uploads= HTTP/1.1", "a", "a body with CreateMultipartUpload")]
fn what_a_document_says_beyond_it_is_seen(#[case] head: &str, #[case] body: &str, #[case] why: &str) {
    let found = judged(head, body, &guest()).unwrap_err();
    assert!(found.starts_with(why), "{found}");
}

#[test]
fn versions_in_a_document_are_for_who_may_have_them() {
    let head = DELETE.replace("photos", "films");
    let body = "<Delete><Object><Key>reel</Key><VersionId>x</VersionId></Object></Delete>";
    assert_eq!(judged(&head, body, &guest()), Err("DeleteObjects of a bucket that is only read".to_owned()));
}
