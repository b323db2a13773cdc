//! The internal Secrets that count: keys, public access, and who holds which bucket (spec §2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use stowage_api::wire::{self, Role};
use stowage_api::{BucketName, NotServed, ServedBinding, ServedCredential, ServedRecord};

use super::table::{ByBucket, Table};
use crate::sigv4::SigningSecret;

/// A key that tenants sign with. It is the same one as long as nothing of its Secret changes that
/// matters here, so what is derived from it can be kept in it.
#[derive(Debug)]
pub struct Key {
    /// What its Secret says.
    pub credential: ServedCredential,
    /// What signatures of it are verified with.
    pub signing: SigningSecret,
}

impl Key {
    /// The key of a Secret.
    #[must_use]
    pub fn of(credential: ServedCredential) -> Self {
        Self { signing: SigningSecret::new(&credential.secret), credential }
    }
}

/// The internal Secrets, by name. One watch tells of all of them: so the order of the operator's
/// writes is the order in which they are known here.
#[derive(Debug, Default)]
pub(super) struct Internal {
    keys: BTreeMap<String, Arc<Key>>,
    /// The keys of each bucket, by the names of their Secrets.
    of_bucket: BTreeSet<(BucketName, String)>,
    bindings: ByBucket<ServedBinding>,
    records: ByBucket<ServedRecord>,
}

/// How many of each are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys.
    pub keys: usize,
    /// Keys and bindings that say by their backend's name alone where their bucket is: an operator
    /// made them that noted no endpoint, and none has completed them.
    pub without_endpoint: usize,
    /// Buckets that may be read without a key.
    pub bindings: usize,
    /// Records of who holds a bucket.
    pub records: usize,
}

impl Internal {
    /// The key of an access key id.
    pub(super) fn key(&self, id: &str) -> Option<&Arc<Key>> {
        if id.len() > ServedCredential::LONGEST_ID {
            return None;
        }
        let found = self.keys.get(&ServedCredential::secret_name(id));
        // The name has lost the case of the id.
        found.filter(|key| key.credential.id == id)
    }

    /// Every key, by the name of its Secret.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// The keys that have a bucket of this name among their own.
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

    fn forget(&mut self, name: &str) {
        if let Some(key) = self.keys.remove(name) {
            for scope in &key.credential.scopes {
                self.of_bucket.remove(&(scope.bucket.clone(), name.to_owned()));
            }
        }
        self.bindings.remove(name);
        self.records.remove(name);
    }

    fn read(&mut self, name: &str, secret: &Secret) -> Result<(), NotServed> {
        let role = secret.metadata.labels.as_ref().and_then(|labels| labels.get(wire::ROLE)).map(String::as_str);
        let is = |wanted: Role| role == Some(wanted.as_str());
        if is(Role::VirtualCredential) {
            let credential = ServedCredential::read(secret)?;
            let same = self.keys.get(name).is_some_and(|key| key.credential == credential);
            if !same {
                self.forget(name);
                let buckets = credential.scopes.iter().map(|scope| (scope.bucket.clone(), name.to_owned()));
                self.of_bucket.extend(buckets);
                self.keys.insert(name.to_owned(), Arc::new(Key::of(credential)));
            }
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

    /// How many of each there are.
    pub(super) fn counts(&self) -> Counts {
        let keys = self.keys.values().filter(|key| key.credential.endpoint.is_none()).count();
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
    /// A Secret that does not count is as good as absent.
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
            if let Some(same) = before.keys.remove(name).filter(|old| old.credential == key.credential) {
                *key = same;
            }
        }
    }
}
