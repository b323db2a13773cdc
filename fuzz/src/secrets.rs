//! Internal Secrets. A line `field=value` of an input is a field of a Secret's data, except that
//! `name` is the Secret's name and `key` a secret key.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use stowage_api::wire::{self, Role};
use stowage_api::{
    AddressingStyle, AnonymousBinding, BucketClaim, BucketName, BucketRecord, Claim, ClaimUid, ConsumerContent,
    Credential, CredentialFacts, Desired, Endpoint, Gateway, RecordName, SecretContent, SecretKey, Shaped,
};

const NAMESPACE: &str = "stowage-system";

/// The key for inputs without one that the operator could have generated.
const KEY: &str = "s3cr3t-of-a-test-0123456789-abcdefghijkl";

/// Parses a record, writes the Secrets derived from it, and checks that all of them are parsed as
/// the same.
pub(crate) fn play(input: &[u8]) {
    let mut data: BTreeMap<String, ByteString> = input.split(|byte| *byte == b'\n').filter_map(field).collect();
    let mut taken = |name: &str| data.remove(name).and_then(|value| String::from_utf8(value.0).ok());
    let (name, key) = (taken("name"), taken("key").and_then(|key| SecretKey::minted(&key)));
    let quota = taken("quota").unwrap_or_default();
    let mut secret = Secret { data: Some(data), ..Secret::default() };
    secret.metadata.name = name.or_else(|| derived(&secret));
    let record = BucketRecord::read(&secret);
    credential(&secret);
    let Ok(record) = record else { return };
    let content = record.content(NAMESPACE);
    assert_eq!(read(&content), Ok(record.clone()));
    assert_eq!(Some(&content.name), secret.metadata.name.as_ref());
    labelled(&content, Role::BucketRecord, &record);
    let Some(desired) = desired(&quota) else { return };
    let key = key.unwrap_or_else(|| SecretKey::new(KEY.to_owned()));
    let facts = CredentialFacts::of(&desired, &record);
    let credential = minted(&facts, &key);
    labelled(&facts.content(NAMESPACE, None), Role::VirtualCredential, &record);
    published(&facts, &credential);
    bound(&record);
}

fn field(line: &[u8]) -> Option<(String, ByteString)> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let name = str::from_utf8(&line[..at]).ok()?;
    Some((name.to_owned(), ByteString(line[at + 1..].to_vec())))
}

fn text<'a>(secret: &'a Secret, field: &str) -> Option<&'a str> {
    str::from_utf8(&secret.data.as_ref()?.get(field)?.0).ok()
}

/// Returns the name of the record for this endpoint and bucket.
fn derived(secret: &Secret) -> Option<String> {
    let endpoint = Endpoint::parse(text(secret, "endpoint")?).ok()?;
    let bucket = BucketName::parse(text(secret, "bucket_name")?).ok()?;
    Some(RecordName::of(&endpoint, &bucket).to_string())
}

/// Parses a record after a round trip through JSON, as by the API server.
fn read(content: &SecretContent) -> Result<BucketRecord, stowage_api::DamagedSecret> {
    BucketRecord::read(&stored(content))
}

fn stored(content: &SecretContent) -> Secret {
    let secret = content.to_secret();
    let sent = serde_json::to_vec(&secret).expect("a Secret is plain data");
    let stored: Secret = serde_json::from_slice(&sent).expect("it is read as it was written");
    assert_eq!(stored, secret);
    stored
}

/// Checks that a key is parsed only from its own Secret, and never printed.
fn credential(secret: &Secret) {
    let uid = ClaimUid::new(text(secret, "claim_uid").unwrap_or_default());
    let generation = text(secret, "generation").and_then(|text| text.parse().ok()).unwrap_or(1);
    let Ok(credential) = Credential::read(secret, &uid, generation) else { return };
    assert_eq!(Some(credential.id.as_str()), text(secret, "access_key_id"));
    assert_eq!(Some(credential.secret.expose()), text(secret, "secret_access_key"));
    assert!(Credential::read(secret, &uid, generation.wrapping_add(1)).is_err());
    assert!(Credential::read(secret, &ClaimUid::new(format!("{uid}0")), generation).is_err());
    let other = Credential { secret: SecretKey::new("another".to_owned()), ..credential.clone() };
    assert_eq!(format!("{credential:?}"), format!("{other:?}"));
}

