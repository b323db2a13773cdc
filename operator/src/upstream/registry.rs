//! The clients of all backends: made when first needed, made anew when what they are made of
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Error, ResourceExt};
use parking_lot::Mutex;

use crate::api::{Backend, SecretKey};

use super::access::Access;
use super::client::Upstream;
use super::trust::{ConnectError, Trust};

/// Why a backend has no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The Secret's namespace is neither the operator's nor one that it was told to trust.
    #[error("Secret {0}/{1}: the operator does not trust namespace {0}; see --trusted-secret-namespace")]
    Untrusted(String, String),
    /// There is no such Secret.
    #[error("Secret {0}/{1} does not exist")]
    NoSecret(String, String),
    /// The API server does not let the operator read the Secret.
    #[error("Secret {0}/{1}: the operator may not read it; it needs the right to get Secrets in namespace {0}")]
    Forbidden(String, String),
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

/// The clients of all backends, one each.
pub struct Upstreams {
    access: Access,
    clients: Mutex<BTreeMap<String, (Made, Arc<Upstream>)>>,
}

impl Upstreams {
    /// No client yet.
    pub fn new(access: Access) -> Self {
        Self { access, clients: Mutex::default() }
    }

    /// The client of a backend: the one at hand if it was made of this very backend, else a new
    /// one.
    ///
    /// # Errors
    /// When a Secret is missing, malformed, not trusted, or may not or can't be read.
    pub async fn get(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        let at_hand = self.clients.lock().get(&backend.name).cloned();
        match at_hand {
            Some((made, upstream)) if made.backend == identity(backend) => Ok(upstream),
            _ => self.refresh(backend).await,
        }
    }

    /// Reads the Secrets, and makes a new client if anything that it is made of changed.
    ///
    /// # Errors
    /// As [`Upstreams::get`].
    pub async fn refresh(&self, backend: &Backend) -> Result<Arc<Upstream>, AccessError> {
        let reference = &backend.credentials;
        let admin = self.read(&reference.namespace, &reference.name).await?;
        let key_id = field(&admin, &reference.access_key_field)?;
        let secret_key = SecretKey::new(field(&admin, &reference.secret_key_field)?);
        let mut secrets = vec![version(&admin)];
        let trust = match &backend.tls.ca_bundle_secret_ref {
            _ if backend.tls.insecure_skip_verify => Trust::Anything,
            Some(reference) => {
                let bundle = self.read(&reference.namespace, &reference.name).await?;
                secrets.push(version(&bundle));
                Trust::Bundle(field(&bundle, &reference.key)?.into_bytes())
            }
            None => Trust::System,
        };
        let made = Made { backend: identity(backend), secrets };
        if let Some((_, upstream)) = self.clients.lock().get(&backend.name).filter(|(present, _)| *present == made) {
            return Ok(upstream.clone());
        }
        let http = self.access.connect.connect(&trust)?;
        let upstream = Arc::new(Upstream::new(backend, &key_id, &secret_key, http, &self.access));
        self.clients.lock().insert(backend.name.clone(), (made, upstream.clone()));
        Ok(upstream)
    }

    /// Forgets the client of a backend that is gone. Calls of it that are still under way are no
    /// longer measured.
    pub fn forget(&self, backend: &str) {
        if let Some((_, upstream)) = self.clients.lock().remove(backend) {
            upstream.retire();
        }
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Secret, AccessError> {
        let at = || (namespace.to_owned(), name.to_owned());
        if !self.access.namespaces.iter().any(|trusted| trusted == namespace) {
            let (namespace, name) = at();
            return Err(AccessError::Untrusted(namespace, name));
        }
        let api: Api<Secret> = Api::namespaced(self.access.client.clone(), namespace);
        let (namespace, name) = at();
        match api.get_opt(&name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(AccessError::NoSecret(namespace, name)),
            Err(Error::Api(status)) if status.is_forbidden() => Err(AccessError::Forbidden(namespace, name)),
            Err(error) => Err(AccessError::Unreadable(namespace, name, crate::kubernetes::describe(&error))),
        }
    }
}

fn identity(backend: &Backend) -> (String, i64) {
    (backend.id.uid.clone(), backend.generation)
}

fn version(secret: &Secret) -> (String, String) {
    (secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default())
}

fn field(secret: &Secret, field: &str) -> Result<String, AccessError> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(field)).map(|bytes| bytes.0.clone());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned());
    text.filter(|text| !text.is_empty()).ok_or_else(|| {
        AccessError::NoField(secret.namespace().unwrap_or_default(), secret.name_any(), field.to_owned())
    })
}
