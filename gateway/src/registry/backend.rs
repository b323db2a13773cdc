//! An S3 store as the gateway calls it: the fields of its S3Backend that matter here, joined with
//! the Secrets that it references.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use store_tls::Trust;
use stowage_api::{
    AddressingStyle, AdminCredentialsSecretRef, AdminKey, AdminSecretError, BackendTls, BucketName, Consent, Endpoint,
    InvalidSpec, Lack, S3Backend, Unlabelled, former_endpoints, shared_buckets, wire,
};

use crate::cors::Rule;

/// A store, with all inputs of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The name of its S3Backend.
    pub name: String,
    /// The revision of the inputs of the store's client. Two values with the same revision can
    /// share a client. It never decreases, and has no meaning outside this process.
    pub revision: u64,
    /// Endpoint of the store.
    pub endpoint: Endpoint,
    /// Former endpoints of the store.
    pub former: Vec<Endpoint>,
    /// The region that requests are signed for.
    pub region: String,
    /// The addressing style: the place of a bucket's name in a request's URL.
    pub addressing: AddressingStyle,
    /// The CORS rule.
    pub cors: Option<Rule>,
    /// Buckets shared by the administrator: the namespaces whose accesses may use each, and the
    /// mode and prefixes that are allowed.
    pub shared: BTreeMap<BucketName, (Vec<String>, Consent)>,
    /// The credentials and trust for its client, or the reason why it has none.
    pub access: Result<Access, Unusable>,
}

/// The credentials and trust for requests to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The signing key: the gateway's own credentials if the backend has them, otherwise the
    /// admin's.
    pub key: AdminKey,
    /// The certificates that the client trusts.
    pub trust: Trust,
}

/// Namespace and name of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The reason why a store can't be called. Contains nothing of a Secret's data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The Secret's namespace is neither the operator's nor a trusted one of the gateway's
    /// configuration.
    #[error("Secret {0}: its namespace is not trusted; see --trusted-secret-namespace")]
    Untrusted(SecretName),
    /// The Secret is one of the operator's own, or has a name like one.
    #[error("Secret {0} is one of the operator's own, or is named like one: no backend may use it")]
    Internal(SecretName),
    /// The watch of the Secret has delivered nothing yet.
    #[error("Secret {0} was not seen yet")]
    NotSeen(SecretName),
    /// The Secret was never seen, and its watch fails.
    #[error("Secret {0} can't be watched: {1}")]
    Unwatched(SecretName, Failure),
    /// The Secret does not exist.
    #[error("Secret {0} does not exist")]
    NoSecret(SecretName),
    /// The owner of the Secret has not opted in to its use for the store's endpoint.
    #[error("Secret {0} can't be used: {1}")]
    NotOptedIn(SecretName, Lack),
    /// The Secret has no such field, or the field is empty or not text.
    #[error("Secret {0} has no usable field {1}")]
    NoField(SecretName, String),
}

/// The reason why a watch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The API server refuses it, with this HTTP status.
    Refused(u16),
    /// The API server's response can't be parsed.
    Unreadable,
    /// The API server does not answer.
    Silence,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(403) => f.write_str("the gateway needs the right to get, list and watch it (403)"),
            Self::Refused(status) => write!(f, "the API server answers {status}"),
            Self::Unreadable => f.write_str("the API server's answer can't be read"),
            Self::Silence => f.write_str("the API server does not answer"),
        }
    }
}

/// The configured rules for Secrets that backends reference.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Namespaces from which backends may reference Secrets: the operator's, and the trusted ones.
    pub namespaces: BTreeSet<String>,
    /// The treatment of a Secret whose owner has not opted in by label and annotation.
    pub unlabelled: Unlabelled,
}

impl Setting {
    /// Checks that a Secret may be read at all.
    fn admits(&self, secret: &SecretName) -> Result<(), Unusable> {
        if !self.namespaces.contains(&secret.namespace) {
            return Err(Unusable::Untrusted(secret.clone()));
        }
        if wire::is_internal_name(&secret.name) {
            return Err(Unusable::Internal(secret.clone()));
        }
        Ok(())
    }
}

/// The parts of an S3Backend that the gateway uses. The others, such as the template of bucket
/// names, are validated by the operator alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    endpoint: Endpoint,
    former: Vec<Endpoint>,
    region: String,
    addressing: AddressingStyle,
    credentials: AdminCredentialsSecretRef,
    tls: BackendTls,
    cors: Option<Rule>,
    shared: BTreeMap<BucketName, (Vec<String>, Consent)>,
}

