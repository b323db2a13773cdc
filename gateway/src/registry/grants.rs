//! Grants to the key of an access: the intersection of its scope and the bucket owner's consent,
//! both as currently cached (spec §8).

use std::sync::Arc;

use stowage_api::{
    AccessMode, AccessScope, BucketName, Consent, Limits, NotServed, Prefix, ServedAccess, ServedAccessRecord,
};

use super::backend::Backend;
use super::tables::{Tables, Unreachable};

/// A bucket that a key of an access may use, and to what extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The store of the bucket.
    pub backend: Arc<Backend>,
    /// The operations that are allowed.
    pub mode: AccessMode,
    /// The prefix of allowed keys. `None`: all objects.
    prefix: Option<Prefix>,
}

impl Granted {
    /// Returns true if the grant covers all objects of the bucket.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.prefix.is_none()
    }

    /// Returns true if the grant covers the object with this key, or all objects with this prefix.
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| prefix.covers(key))
    }
}

impl Tables {
    /// Returns the grant of an access's key to the bucket of this name.
    ///
    /// # Errors
    /// Returns an error if there is no grant.
    pub fn grant(&self, key: &ServedAccess, bucket: &BucketName) -> Result<Granted, Unreachable> {
        let scope = key.scopes.iter().find(|scope| scope.bucket == *bucket).ok_or(Unreachable::Closed)?;
        // The namespace comes from the access's record and never from the key.
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

    /// Returns the consent of the claim that holds the bucket, if it is the claim that the key was
    /// made for.
    fn owners_word(&self, access: &ServedAccessRecord, scope: &AccessScope) -> Option<&Consent> {
        let is_there = |record: &&stowage_api::ServedRecord| record.endpoint == scope.endpoint;
        let record = self.records_of(&scope.bucket).find(is_there)?;
        record.consent(&access.namespace_uid).filter(|_| scope.claim.as_ref() == Some(&record.uid))
    }

    /// Returns the consent of an administrator, if no claim holds the bucket at any address of the
    /// store, and no claim has a key to it. The record alone of a claim that was refused the bucket
    /// doesn't count: otherwise its tenant could void the consent.
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
            // A key without an endpoint may be for any store.
            credential.endpoint.as_ref().is_none_or(is_here)
        });
        let is_let_in = namespaces.contains(&access.access.namespace);
        (is_let_in && !is_held && !is_opened).then_some(consent)
    }

    /// Returns the limits of a bucket for the key of an access, from the record of the bucket's
    /// claim.
    ///
    /// # Errors
    /// Returns an error if the limits can't be parsed.
    pub(super) fn noted_limits(&self, key: &ServedAccess, bucket: &BucketName) -> Result<Limits, NotServed> {
        let Some(scope) = key.scopes.iter().find(|scope| scope.bucket == *bucket) else { return Ok(Limits::default()) };
        let record = self.records_of(bucket).find(|record| record.endpoint == scope.endpoint);
        record.map_or(Ok(Limits::default()), |record| record.limits)
    }
}
