//! Who asks for accesses to a claim's bucket, and what is read before it is opened to them (spec
//! §8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::{AccessRef, Backend, Claim, NamespaceUid, RecordName};

use super::secret::Stored;

/// A namespace as far as consent goes by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its name.
    pub namespace: String,
    /// Its UID.
    pub uid: NamespaceUid,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What the caches show of the accesses to a claim's bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The accesses that name the claim, and are not on their way out.
    pub accesses: BTreeSet<AccessRef>,
    /// Accesses of namespaces that a record of the claim is open to, which no watch shows, but
    /// which have a record of their own: the watch may be behind.
    pub recorded: BTreeSet<AccessRef>,
    /// Their namespaces, and those that a record of the claim is open to; by UID.
    pub namespaces: BTreeMap<NamespaceUid, Asker>,
    /// The namespaces that a record of the claim is open to and that aren't served.
    pub unasked: Unasked,
}

/// Namespaces that this operator doesn't serve, by UID, with their names where an access's record
/// tells: nobody here knows who asks in them.
pub type Unasked = BTreeMap<NamespaceUid, Option<String>>;

/// What is to be read before a bucket is opened to accesses, in this order: the record that is to
/// be written, the claim's keys, the accesses that ask, their namespaces, the backend, the claim.
///
/// Accesses are read by name. A list of all would cost each claim as much as there are accesses of
/// strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentQuestion {
    /// The record.
    pub record: RecordName,
    /// Name of the S3Backend that has the bucket.
    pub backend: String,
    /// The accesses that may ask, of namespaces that are consented to: of each namespace they are
    /// read until one asks.
    pub accesses: BTreeSet<AccessRef>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentSeen {
    /// The record.
    pub record: Option<Stored>,
    /// The claim's internal Secrets.
    pub own: Vec<Stored>,
    /// The namespaces of those accesses that name the claim, those that are on their way out left
    /// out.
    pub askers: Vec<Asker>,
    /// The namespaces that the record is open to and that aren't served.
    pub unasked: Unasked,
    /// The backend.
    pub backend: Option<Arc<Backend>>,
    /// The claim.
    pub claim: Option<Box<Claim>>,
}
