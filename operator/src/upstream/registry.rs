//! The clients of all backends: created on first use, and again when their backend or Secrets
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Error, ResourceExt};
use parking_lot::Mutex;
use store_tls::{ConnectError, Trust};

use crate::api::{AdminKey, AdminSecretError, Backend, Lack, wire};

use super::access::Access;
use super::client::Upstream;

/// The reason why a backend has no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The Secret's namespace is neither the operator's nor a trusted one.
    #[error("Secret {0}/{1}: the operator does not trust namespace {0}; see --trusted-secret-namespace")]
    Untrusted(String, String),
    /// The Secret is one of the operator's own, or is named like one.
    #[error(
        "Secret {0}/{1} is one of the operator's own, or is named like one ({own}): no backend may use it",
        own = wire::INTERNAL_PREFIXES.join(", ")
    )]
    Internal(String, String),
    /// The Secret doesn't exist.
    #[error("Secret {0}/{1} does not exist")]
    NoSecret(String, String),
    /// The API server does not let the operator read the Secret.
    #[error("Secret {0}/{1}: the operator may not read it; it needs the right to get Secrets in namespace {0}")]
    Forbidden(String, String),
    /// The owner of the Secret has not allowed its use for the backend's endpoint.
    #[error("Secret {0}/{1} can't be used: {2}")]
    NotOptedIn(String, String, Lack),
    /// The Secret lacks a field, or the field is empty or not text.
    #[error("Secret {0}/{1} has no usable field {2}")]
    NoField(String, String, String),
    /// The trust configured by `spec.tls` is unusable.
    #[error(transparent)]
    Trust(#[from] ConnectError),
    /// The API server gave no usable answer.
    #[error("can't read Secret {0}/{1}: {2}")]
    Unreadable(String, String, String),
}

/// Versions of the objects from which a client was created.
#[derive(Clone, PartialEq, Eq)]
struct Made {
    backend: (String, i64),
    secrets: Vec<(String, String)>,
}

type Client = (Made, Arc<Upstream>);

/// The clients of all backends, one each.
pub struct Upstreams {
    access: Access,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    /// Event counter, by which the later of two reads of a Secret takes precedence.
    events: u64,
    of_backends: BTreeMap<String, AtHand>,
}

/// The client of one backend.
#[derive(Default)]
struct AtHand {
    client: Option<Client>,
    /// Set if a Secret of the backend has changed since. The client must not be used until it was
    /// read again.
    doubted: bool,
    /// The event of the last change. A read that began before it is outdated.
    changed: u64,
}

impl Upstreams {
    /// Creates an empty registry.
    pub fn new(access: Access) -> Self {
        Self { access, clients: Mutex::default() }
    }

    /// Returns the client of a backend. The stored client is used if it was created from this
    /// version of the backend and no Secret has changed since.
    ///
    /// # Errors
    /// Returns an error if a Secret is missing, malformed, not trusted, not opted in, forbidden or
    /// unreadable.
    pub async fn get(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        let at_hand = self.clients.lock().of(&backend.name, &identity(backend));
        match at_hand {
            Some(upstream) => Ok(upstream),
            None => self.refresh(backend).await,
        }
    }

    /// Reads the Secrets, and creates a new client if anything it depends on has changed.
    ///
    /// If no client can be created any more, the stored one is dropped. Calls that it has begun go
    /// on.
    ///
    /// # Errors
    /// Like [`Upstreams::get`].
    pub async fn refresh(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        loop {
            let began = self.clients.lock().begin(&backend.name);
            let looked = self.look(backend).await;
            // Otherwise a change came in between, and the read may be outdated.
            if self.clients.lock().settle(&backend.name, began, &looked) {
                return looked.map(|(_, upstream)| upstream);
            }
        }
    }

    /// Records that a Secret of the backend has changed: its client is not used before that was
    /// read.
    pub fn doubt(&self, backend: &str) {
        self.clients.lock().doubt(backend);
    }

    /// Forgets the client of a deleted backend. Its running calls are no longer measured.
    pub fn forget(&self, backend: &str) {
        let gone = self.clients.lock().of_backends.remove(backend);
        if let Some((_, upstream)) = gone.and_then(|at_hand| at_hand.client) {
            upstream.retire();
        }
    }

    /// Returns a client for the current Secrets: the stored one if it was created from the same
    /// versions.
    async fn look(&self, backend: &Backend) -> Result<Client, AccessError> {
        let reference = &backend.credentials;
        let admin = self.read(&reference.namespace, &reference.name).await?;
        let key = AdminKey::read(&admin, reference, &backend.endpoint, self.access.unlabelled)
            .map_err(|error| unusable(&admin, error))?;
        let mut secrets = vec![version(&admin)];
        let trust = match &backend.tls.ca_bundle_secret_ref {
            _ if backend.tls.insecure_skip_verify => Trust::Anything,
            Some(reference) => {
                let bundle = self.read(&reference.namespace, &reference.name).await?;
                secrets.push(version(&bundle));
                Trust::Bundle(field(&bundle, &reference.key)?)
            }
            None => Trust::System,
        };
        let made = Made { backend: identity(backend), secrets };
        if let Some(present) = self.clients.lock().made_of(&backend.name, &made) {
            return Ok(present);
        }
        if let Some(lack) = &key.lack {
            let (namespace, name, why) = (&reference.namespace, &reference.name, lack.to_string());
            tracing::warn!(backend = backend.name, namespace, name, why, "this Secret is used all the same");
        }
        let http = self.access.connect.connect(&trust)?;
        Ok((made, Arc::new(Upstream::new(backend, &key.id, &key.secret, http, &self.access))))
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Secret, AccessError> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        if !self.access.namespaces.contains(&namespace) {
            return Err(AccessError::Untrusted(namespace, name));
        }
        if wire::is_internal_name(&name) {
            return Err(AccessError::Internal(namespace, name));
        }
        let api: Api<Secret> = Api::namespaced(self.access.client.clone(), &namespace);
        match api.get_opt(&name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(AccessError::NoSecret(namespace, name)),
            Err(Error::Api(status)) if status.is_forbidden() => Err(AccessError::Forbidden(namespace, name)),
            Err(error) => Err(AccessError::Unreadable(namespace, name, crate::kubernetes::describe(&error))),
        }
    }
}

