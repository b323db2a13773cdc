//! The bucket record: who holds a bucket.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde::{Deserialize, Serialize};

use super::bounded::{Limits, limits};
use super::content::SecretContent;
use super::fields::{DamagedSecret, Data, Fields};
use super::labels::labels;
use super::shape::Extra;
use crate::consent::Consent;
use crate::identity::{ClaimRef, ClaimUid, NamespaceUid};
use crate::names::{BucketName, Endpoint, RecordName};
use crate::wire::{self, Role};

/// Who holds a bucket, and all that the operator remembers of a claim besides its credentials (spec
/// §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRecord {
    /// The holder's namespace and name.
    pub claim: ClaimRef,
    /// The holder's UID: the proof.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Its endpoint when the record was made.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
    /// The bucket was seen absent while this record was held.
    pub absence: bool,
    /// The bucket is never to be destroyed: it was taken over, or the claim has moved away from it
    /// (`origin: Adopted`). Never taken back.
    pub adopted: bool,
    /// The claim was bound once: noted before a `Delete` pass revokes, and wherever the Secrets
    /// that tell of it may go.
    pub settled: bool,
    /// The credential generation aimed at, 1 at first.
    pub generation: u64,
    /// The last rotate request that was acted on.
    pub handled_rotate_request: Option<String>,
    /// The last revoke request that was acted on.
    pub handled_revoke_request: Option<String>,
    /// Keys up to this generation are revoked: wherever one turns up it is deleted. 0 = none is.
    pub revoked_through: u64,
    /// There may be an anonymous binding: noted before there is one.
    pub public: bool,
    /// There may be another record of the claim: noted before there is one.
    pub another: bool,
    /// The lowest generation whose credential may still be there. `None` = a record that an older
    /// version made: from 1 on any may be.
    pub lowest: Option<u64>,
    /// The namespaces whose accesses open the bucket, and how far (spec §8). Empty in a record that
    /// is new, held for a move, or made again.
    pub accesses: BTreeMap<NamespaceUid, Consent>,
    /// What the bucket may hold, for keys of accesses: noted while there are some.
    pub limits: Limits,
    /// The claim is on its way out: no access opens the bucket any more. Never taken back.
    pub ending: bool,
}

/// Most digits of a place among the accesses that a record has room for.
const LONGEST_PLACE: usize = 4;

/// The consent of a namespace, as it is written.
#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Given(&'a Consent),
    /// The same as that of the namespace at this place, in the order of UIDs, from 0 on.
    Same(usize),
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are plain data")
}

impl BucketRecord {
    /// The data key of `absence`.
    pub const ABSENCE: &str = "absence";
    /// The data key of the accesses.
    pub const ACCESSES: &str = "accesses";
    /// The data keys that are taken away again whenever a record doesn't say them. `absence` goes
    /// by [`BucketRecord::ABSENCE`] alone, where a store calls the bucket another's.
    pub const REMOVABLE: [&str; 3] = [Self::ACCESSES, "quota_soft_bytes", "quota_hard_bytes"];
    /// Longest text of the accesses that is written, in bytes: that of a thousand namespaces.
    pub const LONGEST_ACCESSES: usize = 64 << 10;
    /// Longest text of the accesses that is read: version 0.1 wrote each consent in full.
    const LONGEST_READ: usize = 512 << 10;

    /// The record's name, which is what makes the holder unique.
    pub fn name(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }

    /// The lowest generation whose credential may still be there, as far as the record tells.
    pub fn lowest_generation(&self) -> u64 {
        self.lowest.unwrap_or(1)
    }

    /// Whether names that follow from the record are all that the claim's credentials and records
    /// can have.
    pub fn tells_all(&self) -> bool {
        self.lowest.is_some() && !self.another
    }

    /// True once the bucket was made or taken over by this record, or may have been. Each of the
    /// three is noted before the bucket is touched; a record without them reserves a name.
    pub fn has_begun(&self) -> bool {
        self.absence || self.adopted || self.settled
    }

    /// Whether the other record is of the same bucket at the same endpoint, and has the same name
    /// with that.
    pub fn is_of_bucket_of(&self, other: &Self) -> bool {
        self.bucket == other.bucket && self.endpoint == other.endpoint
    }

    /// The accesses as they stand in the record: each consent once.
    pub fn accesses_text(accesses: &BTreeMap<NamespaceUid, Consent>) -> String {
        let mut known: Vec<(&Consent, usize)> = Vec::new();
        let mut written = BTreeMap::new();
        for (place, (uid, consent)) in accesses.iter().enumerate() {
            let same = known.iter().find(|(it, _)| *it == consent).map(|(_, place)| Written::Same(*place));
            written.insert(
                uid,
                same.unwrap_or_else(|| {
                    known.push((consent, place));
                    Written::Given(consent)
                }),
            );
        }
        text(&written)
    }

