//! Kinds of owners of the Secrets that a sweep removes: claims and accesses.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AccessRecord, AccessRef, AccessUid, AnonymousBinding, BucketRecord};
use crate::api::{ClaimRef, ClaimUid, Limits};

use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;

/// A kind of object that owns internal Secrets.
pub trait Kind: Clone + Copy + fmt::Debug + PartialEq + Eq + Send + Sync + 'static {
    /// UID of such an object.
    type Uid: Clone + fmt::Debug + Ord + Send + Sync;
    /// Namespace and name of such an object.
    type At: Clone + fmt::Debug + fmt::Display + Ord + Send + Sync;

    /// Noun for such an object, in messages.
    const NOUN: &'static str;
    /// Role of the Secret that is deleted last.
    const RECORD: Role;
    /// Roles of the Secrets that are deleted before it, in this order.
    const KEYS: &'static [Role];

    /// Parses a UID from metadata.
    fn uid(text: &str) -> Self::Uid;

    /// Returns the text of a UID.
    fn text(uid: &Self::Uid) -> &str;

    /// Returns the owner of a Secret: the UID in its data, if the Secret's name has one of our
    /// formats. If the data is damaged, a name that follows from the UID in the label counts.
    /// Labels alone prove nothing (spec §2).
    fn owner(secret: &Stored) -> Option<Self::Uid>;

    /// Returns the object that labels and annotations name.
    fn named(secret: &Stored) -> Option<Self::At>;

    /// Returns namespace and name.
    fn parts(at: &Self::At) -> (&str, &str);

    /// Returns the owner that a record of this UID names, with the generations of keys that may
    /// exist.
    fn recorded(record: &Stored, uid: &Self::Uid) -> Option<(Self::At, RangeInclusive<u64>)>;

    /// Returns the name of the Secret that follows from the UID alone.
    fn follows(uid: &Self::Uid) -> String;

    /// Returns the name of the key of this generation.
    fn key(uid: &Self::Uid, generation: u64) -> String;

    /// Returns the patch of a record that comes before any deletion, if one is needed.
    fn end(record: &Stored) -> Option<SecretPatch>;

    /// Returns true if a request that creates or empties the bucket of this record may have been in
    /// flight.
    fn may_land(record: &Stored) -> bool;
}

/// The Secrets of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfClaim;

/// The Secrets of an access. They involve no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfAccess;

impl Kind for OfClaim {
    type Uid = ClaimUid;
    type At = ClaimRef;

    const NOUN: &'static str = "claim";
    const RECORD: Role = Role::BucketRecord;
    const KEYS: &'static [Role] = &[Role::AnonymousBinding, Role::VirtualCredential];

    fn uid(text: &str) -> ClaimUid {
        ClaimUid::new(text)
    }

    fn text(uid: &ClaimUid) -> &str {
        uid.as_str()
    }

    fn owner(secret: &Stored) -> Option<ClaimUid> {
        let name = secret.name();
        let follows = |uid: &ClaimUid| {
            let credential = generation(secret).map(|generation| Self::key(uid, generation));
            name == Self::follows(uid) || credential.is_some_and(|credential| name == credential)
        };
        let ours = |uid: &ClaimUid| match Role::of_internal(name) {
            Some(Role::AnonymousBinding) => name == Self::follows(uid),
            Some(Role::VirtualCredential) => is_key(name, wire::CREDENTIAL_PREFIX),
            Some(Role::BucketRecord) => is_record(name),
            Some(Role::ConsumerSecret | Role::AccessRecord | Role::AccessCredential) | None => false,
        };
        let uid = |text: Option<&str>| text.filter(|text| is_uid(text)).map(ClaimUid::new);
        uid(secret.text("claim_uid")).filter(ours).or_else(|| uid(secret.label(wire::CLAIM_UID)).filter(follows))
    }

    fn named(secret: &Stored) -> Option<ClaimRef> {
        secret.claim()
    }

    fn parts(at: &ClaimRef) -> (&str, &str) {
        (&at.namespace, &at.name)
    }