/// Returns the desired state of a claim with this quota.
fn desired(quota: &str) -> Option<Desired> {
    let quota = if quota.is_empty() { json!({}) } else { json!({"soft": quota, "hard": quota}) };
    let raw = json!({"metadata": {"name": "photos"}, "spec": {"backendRef": {"name": "main"}, "quota": quota}});
    let raw: BucketClaim = serde_json::from_value(raw).expect("a claim");
    Claim::parse(&raw).desired.ok()
}

/// Checks that a credential is parsed with its key, but only for its own claim and generation.
fn minted(facts: &CredentialFacts, key: &SecretKey) -> Credential {
    let content = facts.content(NAMESPACE, Some(key));
    let secret = stored(&content);
    let credential = Credential::read(&secret, &facts.uid, facts.generation).expect("it is read as it was written");
    assert_eq!((&credential.secret, credential.id.secret_name()), (key, content.name.clone()));
    let without = facts.content(NAMESPACE, None);
    assert!(Credential::read(&stored(&without), &facts.uid, facts.generation).is_err());
    assert_eq!((&without.name, &without.labels), (&content.name, &content.labels));
    credential
}

/// Checks that the consumer Secret has the key by which the gateway knows the tenant.
fn published(facts: &CredentialFacts, credential: &Credential) {
    let gateway = Gateway {
        endpoint: Endpoint::parse("http://gateway.example").expect("a URL"),
        region: "us-east-1".to_owned(),
        addressing_style: AddressingStyle::Path,
        ca: None,
    };
    let content = ConsumerContent { facts, credential, gateway: &gateway, name: "photos-s3", shaped: Shaped::PLAIN };
    let content = content.content().expect("nobody asks for more");
    let secret = stored(&content);
    assert!(content.data.keys().all(|key| ConsumerContent::KEYS.contains(key)));
    assert_eq!(text(&secret, "AWS_ACCESS_KEY_ID"), Some(credential.id.as_str()));
    assert_eq!(text(&secret, "AWS_SECRET_ACCESS_KEY"), Some(credential.secret.expose()));
    assert_eq!(text(&secret, "BUCKET_NAME"), Some(facts.bucket.as_str()));
    let hard = facts.quota_hard.map(|bytes| bytes.to_string());
    assert_eq!(text(&secret, "QUOTA_HARD_BYTES"), hard.as_deref());
    let owner = content.owner.expect("its claim");
    assert_eq!((owner.uid.as_str(), owner.controller), (facts.uid.as_str(), Some(true)));
}

/// Checks that a binding is valid only for its own claim.
fn bound(record: &BucketRecord) {
    let binding = AnonymousBinding {
        claim: record.claim.clone(),
        uid: record.uid.clone(),
        backend: record.backend.clone(),
        endpoint: record.endpoint.clone(),
        bucket: record.bucket.clone(),
        per_source_ip_rps: 7,
    };
    let content = binding.content(NAMESPACE);
    let secret = stored(&content);
    assert_eq!(AnonymousBinding::check(&secret, &record.uid), Ok(()));
    assert!(AnonymousBinding::check(&secret, &ClaimUid::new(format!("{}0", record.uid))).is_err());
    labelled(&content, Role::AnonymousBinding, record);
}

/// Checks that labels are valid and name the right owner, and that annotations have the full values
/// of labels that were cut.
fn labelled(content: &SecretContent, role: Role, record: &BucketRecord) {
    assert_eq!(Role::of_internal(&content.name), Some(role));
    let values = [
        (wire::ROLE, role.as_str()),
        (wire::CLAIM_NAMESPACE, &record.claim.namespace),
        (wire::CLAIM_NAME, &record.claim.name),
        (wire::CLAIM_UID, record.uid.as_str()),
        (wire::BACKEND, &record.backend),
        (wire::BUCKET, record.bucket.as_str()),
    ];
    for (label, value) in values {
        assert!(content.labels[label].len() <= 63, "{label}: {}", content.labels[label]);
        let whole = content.annotations.get(label).unwrap_or(&content.labels[label]);
        assert_eq!(whole, value, "{label}");
    }
}
