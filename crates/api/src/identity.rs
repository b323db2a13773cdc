//! Identities of Kubernetes objects: references and UIDs.

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::wire::SERVED_BY;

/// UID and resourceVersion of an object: the preconditions of updates and deletes (spec §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectId {
    /// UID of the object.
    pub uid: String,
    /// resourceVersion of the object.
    pub resource_version: String,
}

impl ObjectId {
    /// Returns the identity of an object as returned by the API server. The strings are empty for
    /// an object that was never stored.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { uid: object.uid().unwrap_or_default(), resource_version: object.resource_version().unwrap_or_default() }
    }

    /// Returns true if this is an earlier version of the same object.
    ///
    /// Versions are compared as numbers, which they are on all known API servers; otherwise the
    /// answer is false.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let numbers = self.resource_version.parse::<u128>().ok().zip(other.resource_version.parse::<u128>().ok());
        self.uid == other.uid && numbers.is_some_and(|(this, that)| this < that)
    }
}

/// UID of a claim, which distinguishes it from a later claim of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimUid(String);

impl ClaimUid {
    /// Wraps a UID assigned by the API server.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// Returns the UID as a string.
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
    /// Namespace of the claim.
    pub namespace: String,
    /// Name of the claim.
    pub name: String,
}

impl ClaimRef {
    /// Returns the first 16 bytes of the SHA-256 of namespace and name, for an index that has no
    /// room for both.
    pub fn short_digest(&self) -> [u8; 16] {
        // A namespace cannot contain a slash, so the digested string is unambiguous.
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
    /// Wraps a UID assigned by the API server.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// Returns the UID as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// UID of a namespace, which distinguishes it from a later namespace of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamespaceUid(String);

impl NamespaceUid {
    /// Wraps a UID assigned by the API server.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// Returns the UID as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Namespace and name of an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessRef {
    /// Namespace of the access.
    pub namespace: String,
    /// Name of the access.
    pub name: String,
}

impl fmt::Display for AccessRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The operator that serves an object, identified by its namespace and installation (annotation
/// `broker.stowage.io/served-by`). Operators with the same namespace and installation count as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedBy(String);

impl ServedBy {
    /// Returns the identity of the operator with this namespace and installation.
    pub fn operator(namespace: &str, installation: &str) -> Self {
        Self(format!("{namespace}/{installation}"))
    }

    /// Returns the operator noted in the annotations of an object.
    pub fn noted(annotations: &BTreeMap<String, String>) -> Option<Self> {
        annotations.get(SERVED_BY).cloned().map(Self)
    }

    /// Returns the value of the annotation.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
