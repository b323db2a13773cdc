//! The holder of keys, as the rules of keys know it.

use crate::api::{DamagedSecret, SecretContent};

use super::super::cause::Foreign;
use super::super::known::{Knowledge, Secrets};
use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::walk::Halt;

/// A halt of the walk over this holder.
pub(in super::super) type HaltOf<H> = Halt<<H as KeyHolder>::Step, <H as KeyHolder>::Stop>;

/// What a record says of keys.
#[derive(Clone, Copy)]
pub(in super::super) struct Handled<'a> {
    /// The generation aimed at.
    pub(in super::super) generation: u64,
    /// Keys up to this generation are revoked; 0 = none is.
    pub(in super::super) revoked_through: u64,
    /// The rotate request that was acted on last.
    pub(in super::super) rotate_request: Option<&'a String>,
    /// The revoke request that was acted on last.
    pub(in super::super) revoke_request: Option<&'a String>,
}

/// A step of the rules of keys.
pub(in super::super) enum KeyStep {
    /// Read an internal Secret.
    Read(String),
    /// Read a Secret in the holder's namespace.
    ReadConsumer(String),
    /// Create the consumer Secret.
    CreateConsumer(Box<SecretContent>),
    /// Patch a Secret.
    Patch(SecretPatch),
    /// Delete a Secret.
    Delete(SecretRef),
}

/// Reason for which the rules of keys stop.
pub(in super::super) enum KeyStop {
    /// A Secret is deleted, and these finalizers of others keep it.
    Kept { secret: String, finalizers: String },
    /// The key that is aimed at can't be read.
    Damaged(DamagedSecret),
    /// A stamp can't be read. It is never written again (spec §2): it might have come earlier.
    StampDamaged { secret: String },
    /// The name of the consumer Secret is another's.
    Conflict { secret: String, why: Foreign },
}

/// Depth to which the generation of a key is searched whose label somebody changed: more live at
/// once only if somebody made them.
const SEARCHED: usize = 1000;

/// The view of a pass over an object that has keys: a record, which aims at a generation, an
/// internal Secret for each key, and steps that read and write them.
pub(in super::super) trait KeyHolder {
    /// A step of the pass.
    type Step: From<KeyStep>;
    /// Why the pass stops.
    type Stop: From<KeyStop>;
    /// Its record.
    type Record: Clone;
    /// A key that is whole.
    type Key;

    /// Data keys of the record that go when the record doesn't have them.
    const REMOVABLE: &'static [&'static str];
    /// Data keys of a key's Secret that go when they are wanted no more.
    const REMOVABLE_OF_KEYS: &'static [&'static str];
    /// A rotate request that stands there is told as the reason of a bump, whatever else led to it.
    const REQUEST_IS_TOLD: bool;
    /// The bump above a lost key takes the rotate request as handled.
    const LOST_KEY_HANDLES_REQUEST: bool;
    /// Of several lower keys that can't go, the first is told; else the last.
    const FIRST_IS_TOLD: bool;

    /// What the record says of keys.
    fn handled(record: &Self::Record) -> Handled<'_>;

    /// The record as it is once another generation is aimed at and this rotate request is handled.
    fn bumped(&self, record: &Self::Record, generation: u64, handled_rotate_request: Option<String>) -> Self::Record;

    /// The record as it is once the revoke request is handled: keys up to `through` are revoked,
    /// and those below `lowest` are gone.
    fn revoked(&self, record: &Self::Record, through: u64, lowest: u64) -> Self::Record;

    /// The Secret that a record is written to.
    fn content(&self, record: &Self::Record) -> SecretContent;

    /// Reads the key that the record aims at.
    fn read_key(record: &Self::Record, key: &Stored) -> Result<Self::Key, DamagedSecret>;

    /// Value of the object's rotate annotation.
    fn rotate_request(&self) -> Option<&String>;

    /// Value of its revoke annotation.
    fn revoke_request(&self) -> Option<&String>;

    /// The highest generation that was aimed at or used, as far as this pass knows; 0 = none.
    fn highest_generation(&self) -> u64;

    /// The generation that this pass's own write had the record aim at.
    fn aimed_by_this_pass(&self) -> Option<u64>;

    /// The internal Secrets.
    fn secrets(&self) -> &Secrets;

    /// True if an answer took so long that another operator may have been at the keys.
    fn is_doubted(&self) -> bool;

    /// Name of the key of a generation.
    fn key_name(&self, generation: u64) -> String;

    /// The keys, be they from the cache, in the order in which they are gone through.
    fn keys(&self) -> Vec<&Stored>;

    /// The generation of a key, where it is certain.
    fn generation(&self, key: &Stored) -> Option<u64>;

    /// True if a revocation ended a key.
    fn is_revoked(&self, key: &Stored) -> bool;

    /// Before anything is written: the object was read live.
    fn require_live(&self) -> Result<(), HaltOf<Self>>;

    /// Before another generation is aimed at: no record that is not known aims higher.
    fn require_highest(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// The record is as it was last read or written, since the last answer that took long.
    fn require_settled(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Before a key is made: each that is revoked was looked for by its name, and is gone, or known
    /// to be kept.
    fn require_revoked(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// A generation above any that was aimed at or used, as far as this pass knows.
    fn next_generation(&self) -> u64 {
        self.highest_generation().saturating_add(1)
    }

    /// The key of a generation, be it from the cache.
    fn key(&self, generation: u64) -> Option<&Stored> {
        self.secrets().present(&self.key_name(generation))
    }

    /// The generation that a key's label gives, if its name is the one that follows from it.
    fn labelled_generation(&self, key: &Stored) -> Option<u64> {
        key.labelled_generation(|generation| self.key_name(generation))
    }

    /// The generation of a key, proved by its name: the one that its label gives, or one up to
    /// `most`.
    fn proved_generation(&self, key: &Stored, most: u64) -> Option<u64> {
        let named = |generation: &u64| self.key_name(*generation) == key.name();
        self.labelled_generation(key).or_else(|| (1..=most).rev().take(SEARCHED).find(named))
    }

    /// True if this pass wrote the internal Secret of this name, or read it live.
    fn is_live(&self, name: &str) -> bool {
        self.secrets().is_live(name)
    }

    /// The same as `require_settled`, only where an answer took long: another operator may have
    /// aimed at another key meanwhile, or moved a claim.
    fn require_settled_if_in_doubt(&self, record: &Self::Record) -> Result<(), HaltOf<Self>> {
        if self.is_doubted() { self.require_settled(record) } else { Ok(()) }
    }

    /// A POST that found this name taken showed nothing of what is there: it is read.
    fn require_not_taken(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().get(name) != Knowledge::Taken, name)
    }

    /// There is no internal Secret of this name.
    fn require_absent(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent(name), name)
    }

    /// The same, as two live reads showed: one may have been of the server's past.
    fn require_absent_twice(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent_twice(name), name)
    }

    /// Halts with a read of the internal Secret of this name, unless that is known already.
    fn read_unless(&self, is_known: bool, name: &str) -> Result<(), HaltOf<Self>> {
        if is_known { Ok(()) } else { Err(Halt::step(KeyStep::Read(name.to_owned()))) }
    }
}
