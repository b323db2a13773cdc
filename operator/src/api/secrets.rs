//! The Secrets as typed values, and how they are written and read (spec §2).
//!
//! Every type here can be printed: what must stay secret shows as `[REDACTED]`.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::backend::AddressingStyle;
use super::names::{AccessKeyId, BucketName, ClaimRef, ClaimUid, Endpoint, RecordName};
use super::quantity::Bytes;
use super::wire::{self, Role};

/// A secret key. Prints as `[REDACTED]`.
#[derive(Clone, Debug)]
pub struct SecretKey(SecretString);

impl SecretKey {
    /// Takes over `text`.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The key itself, for the one place that writes or uses it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for SecretKey {}

/// A Secret as it should be: what is compared with the one that is there, and written where they differ.
#[derive(Clone, PartialEq)]
pub struct SecretContent {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// Our labels.
    pub labels: BTreeMap<String, String>,
    /// Our annotations.
    pub annotations: BTreeMap<String, String>,
    /// Our data keys.
    pub data: BTreeMap<String, Vec<u8>>,
    /// The controller, on a Secret that goes with its claim.
    pub owner: Option<OwnerReference>,
}

impl SecretContent {
    /// The object to POST.
    pub fn to_secret(&self) -> Secret {
        Secret {
            metadata: ObjectMeta {
                namespace: Some(self.namespace.clone()),
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                annotations: (!self.annotations.is_empty()).then(|| self.annotations.clone()),
                owner_references: self.owner.clone().map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some(self.data.iter().map(|(k, v)| (k.clone(), ByteString(v.clone()))).collect()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        }
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret {}/{} {:?}", self.namespace, self.name, self.data.keys().collect::<Vec<_>>())
    }
}

/// A Secret of ours that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {name}: field {field} is missing or damaged")]
pub struct DamagedSecret {
    /// Name of the Secret.
    pub name: String,
    /// The field that can't be read.
    pub field: &'static str,
}

/// Who holds a bucket, and all that the operator remembers of a claim besides its credentials (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRecord {
    /// The holder's namespace and name.
    pub claim: ClaimRef,
    /// The holder's UID: the proof.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Its endpoint when the record was made.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
    /// The bucket was seen absent while this record was held.
    pub absence: bool,
    /// The bucket was taken over (`origin: Adopted`). Never changed afterwards.
    pub adopted: bool,
    /// The claim was bound once; set by a `Delete` pass before it revokes.
    pub settled: bool,
    /// The credential generation aimed at, 1 at first.
    pub generation: u64,
    /// The last rotate request that was acted on.
    pub handled_rotate_request: Option<String>,
}

impl BucketRecord {
    /// The record's name, which is what makes the holder unique.
    pub fn name(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }

    /// The Secret to write.
    pub fn content(&self, operator_namespace: &str) -> SecretContent {
        let mut data = Data::default();
        data.text("claim_namespace", &self.claim.namespace);
        data.text("claim_name", &self.claim.name);
        data.text("claim_uid", self.uid.as_str());
        data.text("backend", &self.backend);
        data.text("endpoint", self.endpoint.as_str());
        data.text("bucket_name", self.bucket.as_str());
        data.flag("absence", self.absence.then_some("true"));
        data.flag("origin", self.adopted.then_some("Adopted"));
        data.flag("settled", self.settled.then_some("true"));
        data.text("generation", &self.generation.to_string());
        data.flag("handled-rotate-request", self.handled_rotate_request.as_deref());
        let (labels, annotations) =
            labels(Role::BucketRecord, &self.claim, &self.uid, &self.backend, &self.bucket, &[]);
        SecretContent {
            namespace: operator_namespace.to_owned(),
            name: self.name().to_string(),
            labels,
            annotations,
            data: data.0,
            owner: None,
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When a field is missing or damaged, or the name is not the one that the content asks for.
    pub fn read(secret: &Secret) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let record = Self {
            claim: ClaimRef { namespace: fields.text("claim_namespace")?, name: fields.text("claim_name")? },
            uid: ClaimUid::new(fields.text("claim_uid")?),
            backend: fields.text("backend")?,
            endpoint: fields.parse("endpoint", |text| Endpoint::parse(text).ok())?,
            bucket: fields.parse("bucket_name", |text| BucketName::parse(text).ok())?,
            absence: fields.optional("absence").as_deref() == Some("true"),
            adopted: fields.optional("origin").as_deref() == Some("Adopted"),
            settled: fields.optional("settled").as_deref() == Some("true"),
            generation: fields.parse("generation", |text| text.parse().ok().filter(|n| *n > 0))?,
            handled_rotate_request: fields.optional("handled-rotate-request"),
        };
        if secret.metadata.name.as_deref() == Some(record.name().as_str()) {
            Ok(record)
        } else {
            Err(fields.damaged("bucket_name"))
        }
    }
}

/// What a credential is for: everything in an internal Secret that is derived and may be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// The bucket, the only one that the credential is good for.
    pub bucket: BucketName,
    /// Generation of the credential.
    pub generation: u64,
    /// Soft limit on the bytes stored.
    pub quota_soft: Option<Bytes>,
    /// Hard limit on the bytes stored.
    pub quota_hard: Option<Bytes>,
}

/// One entry of `bucket_scopes`.
#[derive(Serialize)]
struct Scope<'a> {
    bucket: &'a str,
    backend: &'a str,
}

impl CredentialFacts {
    /// The credential's access key id.
    pub fn access_key_id(&self) -> AccessKeyId {
        AccessKeyId::of(&self.uid, self.generation)
    }

    /// The Secret to write, without the secret key if none is given: that one is never written again.
    pub fn content(&self, operator_namespace: &str, secret: Option<&SecretKey>) -> SecretContent {
        let id = self.access_key_id();
        let scopes = [Scope { bucket: self.bucket.as_str(), backend: &self.backend }];
        let mut data = Data::default();
        if let Some(secret) = secret {
            data.text("access_key_id", id.as_str());
            data.text("secret_access_key", secret.expose());
        }
        data.text("bucket_name", self.bucket.as_str());
        data.text("backend", &self.backend);
        data.text("claim_uid", self.uid.as_str());
        data.text("bucket_scopes", &serde_json::to_string(&scopes).expect("two strings are plain data"));
        data.flag("quota_soft_bytes", self.quota_soft.map(|b| b.to_string()).as_deref());
        data.flag("quota_hard_bytes", self.quota_hard.map(|b| b.to_string()).as_deref());
        let generation = self.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) =
            labels(Role::VirtualCredential, &self.claim, &self.uid, &self.backend, &self.bucket, &own);
        SecretContent {
            namespace: operator_namespace.to_owned(),
            name: id.secret_name(),
            labels,
            annotations,
            data: data.0,
            owner: None,
        }
    }
}

/// The part of an internal Secret that is never repaired: damaged, it is `CreationInconsistent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// UID of the claim it belongs to.
    pub uid: ClaimUid,
    /// Its access key id.
    pub id: AccessKeyId,
    /// Its secret key.
    pub secret: SecretKey,
    /// Its generation.
    pub generation: u64,
}

impl Credential {
    /// Reads the credential of `uid` and `generation`: id, secret and owner must be what those two derive to.
    ///
    /// # Errors
    /// When one of them is missing or another's.
    pub fn read(secret: &Secret, uid: &ClaimUid, generation: u64) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let id = AccessKeyId::of(uid, generation);
        fields.parse("claim_uid", |text| (text == uid.as_str()).then_some(()))?;
        fields.parse("access_key_id", |text| (text == id.as_str()).then_some(()))?;
        let key = fields.parse("secret_access_key", |text| (!text.is_empty()).then(|| text.to_owned()))?;
        Ok(Self { uid: uid.clone(), id, secret: SecretKey::new(key), generation })
    }
}

/// Public access to a bucket (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousBinding {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// The bucket.
    pub bucket: BucketName,
    /// Requests per second that one source address may make; 0 = the gateway's default.
    pub per_source_ip_rps: u32,
}

