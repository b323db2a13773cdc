//! The internal Secrets: keys, public access, and the claims that hold buckets (spec §2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use stowage_api::wire::{self, Role};
use stowage_api::{
    AccessRecord, AccessUid, BucketName, NotServed, SecretKey, ServedAccess, ServedAccessRecord, ServedBinding,
    ServedCredential, ServedRecord,
};

use super::table::{ByBucket, Table};
use crate::sigv4::SigningSecret;

/// A key of a tenant. The same instance is kept as long as nothing relevant in its Secret changes,
/// so it can cache values derived from it.
#[derive(Debug)]
pub struct Key {
    /// The holder, with the content of its Secret.
    pub holder: Holder,
    /// The secret key in the form that verifies signatures.
    pub signing: SigningSecret,
}

/// The holder of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A claim. The key's Secret says which buckets it may use.
    Claim(ServedCredential),
    /// An access. Its grants also depend on other objects.
    Access(ServedAccess),
}

impl Holder {
    fn id(&self) -> &str {
        match self {
            Self::Claim(credential) => &credential.id,
            Self::Access(access) => &access.id,
        }
    }
}

impl Key {
    /// Creates the key of a claim's Secret.
    #[must_use]
    pub fn of(credential: ServedCredential) -> Self {
        Self { signing: SigningSecret::new(&credential.secret), holder: Holder::Claim(credential) }
    }

    /// Creates the key of an access's Secret.
    #[must_use]
    pub fn of_access(access: ServedAccess) -> Self {
        Self { signing: SigningSecret::new(&access.secret), holder: Holder::Access(access) }
    }

    /// Returns the access key id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.holder.id()
    }

    /// Returns the credential if the key is a claim's.
    #[must_use]
    pub fn credential(&self) -> Option<&ServedCredential> {
        match &self.holder {
            Holder::Claim(credential) => Some(credential),
            Holder::Access(_) => None,
        }
    }

    /// Returns the UID of the claim or access that holds the key.
    #[must_use]
    pub fn holder_uid(&self) -> &str {
        match &self.holder {
            Holder::Claim(credential) => credential.uid.as_str(),
            Holder::Access(access) => access.uid.as_str(),
        }
    }

    /// Returns the secret key.
    #[must_use]
    pub fn secret(&self) -> &SecretKey {
        match &self.holder {
            Holder::Claim(credential) => &credential.secret,
            Holder::Access(access) => &access.secret,
        }
    }

    /// Returns true if the key has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let expires_at = match &self.holder {
            Holder::Claim(credential) => credential.expires_at,
            Holder::Access(access) => access.expires_at,
        };
        expires_at.is_some_and(|end| now >= end)
    }
}

/// The internal Secrets by name. A single watch delivers all of them, so they become known in the
/// order of the operator's writes.
#[derive(Debug, Default)]
pub(super) struct Internal {
    keys: BTreeMap<String, Arc<Key>>,
    /// The keys of each bucket, by the names of their Secrets.
    of_bucket: BTreeSet<(BucketName, String)>,
    bindings: ByBucket<ServedBinding>,
    records: ByBucket<ServedRecord>,
    /// Records of accesses by the names of their Secrets, which are derived from the UIDs.
    accesses: BTreeMap<String, ServedAccessRecord>,
}

/// The numbers of cached objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys.
    pub keys: usize,
    /// Keys and bindings that locate their bucket by their backend's name alone: they were created
    /// by an operator that recorded no endpoint, and no operator has completed them yet.
    pub without_endpoint: usize,
    /// Buckets that may be read without a key.
    pub bindings: usize,
    /// Bucket records.
    pub records: usize,
}

impl Internal {
    /// Returns the key of an access key id.
    pub(super) fn key(&self, id: &str) -> Option<&Arc<Key>> {
        if id.len() > ServedCredential::LONGEST_ID {
            return None;
        }
        let of_claim = self.keys.get(&ServedCredential::secret_name(id));
        let found = of_claim.or_else(|| self.keys.get(&ServedAccess::secret_name(id)));
        // The case of the id is lost in the Secret's name.
        found.filter(|key| key.id() == id)
    }

