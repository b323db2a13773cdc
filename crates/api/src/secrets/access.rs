//! The Secrets of an access: its record, its credentials and its consumer Secret (spec §8).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::connection::{Connection, Gateway};
use super::consumer::{Shaped, controller};
use super::content::SecretContent;
use super::fields::{DamagedSecret, Data, Fields};
use super::key::SecretKey;
use super::labels::{Texts, labelled};
use super::shape::{Extra, SecretValues, TooLarge};
use crate::consent::Prefix;
use crate::identity::{AccessRef, AccessUid, ClaimUid, NamespaceUid};
use crate::names::{AccessKeyId, BucketName, Endpoint};
use crate::sharing::AccessMode;
use crate::wire::{self, Role};
use crate::{GROUP, VERSION};

/// Persistent state of an access besides its credentials. The gateway accepts the credentials only
/// while the record exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// UID of the access.
    pub uid: AccessUid,
    /// UID of the access's namespace, from a live read.
    pub namespace_uid: NamespaceUid,
    /// Generation of the current credential, initially 1.
    pub generation: u64,
    /// Last rotate request that was handled.
    pub handled_rotate_request: Option<String>,
    /// Last revoke request that was handled.
    pub handled_revoke_request: Option<String>,
    /// Keys up to this generation are revoked, and are deleted wherever they are found. 0 means
    /// none.
    pub revoked_through: u64,
    /// Lowest generation whose credential may still exist, initially 1.
    pub lowest: u64,
}

impl AccessRecord {
    /// Returns the name of the record of an access: `ar-` and the first 40 hex digits of the
    /// SHA-256 of its UID.
    #[must_use]
    pub fn name(uid: &AccessUid) -> String {
        let digest = hex::encode(Sha256::digest(uid.as_str()));
        format!("{}{}", wire::ACCESS_RECORD_PREFIX, &digest[..40])
    }

    /// Returns the desired content of the Secret.
    #[must_use]
    pub fn content(&self, operator_namespace: &str) -> SecretContent {
        let mut data = Data::default();
        data.text("access_namespace", &self.access.namespace);
        data.text("access_name", &self.access.name);
        data.text("access_uid", self.uid.as_str());
        data.text("namespace_uid", self.namespace_uid.as_str());
        data.text("generation", &self.generation.to_string());
        data.flag("handled-rotate-request", self.handled_rotate_request.as_deref());
        data.flag("handled-revoke-request", self.handled_revoke_request.as_deref());
        let revoked = Some(self.revoked_through).filter(|through| *through > 0);
        data.flag("revoked-through", revoked.map(|through| through.to_string()).as_deref());
        data.text("lowest-generation", &self.lowest.to_string());
        let (labels, annotations) = labels(Role::AccessRecord, &self.access, &self.uid, &[]);
        let (namespace, name) = (operator_namespace.to_owned(), Self::name(&self.uid));
        SecretContent { namespace, name, labels, annotations, data: data.0, owner: None, extra: Extra::default() }
    }

    /// Parses a record.
    ///
    /// # Errors
    /// Returns an error if a field is missing or damaged, or the name does not match the content.
    pub fn read(secret: &Secret) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let record = Self {
            access: AccessRef {
                namespace: fields.text("access_namespace")?.to_owned(),
                name: fields.text("access_name")?.to_owned(),
            },
            uid: AccessUid::new(fields.text("access_uid")?),
            namespace_uid: NamespaceUid::new(fields.text("namespace_uid")?),
            generation: fields.parse("generation", number)?,
            handled_rotate_request: fields.optional("handled-rotate-request").map(str::to_owned),
            handled_revoke_request: fields.optional("handled-revoke-request").map(str::to_owned),
            revoked_through: fields.optional("revoked-through").and_then(number).unwrap_or(0),
            lowest: fields.optional("lowest-generation").and_then(number).unwrap_or(1),
        };
        if secret.metadata.name.as_deref() == Some(&Self::name(&record.uid)) {
            Ok(record)
        } else {
            Err(fields.damaged("access_uid"))
        }
    }
}