impl AnonymousBinding {
    /// Name of the binding of a claim.
    pub fn name(uid: &ClaimUid) -> String {
        format!("ab-{uid}")
    }

    /// The Secret to write.
    pub fn content(&self, operator_namespace: &str) -> SecretContent {
        let mut data = Data::default();
        data.text("bucket_name", self.bucket.as_str());
        data.text("backend", &self.backend);
        data.text("claim_uid", self.uid.as_str());
        data.text("anonymous_mode", "ReadOnly");
        data.text("anonymous_per_source_ip_rps", &self.per_source_ip_rps.to_string());
        let (labels, annotations) =
            labels(Role::AnonymousBinding, &self.claim, &self.uid, &self.backend, &self.bucket, &[]);
        SecretContent {
            namespace: operator_namespace.to_owned(),
            name: Self::name(&self.uid),
            labels,
            annotations,
            data: data.0,
            owner: None,
        }
    }
}

/// The gateway, as tenants reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its URL.
    pub endpoint: Endpoint,
    /// The region that requests to it are signed for.
    pub region: String,
    /// How it wants a bucket's name in a request's URL.
    pub addressing_style: AddressingStyle,
}

/// The connection that a claim's consumer Secret carries (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerContent<'a> {
    /// What the credential is for.
    pub facts: &'a CredentialFacts,
    /// The credential itself.
    pub credential: &'a Credential,
    /// Where it works.
    pub gateway: &'a Gateway,
    /// Name of the Secret.
    pub name: &'a str,
}

impl ConsumerContent<'_> {
    /// Keys that may be left over from an earlier spec and are then removed by name.
    pub const OPTIONAL_KEYS: [&'static str; 2] = ["QUOTA_SOFT_BYTES", "QUOTA_HARD_BYTES"];

    /// The Secret to write.
    pub fn content(&self) -> SecretContent {
        let Self { facts, credential, gateway, name } = self;
        let mut data = Data::default();
        data.text("AWS_ACCESS_KEY_ID", credential.id.as_str());
        data.text("AWS_SECRET_ACCESS_KEY", credential.secret.expose());
        data.text("AWS_REGION", &gateway.region);
        data.text("AWS_DEFAULT_REGION", &gateway.region);
        data.text("AWS_ENDPOINT_URL", gateway.endpoint.as_str());
        data.text("AWS_ENDPOINT_URL_S3", gateway.endpoint.as_str());
        data.text("BUCKET_NAME", facts.bucket.as_str());
        data.text("S3_ADDRESSING_STYLE", gateway.addressing_style.as_str());
        data.flag("QUOTA_SOFT_BYTES", facts.quota_soft.map(|b| b.to_string()).as_deref());
        data.flag("QUOTA_HARD_BYTES", facts.quota_hard.map(|b| b.to_string()).as_deref());
        let generation = facts.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, credential.id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) =
            labels(Role::ConsumerSecret, &facts.claim, &facts.uid, &facts.backend, &facts.bucket, &own);
        SecretContent {
            namespace: facts.claim.namespace.clone(),
            name: (*name).to_owned(),
            labels,
            annotations,
            data: data.0,
            owner: Some(controller_reference(&facts.claim, &facts.uid)),
        }
    }
}

/// The controller owner reference that makes a consumer Secret this claim's.
fn controller_reference(claim: &ClaimRef, uid: &ClaimUid) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/{}", super::GROUP, super::VERSION),
        kind: "BucketClaim".to_owned(),
        name: claim.name.clone(),
        uid: uid.to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

type Texts = BTreeMap<String, String>;

