//! Requests about a bucket's configuration: a tenant has none, and gets S3's errors for that.

use rstest::rstest;
use serde_json::json;
use stowage_api::{BucketRecord, ClaimUid, Endpoint};

use crate::{Ask, KEY, STORE, SYSTEM, Stage, answer, ask, code};

// covers: 6.configuration
#[rstest]
#[case(ask("PUT", "/photos").sending("<CreateBucketConfiguration/>"), 409, "BucketAlreadyOwnedByYou")]
#[case(ask("PUT", "/photos"), 409, "BucketAlreadyOwnedByYou")]
#[case(ask("GET", "/photos?tagging"), 404, "NoSuchTagSet")]
#[case(ask("GET", "/photos?encryption"), 404, "ServerSideEncryptionConfigurationNotFoundError")]
#[case(ask("GET", "/photos?object-lock"), 404, "ObjectLockConfigurationNotFoundError")]
#[case(ask("GET", "/photos?publicAccessBlock"), 404, "NoSuchPublicAccessBlockConfiguration")]
#[case(ask("GET", "/photos?acl"), 200, "none")]
#[case(ask("GET", "/photos/a?acl"), 200, "none")]
#[case(ask("GET", "/other?acl"), 403, "AccessDenied")]
#[case(ask("GET", "/other/a?acl"), 403, "AccessDenied")]
#[case(ask("GET", "/other?tagging"), 403, "AccessDenied")]
#[case(ask("GET", "/other?versioning"), 403, "AccessDenied")]
#[case(ask("PUT", "/other"), 403, "AccessDenied")]
#[case(ask("PUT", "/photos?acl").sending(""), 403, "AccessDenied")]
#[case(ask("PUT", "/photos?versioning").sending(""), 403, "AccessDenied")]
#[case(ask("DELETE", "/photos?tagging"), 403, "AccessDenied")]
#[tokio::test]
async fn nothing_is_configured_and_the_store_is_not_asked(
    #[case] request: Ask,
    #[case] status: u16,
    #[case] expected: &str,
) {
    let stage = Stage::new().await;
    let (found, _, text) = stage.signed(request).await;
    assert_eq!((found.as_u16(), code(&text)), (status, expected), "{text}");
    let owner = text.contains("<ID>stowage</ID>") && text.contains("<Permission>FULL_CONTROL</Permission>");
    assert_eq!(owner, status == 200, "{text}");
    assert!(stage.asked().is_empty());
}

// covers: 6.configuration
#[tokio::test]
async fn the_store_says_whether_it_keeps_versions() {
    let stage = Stage::new().await;
    stage.store_answers(|_| {
        answer(200, &[], "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
    });
    let (status, _, text) = stage.signed(ask("GET", "/photos?versioning")).await;
    assert!(status.is_success() && text.contains("<Status>Enabled</Status>"), "{text}");
    assert_eq!(stage.only().line(), "GET /photos?versioning=");
}

// covers: 6.configuration
#[tokio::test]
async fn a_bucket_was_made_when_its_record_was() {
    let stage = Stage::new().await;
    let record = BucketRecord {
        uid: ClaimUid::new("uid-of-photos"),
        endpoint: Endpoint::parse(STORE).expect("a URL"),
        ..BucketRecord::fixture()
    };
    let (_, _, text) = stage.signed(ask("GET", "/")).await;
    assert!(text.contains("<CreationDate>1970-01-01T00:00:00.000Z</CreationDate>"), "{text}");
    let secret = record.content(SYSTEM).to_secret();
    let name = secret.metadata.name.clone().expect("it has a name");
    stage.internal(&name, serde_json::to_value(secret).expect("it is JSON"));
    // The watch delivers events in order, so the record is known once the later key is.
    stage.credential("AKIALATER", "photos", json!({}));
    stage.until(|stage| stage.knows("AKIALATER")).await;
    let (_, _, text) = stage.signed_as(KEY, ask("GET", "/")).await;
    assert!(text.contains("<CreationDate>2030-01-01T00:00:00.000Z</CreationDate>"), "{text}");
}

// covers: 6.headers
#[rstest]
#[case("x-amz-acl", "")]
#[case("x-amz-acl", "private")]
#[case("x-amz-acl", "bucket-owner-full-control")]
#[case("x-amz-server-side-encryption-bucket-key-enabled", "true")]
#[tokio::test]
async fn a_header_that_asks_for_nothing_is_dropped(#[case] name: &'static str, #[case] value: &str) {
    let stage = Stage::new().await;
    let (status, _, text) = stage.signed(ask("PUT", "/photos/a").with(name, value).sending("")).await;
    assert!(status.is_success(), "{text}");
    assert_eq!(stage.only().header(name), None);
}
