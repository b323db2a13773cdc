//! The internal Secrets as whoever serves tenants reads them (spec §2): a Secret counts whole or
//! not at all, and what is kept of it has a bound. Nothing of its data is in an error.

mod access;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::binding::AnonymousBinding;
use super::bounded::{Bounded, LONGEST_ENDPOINT, LONGEST_ID, LONGEST_NAME, LONGEST_NUMBER, Limits, NotServed};
use super::key::SecretKey;
use super::record::BucketRecord;
use crate::consent::Consent;
use crate::identity::{ClaimRef, ClaimUid, NamespaceUid};
use crate::names::{BucketName, Endpoint};
use crate::wire;

pub use access::{ServedAccess, ServedAccessRecord};

/// Longest text of `bucket_scopes`, in bytes.
const LONGEST_SCOPES: usize = 16 << 10;
/// Most buckets of one key.
const MOST_SCOPES: usize = 64;

/// A virtual credential: a key that tenants sign with, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCredential {
    /// The access key id.
    pub id: String,
    /// The secret key.
    pub secret: SecretKey,
    /// Namespace and name of the claim, as labels tell them: to be shown, they prove nothing.
    pub claim: Option<ClaimRef>,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Generation of the credential, as its label tells it: which of a claim's is the newest.
    pub generation: Option<u64>,
    /// The buckets it reaches.
    pub scopes: Box<[Scope]>,
    /// Where those are. `None` = an operator made it that noted no endpoint: wherever the backend
    /// of the scope is.
    pub endpoint: Option<Endpoint>,
    /// How much may be stored. One that can't be read says nothing against reading, and everything
    /// against writing.
    pub quota: Result<Limits, NotServed>,
    /// At and after this time it is refused; `None` = until its Secret goes.
    pub expires_at: Option<Timestamp>,
}

/// A bucket that a credential reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The bucket's name, the same for the tenant and at the store.
    pub bucket: BucketName,
    /// The name of the S3Backend that has it.
    pub backend: String,
}

/// An entry of `bucket_scopes`. Another word in it might narrow the scope: better no key than one
/// that opens more than it says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScope {
    bucket: String,
    backend: String,
}

impl ServedCredential {
    /// Longest access key id that any credential has, in bytes.
    pub const LONGEST_ID: usize = LONGEST_ID;

    /// The name of the one Secret that may hold this access key id. It has lost the id's case.
    #[must_use]
    pub fn secret_name(id: &str) -> String {
        let mut name = String::with_capacity(wire::CREDENTIAL_PREFIX.len() + id.len());
        name.push_str(wire::CREDENTIAL_PREFIX);
        name.push_str(id);
        name.make_ascii_lowercase();
        name
    }

    /// Reads a credential.
    ///
    /// # Errors
    /// When anything but its quotas is missing, damaged or longer than ours are, or the name is not
    /// that of its id, or it is deleted already.
    pub fn read(secret: &Secret) -> Result<Self, NotServed> {
        let data = Bounded::of_live(secret)?;
        let id = data.text("access_key_id", LONGEST_ID)?;
        if secret.metadata.name.as_deref() != Some(&Self::secret_name(id)) {
            return Err(NotServed::ForeignName);
        }
        let annotations = secret.metadata.annotations.as_ref();
        let expiry = annotations.and_then(|annotations| annotations.get(wire::EXPIRES_AT));
        let generation = secret.metadata.labels.as_ref().and_then(|labels| labels.get(wire::ROTATION_GENERATION));
        Ok(Self {
            id: id.to_owned(),
            secret: data.secret_key()?,
            claim: claim(secret),
            uid: data.uid()?,
            generation: generation.and_then(|text| text.parse().ok()).filter(|number| *number > 0),
            scopes: scopes(data.text("bucket_scopes", LONGEST_SCOPES)?)?,
            endpoint: data.endpoint()?,
            quota: data.limits(),
            expires_at: expiry.map(|text| text.parse()).transpose().map_err(|_| NotServed::Expiry)?,
        })
    }

    /// Whether the time of this credential has come.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// The scope for a bucket. Of several for one name the first counts.
    #[must_use]
    pub fn scope(&self, bucket: &str) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.bucket.as_str() == bucket)
    }
}

fn scopes(text: &str) -> Result<Box<[Scope]>, NotServed> {
    const KEY: &str = "bucket_scopes";
    let raw: Vec<RawScope> = serde_json::from_str(text).map_err(|_| NotServed::Unreadable(KEY))?;
    if raw.len() > MOST_SCOPES {
        return Err(NotServed::TooLong(KEY));
    }
    let scopes = raw.into_iter().map(|RawScope { bucket, backend }| {
        let bucket = BucketName::parse(&bucket).map_err(|_| NotServed::Unreadable(KEY))?;
        let is_name = (1..=LONGEST_NAME).contains(&backend.len());
        is_name.then_some(Scope { bucket, backend }).ok_or(NotServed::Unreadable(KEY))
    });
    scopes.collect()
}

