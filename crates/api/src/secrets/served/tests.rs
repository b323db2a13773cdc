use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

use super::super::CredentialFacts;
use super::super::tests::KEY;
use super::*;
use crate::quantity::{Bytes, Quantity};

const UID: &str = "u-1";

fn claim_ref() -> ClaimRef {
    record().claim
}

fn here() -> Endpoint {
    record().endpoint
}

fn record() -> BucketRecord {
    BucketRecord { generation: 3, ..BucketRecord::fixture() }
}

fn facts() -> CredentialFacts {
    let (quota_soft, quota_hard) = (Quantity::Int(5).bytes().ok(), Some(Bytes::MAX));
    CredentialFacts { quota_soft, quota_hard, ..record().key_fixture(3) }
}

fn credential() -> Secret {
    facts().content("stowage-system", Some(&SecretKey::new(KEY.into()))).to_secret()
}

fn binding() -> Secret {
    record().binding_fixture(5).content("stowage-system").to_secret()
}

fn set(mut secret: Secret, key: &str, value: impl Into<Vec<u8>>) -> Secret {
    secret.data.get_or_insert_default().insert(key.to_owned(), ByteString(value.into()));
    secret
}

fn without(mut secret: Secret, key: &str) -> Secret {
    secret.data.get_or_insert_default().remove(key);
    secret
}

fn deleted(mut secret: Secret) -> Secret {
    secret.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    secret
}

fn stamped(text: &str) -> Secret {
    let mut secret = credential();
    secret.metadata.annotations.get_or_insert_default().insert(wire::EXPIRES_AT.to_owned(), text.to_owned());
    secret
}

#[test]
fn what_the_operator_writes_is_served() {
    let read = ServedCredential::read(&credential()).unwrap();
    assert_eq!((read.id.as_str(), read.secret.expose()), (facts().access_key_id().as_str(), KEY));
    assert_eq!((read.claim, read.uid.as_str(), read.generation), (Some(claim_ref()), UID, Some(3)));
    assert_eq!(read.quota, Ok(Limits { soft: facts().quota_soft, hard: facts().quota_hard }));
    assert_eq!((read.endpoint, read.expires_at), (Some(here()), None));
    let read = ServedCredential::read(&credential()).unwrap();
    assert_eq!(read.scope("photos").map(|scope| scope.backend.as_str()), Some("main"));
    assert_eq!(read.scope("photo"), None);

    let read = ServedBinding::read(&binding()).unwrap();
    assert_eq!((read.bucket.as_str(), read.backend.as_str(), read.per_source_ip_rps), ("photos", "main", 5));
    assert_eq!((read.claim, read.uid.as_str(), read.endpoint), (Some(claim_ref()), UID, Some(here())));

    let mut secret = record().content("stowage-system").to_secret();
    assert_eq!(ServedRecord::read(&secret).unwrap().since, None);
    secret.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let read = ServedRecord::read(&deleted(secret)).expect("it holds its bucket until it is gone");
    assert_eq!((read.endpoint, read.since), (record().endpoint, Some(Timestamp::UNIX_EPOCH)));
}

#[rstest]
#[case("2026-11-20T10:00:00Z", 0, true)]
#[case("2026-11-20T10:00:00Z", -1, false)]
#[case("2026-11-20T11:00:00+01:00", 0, true)]
fn a_key_ends_at_its_time(#[case] stamp: &str, #[case] nanoseconds: i64, #[case] expired: bool) {
    let end: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
    let now = end + k8s_openapi::jiff::SignedDuration::from_nanos(nanoseconds);
    assert_eq!(ServedCredential::read(&stamped(stamp)).unwrap().is_expired(now), expired);
}

