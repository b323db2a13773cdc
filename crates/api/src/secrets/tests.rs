//! Secrets are read back as written, and `Debug` shows no secret.

use k8s_openapi::ByteString;
use rstest::rstest;

use super::*;
use crate::backend::AddressingStyle;
use crate::consent::{Consent, Prefix};
use crate::identity::{ClaimUid, NamespaceUid};
use crate::names::{BucketName, Endpoint};
use crate::quantity::Bytes;
use crate::sharing::AccessMode;
use crate::wire;

/// A secret key in the format of the operator's keys.
pub(super) const KEY: &str = "s3cr3t-of-a-test-0123456789-abcdefghijkl";

fn record() -> BucketRecord {
    BucketRecord {
        bucket: BucketName::parse("team-a-photos").unwrap(),
        absence: true,
        settled: false,
        generation: 3,
        handled_rotate_request: Some("now".into()),
        handled_revoke_request: Some("leaked".into()),
        revoked_through: 2,
        public: true,
        another: true,
        lowest: Some(2),
        ..BucketRecord::fixture()
    }
}

fn facts() -> CredentialFacts {
    record().key_fixture(3)
}

// covers: 2.record
#[test]
fn a_record_is_read_as_it_was_written() {
    let secret = record().content("stowage-system").to_secret();
    assert_eq!(BucketRecord::read(&secret), Ok(record()));
}

/// Records without this note come from an older version, or from an edit by a user.
// covers: 2.record.lowest
#[test]
fn a_record_without_a_note_of_the_lowest_generation_tells_of_all() {
    for note in [None, Some("x"), Some("0")] {
        let mut secret = record().content("stowage-system").to_secret();
        let data = secret.data.get_or_insert_default();
        data.remove("lowest-generation");
        data.extend(note.map(|note| ("lowest-generation".to_owned(), ByteString(note.into()))));
        let read = BucketRecord::read(&secret).unwrap();
        assert_eq!((read.lowest, read.lowest_generation()), (None, 1));
    }
}

// covers: 2.record.name
#[test]
fn a_record_under_another_name_is_damaged() {
    let mut secret = record().content("stowage-system").to_secret();
    secret.metadata.name = Some("br-0".into());
    assert!(BucketRecord::read(&secret).is_err());
}

// covers: 2.internal.damaged
#[test]
fn a_credential_is_read_only_as_what_it_derives_to() {
    let key = SecretKey::new(KEY.into());
    let secret = facts().content("stowage-system", Some(&key)).to_secret();
    assert_eq!(Credential::read(&secret, &facts().uid, 3).unwrap().secret, key);
    assert!(Credential::read(&secret, &facts().uid, 2).is_err());
    assert!(Credential::read(&secret, &ClaimUid::new("u-2"), 3).is_err());
}

// covers: 2.internal.damaged.secretKey
#[rstest]
#[case::cut("s3cr3t")]
#[case::shorter(&KEY[1..])]
#[case::longer("s3cr3t-of-a-test-0123456789-abcdefghijklm")]
#[case::blank("s3cr3t-of-a-test-0123456789 abcdefghijkl")]
#[case::line_end("s3cr3t-of-a-test-0123456789-abcdefghijk\n")]
#[case::of_another_alphabet("s3cr3t/of+a=test-0123456789-abcdefghijkl")]
#[case::of_forty_bytes("s3cr3t-of-a-test-0123456789-abcdefghij\u{fc}")]
fn a_secret_key_that_the_operator_can_not_have_made_is_damage(#[case] text: &str) {
    let secret = |key: &str| facts().content("stowage-system", Some(&SecretKey::new(key.into()))).to_secret();
    let damaged = DamagedSecret { name: facts().access_key_id().secret_name(), field: "secret_access_key" };
    assert_eq!(Credential::read(&secret(text), &facts().uid, 3), Err(damaged));
    assert_eq!(ServedCredential::read(&secret(text)), Err(NotServed::Unreadable("secret_access_key")));
    assert!(Credential::read(&secret(KEY), &facts().uid, 3).is_ok() && ServedCredential::read(&secret(KEY)).is_ok());
}

// covers: 4.secrecy
#[test]
fn no_debug_output_shows_a_secret_key() {
    let key = SecretKey::new(KEY.into());
    let content = facts().content("stowage-system", Some(&key));
    let credential = Credential::read(&content.to_secret(), &facts().uid, 3).unwrap();
    assert!(!format!("{key:?} {content:?} {credential:?}").contains("s3cr3t"));
}

// covers: 2.labels.long
#[test]
fn values_too_long_for_a_label_stand_whole_in_an_annotation() {
    let mut record = record();
    record.claim.name = "x".repeat(200);
    let content = record.content("stowage-system");
    assert_eq!(content.labels[wire::CLAIM_NAME].len(), 63);
    assert_eq!(content.annotations[wire::CLAIM_NAME], record.claim.name);
}