impl Spec {
    pub(super) fn read(raw: &S3Backend) -> Result<Self, InvalidSpec> {
        let spec = &raw.spec;
        let endpoint = Endpoint::parse(&spec.endpoint)
            .map_err(|error| InvalidSpec { field: "spec.endpoint", why: error.why.to_owned() })?;
        let own = spec.gateway_credentials_secret_ref.as_ref();
        Ok(Self {
            endpoint,
            former: former_endpoints(spec),
            region: spec.region.clone(),
            addressing: spec.addressing_style,
            credentials: own.unwrap_or(&spec.admin_credentials_secret_ref).clone(),
            tls: spec.tls.clone(),
            cors: spec.cors.as_ref().map(Rule::read),
            shared: shared_buckets(spec),
        })
    }

    fn key_secret(&self) -> SecretName {
        SecretName { namespace: self.credentials.namespace.clone(), name: self.credentials.name.clone() }
    }

    fn bundle_secret(&self) -> Option<SecretName> {
        let reference = self.tls.ca_bundle_secret_ref.as_ref().filter(|_| !self.tls.insecure_skip_verify)?;
        Some(SecretName { namespace: reference.namespace.clone(), name: reference.name.clone() })
    }

    /// Returns the Secrets that it references, without those that may not be read.
    pub(super) fn secrets(&self, setting: &Setting) -> impl Iterator<Item = SecretName> {
        let named = [Some(self.key_secret()), self.bundle_secret()];
        named.into_iter().flatten().filter(|secret| setting.admits(secret).is_ok())
    }

    /// Builds the store from this and the Secrets that `find` returns. The caller sets the
    /// revision.
    pub(super) fn backend<'a>(
        &self,
        name: &str,
        setting: &Setting,
        find: impl Fn(&SecretName) -> Result<&'a Secret, Unusable>,
    ) -> Backend {
        let admitted = |secret: SecretName| setting.admits(&secret).and_then(|()| find(&secret));
        Backend {
            name: name.to_owned(),
            revision: 0,
            endpoint: self.endpoint.clone(),
            former: self.former.clone(),
            region: self.region.clone(),
            addressing: self.addressing,
            cors: self.cors.clone(),
            shared: self.shared.clone(),
            access: self.key(setting, admitted).and_then(|key| Ok(Access { key, trust: self.trust(admitted)? })),
        }
    }

    fn key<'a>(
        &self,
        setting: &Setting,
        find: impl Fn(SecretName) -> Result<&'a Secret, Unusable>,
    ) -> Result<AdminKey, Unusable> {
        let at = self.key_secret();
        let secret = find(at.clone())?;
        AdminKey::read(secret, &self.credentials, &self.endpoint, setting.unlabelled).map_err(|error| match error {
            AdminSecretError::Internal => Unusable::Internal(at),
            AdminSecretError::Lacks(lack) => Unusable::NotOptedIn(at, lack),
            AdminSecretError::NoField(field) => Unusable::NoField(at, field),
        })
    }

    fn trust<'a>(&self, find: impl Fn(SecretName) -> Result<&'a Secret, Unusable>) -> Result<Trust, Unusable> {
        if self.tls.insecure_skip_verify {
            return Ok(Trust::Anything);
        }
        let (Some(reference), Some(at)) = (&self.tls.ca_bundle_secret_ref, self.bundle_secret()) else {
            return Ok(Trust::System);
        };
        let data = find(at.clone())?.data.as_ref();
        let pem = data.and_then(|data| data.get(&reference.key)).filter(|bytes| !bytes.0.is_empty());
        let pem = pem.ok_or_else(|| Unusable::NoField(at, reference.key.clone()))?;
        Ok(Trust::Bundle(pem.0.clone()))
    }
}

impl Backend {
    /// Returns true if the store has this endpoint, or had it before.
    #[must_use]
    pub fn is_at(&self, endpoint: &Endpoint) -> bool {
        self.endpoint == *endpoint || self.former.contains(endpoint)
    }

    /// Returns true if both stores can use the same client.
    pub(super) fn is_made_as(&self, other: &Self) -> bool {
        let is_there = self.endpoint == other.endpoint && self.region == other.region;
        is_there && self.addressing == other.addressing && self.access == other.access
    }
}

/// Reduces a Secret referenced by a backend to its data, its role and its owner's opt-in. Nothing
/// else is held in memory.
pub(super) fn kept(secret: Secret) -> Secret {
    let only = |all: Option<BTreeMap<String, String>>, names: &[&str]| {
        all.map(|all| all.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect())
    };
    let (name, namespace) = (secret.name_any(), secret.namespace());
    let mut kept = Secret { data: secret.data, ..Secret::default() };
    kept.metadata.name = Some(name);
    kept.metadata.namespace = namespace;
    kept.metadata.labels = only(secret.metadata.labels, &[wire::BACKEND_CREDENTIALS, wire::ROLE]);
    kept.metadata.annotations = only(secret.metadata.annotations, &[wire::ENDPOINTS]);
    kept
}
