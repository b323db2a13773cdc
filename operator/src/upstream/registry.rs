//! The clients of all backends: made when first needed, made anew when what they are made of
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Error, ResourceExt};
use parking_lot::Mutex;
use store_tls::{ConnectError, Trust};

use crate::api::{AdminKey, AdminSecretError, Backend, Lack, wire};

use super::access::Access;
use super::client::Upstream;

/// Why a backend has no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The Secret's namespace is neither the operator's nor one that it was told to trust.
    #[error("Secret {0}/{1}: the operator does not trust namespace {0}; see --trusted-secret-namespace")]
    Untrusted(String, String),
    /// The Secret is, or is named like, one of the operator's own.
    #[error(
        "Secret {0}/{1} is one of the operator's own, or is named like one ({own}): no backend may use it",
        own = wire::INTERNAL_PREFIXES.join(", ")
    )]
    Internal(String, String),
    /// There is no such Secret.
    #[error("Secret {0}/{1} does not exist")]
    NoSecret(String, String),
    /// The API server does not let the operator read the Secret.
    #[error("Secret {0}/{1}: the operator may not read it; it needs the right to get Secrets in namespace {0}")]
    Forbidden(String, String),
    /// The owner of the Secret doesn't let it be used for the backend's endpoint.
    #[error("Secret {0}/{1} can't be used: {2}")]
    NotOptedIn(String, String, Lack),
    /// The Secret has no such field, or it is empty or not text.
    #[error("Secret {0}/{1} has no usable field {2}")]
    NoField(String, String, String),
    /// The trust that `spec.tls` asks for can't be established.
    #[error(transparent)]
    Trust(#[from] ConnectError),
    /// The API server gave no usable answer.
    #[error("can't read Secret {0}/{1}: {2}")]
    Unreadable(String, String, String),
}

/// What a client is made of.
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
    /// Counts what happens, so that of two looks at a Secret the later one counts.
    events: u64,
    of_backends: BTreeMap<String, AtHand>,
}

/// The client of one backend.
#[derive(Default)]
struct AtHand {
    client: Option<Client>,
    /// A Secret of the backend has changed since: the client is not to be used before it was looked
    /// at.
    doubted: bool,
    /// The event of the last change here. A look that began before says nothing any more.
    changed: u64,
}

impl Upstreams {
    /// No client yet.
    pub fn new(access: Access) -> Self {
        Self { access, clients: Mutex::default() }
    }

    /// The client of a backend: the one at hand if it was made of this very backend, and no Secret
    /// of it has changed since; else a new one.
    ///
    /// # Errors
    /// When a Secret is missing, malformed, not trusted, not opted in, or may not or can't be read.
    pub async fn get(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        let at_hand = self.clients.lock().of(&backend.name, &identity(backend));
        match at_hand {
            Some(upstream) => Ok(upstream),
            None => self.refresh(backend).await,
        }
    }

    /// Reads the Secrets, and makes a new client if anything that it is made of changed. Where
    /// there can't be one any more, the one at hand goes: what stays is what was begun with it.
    ///
    /// # Errors
    /// As [`Upstreams::get`].
    pub async fn refresh(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        loop {
            let began = self.clients.lock().begin(&backend.name);
            let looked = self.look(backend).await;
            // Otherwise something came between, and what was read may be of before.
            if self.clients.lock().settle(&backend.name, began, &looked) {
                return looked.map(|(_, upstream)| upstream);
            }
        }
    }

    /// A Secret of the backend has changed: nobody gets its client before that was looked at.
    pub fn doubt(&self, backend: &str) {
        self.clients.lock().doubt(backend);
    }

    /// Forgets the client of a backend that is gone. Calls of it that are still under way are no
    /// longer measured.
    pub fn forget(&self, backend: &str) {
        let gone = self.clients.lock().of_backends.remove(backend);
        if let Some((_, upstream)) = gone.and_then(|at_hand| at_hand.client) {
            upstream.retire();
        }
    }

    /// The client that the Secrets as they are give: the one at hand if it was made of the same.
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

    /// A look at the Secrets of a backend begins.
    fn begin(&mut self, backend: &str) -> u64 {
        self.of_backends.entry(backend.to_owned()).or_default();
        self.events += 1;
        self.events
    }

    /// Takes in what a look showed. `false` where something has come between.
    fn settle(&mut self, backend: &str, began: u64, looked: &Result<Client, AccessError>) -> bool {
        let at_hand = self.of_backends.entry(backend.to_owned()).or_default();
        if at_hand.changed > began {
            return false;
        }
        // An error says nothing of the Secret.
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

/// What stands in a field of a CA Secret. Whether it is a bundle is for whoever reads it to say.
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