    fn recorded(record: &Stored, uid: &ClaimUid) -> Option<(ClaimRef, RangeInclusive<u64>)> {
        let record = BucketRecord::read(&record.0).ok().filter(|record| record.uid == *uid)?;
        let generations = record.lowest_generation()..=record.generation;
        Some((record.claim, generations))
    }

    fn follows(uid: &ClaimUid) -> String {
        AnonymousBinding::name(uid)
    }

    fn key(uid: &ClaimUid, generation: u64) -> String {
        AccessKeyId::of(uid, generation).secret_name()
    }

    /// Returns the patch by which a record ends every access to its bucket, unless it does already.
    fn end(record: &Stored) -> Option<SecretPatch> {
        let (namespace, secret) = (record.reference().namespace, &record.0);
        let record = BucketRecord::read(secret).ok().filter(|record| !record.ending || !record.accesses.is_empty())?;
        let (accesses, limits) = (BTreeMap::new(), Limits::default());
        let ending = BucketRecord { ending: true, accesses, limits, ..record };
        SecretPatch::between(secret, &ending.content(&namespace), &BucketRecord::REMOVABLE, Change::End)
    }

    /// False for an adopted bucket, which is neither created nor emptied.
    fn may_land(record: &Stored) -> bool {
        BucketRecord::read(&record.0).map_or(true, |record| !record.adopted)
    }
}

impl Kind for OfAccess {
    type Uid = AccessUid;
    type At = AccessRef;

    const NOUN: &'static str = "access";
    const RECORD: Role = Role::AccessRecord;
    const KEYS: &'static [Role] = &[Role::AccessCredential];

    fn uid(text: &str) -> AccessUid {
        AccessUid::new(text)
    }

    fn text(uid: &AccessUid) -> &str {
        uid.as_str()
    }

    fn owner(secret: &Stored) -> Option<AccessUid> {
        let name = secret.name();
        let follows = |uid: &AccessUid| {
            let key = generation(secret).map(|generation| Self::key(uid, generation));
            name == Self::follows(uid) || key.is_some_and(|key| name == key)
        };
        let ours = |uid: &AccessUid| match Role::of_internal(name) {
            Some(Role::AccessRecord) => name == Self::follows(uid),
            Some(Role::AccessCredential) => is_key(name, wire::ACCESS_CREDENTIAL_PREFIX),
            Some(Role::BucketRecord | Role::VirtualCredential | Role::AnonymousBinding | Role::ConsumerSecret)
            | None => false,
        };
        let uid = |text: Option<&str>| text.filter(|text| is_uid(text)).map(AccessUid::new);
        uid(secret.text("access_uid")).filter(ours).or_else(|| uid(secret.label(wire::ACCESS_UID)).filter(follows))
    }

    fn named(secret: &Stored) -> Option<AccessRef> {
        secret.access()
    }

    fn parts(at: &AccessRef) -> (&str, &str) {
        (&at.namespace, &at.name)
    }

    fn recorded(record: &Stored, uid: &AccessUid) -> Option<(AccessRef, RangeInclusive<u64>)> {
        let record = AccessRecord::read(&record.0).ok().filter(|record| record.uid == *uid)?;
        Some((record.access, record.lowest..=record.generation))
    }

    fn follows(uid: &AccessUid) -> String {
        AccessRecord::name(uid)
    }

    fn key(uid: &AccessUid, generation: u64) -> String {
        AccessKeyId::of_access(uid, generation).access_secret_name()
    }

    fn end(_: &Stored) -> Option<SecretPatch> {
        None
    }

    fn may_land(_: &Stored) -> bool {
        false
    }
}

fn generation(secret: &Stored) -> Option<u64> {
    secret.label(wire::ROTATION_GENERATION)?.parse().ok()
}

fn is_key(name: &str, prefix: &str) -> bool {
    let base32 = |id: &str| id.len() == 16 && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
    name.strip_prefix(prefix).and_then(|id| id.strip_prefix("akia")).is_some_and(base32)
}

fn is_record(name: &str) -> bool {
    let hash = |hash: &str| hash.len() == 40 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    name.strip_prefix(wire::RECORD_PREFIX).is_some_and(hash)
}

/// Returns true if the text has the format of the API server's UIDs. Nothing else is put into a
/// request.
fn is_uid(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
