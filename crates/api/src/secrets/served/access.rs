//! The Secrets of an access, as a gateway reads them (spec §8).

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;

use crate::identity::{AccessRef, AccessUid, NamespaceUid};
use crate::secrets::access::{AccessRecord, AccessScope, scopes};
use crate::secrets::bounded::{Bounded, LONGEST_ID, LONGEST_NAME, NotServed};
use crate::secrets::key::SecretKey;
use crate::wire;

/// Longest text of the scopes of an access, in bytes: 64, each with a prefix and an endpoint.
const LONGEST_ACCESS_SCOPES: usize = 512 << 10;

/// A key of an access, and what it asks to open: how far it may is for the record of its access,
/// and for whose buckets they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAccess {
    /// The access key id.
    pub id: String,
    /// The secret key.
    pub secret: SecretKey,
    /// UID of the access.
    pub uid: AccessUid,
    /// The buckets, no two of one name.
    pub scopes: Box<[AccessScope]>,
    /// At and after this time it is refused; `None` = until its Secret goes.
    pub expires_at: Option<Timestamp>,
}

impl ServedAccess {
    /// The name of the one Secret that may hold this access key id as a key of an access.
    #[must_use]
    pub fn secret_name(id: &str) -> String {
        format!("{}{}", wire::ACCESS_CREDENTIAL_PREFIX, id.to_ascii_lowercase())
    }

    /// Reads a key of an access. A scope that can't be read opens nothing, and the others do.
    ///
    /// # Errors
    /// When id, secret, access or the list of scopes is missing, damaged or longer than ours are,
    /// or the name is not that of its id, or it is deleted already.
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

/// That an access is there, and of which namespace it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAccessRecord {
    /// Namespace and name of the access.
    pub access: AccessRef,
    /// Its UID.
    pub uid: AccessUid,
    /// UID of its namespace.
    pub namespace_uid: NamespaceUid,
}

impl ServedAccessRecord {
    /// Reads the record of an access.
    ///
    /// # Errors
    /// When it is damaged or longer than ours are, or under another name than its own, or it is
    /// deleted already.
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