/// The labels that every Secret of ours carries, and an annotation for each value too long for a label.
fn labels(
    role: Role,
    claim: &ClaimRef,
    uid: &ClaimUid,
    backend: &str,
    bucket: &BucketName,
    own: &[(&str, &str)],
) -> (Texts, Texts) {
    let common = [
        (wire::ROLE, role.as_str()),
        (wire::CLAIM_NAMESPACE, claim.namespace.as_str()),
        (wire::CLAIM_NAME, claim.name.as_str()),
        (wire::CLAIM_UID, uid.as_str()),
        (wire::BACKEND, backend),
        (wire::BUCKET, bucket.as_str()),
    ];
    let mut labels = Texts::new();
    let mut annotations = Texts::new();
    for (key, value) in common.iter().chain(own) {
        let short = wire::label_value(value);
        if short != *value {
            annotations.insert((*key).to_owned(), (*value).to_owned());
        }
        labels.insert((*key).to_owned(), short);
    }
    (labels, annotations)
}

#[derive(Default)]
struct Data(BTreeMap<String, Vec<u8>>);

impl Data {
    fn text(&mut self, key: &str, value: &str) {
        self.0.insert(key.to_owned(), value.as_bytes().to_vec());
    }

    fn flag(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }
}

struct Fields<'a>(&'a Secret);

impl Fields<'_> {
    fn optional(&self, field: &str) -> Option<String> {
        let bytes = self.0.data.as_ref()?.get(field)?;
        String::from_utf8(bytes.0.clone()).ok()
    }

    fn text(&self, field: &'static str) -> Result<String, DamagedSecret> {
        self.optional(field).filter(|text| !text.is_empty()).ok_or_else(|| self.damaged(field))
    }

    fn parse<T>(&self, field: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DamagedSecret> {
        parse(&self.text(field)?).ok_or_else(|| self.damaged(field))
    }

    fn damaged(&self, field: &'static str) -> DamagedSecret {
        DamagedSecret { name: self.0.metadata.name.clone().unwrap_or_default(), field }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> BucketRecord {
        BucketRecord {
            claim: ClaimRef { namespace: "team-a".into(), name: "photos".into() },
            uid: ClaimUid::new("u-1"),
            backend: "main".into(),
            endpoint: Endpoint::parse("http://s3.example").unwrap(),
            bucket: BucketName::parse("team-a-photos").unwrap(),
            absence: true,
            adopted: false,
            settled: false,
            generation: 3,
            handled_rotate_request: Some("now".into()),
        }
    }

    fn facts() -> CredentialFacts {
        CredentialFacts {
            claim: record().claim,
            uid: record().uid,
            backend: "main".into(),
            bucket: record().bucket,
            generation: 3,
            quota_soft: None,
            quota_hard: None,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let secret = record().content("stowage-system").to_secret();
        assert_eq!(BucketRecord::read(&secret), Ok(record()));
    }

    #[test]
    fn a_record_under_another_name_is_damaged() {
        let mut secret = record().content("stowage-system").to_secret();
        secret.metadata.name = Some("br-0".into());
        assert!(BucketRecord::read(&secret).is_err());
    }

    #[test]
    fn a_credential_is_read_only_as_what_it_derives_to() {
        let key = SecretKey::new("s3cr3t".into());
        let secret = facts().content("stowage-system", Some(&key)).to_secret();
        assert_eq!(Credential::read(&secret, &facts().uid, 3).unwrap().secret, key);
        assert!(Credential::read(&secret, &facts().uid, 2).is_err());
        assert!(Credential::read(&secret, &ClaimUid::new("u-2"), 3).is_err());
    }

    #[test]
    fn no_debug_output_shows_a_secret_key() {
        let key = SecretKey::new("s3cr3t".into());
        let content = facts().content("stowage-system", Some(&key));
        let credential = Credential::read(&content.to_secret(), &facts().uid, 3).unwrap();
        assert!(!format!("{key:?} {content:?} {credential:?}").contains("s3cr3t"));
    }

    #[test]
    fn values_too_long_for_a_label_stand_whole_in_an_annotation() {
        let mut record = record();
        record.claim.name = "x".repeat(200);
        let content = record.content("stowage-system");
        assert_eq!(content.labels[wire::CLAIM_NAME].len(), 63);
        assert_eq!(content.annotations[wire::CLAIM_NAME], record.claim.name);
    }
}
