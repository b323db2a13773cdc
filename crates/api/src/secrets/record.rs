//! The bucket record, which names the holder of a bucket.

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

/// Holder of a bucket, and the persistent state of its claim besides the credentials (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRecord {
    /// Namespace and name of the holder.
    pub claim: ClaimRef,
    /// UID of the holder, which proves its identity.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Endpoint of the S3Backend when the record was created.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
    /// True if the bucket was found to be absent while this record existed.
    pub absence: bool,
    /// True if the bucket must never be destroyed, because it was adopted or the claim has moved
    /// away from it (`origin: Adopted`). Never reset.
    pub adopted: bool,
    /// True if the claim has been bound once. It is set before a deletion with the policy `Delete`
    /// revokes the credentials, and whenever other Secrets that show it may be deleted.
    pub settled: bool,
    /// Generation of the current credential, initially 1.
    pub generation: u64,
    /// Last rotate request that was handled.
    pub handled_rotate_request: Option<String>,
    /// Last revoke request that was handled.
    pub handled_revoke_request: Option<String>,
    /// Keys up to this generation are revoked, and are deleted wherever they are found. 0 means
    /// none.
    pub revoked_through: u64,
    /// True if an anonymous binding may exist. It is set before the binding is created.
    pub public: bool,
    /// True if the claim may have another record. It is set before that one is created.
    pub another: bool,
    /// Lowest generation whose credential may still exist. `None` in a record of an older version,
    /// where credentials of any generation from 1 on may exist.
    pub lowest: Option<u64>,
    /// Namespaces whose accesses open the bucket, and the consent of each (spec §8). Empty in a
    /// record that is new, reserved for a move, or created again.
    pub accesses: BTreeMap<NamespaceUid, Consent>,
    /// Quota for the keys of accesses, recorded while there are any.
    pub limits: Limits,
    /// True if the claim is being deleted, so that no access opens the bucket any more. Never
    /// reset.
    pub ending: bool,
}

/// Maximum number of digits reserved for a reference to another consent.
const LONGEST_PLACE: usize = 4;

/// Serialized consent of a namespace.
#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Given(&'a Consent),
    /// The same consent as the namespace at this position, counted from 0 in the order of UIDs.
    Same(usize),
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are plain data")
}

impl BucketRecord {
    /// Data key of `absence`.
    pub const ABSENCE: &str = "absence";
    /// Data key of the accesses.
    pub const ACCESSES: &str = "accesses";
    /// Data keys that an update removes if the record does not set them. [`BucketRecord::ABSENCE`]
    /// is removed separately, when the store reports that the bucket belongs to somebody else.
    pub const REMOVABLE: [&str; 3] = [Self::ACCESSES, "quota_soft_bytes", "quota_hard_bytes"];
    /// Maximum length of the serialized accesses when written, in bytes: enough for a thousand
    /// namespaces.
    pub const LONGEST_ACCESSES: usize = 64 << 10;
    /// Maximum length of the serialized accesses when read, in bytes: version 0.1 wrote each
    /// consent in full.
    const LONGEST_READ: usize = 512 << 10;

    /// Returns the record's name, which is unique for the bucket and therefore makes the holder
    /// unique.
    pub fn name(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }

    /// Returns the lowest generation whose credential may still exist, as far as the record shows.
    pub fn lowest_generation(&self) -> u64 {
        self.lowest.unwrap_or(1)
    }

    /// Returns true if the names of all credentials and records of the claim can be derived from
    /// this record.
    pub fn tells_all(&self) -> bool {
        self.lowest.is_some() && !self.another
    }

    /// Returns true if the bucket was, or may have been, created or adopted under this record.
    ///
    /// Each of the three fields is set before the bucket is changed. A record without them only
    /// reserves the name.
    pub fn has_begun(&self) -> bool {
        self.absence || self.adopted || self.settled
    }

    /// Returns true if `other` is for the same bucket and endpoint, and therefore has the same
    /// name.
    pub fn is_of_bucket_of(&self, other: &Self) -> bool {
        self.bucket == other.bucket && self.endpoint == other.endpoint
    }

    /// Serializes the accesses. Each distinct consent is written once.
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

    /// Returns the accesses that fit into a record, in the order of UIDs.
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

    /// Parses the accesses. Invalid JSON grants no consent at all, and an invalid entry grants none
    /// to its namespace.
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

    /// Returns the desired content of the Secret.
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

    /// Parses a record.
    ///
    /// # Errors
    /// Returns an error if a field is missing or damaged, or the name does not match the content.
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
            // An invalid value counts as absent: then the credential of every generation is looked
            // up.
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