    /// As many accesses as a record has room for, the first by UID.
    #[must_use]
    pub fn bounded_accesses(accesses: BTreeMap<NamespaceUid, Consent>) -> BTreeMap<NamespaceUid, Consent> {
        let mut room = Self::LONGEST_ACCESSES - "{}".len();
        let mut known: Vec<Consent> = Vec::new();
        let mut fits = |uid: &NamespaceUid, consent: &Consent| {
            let value = if known.contains(consent) {
                LONGEST_PLACE
            } else {
                known.push(consent.clone());
                text(consent).len()
            };
            let left = room.checked_sub(text(uid).len() + ":,".len() + value);
            left.map(|left| room = left).is_some()
        };
        accesses.into_iter().take_while(|(uid, consent)| fits(uid, consent)).collect()
    }

    /// What cannot be read consents to nothing: the whole of it where it is no map, else the
    /// namespace alone.
    fn read_accesses(text: &str) -> BTreeMap<NamespaceUid, Consent> {
        if text.len() > Self::LONGEST_READ {
            return BTreeMap::new();
        }
        let raw: BTreeMap<NamespaceUid, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let given: Vec<Option<Consent>> = raw.values().map(|raw| Consent::deserialize(raw).ok()).collect();
        let read = |(own, (uid, raw)): (usize, (&NamespaceUid, &serde_json::Value))| {
            let place = raw.as_u64().map_or(Some(own), |same| usize::try_from(same).ok())?;
            Some((uid.clone(), given.get(place)?.clone()?))
        };
        raw.iter().enumerate().filter_map(read).collect()
    }

    /// The Secret to write.
    pub fn content(&self, operator_namespace: &str) -> SecretContent {
        let mut data = Data::default();
        data.text("claim_namespace", &self.claim.namespace);
        data.text("claim_name", &self.claim.name);
        data.text("claim_uid", self.uid.as_str());
        data.text("backend", &self.backend);
        data.text(wire::ENDPOINT, self.endpoint.as_str());
        data.text("bucket_name", self.bucket.as_str());
        data.flag(Self::ABSENCE, self.absence.then_some("true"));
        data.flag("origin", self.adopted.then_some("Adopted"));
        data.flag("settled", self.settled.then_some("true"));
        data.text("generation", &self.generation.to_string());
        data.flag("handled-rotate-request", self.handled_rotate_request.as_deref());
        data.flag("handled-revoke-request", self.handled_revoke_request.as_deref());
        let revoked = Some(self.revoked_through).filter(|through| *through > 0);
        data.flag("revoked-through", revoked.map(|through| through.to_string()).as_deref());
        data.flag("public", self.public.then_some("true"));
        data.flag("another-record", self.another.then_some("true"));
        data.flag("lowest-generation", self.lowest.map(|lowest| lowest.to_string()).as_deref());
        data.flag(Self::ACCESSES, (!self.accesses.is_empty()).then(|| Self::accesses_text(&self.accesses)).as_deref());
        data.flag("quota_soft_bytes", self.limits.soft.map(|bytes| bytes.to_string()).as_deref());
        data.flag("quota_hard_bytes", self.limits.hard.map(|bytes| bytes.to_string()).as_deref());
        data.flag("ending", self.ending.then_some("true"));
        let (labels, annotations) =
            labels(Role::BucketRecord, &self.claim, &self.uid, &self.backend, &self.bucket, &[]);
        SecretContent {
            namespace: operator_namespace.to_owned(),
            name: self.name().to_string(),
            labels,
            annotations,
            data: data.0,
            owner: None,
            extra: Extra::default(),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When a field is missing or damaged, or the name is not the one that the content asks for.
    pub fn read(secret: &Secret) -> Result<Self, DamagedSecret> {
        let fields = Fields(secret);
        let record = Self {
            claim: ClaimRef {
                namespace: fields.text("claim_namespace")?.to_owned(),
                name: fields.text("claim_name")?.to_owned(),
            },
            uid: ClaimUid::new(fields.text("claim_uid")?),
            backend: fields.text("backend")?.to_owned(),
            endpoint: fields.parse(wire::ENDPOINT, |text| Endpoint::parse(text).ok())?,
            bucket: fields.parse("bucket_name", |text| BucketName::parse(text).ok())?,
            absence: fields.optional(Self::ABSENCE) == Some("true"),
            adopted: fields.optional("origin") == Some("Adopted"),
            settled: fields.optional("settled") == Some("true"),
            generation: fields.parse("generation", |text| text.parse().ok().filter(|n| *n > 0))?,
            handled_rotate_request: fields.optional("handled-rotate-request").map(str::to_owned),
            handled_revoke_request: fields.optional("handled-revoke-request").map(str::to_owned),
            revoked_through: fields.optional("revoked-through").and_then(|text| text.parse().ok()).unwrap_or(0),
            public: fields.optional("public") == Some("true"),
            another: fields.optional("another-record") == Some("true"),
            // What can't be read is no note: then every name is looked at.
            lowest: fields.optional("lowest-generation").and_then(|text| text.parse().ok()).filter(|n| *n > 0),
            accesses: fields.optional(Self::ACCESSES).map(Self::read_accesses).unwrap_or_default(),
            limits: limits(secret).unwrap_or_default(),
            ending: fields.optional("ending") == Some("true"),
        };
        if secret.metadata.name.as_deref() == Some(record.name().as_str()) {
            Ok(record)
        } else {
            Err(fields.damaged("bucket_name"))
        }
    }
}
