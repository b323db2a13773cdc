//! The internal Secret of a virtual credential.

use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;

use super::content::SecretContent;
use super::fields::{DamagedSecret, Data, Fields};
use super::key::SecretKey;
use super::labels::labels;
use super::record::BucketRecord;
use super::shape::Extra;
use crate::identity::{ClaimRef, ClaimUid};
use crate::names::{AccessKeyId, BucketName, Endpoint};
use crate::parsed::Desired;
use crate::quantity::Bytes;
use crate::wire::{self, Role};

/// The derived content of a credential's internal Secret, which the operator may repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Endpoint of the bucket from its record. The S3Backend may have another endpoint by now.
    pub endpoint: Endpoint,
    /// Bucket, the only one that the credential opens.
    pub bucket: BucketName,
    /// Generation of the credential.
    pub generation: u64,
    /// Soft limit on the number of bytes stored.
    pub quota_soft: Option<Bytes>,
    /// Hard limit on the number of bytes stored.
    pub quota_hard: Option<Bytes>,
}

/// An entry of `bucket_scopes`.
#[derive(Serialize)]
struct Scope<'a> {
    bucket: &'a str,
    backend: &'a str,
}

impl CredentialFacts {
    /// Returns the record's current credential, with the quota of the spec.
    pub fn of(desired: &Desired, record: &BucketRecord) -> Self {
        Self {
            claim: record.claim.clone(),
            uid: record.uid.clone(),
            backend: record.backend.clone(),
            endpoint: record.endpoint.clone(),
            bucket: record.bucket.clone(),
            generation: record.generation,
            quota_soft: desired.quota_soft,
            quota_hard: desired.quota_hard,
        }
    }

    /// Returns the access key id of the credential.
    pub fn access_key_id(&self) -> AccessKeyId {
        AccessKeyId::of(&self.uid, self.generation)
    }

    /// Returns the desired content of the Secret. Without `secret` it lacks the key, which is never
    /// written a second time.
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
        data.text(wire::ENDPOINT, self.endpoint.as_str());
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
            extra: Extra::default(),
        }
    }
}

/// The part of a credential that is never repaired. Damage to it is reported as
/// `CreationInconsistent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Access key id.
    pub id: AccessKeyId,
    /// Secret key.
    pub secret: SecretKey,
    /// Generation of the credential.
    pub generation: u64,
}

impl Credential {
    /// Parses the credential of `uid` and `generation`, from which id and owner are derived.
    ///
    /// # Errors
    /// Returns an error if id, secret key or UID is missing or does not match, or the secret key
    /// does not have the format of the operator's keys.
    pub fn read(secret: &Secret, uid: &ClaimUid, generation: u64) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let id = AccessKeyId::of(uid, generation);
        fields.parse("claim_uid", |text| (text == uid.as_str()).then_some(()))?;
        fields.parse("access_key_id", |text| (text == id.as_str()).then_some(()))?;
        let secret = fields.parse("secret_access_key", SecretKey::minted)?;
        Ok(Self { uid: uid.clone(), id, secret, generation })
    }
}
