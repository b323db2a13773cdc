//! The access of the abstract world: the content of it and of its Secrets in a few bytes, and the
//! real object that its planner is shown.
//!
//! A world has at most one access. It is never created again after its deletion.

use std::collections::BTreeMap;

use stowage_operator::api::{
    ACCESS_FINALIZER, Access, AccessKeyId, AccessMode, AccessRecord, AccessRef, AccessUid, BucketAccessStatus, Entry,
    EntryOf, NamespaceUid, ObjectId, Rotation, SecretShape, ServedAccess, ServedAccessRecord,
};
use stowage_operator::plan::{Asker, Stored};

use super::facts::GENERATIONS;
use super::names::{claim_ref, resource_version};
use super::shelf::Known;

/// Slot of the claim that the access names.
pub(super) const NAMED: usize = 0;
/// Mode that the access requests.
pub(super) const WANTED: AccessMode = AccessMode::ReadWrite;
/// Seconds for which a replaced key of the access keeps working.
pub(super) const OVERLAP: u32 = 300;

/// Returns the UID of the access.
pub(super) fn access_uid() -> AccessUid {
    AccessUid::new("a-0")
}

/// Returns the namespace and name of the access.
pub(super) fn access_ref() -> AccessRef {
    AccessRef { namespace: "team".to_owned(), name: "reader".to_owned() }
}

/// Returns the name of the access's consumer Secret.
pub(super) fn access_consumer() -> String {
    "reader-s3".to_owned()
}

/// Returns the namespace of the access. It is never created again.
pub(super) fn asker() -> Asker {
    Asker { namespace: access_ref().namespace, uid: NamespaceUid::new("n-0"), labels: BTreeMap::new() }
}

/// Fields of the access as stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessFacts {
    pub(super) deleting: bool,
    pub(super) finalizer: bool,
    /// Number of the rotation that the annotation requests; 0 = none.
    pub(super) rotate: u8,
    /// Number of its status.
    pub(super) status: u32,
    /// Number of writes so far.
    pub(super) version: u16,
}

/// Content of a Secret that belongs to the access.
#[derive(Clone, Debug)]
pub(super) struct OfAccess {
    /// Generation of the key that it contains or publishes; 0 = neither.
    pub(super) generation: u64,
    /// The key, as the gateway reads it.
    pub(super) key: Option<ServedAccess>,
    /// The access's record.
    pub(super) record: Option<AccessRecord>,
    /// The same record, as the gateway reads it.
    pub(super) served: Option<ServedAccessRecord>,
}

impl OfAccess {
    /// Reads a Secret; `None` if it does not belong to the access.
    pub(super) fn read(stored: &Stored) -> Option<Self> {
        let uid = access_uid();
        let owners = stored.0.metadata.owner_references.iter().flatten();
        let is_controlled =
            owners.filter(|owner| owner.controller == Some(true)).any(|owner| owner.uid == uid.as_str());
        if !is_controlled && stored.text("access_uid") != Some(uid.as_str()) {
            return None;
        }
        let id = stored.text("access_key_id").or_else(|| stored.text("AWS_ACCESS_KEY_ID"));
        let is = |generation: &u64| id == Some(AccessKeyId::of_access(&uid, *generation).as_str());
        Some(Self {
            generation: (1..=GENERATIONS).find(is).unwrap_or(0),
            key: ServedAccess::read(&stored.0).ok(),
            record: AccessRecord::read(&stored.0).ok(),
            served: ServedAccessRecord::read(&stored.0).ok(),
        })
    }
}

/// Every version of the access that has occurred so far.
pub(super) struct Accesses {
    statuses: Known<String, BucketAccessStatus>,
    accesses: Known<AccessFacts, (AccessFacts, Access)>,
}

impl Accesses {
    pub(super) fn new() -> Self {
        Self { statuses: Known::new(), accesses: Known::new() }
    }

    /// Returns the number of a status.
    pub(super) fn status(&self, status: &BucketAccessStatus) -> u32 {
        let key = serde_json::to_string(status).unwrap_or_else(|_| unreachable!("a status is plain data"));
        self.statuses.number(key, |_| status.clone())
    }

    /// Returns the number of a version.
    pub(super) fn number(&self, facts: &AccessFacts) -> u32 {
        let shown = |number| shown(facts, number, self.statuses.get(facts.status));
        self.accesses.number(facts.clone(), |number| (facts.clone(), shown(number)))
    }

    /// Returns the fields of a version.
    pub(super) fn facts(&self, number: u32) -> &AccessFacts {
        &self.accesses.get(number).0
    }

    /// Returns a version as the planner sees it.
    pub(super) fn shown(&self, number: u32) -> &Access {
        &self.accesses.get(number).1
    }
}

fn shown(facts: &AccessFacts, number: u32, status: &BucketAccessStatus) -> Access {
    let uid = access_uid();
    Access {
        id: ObjectId { uid: uid.to_string(), resource_version: resource_version(facts.version, number) },
        at: access_ref(),
        uid,
        generation: 1,
        // It has a single entry, so its first key has nothing else to wait for.
        created: None,
        deleting: facts.deleting,
        finalizers: if facts.finalizer { vec![ACCESS_FINALIZER.to_owned()] } else { Vec::new() },
        served_by: None,
        annotated: true,
        paused: false,
        rotate_request: (facts.rotate > 0).then(|| facts.rotate.to_string()),
        revoke_request: None,
        consumer_secret: access_consumer(),
        shape: Ok(Some(SecretShape::default())),
        rotation: Ok(Rotation { interval_days: None, overlap_seconds: OVERLAP }),
        entries: vec![Entry { of: Ok(EntryOf::Claim(claim_ref(NAMED))), wants: Ok((WANTED, None)) }],
        status: status.clone(),
    }
}
