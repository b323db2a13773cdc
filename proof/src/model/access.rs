//! The access of the abstract world: what it and its Secrets say, in a few bytes, and the real
//! object that its planner is shown. There is one at most, and it never comes back.

use std::collections::BTreeMap;

use stowage_operator::api::{
    ACCESS_FINALIZER, Access, AccessKeyId, AccessMode, AccessRecord, AccessRef, AccessUid, BucketAccessStatus, Entry,
    EntryOf, NamespaceUid, ObjectId, Rotation, SecretShape, ServedAccess, ServedAccessRecord,
};
use stowage_operator::plan::{Asker, Stored};

use super::facts::GENERATIONS;
use super::names::{claim_ref, resource_version};
use super::shelf::Known;

/// Which claim it names.
pub(super) const NAMED: usize = 0;
/// What it asks for.
pub(super) const WANTED: AccessMode = AccessMode::ReadWrite;
/// Seconds for which an old key of it goes on working.
pub(super) const OVERLAP: u32 = 300;

/// UID of the access.
pub(super) fn access_uid() -> AccessUid {
    AccessUid::new("a-0")
}

/// Namespace and name of the access.
pub(super) fn access_ref() -> AccessRef {
    AccessRef { namespace: "team".to_owned(), name: "reader".to_owned() }
}

/// Name of its consumer Secret.
pub(super) fn access_consumer() -> String {
    "reader-s3".to_owned()
}

/// Its namespace, which is never made again.
pub(super) fn asker() -> Asker {
    Asker { namespace: access_ref().namespace, uid: NamespaceUid::new("n-0"), labels: BTreeMap::new() }
}

/// The access as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessFacts {
    pub(super) deleting: bool,
    pub(super) finalizer: bool,
    /// Which rotation the annotation asks for; 0 = none.
    pub(super) rotate: u8,
    /// Number of the status.
    pub(super) status: u32,
    /// Counts the writes.
    pub(super) version: u16,
}

/// What a Secret of the access says.
#[derive(Clone, Debug)]
pub(super) struct OfAccess {
    /// Generation of the key that it is or publishes; 0 = it is none, and publishes none.
    pub(super) generation: u64,
    /// The key, as gateways read it.
    pub(super) key: Option<ServedAccess>,
    /// The access's record.
    pub(super) record: Option<AccessRecord>,
    /// The same, as gateways read it.
    pub(super) served: Option<ServedAccessRecord>,
}

impl OfAccess {
    /// `None` = the Secret is not the access's.
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

/// Every version of the access that came up so far.
pub(super) struct Accesses {
    statuses: Known<String, BucketAccessStatus>,
    accesses: Known<AccessFacts, (AccessFacts, Access)>,
}

impl Accesses {
    pub(super) fn new() -> Self {
        Self { statuses: Known::new(), accesses: Known::new() }
    }

    /// Number of a status.
    pub(super) fn status(&self, status: &BucketAccessStatus) -> u32 {
        let key = serde_json::to_string(status).unwrap_or_else(|_| unreachable!("a status is plain data"));
        self.statuses.number(key, |_| status.clone())
    }

    /// The number of a version.
    pub(super) fn number(&self, facts: &AccessFacts) -> u32 {
        let shown = |number| shown(facts, number, self.statuses.get(facts.status));
        self.accesses.number(facts.clone(), |number| (facts.clone(), shown(number)))
    }

    /// What a version says.
    pub(super) fn facts(&self, number: u32) -> &AccessFacts {
        &self.accesses.get(number).0
    }

    /// A version as the planner sees it.
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
        // Its one entry is all that its first key could wait for.
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
