//! The internal Secrets as the gateway reads them: a Secret either counts whole or not at all.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use s3s::auth::SecretKey;
use serde::Deserialize;
use stowage_operator::api::wire::Role;

pub use stowage_operator::api::wire::{EXPIRES_AT, ROLE as ROLE_LABEL};

/// The role of a Secret that holds a [`Credential`].
pub const CREDENTIAL_ROLE: &str = Role::VirtualCredential.as_str();
/// The role of a Secret that holds an [`AnonymousBinding`].
pub const BINDING_ROLE: &str = Role::AnonymousBinding.as_str();

/// A virtual credential: a key that tenants sign with, and what it is good for.
///
/// `Debug` does not show the secret key.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The access key id.
    pub access_key_id: String,
    /// The secret key; redacts itself.
    pub secret_access_key: SecretKey,
    /// The buckets it reaches.
    pub scopes: Vec<Scope>,
    /// At and after this time it is refused; `None` = until its Secret goes.
    pub expires_at: Option<Timestamp>,
}

/// A bucket that a credential reaches, and where it is.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Scope {
    /// The bucket's name, the same for the tenant and upstream.
    pub bucket: String,
    /// The name of the backend that has it.
    pub backend: String,
}

/// Public read access to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousBinding {
    /// The bucket.
    pub bucket: String,
    /// The backend that has it.
    pub backend: String,
    /// The claim that opened it.
    pub claim_uid: String,
    /// Requests per second and source address; 0 = the gateway's default. Read, but not enforced
    /// here: that needs the peer's address, which only a listener has.
    pub per_source_ip_rps: u32,
}

/// Why a Secret does not count. Never contains data of the Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A data key is missing or empty.
    #[error("data key {0} is missing or empty")]
    Missing(&'static str),
    /// A data key does not hold what it should.
    #[error("data key {0} cannot be read")]
    Unreadable(&'static str),
    /// The name does not belong to the access key id.
    #[error("the name is not that of its access key id")]
    ForeignName,
    /// The annotation `expires-at` is not a time: better no key than one that never ends.
    #[error("the annotation expires-at is not an RFC 3339 time")]
    Expiry,
}

impl Credential {
    /// The name of the Secret that may hold this access key id.
    #[must_use]
    pub fn secret_name(access_key_id: &str) -> String {
        format!("vc-{}", access_key_id.to_lowercase())
    }

    /// Whether the time of this credential has come.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// The scope for a bucket. Of several for one name the first counts.
    #[must_use]
    pub fn scope(&self, bucket: &str) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.bucket == bucket)
    }
}

impl TryFrom<&Secret> for Credential {
    type Error = Malformed;

    fn try_from(secret: &Secret) -> Result<Self, Malformed> {
        let data = Data::of(secret);
        let access_key_id = data.text("access_key_id")?;
        if secret.metadata.name.as_deref() != Some(&Self::secret_name(access_key_id)) {
            return Err(Malformed::ForeignName);
        }
        let secret_access_key = SecretKey::from(data.text("secret_access_key")?);
        let scopes = data.text("bucket_scopes")?;
        let scopes = serde_json::from_str(scopes).map_err(|_| Malformed::Unreadable("bucket_scopes"))?;
        let expiry = secret.metadata.annotations.as_ref().and_then(|annotations| annotations.get(EXPIRES_AT));
        let expires_at = expiry.map(|text| text.parse()).transpose().map_err(|_| Malformed::Expiry)?;
        Ok(Self { access_key_id: access_key_id.to_owned(), secret_access_key, scopes, expires_at })
    }
}

impl TryFrom<&Secret> for AnonymousBinding {
    type Error = Malformed;

    fn try_from(secret: &Secret) -> Result<Self, Malformed> {
        let data = Data::of(secret);
        if data.text("anonymous_mode")? != "ReadOnly" {
            return Err(Malformed::Unreadable("anonymous_mode"));
        }
        let rps = data.text("anonymous_per_source_ip_rps").unwrap_or("0");
        Ok(Self {
            bucket: data.text("bucket_name")?.to_owned(),
            backend: data.text("backend")?.to_owned(),
            claim_uid: data.text("claim_uid")?.to_owned(),
            per_source_ip_rps: rps.parse().map_err(|_| Malformed::Unreadable("anonymous_per_source_ip_rps"))?,
        })
    }
}

