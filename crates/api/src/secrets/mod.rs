//! The Secrets as typed values, and how they are written and read (spec §2).
//!
//! Every type here can be printed: what must stay secret shows as `[REDACTED]`.

mod access;
mod admin;
mod binding;
mod consumer;
mod content;
mod credential;
mod record;
mod served;
mod shape;
#[cfg(test)]
mod tests;
mod value_template;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret, SecretString};

use super::names::{BucketName, ClaimRef, ClaimUid};
use super::wire::{self, Role};

pub use access::{AccessConsumer, AccessCredential, AccessCredentialFacts, AccessRecord, AccessScope};
pub use admin::{AdminKey, AdminSecretError, Lack, Unlabelled};
pub use binding::AnonymousBinding;
pub use consumer::{BINDING_KEYS, CA_KEY, ConsumerContent, Gateway, Publishing, Shaped};
pub use content::SecretContent;
pub use credential::{Credential, CredentialFacts};
pub use record::BucketRecord;
pub use served::{
    Limits, NotServed, Scope, ServedAccess, ServedAccessRecord, ServedBinding, ServedCredential, ServedRecord,
};
pub use shape::{Extra, SecretShape, SecretValues, TooLarge, Written, digest};

/// A secret key. Prints as `[REDACTED]`.
#[derive(Clone, Debug)]
pub struct SecretKey(SecretString);

impl SecretKey {
    /// Characters of a key that the operator makes: 30 random bytes in the URL-safe base64 of RFC
    /// 4648.
    const LENGTH: usize = 40;

    /// Takes over `text`.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// Reads a key from an internal Secret. `None` where the operator can't have made it: a key
    /// that was cut short or typed by hand is easy to guess.
    pub fn minted(text: &str) -> Option<Self> {
        let is_of_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_whole = text.len() == Self::LENGTH && text.bytes().all(is_of_alphabet);
        is_whole.then(|| Self::new(text.to_owned()))
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

/// A Secret of ours that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {name}: field {field} is missing or damaged")]
pub struct DamagedSecret {
    /// Name of the Secret.
    pub name: String,
    /// The field that can't be read.
    pub field: &'static str,
}

type Texts = BTreeMap<String, String>;

/// The labels that every Secret of ours carries, and an annotation for each value too long for a
/// label.
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
    labelled(common.iter().chain(own))
}

/// These as labels, and an annotation for each value too long for one.
fn labelled<'a>(all: impl Iterator<Item = &'a (&'a str, &'a str)>) -> (Texts, Texts) {
    let mut labels = Texts::new();
    let mut annotations = Texts::new();
    for (key, value) in all {
        let short = wire::label_value(value);
        if short != *value {
            annotations.insert((*key).to_owned(), (*value).to_owned());
        }
        labels.insert((*key).to_owned(), short);
    }
    (labels, annotations)
}

#[derive(Default)]
struct Data(BTreeMap<&'static str, Vec<u8>>);

impl Data {
    fn text(&mut self, key: &'static str, value: &str) {
        self.0.insert(key, value.as_bytes().to_vec());
    }

    fn flag(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }
}

struct Fields<'a>(&'a Secret);

impl<'a> Fields<'a> {
    fn optional(&self, field: &str) -> Option<&'a str> {
        let bytes = self.0.data.as_ref()?.get(field)?;
        std::str::from_utf8(&bytes.0).ok()
    }

    fn text(&self, field: &'static str) -> Result<&'a str, DamagedSecret> {
        self.optional(field).filter(|text| !text.is_empty()).ok_or_else(|| self.damaged(field))
    }

    fn parse<T>(&self, field: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DamagedSecret> {
        parse(self.text(field)?).ok_or_else(|| self.damaged(field))
    }

    fn damaged(&self, field: &'static str) -> DamagedSecret {
        DamagedSecret { name: self.0.metadata.name.clone().unwrap_or_default(), field }
    }
}