impl Clients {
    fn of(&self, backend: &str, identity: &(String, i64)) -> Option<Arc<Upstream>> {
        let at_hand = self.of_backends.get(backend).filter(|at_hand| !at_hand.doubted)?;
        at_hand.client.as_ref().filter(|(made, _)| made.backend == *identity).map(|(_, upstream)| upstream.clone())
    }

    fn made_of(&self, backend: &str, made: &Made) -> Option<Client> {
        self.of_backends.get(backend)?.client.clone().filter(|(present, _)| present == made)
    }

    /// Records that a read of a backend's Secrets begins.
    fn begin(&mut self, backend: &str) -> u64 {
        self.of_backends.entry(backend.to_owned()).or_default();
        self.events += 1;
        self.events
    }

    /// Stores the result of a read. Returns `false` if a change came in between.
    fn settle(&mut self, backend: &str, began: u64, looked: &Result<Client, AccessError>) -> bool {
        let at_hand = self.of_backends.entry(backend.to_owned()).or_default();
        if at_hand.changed > began {
            return false;
        }
        // This error says nothing about the Secret.
        if !matches!(looked, Err(AccessError::Unreadable(..))) {
            *at_hand = AtHand { client: looked.as_ref().ok().cloned(), doubted: false, changed: began };
        }
        true
    }

    fn doubt(&mut self, backend: &str) {
        self.events += 1;
        if let Some(at_hand) = self.of_backends.get_mut(backend) {
            at_hand.doubted = true;
            at_hand.changed = self.events;
        }
    }
}

fn identity(backend: &Backend) -> (String, i64) {
    (backend.id.uid.clone(), backend.generation)
}

fn version(secret: &Secret) -> (String, String) {
    (secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default())
}

fn unusable(secret: &Secret, error: AdminSecretError) -> AccessError {
    let (namespace, name) = (secret.namespace().unwrap_or_default(), secret.name_any());
    match error {
        AdminSecretError::Internal => AccessError::Internal(namespace, name),
        AdminSecretError::Lacks(lack) => AccessError::NotOptedIn(namespace, name, lack),
        AdminSecretError::NoField(field) => AccessError::NoField(namespace, name, field),
    }
}

/// Returns a field of a CA Secret. The caller checks if it is a bundle.
fn field(secret: &Secret, field: &str) -> Result<Vec<u8>, AccessError> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(field)).filter(|bytes| !bytes.0.is_empty());
    let none = || AccessError::NoField(secret.namespace().unwrap_or_default(), secret.name_any(), field.to_owned());
    bytes.map(|bytes| bytes.0.clone()).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::super::connect::{Connect, RustlsConnect};
    use super::super::scripted;
    use super::*;

    const MAIN: &str = "main";

    fn identity() -> (String, i64) {
        ("uid".to_owned(), 1)
    }

    fn found() -> Result<Client, AccessError> {
        let http = RustlsConnect.connect(&Trust::Anything).expect("a client");
        let upstream = Arc::new(scripted::client("http://s3.example", http));
        Ok((Made { backend: identity(), secrets: Vec::new() }, upstream))
    }

    fn gone() -> Result<Client, AccessError> {
        Err(AccessError::NoSecret("stowage-system".to_owned(), "admin".to_owned()))
    }

    // covers: 1.backend.credentials.withdrawn
    #[tokio::test]
    async fn of_two_looks_the_one_that_began_later_counts() {
        let mut clients = Clients::default();
        let (first, second) = (clients.begin(MAIN), clients.begin(MAIN));
        assert!(clients.settle(MAIN, second, &gone()));
        assert!(!clients.settle(MAIN, first, &found()), "it is to look again");
        assert!(clients.of(MAIN, &identity()).is_none());
    }

    // covers: 1.backend.credentials.withdrawn
    #[tokio::test]
    async fn a_look_that_a_change_came_into_is_made_again() {
        let mut clients = Clients::default();
        let began = clients.begin(MAIN);
        clients.doubt(MAIN);
        assert!(!clients.settle(MAIN, began, &found()));
        let again = clients.begin(MAIN);
        assert!(clients.settle(MAIN, again, &found()));
        assert!(clients.of(MAIN, &identity()).is_some());
    }

    // covers: 1.backend.credentials.withdrawn
    #[tokio::test]
    async fn a_look_that_fails_says_neither_yes_nor_no() {
        let failed = || Err(AccessError::Unreadable(String::new(), String::new(), String::new()));
        let mut clients = Clients::default();
        let began = clients.begin(MAIN);
        assert!(clients.settle(MAIN, began, &found()));
        let began = clients.begin(MAIN);
        assert!(clients.settle(MAIN, began, &failed()));
        assert!(clients.of(MAIN, &identity()).is_some(), "nothing has changed");
        clients.doubt(MAIN);
        let began = clients.begin(MAIN);
        assert!(clients.settle(MAIN, began, &failed()));
        assert!(clients.of(MAIN, &identity()).is_none(), "it is still to be looked at");
    }
}
