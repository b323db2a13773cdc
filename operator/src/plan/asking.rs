//! Accesses that request a claim's bucket, and the data that is read before it is opened to them
//! (spec §8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::{AccessRef, Backend, Claim, NamespaceUid, RecordName};

use super::secret::Stored;

/// Properties of a namespace that consent depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Name of the namespace.
    pub namespace: String,
    /// UID of the namespace.
    pub uid: NamespaceUid,
    /// Labels of the namespace.
    pub labels: BTreeMap<String, String>,
}

/// Accesses to a claim's bucket, from the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// Accesses that name the claim and are not being deleted.
    pub accesses: BTreeSet<AccessRef>,
    /// Accesses that no watch shows, but that have an access record, in namespaces that a record of
    /// the claim is open to. The watch may be behind.
    pub recorded: BTreeSet<AccessRef>,
    /// Namespaces of these accesses, and those that a record of the claim is open to, by UID.
    pub namespaces: BTreeMap<NamespaceUid, Asker>,
    /// Namespaces that a record of the claim is open to and that this operator does not serve.
    pub unasked: Unasked,
}

/// Namespaces that this operator does not serve, by UID, with the name if an access record has it.
/// The accesses in them are unknown.
pub type Unasked = BTreeMap<NamespaceUid, Option<String>>;

/// Query for the data that is read before a bucket is opened to accesses. The read order is: the
/// record to write, the claim's keys, the requesting accesses, their namespaces, the backend, the
/// claim.
///
/// Accesses are read by name. Listing all accesses would make the cost of a claim grow with the
/// accesses of unrelated claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentQuestion {
    /// The record.
    pub record: RecordName,
    /// Name of the S3Backend that has the bucket.
    pub backend: String,
    /// Accesses to read, in namespaces that have consent. In each namespace they are read until one
    /// is found that requests the bucket.
    pub accesses: BTreeSet<AccessRef>,
}

/// Answer to a [`ConsentQuestion`].
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentSeen {
    /// The record.
    pub record: Option<Stored>,
    /// The claim's internal Secrets.
    pub own: Vec<Stored>,
    /// Namespaces of those accesses that name the claim and are not being deleted.
    pub askers: Vec<Asker>,
    /// Namespaces that the record is open to and that this operator does not serve.
    pub unasked: Unasked,
    /// The backend.
    pub backend: Option<Arc<Backend>>,
    /// The claim.
    pub claim: Option<Box<Claim>>,
}
