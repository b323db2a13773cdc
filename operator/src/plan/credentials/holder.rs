//! The [`KeyHolder`] trait: an object that has keys, as the key rules see it.

use crate::api::{DamagedSecret, SecretContent};

use super::super::cause::Foreign;
use super::super::known::{Knowledge, Secrets};
use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::walk::Halt;

/// Halt of a walk over this holder.
pub(in super::super) type HaltOf<H> = Halt<<H as KeyHolder>::Step, <H as KeyHolder>::Stop>;

/// Key-related fields of a record.
#[derive(Clone, Copy)]
pub(in super::super) struct Handled<'a> {
    /// The current generation.
    pub(in super::super) generation: u64,
    /// Keys up to this generation are revoked. 0 if none is revoked.
    pub(in super::super) revoked_through: u64,
    /// The last rotate request that was handled.
    pub(in super::super) rotate_request: Option<&'a String>,
    /// The last revoke request that was handled.
    pub(in super::super) revoke_request: Option<&'a String>,
}

/// A step of the key rules.
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

/// Reason that the key rules stop.
pub(in super::super) enum KeyStop {
    /// A deleted Secret waits for these finalizers, which are not ours.
    Kept { secret: String, finalizers: String },
    /// The current key can't be parsed.
    Damaged(DamagedSecret),
    /// The `expires-at` annotation can't be parsed. It is never overwritten (spec §2), because the
    /// original may have been earlier.
    StampDamaged { secret: String },
    /// A Secret that is not the holder's has the name of the consumer Secret.
    Conflict { secret: String, why: Foreign },
}

/// Number of generations to search for a key whose generation label was edited. More keys exist at
/// once only if somebody created them by hand.
const SEARCHED: usize = 1000;

/// View of a pass over an object that has keys: a record with the current generation, an internal
/// Secret for each key, and steps that read and write them.
pub(in super::super) trait KeyHolder {
    /// A step of the pass.
    type Step: From<KeyStep>;
    /// Reason that the pass stops.
    type Stop: From<KeyStop>;
    /// Record of the object.
    type Record: Clone;
    /// A successfully parsed key.
    type Key;

    /// Data keys of the record that are removed if the wanted record lacks them.
    const REMOVABLE: &'static [&'static str];
    /// Data keys of a key's Secret that are removed if the wanted content lacks them.
    const REMOVABLE_OF_KEYS: &'static [&'static str];
    /// True if a pending rotate request is reported as the trigger of a bump, even if something
    /// else caused it.
    const REQUEST_IS_TOLD: bool;
    /// True if the bump that replaces a lost key marks the rotate request as handled.
    const LOST_KEY_HANDLES_REQUEST: bool;
    /// True if the first of several lower keys that can't be retired is reported, false if the last
    /// is.
    const FIRST_IS_TOLD: bool;

    /// Returns the key-related fields of the record.
    fn handled(record: &Self::Record) -> Handled<'_>;

    /// Returns the record with another current generation and this rotate request as handled.
    fn bumped(&self, record: &Self::Record, generation: u64, handled_rotate_request: Option<String>) -> Self::Record;

    /// Returns the record with the revoke request as handled. Keys up to `through` are revoked, and
    /// keys below `lowest` no longer exist.
    fn revoked(&self, record: &Self::Record, through: u64, lowest: u64) -> Self::Record;

    /// Returns the Secret that stores a record.
    fn content(&self, record: &Self::Record) -> SecretContent;

    /// Parses the current key of the record.
    fn read_key(record: &Self::Record, key: &Stored) -> Result<Self::Key, DamagedSecret>;

    /// Returns the value of the object's rotate annotation.
    fn rotate_request(&self) -> Option<&String>;

    /// Returns the value of the object's revoke annotation.
    fn revoke_request(&self) -> Option<&String>;

    /// Returns the highest known generation that was ever current or used. 0 if none was.
    fn highest_generation(&self) -> u64;

    /// Returns the generation that this pass has written to the record as current.
    fn aimed_by_this_pass(&self) -> Option<u64>;

    /// Returns the internal Secrets.
    fn secrets(&self) -> &Secrets;

    /// Returns true if an answer took so long that another operator may have changed the keys.
    fn is_doubted(&self) -> bool;

    /// Returns the Secret name of the key of a generation.
    fn key_name(&self, generation: u64) -> String;

    /// Returns the keys, possibly cached, in the order of processing.
    fn keys(&self) -> Vec<&Stored>;

    /// Returns the generation of a key if it is certain.
    fn generation(&self, key: &Stored) -> Option<u64>;

    /// Returns true if a key is revoked.
    fn is_revoked(&self, key: &Stored) -> bool;

    /// Requires that this pass has read the object live. Checked before every write.
    fn require_live(&self) -> Result<(), HaltOf<Self>>;

    /// Requires that no unknown record has a higher generation. Checked before a bump.
    fn require_highest(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Requires that the record was read or written after the last slow answer and has not changed.
    fn require_settled(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Requires that each revoked key was looked up by name and is gone, or is known to be kept by
    /// a finalizer. Checked before a key is created.
    fn require_revoked(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Returns a generation above every known one that was ever current or used.
    fn next_generation(&self) -> u64 {
        self.highest_generation().saturating_add(1)
    }

    /// Returns the key of a generation, possibly cached.
    fn key(&self, generation: u64) -> Option<&Stored> {
        self.secrets().present(&self.key_name(generation))
    }

    /// Returns the generation from a key's label, if it matches the key's name.
    fn labelled_generation(&self, key: &Stored) -> Option<u64> {
        key.labelled_generation(|generation| self.key_name(generation))
    }

    /// Returns the generation of a key as proved by its name: the one from its label, or else one
    /// found by search from `most` down.
    fn proved_generation(&self, key: &Stored, most: u64) -> Option<u64> {
        let named = |generation: &u64| self.key_name(*generation) == key.name();
        self.labelled_generation(key).or_else(|| (1..=most).rev().take(SEARCHED).find(named))
    }

    /// Returns true if this pass wrote or live-read the internal Secret with this name.
    fn is_live(&self, name: &str) -> bool {
        self.secrets().is_live(name)
    }

    /// Applies `require_settled` only after a slow answer. Another operator may have bumped the
    /// generation or moved the claim meanwhile.
    fn require_settled_if_in_doubt(&self, record: &Self::Record) -> Result<(), HaltOf<Self>> {
        if self.is_doubted() { self.require_settled(record) } else { Ok(()) }
    }

    /// Reads the Secret if a POST found the name in use, because that answer does not show the
    /// existing Secret.
    fn require_not_taken(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().get(name) != Knowledge::Taken, name)
    }

    /// Requires that no internal Secret has this name.
    fn require_absent(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent(name), name)
    }

    /// Requires two live reads that found no Secret, because a single read may be stale: an API
    /// server may answer it from an outdated cache.
    fn require_absent_twice(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent_twice(name), name)
    }

    /// Halts with a read of the internal Secret with this name, unless it is known already.
    fn read_unless(&self, is_known: bool, name: &str) -> Result<(), HaltOf<Self>> {
        if is_known { Ok(()) } else { Err(Halt::step(KeyStep::Read(name.to_owned()))) }
    }
}