/// Public read access to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedBinding {
    /// Namespace and name of the claim, as labels tell them: to be shown, they prove nothing.
    pub claim: Option<ClaimRef>,
    /// UID of the claim that opened it.
    pub uid: ClaimUid,
    /// The name of the S3Backend that has the bucket.
    pub backend: String,
    /// The bucket.
    pub bucket: BucketName,
    /// Where it is; as in [`ServedCredential::endpoint`].
    pub endpoint: Option<Endpoint>,
    /// Requests per second that one source address may make; 0 = the gateway's default.
    pub per_source_ip_rps: u32,
}

impl ServedBinding {
    /// Reads a binding.
    ///
    /// # Errors
    /// When anything is missing, damaged or longer than ours are, or it opens for more than
    /// reading, or the name is not that of its claim, or it is deleted already.
    pub fn read(secret: &Secret) -> Result<Self, NotServed> {
        let data = Bounded::of_live(secret)?;
        let uid = data.uid()?;
        if secret.metadata.name.as_deref() != Some(&AnonymousBinding::name(&uid)) {
            return Err(NotServed::ForeignName);
        }
        if data.text("anonymous_mode", LONGEST_NAME)? != "ReadOnly" {
            return Err(NotServed::Unreadable("anonymous_mode"));
        }
        let rps = data.optional("anonymous_per_source_ip_rps", LONGEST_NUMBER)?.unwrap_or("0");
        Ok(Self {
            claim: claim(secret),
            backend: data.text("backend", LONGEST_NAME)?.to_owned(),
            bucket: data.bucket()?,
            endpoint: data.endpoint()?,
            per_source_ip_rps: rps.parse().map_err(|_| NotServed::Unreadable("anonymous_per_source_ip_rps"))?,
            uid,
        })
    }
}

/// Who holds a bucket, and since when: so much of a bucket record as whoever serves needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRecord {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// The name of the S3Backend.
    pub backend: String,
    /// Its endpoint when the record was made.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
    /// The bucket is the claim's, or may be: see [`BucketRecord::has_begun`].
    pub has_begun: bool,
    /// When the record was stored, as the API server has it: to the second.
    pub since: Option<Timestamp>,
    /// The namespaces whose accesses open the bucket. Equal consents share their memory: a claim
    /// has few rules, and there may be a thousand namespaces.
    pub accesses: BTreeMap<NamespaceUid, Arc<Consent>>,
    /// What the bucket may hold, where it is open to accesses.
    pub limits: Result<Limits, NotServed>,
}

impl ServedRecord {
    /// What the accesses of a namespace may do; `None` = nothing, also once the claim is on its way
    /// out.
    #[must_use]
    pub fn consent(&self, namespace: &NamespaceUid) -> Option<&Consent> {
        self.accesses.get(namespace).map(Arc::as_ref)
    }

    /// Reads a record. One on its way out holds its bucket until it is gone.
    ///
    /// # Errors
    /// When it is damaged or longer than ours are, or under another name than its own.
    pub fn read(secret: &Secret) -> Result<Self, NotServed> {
        let data = Bounded(secret);
        for (key, longest) in [
            ("claim_namespace", LONGEST_NAME),
            ("claim_name", LONGEST_NAME),
            ("claim_uid", LONGEST_NAME),
            ("backend", LONGEST_NAME),
            ("endpoint", LONGEST_ENDPOINT),
        ] {
            data.text(key, longest)?;
        }
        let record = BucketRecord::read(secret).map_err(|damage| NotServed::Unreadable(damage.field))?;
        let is_deleted = secret.metadata.deletion_timestamp.is_some();
        Ok(Self {
            has_begun: record.has_begun(),
            claim: record.claim,
            uid: record.uid,
            backend: record.backend,
            endpoint: record.endpoint,
            bucket: record.bucket,
            since: secret.metadata.creation_timestamp.as_ref().map(|time| time.0),
            accesses: if record.ending || is_deleted { BTreeMap::new() } else { shared(record.accesses) },
            limits: data.limits(),
        })
    }
}

/// The same consents, each of them once in memory.
fn shared(accesses: BTreeMap<NamespaceUid, Consent>) -> BTreeMap<NamespaceUid, Arc<Consent>> {
    let mut known: Vec<Arc<Consent>> = Vec::new();
    let mut share = |consent: Consent| {
        if let Some(same) = known.iter().find(|it| ***it == consent) {
            return same.clone();
        }
        known.push(Arc::new(consent));
        known[known.len() - 1].clone()
    };
    accesses.into_iter().map(|(namespace, consent)| (namespace, share(consent))).collect()
}

/// The claim that the labels of a Secret name. An annotation counts only as what its label was
/// shortened from.
fn claim(secret: &Secret) -> Option<ClaimRef> {
    let value = |key: &str| {
        let label = secret.metadata.labels.as_ref()?.get(key)?;
        let whole = secret.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
        let whole = whole.filter(|whole| whole.len() <= LONGEST_NAME && wire::label_value(whole) == **label);
        Some(whole.unwrap_or(label).clone())
    };
    Some(ClaimRef { namespace: value(wire::CLAIM_NAMESPACE)?, name: value(wire::CLAIM_NAME)? })
}

#[cfg(test)]
mod tests;
