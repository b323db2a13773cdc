//! Which object, and whose: references and UIDs of objects of Kubernetes.

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::wire::SERVED_BY;

/// Which object, in which version: what updates and deletes are bound to (spec §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectId {
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
}

impl ObjectId {
    /// The identity of an object as the API server answered it; empty texts for one that never was
    /// stored.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { uid: object.uid().unwrap_or_default(), resource_version: object.resource_version().unwrap_or_default() }
    }

    /// Whether this is an earlier version of the same object, as far as versions can be compared:
    /// they are numbers on every server that there is.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let numbers = self.resource_version.parse::<u128>().ok().zip(other.resource_version.parse::<u128>().ok());
        self.uid == other.uid && numbers.is_some_and(|(this, that)| this < that)
    }
}

/// UID of a claim: what tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimUid(String);

impl ClaimUid {
    /// Wraps a UID as the API server gave it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClaimUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Namespace and name of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ClaimRef {
    /// The beginning of the SHA-256 of namespace and name, for an index that has no room for both.
    pub fn short_digest(&self) -> [u8; 16] {
        // No namespace has a slash in its name.
        let digest = Sha256::digest(self.to_string());
        std::array::from_fn(|at| digest[at])
    }
}

impl fmt::Display for ClaimRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// UID of an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessUid(String);

impl AccessUid {
    /// Wraps a UID as the API server gave it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// UID of a namespace: what tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamespaceUid(String);

impl NamespaceUid {
    /// Wraps a UID as the API server gave it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Namespace and name of an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for AccessRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Which operator serves an object: its namespace and its installation (annotation
/// `broker.stowage.io/served-by`). Two of one namespace and one installation are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedBy(String);

impl ServedBy {
    /// The operator of this namespace and installation.
    pub fn operator(namespace: &str, installation: &str) -> Self {
        Self(format!("{namespace}/{installation}"))
    }

    /// What the annotations of an object say.
    pub fn noted(annotations: &BTreeMap<String, String>) -> Option<Self> {
        annotations.get(SERVED_BY).cloned().map(Self)
    }

    /// The annotation's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
