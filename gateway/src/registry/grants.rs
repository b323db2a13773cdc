//! What a key of an access opens: as far as it asks, and as whose bucket it is consents to, as both
//! are known now (spec §8).

use std::sync::Arc;

use stowage_api::{
    AccessMode, AccessScope, BucketName, Consent, Limits, NotServed, Prefix, ServedAccess, ServedAccessRecord,
};

use super::backend::Backend;
use super::tables::{Tables, Unreachable};

/// A bucket that a key of an access opens, and how far.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The store that has it.
    pub backend: Arc<Backend>,
    /// What may be done there.
    pub mode: AccessMode,
    /// What keys of objects begin with; `None` = all objects.
    prefix: Option<Prefix>,
}

impl Granted {
    /// Whether it is for all objects of the bucket.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.prefix.is_none()
    }

    /// Whether it is for the object of this key, or for all whose keys begin so.
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| prefix.covers(key))
    }
}

impl Tables {
    /// How far a key of an access opens the bucket of this name.
    ///
    /// # Errors
    /// When it doesn't.
    pub fn grant(&self, key: &ServedAccess, bucket: &BucketName) -> Result<Granted, Unreachable> {
        let scope = key.scopes.iter().find(|scope| scope.bucket == *bucket).ok_or(Unreachable::Closed)?;
        // Which namespace it is from is for the record to say, and never for the key.
        let access = self.access(&key.uid).ok_or(Unreachable::Closed)?;
        let backend = self.backend(&scope.backend).ok_or(Unreachable::NoBackend)?;
        if !backend.is_at(&scope.endpoint) {
            return Err(Unreachable::Elsewhere);
        }
        let consent = match &scope.claim {
            Some(_) => self.owners_word(access, scope),
            None => self.administrators_word(access, scope, backend),
        };
        let admits = |consent: &&Consent| consent.admits(scope.prefix.as_ref());
        let consent = consent.filter(admits).ok_or(Unreachable::Closed)?;
        let mode = scope.mode.and(consent.max_mode).ok_or(Unreachable::Closed)?;
        Ok(Granted { backend: backend.clone(), mode, prefix: scope.prefix.clone() })
    }

    /// What the claim consents to that holds the bucket, if it is the one that the key is for.
    fn owners_word(&self, access: &ServedAccessRecord, scope: &AccessScope) -> Option<&Consent> {
        let is_there = |record: &&stowage_api::ServedRecord| record.endpoint == scope.endpoint;
        let record = self.records_of(&scope.bucket).find(is_there)?;
        record.consent(&access.namespace_uid).filter(|_| scope.claim.as_ref() == Some(&record.uid))
    }

    /// What an administrator consents to, while no claim holds the bucket, nor has a key to it, by
    /// any address of the store. A record alone of a claim that was refused the bucket holds
    /// nothing: else its tenant could void the consent.
    fn administrators_word<'a>(
        &self,
        access: &ServedAccessRecord,
        scope: &AccessScope,
        backend: &'a Backend,
    ) -> Option<&'a Consent> {
        let (namespaces, consent) = backend.shared.get(&scope.bucket)?;
        let is_here = |endpoint: &stowage_api::Endpoint| {
            [&backend.endpoint].into_iter().chain(&backend.former).any(|own| own.is_alias_of(endpoint))
        };
        let is_held = self.records_of(&scope.bucket).any(|record| record.has_begun && is_here(&record.endpoint));
        let is_opened = self.keys_of(&scope.bucket).filter_map(|key| key.credential()).any(|credential| {
            // One that notes no endpoint may be for any store.
            credential.endpoint.as_ref().is_none_or(is_here)
        });
        let is_let_in = namespaces.contains(&access.access.namespace);
        (is_let_in && !is_held && !is_opened).then_some(consent)
    }

    /// What the bucket may hold that a key of an access opens, as its claim's record says.
    ///
    /// # Errors
    /// When that can't be read.
    pub(super) fn noted_limits(&self, key: &ServedAccess, bucket: &BucketName) -> Result<Limits, NotServed> {
        let Some(scope) = key.scopes.iter().find(|scope| scope.bucket == *bucket) else { return Ok(Limits::default()) };
        let record = self.records_of(bucket).find(|record| record.endpoint == scope.endpoint);
        record.map_or(Ok(Limits::default()), |record| record.limits)
    }
}
