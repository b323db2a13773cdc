//! Bounded access to the data of a Secret, for the gateway.

use k8s_openapi::api::core::v1::Secret;

use super::key::SecretKey;
use crate::identity::ClaimUid;
use crate::names::{BucketName, Endpoint};
use crate::quantity::{Bytes, Quantity};
use crate::wire;

/// Maximum length of an access key id, in bytes (Amazon IAM API Reference, "AccessKey").
pub(super) const LONGEST_ID: usize = 128;
/// Maximum length of a secret key, in bytes. The operator's have 40.
pub(super) const LONGEST_KEY: usize = 256;
/// Maximum length of a Kubernetes object's name, in bytes. UIDs are shorter.
pub(super) const LONGEST_NAME: usize = 253;
/// Maximum length of an endpoint, in bytes, as in the definition of `S3Backend`.
pub(super) const LONGEST_ENDPOINT: usize = 2048;
/// Maximum length of a number of bytes, in digits.
pub(super) const LONGEST_NUMBER: usize = 20;

/// Error for a Secret that is ignored. Never contains data of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// A data key is missing or empty.
    #[error("data key {0} is missing or empty")]
    Missing(&'static str),
    /// The value of a data key is invalid.
    #[error("data key {0} can't be read")]
    Unreadable(&'static str),
    /// The value of a data key is longer than any that the operator writes.
    #[error("data key {0} is too long")]
    TooLong(&'static str),
    /// The name does not match the content.
    #[error("the name is not the one that the content asks for")]
    ForeignName,
    /// The annotation `expires-at` is not a time. The key is ignored, because it would never
    /// expire.
    #[error("the annotation expires-at is not an RFC 3339 time")]
    Expiry,
    /// The Secret has a deletion timestamp, and a finalizer keeps it.
    #[error("it is deleted already, somebody's finalizer keeps it")]
    Deleted,
}

/// Limits on the number of bytes stored in a bucket; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Limit above which the gateway warns.
    pub soft: Option<Bytes>,
    /// Limit above which nothing is stored.
    pub hard: Option<Bytes>,
}

/// Reads the limits in a Secret.
///
/// # Errors
/// Returns an error if one of the limits is invalid.
pub(super) fn limits(secret: &Secret) -> Result<Limits, NotServed> {
    Bounded(secret).limits()
}

/// Access to the data of a Secret as strings of bounded length.
pub(super) struct Bounded<'a>(pub(super) &'a Secret);

impl<'a> Bounded<'a> {
    pub(super) fn of_live(secret: &'a Secret) -> Result<Self, NotServed> {
        let live = secret.metadata.deletion_timestamp.is_none();
        live.then_some(Self(secret)).ok_or(NotServed::Deleted)
    }

    pub(super) fn optional(&self, key: &'static str, longest: usize) -> Result<Option<&'a str>, NotServed> {
        let Some(bytes) = self.0.data.as_ref().and_then(|data| data.get(key)) else { return Ok(None) };
        if bytes.0.len() > longest {
            return Err(NotServed::TooLong(key));
        }
        std::str::from_utf8(&bytes.0).map(Some).map_err(|_| NotServed::Unreadable(key))
    }

    pub(super) fn text(&self, key: &'static str, longest: usize) -> Result<&'a str, NotServed> {
        self.optional(key, longest)?.filter(|text| !text.is_empty()).ok_or(NotServed::Missing(key))
    }

    pub(super) fn secret_key(&self) -> Result<SecretKey, NotServed> {
        const KEY: &str = "secret_access_key";
        SecretKey::minted(self.text(KEY, LONGEST_KEY)?).ok_or(NotServed::Unreadable(KEY))
    }

    pub(super) fn uid(&self) -> Result<ClaimUid, NotServed> {
        self.text("claim_uid", LONGEST_NAME).map(ClaimUid::new)
    }

    pub(super) fn bucket(&self) -> Result<BucketName, NotServed> {
        let text = self.text("bucket_name", LONGEST_NAME)?;
        BucketName::parse(text).map_err(|_| NotServed::Unreadable("bucket_name"))
    }

    pub(super) fn endpoint(&self) -> Result<Option<Endpoint>, NotServed> {
        let text = self.optional(wire::ENDPOINT, LONGEST_ENDPOINT)?;
        text.map(Endpoint::parse).transpose().map_err(|_| NotServed::Unreadable(wire::ENDPOINT))
    }

    pub(super) fn limits(&self) -> Result<Limits, NotServed> {
        let bytes = |key| {
            let text = self.optional(key, LONGEST_NUMBER)?;
            let number = |text: &str| {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                Quantity::Text(text.to_owned()).bytes().ok().filter(|_| digits).ok_or(NotServed::Unreadable(key))
            };
            text.map(number).transpose()
        };
        Ok(Limits { soft: bytes("quota_soft_bytes")?, hard: bytes("quota_hard_bytes")? })
    }
}
