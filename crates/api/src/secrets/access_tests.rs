use serde_json::json;

use super::super::tests::KEY;
use super::super::{NotServed, ServedAccess};
use super::*;

fn scope(bucket: &str, prefix: Option<&str>) -> AccessScope {
    AccessScope {
        bucket: BucketName::parse(bucket).expect("a name"),
        backend: "main".to_owned(),
        endpoint: Endpoint::parse("http://s3.example").expect("a URL"),
        claim: Some(ClaimUid::new("c-1")),
        mode: AccessMode::ReadOnly,
        prefix: prefix.map(|text| Prefix::parse(text).expect("a prefix")),
    }
}

fn facts() -> AccessCredentialFacts {
    AccessCredentialFacts {
        access: AccessRef { namespace: "team-b".into(), name: "reader".into() },
        uid: AccessUid::new("a-1"),
        generation: 2,
        scopes: vec![scope("photos", Some("in/")), scope("films", None)],
    }
}

// covers: 8.key
#[test]
fn a_key_of_an_access_is_none_that_older_versions_read() {
    let content = facts().content("stowage-system", Some(&SecretKey::new(KEY.into())));
    assert!(content.name.starts_with("va-akia"), "{}", content.name);
    assert_eq!(content.labels[wire::ROLE], "access-credential");
    assert!(!content.labels.contains_key(wire::CLAIM_UID));
    let keys: Vec<&str> = content.data.keys().copied().collect();
    assert_eq!(keys, ["access_key_id", "access_uid", "scopes", "secret_access_key"]);
}

#[test]
fn what_is_written_is_read_back() {
    let secret = facts().content("stowage-system", Some(&SecretKey::new(KEY.into()))).to_secret();
    assert_eq!(AccessCredentialFacts::scopes_of(&secret), facts().scopes);
    let credential = AccessCredential::read(&secret, &AccessUid::new("a-1"), 2).expect("it is whole");
    assert_eq!(credential.secret.expose(), KEY);
    assert!(AccessCredential::read(&secret, &AccessUid::new("a-2"), 2).is_err());
    let record = AccessRecord {
        access: facts().access,
        uid: facts().uid,
        namespace_uid: NamespaceUid::new("n-1"),
        generation: 7,
        handled_rotate_request: Some("now".into()),
        handled_revoke_request: None,
        revoked_through: 3,
        lowest: 4,
    };
    let mut secret = record.content("stowage-system").to_secret();
    assert_eq!(AccessRecord::read(&secret), Ok(record));
    secret.metadata.name = Some("ar-of-another".into());
    assert!(AccessRecord::read(&secret).is_err(), "under another name it proves nothing");
}

// covers: 8.scope.closed
#[test]
fn a_scope_that_can_not_be_read_opens_nothing_and_closes_no_other() {
    let good = json!({"bucket": "films", "backend": "main", "endpoint": "http://s3.example", "mode": "ReadOnly"});
    let with = |field: &str, value: serde_json::Value| {
        let mut scope = good.clone();
        scope["bucket"] = json!("photos");
        scope[field] = value;
        scope
    };
    for bad in [
        with("mode", json!("Everything")),
        with("mode", json!(null)),
        with("prefix", json!("in")),
        with("until", json!("later")),
        with("endpoint", json!("nowhere")),
    ] {
        let read = scopes(&json!([bad, good]).to_string()).expect("a list");
        assert_eq!(read.iter().map(|it| it.bucket.as_str()).collect::<Vec<_>>(), ["films"], "{bad}");
    }
    assert_eq!(scopes(&json!([good, good]).to_string()), Some(Vec::new()), "of two for one name neither counts");
    assert_eq!(scopes("{}"), None);
}

// covers: 2.internal.damaged.secretKey
#[test]
fn a_secret_key_that_the_operator_can_not_have_made_is_damage() {
    let secret = facts().content("stowage-system", Some(&SecretKey::new("x".into()))).to_secret();
    let damaged = AccessCredential::read(&secret, &facts().uid, 2).expect_err("it is too short");
    assert_eq!(damaged.field, "secret_access_key");
    assert_eq!(ServedAccess::read(&secret), Err(NotServed::Unreadable("secret_access_key")));
}

// covers: 8.consumer
#[test]
fn one_bucket_stands_where_a_claims_does_and_several_in_a_list() {
    let gateway = Gateway {
        endpoint: Endpoint::parse("http://gateway.example").expect("a URL"),
        region: "us-east-1".into(),
        addressing_style: crate::AddressingStyle::Path,
        ca: None,
    };
    let secret = facts().content("stowage-system", Some(&SecretKey::new(KEY.into()))).to_secret();
    let credential = AccessCredential::read(&secret, &facts().uid, 2).expect("it is whole");
    let names: Vec<BucketName> = facts().scopes.into_iter().map(|scope| scope.bucket).collect();
    let data = |buckets: &[BucketName]| {
        let facts = facts();
        let (access, uid) = (&facts.access, &facts.uid);
        AccessConsumer {
            access,
            uid,
            credential: &credential,
            buckets,
            gateway: &gateway,
            name: "s",
            shaped: Shaped::PLAIN,
        }
        .content()
        .expect("it fits")
        .data
    };
    let one = data(&names[..1]);
    assert_eq!((one["BUCKET_NAME"].as_slice(), one.get("BUCKET_NAMES")), (b"photos".as_slice(), None));
    let both = data(&names);
    assert_eq!((both["BUCKET_NAMES"].as_slice(), both.get("BUCKET_NAME")), (b"photos,films".as_slice(), None));
    assert_eq!(both["AWS_ENDPOINT_URL"], b"http://gateway.example");
}