#[rstest]
#[case(without(credential(), "access_key_id"), NotServed::Missing("access_key_id"))]
#[case(set(credential(), "access_key_id", "AKIAOTHER"), NotServed::ForeignName)]
#[case(set(credential(), "access_key_id", "x".repeat(129)), NotServed::TooLong("access_key_id"))]
#[case(set(credential(), "secret_access_key", ""), NotServed::Missing("secret_access_key"))]
#[case(set(credential(), "secret_access_key", [0xff]), NotServed::Unreadable("secret_access_key"))]
#[case(set(credential(), "secret_access_key", "x".repeat(257)), NotServed::TooLong("secret_access_key"))]
#[case(without(credential(), "claim_uid"), NotServed::Missing("claim_uid"))]
#[case(without(credential(), "bucket_scopes"), NotServed::Missing("bucket_scopes"))]
#[case(set(credential(), "bucket_scopes", "photos"), NotServed::Unreadable("bucket_scopes"))]
#[case(set(credential(), "bucket_scopes", r#"[{"bucket":"photos"}]"#), NotServed::Unreadable("bucket_scopes"))]
#[case(
    set(credential(), "bucket_scopes", r#"[{"bucket":"photos","backend":"main","mode":"ReadOnly"}]"#),
    NotServed::Unreadable("bucket_scopes")
)]
#[case(
    set(credential(), "bucket_scopes", r#"[{"bucket":"../x","backend":"main"}]"#),
    NotServed::Unreadable("bucket_scopes")
)]
#[case(
    set(credential(), "bucket_scopes", r#"[{"bucket":"photos","backend":""}]"#),
    NotServed::Unreadable("bucket_scopes")
)]
#[case(
    set(credential(), "bucket_scopes", format!("[{}]", vec![r#"{"bucket":"abc","backend":"b"}"#; 65].join(","))),
    NotServed::TooLong("bucket_scopes")
)]
#[case(set(credential(), "bucket_scopes", " ".repeat(16_385)), NotServed::TooLong("bucket_scopes"))]
#[case(set(credential(), "endpoint", ""), NotServed::Unreadable("endpoint"))]
#[case(set(credential(), "endpoint", "s3.example"), NotServed::Unreadable("endpoint"))]
#[case(stamped("soon"), NotServed::Expiry)]
#[case(stamped(""), NotServed::Expiry)]
#[case(deleted(credential()), NotServed::Deleted)]
fn a_credential_counts_whole_or_not_at_all(#[case] secret: Secret, #[case] why: NotServed) {
    assert_eq!(ServedCredential::read(&secret), Err(why));
}

#[test]
fn a_name_is_bound_to_its_key() {
    let mut secret = credential();
    secret.metadata.name = Some("vc-other".to_owned());
    assert_eq!(ServedCredential::read(&secret), Err(NotServed::ForeignName));
    let mut secret = binding();
    secret.metadata.name = Some("ab-u-2".to_owned());
    assert_eq!(ServedBinding::read(&secret), Err(NotServed::ForeignName));
    let mut secret = record().content("stowage-system").to_secret();
    secret.metadata.name = Some("br-0".to_owned());
    assert!(ServedRecord::read(&secret).is_err());
}

#[rstest]
#[case("1.5Gi")]
#[case("")]
#[case("-1")]
#[case("8070450532247928833")]
#[case("100000000000000000000000")]
fn a_quota_that_cannot_be_read_is_known_as_that(#[case] text: &str) {
    for key in ["quota_soft_bytes", "quota_hard_bytes"] {
        let read = ServedCredential::read(&set(credential(), key, text)).expect("its key opens all the same");
        assert!(matches!(read.quota, Err(NotServed::Unreadable(it) | NotServed::TooLong(it)) if it == key));
    }
}

#[test]
fn without_a_quota_there_is_no_limit() {
    let secret = without(without(credential(), "quota_soft_bytes"), "quota_hard_bytes");
    assert_eq!(ServedCredential::read(&secret).unwrap().quota, Ok(Limits::default()));
}

#[rstest]
#[case(set(binding(), "anonymous_mode", "ReadWrite"), NotServed::Unreadable("anonymous_mode"))]
#[case(without(binding(), "anonymous_mode"), NotServed::Missing("anonymous_mode"))]
#[case(without(binding(), "bucket_name"), NotServed::Missing("bucket_name"))]
#[case(set(binding(), "bucket_name", "Photos"), NotServed::Unreadable("bucket_name"))]
#[case(set(binding(), "backend", "x".repeat(254)), NotServed::TooLong("backend"))]
#[case(set(binding(), "anonymous_per_source_ip_rps", "-5"), NotServed::Unreadable("anonymous_per_source_ip_rps"))]
#[case(set(binding(), "endpoint", "x".repeat(2049)), NotServed::TooLong("endpoint"))]
#[case(deleted(binding()), NotServed::Deleted)]
fn a_binding_counts_whole_or_not_at_all(#[case] secret: Secret, #[case] why: NotServed) {
    assert_eq!(ServedBinding::read(&secret), Err(why));
}

#[rstest]
#[case("claim_name", NotServed::TooLong("claim_name"))]
#[case("endpoint", NotServed::TooLong("endpoint"))]
#[case("generation", NotServed::Unreadable("generation"))]
fn what_is_kept_of_a_record_has_a_bound(#[case] key: &str, #[case] why: NotServed) {
    let secret = set(record().content("stowage-system").to_secret(), key, "x".repeat(1 << 16));
    assert_eq!(ServedRecord::read(&secret), Err(why));
}

/// Operators of earlier versions wrote no endpoint. Any spelling is accepted.
#[test]
fn where_a_bucket_is_need_not_be_told() {
    let secrets = [credential(), binding()].map(|secret| without(secret, "endpoint"));
    assert_eq!(ServedCredential::read(&secrets[0]).unwrap().endpoint, None);
    assert_eq!(ServedBinding::read(&secrets[1]).unwrap().endpoint, None);
    let here = Some(here());
    let secrets = [credential(), binding()].map(|secret| set(secret, "endpoint", "http://S3.example:80/"));
    assert_eq!(ServedCredential::read(&secrets[0]).unwrap().endpoint, here);
    assert_eq!(ServedBinding::read(&secrets[1]).unwrap().endpoint, here);
}

#[test]
fn the_claim_is_named_whole_where_a_label_has_no_room() {
    let claim = ClaimRef { name: "x".repeat(200), ..claim_ref() };
    let mut secret = CredentialFacts { claim: claim.clone(), ..facts() }
        .content("stowage-system", Some(&SecretKey::new(KEY.into())))
        .to_secret();
    assert_eq!(ServedCredential::read(&secret).unwrap().claim, Some(claim));
    secret.metadata.annotations = Some([(wire::CLAIM_NAME.to_owned(), "another".to_owned())].into());
    let read = ServedCredential::read(&secret).unwrap().claim.unwrap();
    assert_eq!(read.name.len(), 63, "what the label was not shortened from does not count");
    secret.metadata.labels = None;
    let read = ServedCredential::read(&secret).expect("it opens all the same");
    assert_eq!((read.claim, read.generation), (None, None));
}

// covers: 4.secrecy
#[test]
fn neither_what_is_served_nor_an_error_shows_a_secret_key() {
    let read = ServedCredential::read(&credential()).unwrap();
    let error = ServedCredential::read(&set(credential(), "bucket_scopes", "s3cr3t")).unwrap_err();
    assert!(!format!("{read:?} {error} {error:?}").contains("s3cr3t"));
}
