//! The internal Secrets, as read by the gateway (spec §2).
//!
//! A Secret is used as a whole or ignored, and the data kept of it is bounded. Errors contain no
//! data of the Secret.

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

/// Maximum length of `bucket_scopes`, in bytes.
const LONGEST_SCOPES: usize = 16 << 10;
/// Maximum number of buckets of one key.
const MOST_SCOPES: usize = 64;

/// A virtual credential: a key with which tenants sign requests, and the buckets that it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCredential {
    /// Access key id.
    pub id: String,
    /// Secret key.
    pub secret: SecretKey,
    /// Namespace and name of the claim, from labels. For display only, because labels prove
    /// nothing.
    pub claim: Option<ClaimRef>,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Generation of the credential, from its label. It shows which credential of a claim is the
    /// newest.
    pub generation: Option<u64>,
    /// Buckets that the credential opens.
    pub scopes: Box<[Scope]>,
    /// Endpoint of the buckets. `None` if an operator that recorded no endpoint created the Secret;
    /// then the endpoint of the scope's backend applies.
    pub endpoint: Option<Endpoint>,
    /// Quota of the bucket. An invalid quota allows reading and refuses writing.
    pub quota: Result<Limits, NotServed>,
    /// Time from which the credential is refused; `None` means until its Secret is deleted.
    pub expires_at: Option<Timestamp>,
}

/// A bucket that a credential opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Name of the bucket, the same for the tenant and in the store.
    pub bucket: BucketName,
    /// Name of the bucket's S3Backend.
    pub backend: String,
}

/// An entry of `bucket_scopes`. An unknown field might restrict the scope, so it invalidates the
/// key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScope {
    bucket: String,
    backend: String,
}

impl ServedCredential {
    /// Maximum length of any credential's access key id, in bytes.
    pub const LONGEST_ID: usize = LONGEST_ID;

    /// Returns the name of the only Secret that may contain this access key id. The name is in
    /// lower case, so it does not determine the id.
    #[must_use]
    pub fn secret_name(id: &str) -> String {
        let mut name = String::with_capacity(wire::CREDENTIAL_PREFIX.len() + id.len());
        name.push_str(wire::CREDENTIAL_PREFIX);
        name.push_str(id);
        name.make_ascii_lowercase();
        name
    }

    /// Parses a credential.
    ///
    /// # Errors
    /// Returns an error if anything except the quota is missing, damaged or too long, if the name
    /// does not match the id, or if the Secret is being deleted.
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

    /// Returns true if the credential has expired at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Returns the scope for a bucket. If there are several for the name, the first applies.
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
    /// Namespace and name of the claim, from labels. For display only, because labels prove
    /// nothing.
    pub claim: Option<ClaimRef>,
    /// UID of the claim that grants the access.
    pub uid: ClaimUid,
    /// Name of the bucket's S3Backend.
    pub backend: String,
    /// The bucket.
    pub bucket: BucketName,
    /// Endpoint of the bucket, as in [`ServedCredential::endpoint`].
    pub endpoint: Option<Endpoint>,
    /// Requests per second allowed to one source address; 0 means the gateway's default.
    pub per_source_ip_rps: u32,
}

impl ServedBinding {
    /// Parses a binding.
    ///
    /// # Errors
    /// Returns an error if anything is missing, damaged or too long, if it allows more than
    /// reading, if the name does not match the claim, or if the Secret is being deleted.
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

/// The part of a bucket record that the gateway needs: the holder, and the time since which it
/// holds the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRecord {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Endpoint of the S3Backend when the record was created.
    pub endpoint: Endpoint,
    /// Name of the bucket.
    pub bucket: BucketName,
    /// True if the bucket belongs, or may belong, to the claim: see [`BucketRecord::has_begun`].
    pub has_begun: bool,
    /// Time at which the record was created, by the API server's clock, to the second.
    pub since: Option<Timestamp>,
    /// Namespaces whose accesses open the bucket. Equal consents share memory, because a claim has
    /// few rules and there may be a thousand namespaces.
    pub accesses: BTreeMap<NamespaceUid, Arc<Consent>>,
    /// Quota of the bucket, if it is open to accesses.
    pub limits: Result<Limits, NotServed>,
}

impl ServedRecord {
    /// Returns the consent for a namespace's accesses. `None` if there is none, or if the claim is
    /// being deleted.
    #[must_use]
    pub fn consent(&self, namespace: &NamespaceUid) -> Option<&Consent> {
        self.accesses.get(namespace).map(Arc::as_ref)
    }

    /// Parses a record. A record that is being deleted holds its bucket until it is gone.
    ///
    /// # Errors
    /// Returns an error if it is damaged or too long, or the name does not match the content.
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

/// Returns the accesses with one allocation for each distinct consent.
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

/// Returns the claim named by the labels of a Secret. An annotation is used only if its label is
/// the shortened form of it.
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
