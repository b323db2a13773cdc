//! The Secrets of an access: its record, its credentials, and what its consumer reads (spec §8).

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

/// All that the operator remembers of an access besides its credentials. While it is there the
/// gateway opens them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// Its UID.
    pub uid: AccessUid,
    /// UID of its namespace, as it was read live.
    pub namespace_uid: NamespaceUid,
    /// The credential generation aimed at, 1 at first.
    pub generation: u64,
    /// The last rotate request that was acted on.
    pub handled_rotate_request: Option<String>,
    /// The last revoke request that was acted on.
    pub handled_revoke_request: Option<String>,
    /// Keys up to this generation are revoked: wherever one turns up it is deleted. 0 = none is.
    pub revoked_through: u64,
    /// The lowest generation whose credential may still be there, 1 at first.
    pub lowest: u64,
}

impl AccessRecord {
    /// Name of the record of an access: `ar-` and the first 40 hex digits of SHA-256 of its UID.
    #[must_use]
    pub fn name(uid: &AccessUid) -> String {
        let digest = hex::encode(Sha256::digest(uid.as_str()));
        format!("{}{}", wire::ACCESS_RECORD_PREFIX, &digest[..40])
    }

    /// The Secret to write.
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

    /// Reads a record.
    ///
    /// # Errors
    /// When a field is missing or damaged, or the name is not the one that the content asks for.
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

/// A bucket that a key of an access opens, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessScope {
    /// The bucket.
    pub bucket: BucketName,
    /// Name of the S3Backend that has it.
    pub backend: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// UID of the claim whose bucket it is; `None` = an administrator shares it.
    pub claim: Option<ClaimUid>,
    /// What may be done there.
    pub mode: AccessMode,
    /// What the keys of objects begin with; `None` = all objects.
    pub prefix: Option<Prefix>,
}

impl AccessScope {
    /// Whether the other opens the very same bucket for the same claim, however far.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |it: &Self| (it.bucket.clone(), it.backend.clone(), it.endpoint.clone(), it.claim.clone());
        place(self) == place(other)
    }

    /// True where it opens nothing of the same place that the other doesn't.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let covers = |outer: &Prefix| self.prefix.as_ref().is_some_and(|it| outer.covers(it.as_str().as_bytes()));
        self.is_same_place(other)
            && self.mode.and(other.mode) == Some(self.mode)
            && other.prefix.as_ref().is_none_or(covers)
    }
}

/// A scope as it is stored. Another word in it might narrow it: then it opens nothing.
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

/// The scopes that stand in a text. One that can't be read opens nothing, and of two for one bucket
/// name neither does. `None` where it is no list of at most 64.
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

/// What a credential of an access is for: everything in its Secret that is derived and may be
/// repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCredentialFacts {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// Its UID.
    pub uid: AccessUid,
    /// Generation of the credential.
    pub generation: u64,
    /// The buckets that it opens.
    pub scopes: Vec<AccessScope>,
}

impl AccessCredentialFacts {
    /// The credential's access key id.
    #[must_use]
    pub fn access_key_id(&self) -> AccessKeyId {
        AccessKeyId::of_access(&self.uid, self.generation)
    }

    /// The Secret to write, without the secret key if none is given: that one is never written
    /// again.
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

    /// The scopes that stand in a credential of an access, as far as they can be read.
    #[must_use]
    pub fn scopes_of(secret: &Secret) -> Vec<AccessScope> {
        Fields(secret).optional("scopes").and_then(scopes).unwrap_or_default()
    }
}

/// The part of an access's credential that is never repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCredential {
    /// Its access key id.
    pub id: AccessKeyId,
    /// Its secret key.
    pub secret: SecretKey,
    /// Its generation.
    pub generation: u64,
}

impl AccessCredential {
    /// Reads the credential of `uid` and `generation`.
    ///
    /// # Errors
    /// When id, secret or owner is missing or another's, or the secret key is none that the
    /// operator makes.
    pub fn read(secret: &Secret, uid: &AccessUid, generation: u64) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let id = AccessKeyId::of_access(uid, generation);
        fields.parse("access_uid", |text| (text == uid.as_str()).then_some(()))?;
        fields.parse("access_key_id", |text| (text == id.as_str()).then_some(()))?;
        let secret = fields.parse("secret_access_key", SecretKey::minted)?;
        Ok(Self { id, secret, generation })
    }
}

/// The connection that an access's consumer Secret carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessConsumer<'a> {
    /// Namespace and name of the access.
    pub access: &'a AccessRef,
    /// Its UID.
    pub uid: &'a AccessUid,
    /// The credential.
    pub credential: &'a AccessCredential,
    /// The buckets that it opens, in the order of the entries.
    pub buckets: &'a [BucketName],
    /// Where it works.
    pub gateway: &'a Gateway,
    /// Name of the Secret.
    pub name: &'a str,
    /// How it is to be.
    pub shaped: Shaped<'a>,
}

impl AccessConsumer<'_> {
    /// The Secret to write. The one bucket of an access stands where a claim's does.
    ///
    /// # Errors
    /// When what its template asks for is too large.
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

/// The labels that every Secret of an access carries.
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