/// The data of a Secret as texts.
struct Data<'a>(Option<&'a BTreeMap<String, ByteString>>);

impl<'a> Data<'a> {
    fn of(secret: &'a Secret) -> Self {
        Self(secret.data.as_ref())
    }

    fn text(&self, key: &'static str) -> Result<&'a str, Malformed> {
        let bytes = self.0.and_then(|data| data.get(key)).filter(|bytes| !bytes.0.is_empty());
        let bytes = bytes.ok_or(Malformed::Missing(key))?;
        std::str::from_utf8(&bytes.0).map_err(|_| Malformed::Unreadable(key))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{binding_secret, credential_secret};
    use super::*;

    fn set(secret: &mut Secret, key: &str, value: &str) {
        let data = secret.data.get_or_insert_default();
        data.insert(key.to_owned(), ByteString(value.as_bytes().to_vec()));
    }

    fn refusal(change: impl FnOnce(&mut Secret)) -> Option<Malformed> {
        let mut secret = credential_secret("AKIAONE", "photos", None);
        change(&mut secret);
        Credential::try_from(&secret).err()
    }

    #[test]
    fn a_whole_secret_counts() {
        let secret = credential_secret("AKIAONE", "photos", Some("2026-11-20T10:00:00Z"));
        let credential = Credential::try_from(&secret).expect("a whole Secret");
        assert_eq!(credential.scope("photos").map(|scope| scope.backend.as_str()), Some("main"));
        assert_eq!(credential.scope("other"), None);
        let end: Timestamp = "2026-11-20T10:00:00Z".parse().expect("a time");
        assert!(credential.is_expired(end));
        assert!(!credential.is_expired(end - jiff::SignedDuration::from_nanos(1)));
    }

    #[test]
    fn a_damaged_secret_does_not() {
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|secret| secret.data = None), Some(Malformed::Missing("access_key_id")));
        assert_eq!(
            refusal(|secret| set(secret, "secret_access_key", "")),
            Some(Malformed::Missing("secret_access_key"))
        );
        assert_eq!(
            refusal(|secret| set(secret, "bucket_scopes", "photos")),
            Some(Malformed::Unreadable("bucket_scopes"))
        );
        let annotate = |secret: &mut Secret, text: &str| {
            let annotations = secret.metadata.annotations.get_or_insert_default();
            annotations.insert(EXPIRES_AT.to_owned(), text.to_owned());
        };
        assert_eq!(refusal(|secret| annotate(secret, "soon")), Some(Malformed::Expiry));
    }

    #[test]
    fn the_name_is_bound_to_the_key() {
        let rename = |secret: &mut Secret| secret.metadata.name = Some("vc-other".to_owned());
        assert_eq!(refusal(rename), Some(Malformed::ForeignName));
        assert_eq!(refusal(|secret| set(secret, "access_key_id", "AKIATWO")), Some(Malformed::ForeignName));
    }

    #[test]
    fn secrets_do_not_show() {
        let credential = Credential::try_from(&credential_secret("AKIAONE", "photos", None)).expect("whole");
        let shown = format!("{credential:?}");
        assert!(!shown.contains(credential.secret_access_key.expose()), "{shown}");
    }

    #[test]
    fn bindings_open_for_reading_only() {
        let mut secret = binding_secret("photos");
        let binding = AnonymousBinding::try_from(&secret).expect("a whole Secret");
        assert_eq!((binding.bucket.as_str(), binding.per_source_ip_rps), ("photos", 5));
        set(&mut secret, "anonymous_mode", "ReadWrite");
        assert_eq!(AnonymousBinding::try_from(&secret), Err(Malformed::Unreadable("anonymous_mode")));
    }
}
