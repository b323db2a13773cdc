//! The Secrets of an access, as read by the gateway (spec §8).

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;

use crate::identity::{AccessRef, AccessUid, NamespaceUid};
use crate::secrets::access::{AccessRecord, AccessScope, scopes};
use crate::secrets::bounded::{Bounded, LONGEST_ID, LONGEST_NAME, NotServed};
use crate::secrets::key::SecretKey;
use crate::wire;

/// Maximum length of an access's serialized scopes, in bytes: 64 scopes, each with a prefix and an
/// endpoint.
const LONGEST_ACCESS_SCOPES: usize = 512 << 10;

/// A key of an access, with the scopes that it requests. The record of its access and the owners of
/// the buckets determine what it may open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAccess {
    /// Access key id.
    pub id: String,
    /// Secret key.
    pub secret: SecretKey,
    /// UID of the access.
    pub uid: AccessUid,
    /// Requested buckets, with distinct names.
    pub scopes: Box<[AccessScope]>,
    /// Time from which the key is refused; `None` means until its Secret is deleted.
    pub expires_at: Option<Timestamp>,
}

impl ServedAccess {
    /// Returns the name of the only Secret that may contain this access key id as a key of an
    /// access.
    #[must_use]
    pub fn secret_name(id: &str) -> String {
        format!("{}{}", wire::ACCESS_CREDENTIAL_PREFIX, id.to_ascii_lowercase())
    }

    /// Parses a key of an access. An invalid scope opens nothing, and does not affect the others.
    ///
    /// # Errors
    /// Returns an error if id, secret key, access or list of scopes is missing, damaged or too
    /// long, if the name does not match the id, or if the Secret is being deleted.
    pub fn read(secret: &Secret) -> Result<Self, NotServed> {
        let data = Bounded::of_live(secret)?;
        let id = data.text("access_key_id", LONGEST_ID)?;
        if secret.metadata.name.as_deref() != Some(&Self::secret_name(id)) {
            return Err(NotServed::ForeignName);
        }
        let scopes = scopes(data.text("scopes", LONGEST_ACCESS_SCOPES)?);
        let annotations = secret.metadata.annotations.as_ref();
        let expiry = annotations.and_then(|annotations| annotations.get(wire::EXPIRES_AT));
        Ok(Self {
            id: id.to_owned(),
            secret: data.secret_key()?,
            uid: AccessUid::new(data.text("access_uid", LONGEST_NAME)?),
            scopes: scopes.ok_or(NotServed::Unreadable("scopes"))?.into(),
            expires_at: expiry.map(|text| text.parse()).transpose().map_err(|_| NotServed::Expiry)?,
        })
    }
}

/// Proof that an access exists, with its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAccessRecord {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// UID of the access.
    pub uid: AccessUid,
    /// UID of the access's namespace.
    pub namespace_uid: NamespaceUid,
}

impl ServedAccessRecord {
    /// Parses the record of an access.
    ///
    /// # Errors
    /// Returns an error if it is damaged or too long, if the name does not match the content, or if
    /// the Secret is being deleted.
    pub fn read(secret: &Secret) -> Result<Self, NotServed> {
        let data = Bounded::of_live(secret)?;
        for key in ["access_namespace", "access_name", "access_uid", "namespace_uid"] {
            data.text(key, LONGEST_NAME)?;
        }
        let record = AccessRecord::read(secret).map_err(|damage| NotServed::Unreadable(damage.field))?;
        let AccessRecord { access, uid, namespace_uid, .. } = record;
        Ok(Self { access, uid, namespace_uid })
    }
}