#[test]
fn a_consumer_secret_has_no_other_keys_than_those_that_are_named() {
    let quota = Some(Bytes::MAX);
    let facts = CredentialFacts { quota_soft: quota, quota_hard: quota, ..facts() };
    let key = SecretKey::new(KEY.into());
    let secret = facts.content("stowage-system", Some(&key)).to_secret();
    let credential = Credential::read(&secret, &facts.uid, 3).unwrap();
    let gateway = Gateway {
        endpoint: Endpoint::parse("http://gateway.example").unwrap(),
        region: "us-east-1".into(),
        addressing_style: AddressingStyle::Path,
        ca: None,
    };
    let content = ConsumerContent {
        facts: &facts,
        credential: &credential,
        gateway: &gateway,
        name: "photos-s3",
        shaped: Shaped::PLAIN,
    };
    // Only the Secret of an access has the names of several buckets.
    let mut keys = ConsumerContent::KEYS.to_vec();
    keys.retain(|key| *key != "BUCKET_NAMES");
    keys.sort_unstable();
    assert_eq!(content.content().unwrap().data.into_keys().collect::<Vec<_>>(), keys);
}

/// Returns the longest consents that `sharing` allows. In JSON a quote takes two bytes.
fn long_consents() -> Vec<Consent> {
    let prefix = |rule: usize, number: usize| Prefix::parse(&format!("{rule}-{number}{}/", "\"".repeat(58))).unwrap();
    (0..8)
        .map(|rule| (0..8).map(|number| prefix(rule, number)).collect())
        .map(|prefixes| Consent { max_mode: AccessMode::ReadOnly, prefixes })
        .collect()
}

fn namespace_uid(number: usize) -> NamespaceUid {
    NamespaceUid::new(format!("6f9619ff-8b86-4011-b42d-{number:012}"))
}

// covers: 8.map.bound
#[test]
fn the_accesses_of_a_record_have_a_bound_and_each_consent_stands_there_once() {
    let with = |accesses| BucketRecord { accesses, ..record() };
    let text = |record: &BucketRecord| BucketRecord::accesses_text(&record.accesses);
    let read = |record: &BucketRecord| BucketRecord::read(&record.content("stowage-system").to_secret());

    let consents = long_consents();
    let all = (0..2000).map(|number| (namespace_uid(number), consents[number % 8].clone()));
    let many = with(BucketRecord::bounded_accesses(all.collect()));
    assert!(text(&many).len() <= BucketRecord::LONGEST_ACCESSES, "{}", text(&many).len());
    assert!((1000..2000).contains(&many.accesses.len()), "{}", many.accesses.len());
    assert!(many.accesses.contains_key(&namespace_uid(0)) && !many.accesses.contains_key(&namespace_uid(1999)));
    assert_eq!(read(&many).as_ref(), Ok(&many));

    let each = |number| {
        let prefixes = vec![Prefix::parse(&format!("{number}{}/", "x".repeat(250))).unwrap()];
        (namespace_uid(number), Consent { max_mode: AccessMode::ReadWrite, prefixes })
    };
    let different = with(BucketRecord::bounded_accesses((0..1000).map(each).collect()));
    assert!(text(&different).len() <= BucketRecord::LONGEST_ACCESSES && different.accesses.len() > 40);
    assert_eq!(read(&different).as_ref(), Ok(&different));
}

/// An invalid entry grants no consent.
// covers: 8.map
#[rstest]
#[case::another_of_the_same(r#"{"a": {"maxMode": "ReadOnly"}, "b": 0}"#, &["a", "b"])]
#[case::a_later_one(r#"{"a": 1, "b": {"maxMode": "ReadOnly"}}"#, &["a", "b"])]
#[case::no_such_place(r#"{"a": {"maxMode": "ReadOnly"}, "b": 2}"#, &["a"])]
#[case::itself(r#"{"a": {"maxMode": "ReadOnly"}, "b": 1}"#, &["a"])]
#[case::one_that_says_nothing_itself(r#"{"a": {"maxMode": "ReadOnly"}, "b": 0, "c": 1}"#, &["a", "b"])]
#[case::one_that_can_not_be_read(r#"{"a": {"maxMode": "Unheard"}, "b": 0}"#, &[])]
#[case::no_number_of_a_place(r#"{"a": {"maxMode": "ReadOnly"}, "b": -1, "c": 0.5, "d": "0"}"#, &["a"])]
fn consent_that_is_that_of_another_namespace_is_read(#[case] text: &str, #[case] open: &[&str]) {
    let mut secret = record().content("stowage-system").to_secret();
    let text = ByteString(text.as_bytes().to_vec());
    secret.data.get_or_insert_default().insert(BucketRecord::ACCESSES.to_owned(), text);
    let read = BucketRecord::read(&secret).unwrap().accesses;
    assert_eq!(read.keys().map(NamespaceUid::as_str).collect::<Vec<_>>(), open);
    assert!(read.values().all(|consent| consent.max_mode == AccessMode::ReadOnly && consent.prefixes.is_empty()));
}