/// A bucket that a key of an access opens, with mode and prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessScope {
    /// The bucket.
    pub bucket: BucketName,
    /// Name of the bucket's S3Backend.
    pub backend: String,
    /// Endpoint of the bucket.
    pub endpoint: Endpoint,
    /// UID of the claim that owns the bucket; `None` if an administrator shares it.
    pub claim: Option<ClaimUid>,
    /// Operations allowed on the bucket.
    pub mode: AccessMode,
    /// Prefix of the object keys opened; `None` means all objects.
    pub prefix: Option<Prefix>,
}

impl AccessScope {
    /// Returns true if `other` is for the same bucket and claim, with any mode and prefix.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |it: &Self| (it.bucket.clone(), it.backend.clone(), it.endpoint.clone(), it.claim.clone());
        place(self) == place(other)
    }

    /// Returns true if `other` is for the same bucket and claim and allows everything that this
    /// scope allows.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let covers = |outer: &Prefix| self.prefix.as_ref().is_some_and(|it| outer.covers(it.as_str().as_bytes()));
        self.is_same_place(other)
            && self.mode.and(other.mode) == Some(self.mode)
            && other.prefix.as_ref().is_none_or(covers)
    }
}

/// Serialized form of a scope. An unknown field might restrict the scope, so it makes the scope
/// invalid.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawScope {
    bucket: String,
    backend: String,
    endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim_uid: Option<String>,
    mode: AccessMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<Prefix>,
}

/// Parses a list of scopes; `None` if it is not a list of at most 64.
///
/// Ignores invalid scopes, and all scopes whose bucket name occurs more than once.
pub(super) fn scopes(text: &str) -> Option<Vec<AccessScope>> {
    let raw: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
    let read = |raw| {
        let raw: RawScope = serde_json::from_value(raw).ok()?;
        Some(AccessScope {
            bucket: BucketName::parse(&raw.bucket).ok()?,
            backend: raw.backend,
            endpoint: Endpoint::parse(&raw.endpoint).ok()?,
            claim: raw.claim_uid.map(ClaimUid::new),
            mode: raw.mode,
            prefix: raw.prefix,
        })
    };
    if raw.len() > 64 {
        return None;
    }
    let all: Vec<AccessScope> = raw.into_iter().filter_map(read).collect();
    let is_only = |scope: &AccessScope| all.iter().filter(|it| it.bucket == scope.bucket).count() == 1;
    Some(all.iter().filter(|scope| is_only(scope)).cloned().collect())
}

fn scopes_text(scopes: &[AccessScope]) -> String {
    let raw = scopes.iter().map(|scope| RawScope {
        bucket: scope.bucket.to_string(),
        backend: scope.backend.clone(),
        endpoint: scope.endpoint.to_string(),
        claim_uid: scope.claim.as_ref().map(ToString::to_string),
        mode: scope.mode,
        prefix: scope.prefix.clone(),
    });
    serde_json::to_string(&raw.collect::<Vec<_>>()).expect("texts are plain data")
}

/// The derived content of an access credential's Secret, which the operator may repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCredentialFacts {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// UID of the access.
    pub uid: AccessUid,
    /// Generation of the credential.
    pub generation: u64,
    /// Buckets that the credential opens.
    pub scopes: Vec<AccessScope>,
}

impl AccessCredentialFacts {
    /// Returns the access key id of the credential.
    #[must_use]
    pub fn access_key_id(&self) -> AccessKeyId {
        AccessKeyId::of_access(&self.uid, self.generation)
    }