    /// Returns every key, by the name of its Secret.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// Returns the keys of a bucket of this name.
    pub(super) fn keys_of<'a>(&'a self, bucket: &BucketName) -> impl Iterator<Item = &'a Arc<Key>> + use<'a> {
        let bucket = bucket.clone();
        let names = self.of_bucket.range((bucket.clone(), String::new())..);
        let names = names.take_while(move |(of, _)| *of == bucket).map(|(_, name)| name);
        names.filter_map(|name| self.keys.get(name))
    }

    pub(super) fn bindings(&self) -> &ByBucket<ServedBinding> {
        &self.bindings
    }

    pub(super) fn records(&self) -> &ByBucket<ServedRecord> {
        &self.records
    }

    /// Returns the record of an access.
    pub(super) fn access(&self, uid: &AccessUid) -> Option<&ServedAccessRecord> {
        self.accesses.get(&AccessRecord::name(uid))
    }

    fn forget(&mut self, name: &str) {
        if let Some(key) = self.keys.remove(name) {
            for scope in key.credential().iter().flat_map(|credential| &credential.scopes) {
                self.of_bucket.remove(&(scope.bucket.clone(), name.to_owned()));
            }
        }
        self.accesses.remove(name);
        self.bindings.remove(name);
        self.records.remove(name);
    }

    fn read(&mut self, name: &str, secret: &Secret) -> Result<(), NotServed> {
        let role = secret.metadata.labels.as_ref().and_then(|labels| labels.get(wire::ROLE)).map(String::as_str);
        let is = |wanted: Role| role == Some(wanted.as_str());
        if is(Role::VirtualCredential) {
            let credential = ServedCredential::read(secret)?;
            let same = self.keys.get(name).is_some_and(|key| key.credential() == Some(&credential));
            if !same {
                self.forget(name);
                let buckets = credential.scopes.iter().map(|scope| (scope.bucket.clone(), name.to_owned()));
                self.of_bucket.extend(buckets);
                self.keys.insert(name.to_owned(), Arc::new(Key::of(credential)));
            }
        } else if is(Role::AccessCredential) {
            let access = Key::of_access(ServedAccess::read(secret)?);
            if self.keys.get(name).is_none_or(|key| key.holder != access.holder) {
                self.forget(name);
                self.keys.insert(name.to_owned(), Arc::new(access));
            }
        } else if is(Role::AccessRecord) {
            let record = ServedAccessRecord::read(secret)?;
            self.forget(name);
            self.accesses.insert(name.to_owned(), record);
        } else if is(Role::AnonymousBinding) {
            let binding = ServedBinding::read(secret)?;
            self.forget(name);
            self.bindings.insert(name, binding);
        } else if is(Role::BucketRecord) {
            let record = ServedRecord::read(secret)?;
            self.forget(name);
            self.records.insert(name, record);
        } else {
            self.forget(name);
        }
        Ok(())
    }

    /// Returns the numbers of objects.
    pub(super) fn counts(&self) -> Counts {
        let keys = self.keys.values().filter_map(|key| key.credential()).filter(|it| it.endpoint.is_none()).count();
        let bindings = self.bindings.values().filter(|binding| binding.endpoint.is_none()).count();
        Counts {
            keys: self.keys.len(),
            without_endpoint: keys + bindings,
            bindings: self.bindings.len(),
            records: self.records.len(),
        }
    }
}

impl Table<Secret> for Internal {
    /// Adds a Secret. An invalid one counts as absent.
    fn put(&mut self, secret: Secret) {
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        if let Err(reason) = self.read(name, &secret) {
            tracing::warn!(secret = name, %reason, "a Secret does not count");
            self.forget(name);
        }
    }

    fn take(&mut self, secret: &Secret) {
        self.forget(secret.metadata.name.as_deref().unwrap_or_default());
    }

    fn succeed(&mut self, mut before: Self) {
        for (name, key) in &mut self.keys {
            if let Some(same) = before.keys.remove(name).filter(|old| old.holder == key.holder) {
                *key = same;
            }
        }
    }
}