    /// Returns the desired content of the Secret. Without `secret` it lacks the key, which is never
    /// written a second time.
    #[must_use]
    pub fn content(&self, operator_namespace: &str, secret: Option<&SecretKey>) -> SecretContent {
        let id = self.access_key_id();
        let mut data = Data::default();
        if let Some(secret) = secret {
            data.text("access_key_id", id.as_str());
            data.text("secret_access_key", secret.expose());
        }
        data.text("access_uid", self.uid.as_str());
        data.text("scopes", &scopes_text(&self.scopes));
        let generation = self.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) = labels(Role::AccessCredential, &self.access, &self.uid, &own);
        let (namespace, name) = (operator_namespace.to_owned(), id.access_secret_name());
        SecretContent { namespace, name, labels, annotations, data: data.0, owner: None, extra: Extra::default() }
    }

    /// Returns the valid scopes in a credential's Secret.
    #[must_use]
    pub fn scopes_of(secret: &Secret) -> Vec<AccessScope> {
        Fields(secret).optional("scopes").and_then(scopes).unwrap_or_default()
    }
}

/// The part of an access credential that is never repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCredential {
    /// Access key id.
    pub id: AccessKeyId,
    /// Secret key.
    pub secret: SecretKey,
    /// Generation of the credential.
    pub generation: u64,
}

impl AccessCredential {
    /// Parses the credential of `uid` and `generation`.
    ///
    /// # Errors
    /// Returns an error if id, secret key or UID is missing or does not match, or the secret key
    /// does not have the format of the operator's keys.
    pub fn read(secret: &Secret, uid: &AccessUid, generation: u64) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let id = AccessKeyId::of_access(uid, generation);
        fields.parse("access_uid", |text| (text == uid.as_str()).then_some(()))?;
        fields.parse("access_key_id", |text| (text == id.as_str()).then_some(()))?;
        let secret = fields.parse("secret_access_key", SecretKey::minted)?;
        Ok(Self { id, secret, generation })
    }
}

/// Content of an access's consumer Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessConsumer<'a> {
    /// Namespace and name of the access.
    pub access: &'a AccessRef,
    /// UID of the access.
    pub uid: &'a AccessUid,
    /// The credential.
    pub credential: &'a AccessCredential,
    /// Buckets that the credential opens, in the order of the entries.
    pub buckets: &'a [BucketName],
    /// Gateway at which the credential is valid.
    pub gateway: &'a Gateway,
    /// Name of the Secret.
    pub name: &'a str,
    /// Template and operator options that shape the Secret.
    pub shaped: Shaped<'a>,
}

impl AccessConsumer<'_> {
    /// Returns the desired content of the Secret. A single bucket is stored under the same key as
    /// in a claim's Secret.
    ///
    /// # Errors
    /// Returns an error if the content rendered from the template is too large.
    pub fn content(&self) -> Result<SecretContent, TooLarge> {
        let Self { access, uid, credential, buckets, gateway, name, shaped } = self;
        let (id, secret) = (&credential.id, &credential.secret);
        let extra = shaped.extra(SecretValues { id, secret, buckets, gateway })?;
        let mut data = Connection { id, secret, gateway }.data();
        let names: Vec<&str> = buckets.iter().map(BucketName::as_str).collect();
        match names.as_slice() {
            [only] => data.text("BUCKET_NAME", only),
            several => data.text("BUCKET_NAMES", &several.join(",")),
        }
        let generation = credential.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, credential.id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) = labels(Role::ConsumerSecret, access, uid, &own);
        Ok(SecretContent {
            namespace: access.namespace.clone(),
            name: (*name).to_owned(),
            labels,
            annotations,
            data: if shaped.shape.omits_defaults { BTreeMap::new() } else { data.0 },
            owner: Some(controller((GROUP, VERSION, "BucketAccess"), &access.name, uid.as_str())),
            extra,
        })
    }
}

/// Returns the labels that every Secret of an access has, and annotations for values that are too
/// long.
fn labels(role: Role, access: &AccessRef, uid: &AccessUid, own: &[(&str, &str)]) -> (Texts, Texts) {
    let common = [
        (wire::ROLE, role.as_str()),
        (wire::ACCESS_NAMESPACE, access.namespace.as_str()),
        (wire::ACCESS_NAME, access.name.as_str()),
        (wire::ACCESS_UID, uid.as_str()),
    ];
    labelled(common.iter().chain(own))
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
