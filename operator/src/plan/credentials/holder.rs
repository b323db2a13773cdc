//! The [`KeyHolder`] trait: a claim or an access, as the rules for its keys see it.

use crate::api::{DamagedSecret, SecretContent};

use super::super::cause::Foreign;
use super::super::known::{Knowledge, Secrets};
use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::walk::Halt;

/// Halt of a walk over a holder.
pub(in super::super) type HaltOf<H> = Halt<<H as KeyHolder>::Step, <H as KeyHolder>::Stop>;

/// Key-related fields of a holder's record.
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

/// A step that the key rules request.
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

/// Reason that the key rules can't continue.
pub(in super::super) enum KeyStop {
    /// A deleted Secret is kept by these finalizers, which are not ours.
    Kept { secret: String, finalizers: String },
    /// The current key can't be parsed.
    Damaged(DamagedSecret),
    /// The `expires-at` annotation can't be parsed. It is never overwritten (spec §2), because the
    /// original may have been earlier.
    StampDamaged { secret: String },
    /// The name of the consumer Secret is taken by a Secret that is not the holder's.
    Conflict { secret: String, why: Foreign },
}

/// Maximum number of generations to try when a key's generation label was edited. More keys than
/// that exist at once only if somebody created them by hand.
const SEARCHED: usize = 1000;

/// Interface between the key rules and what a pass knows about a claim or an access.
///
/// A holder has a record with the current generation, and an internal Secret for each key. A method
/// `require_…` returns `Ok` if its condition is known to be met, and otherwise halts, usually with
/// the read that would show it.
pub(in super::super) trait KeyHolder {
    /// A step of the pass over the holder.
    type Step: From<KeyStep>;
    /// Reason that the pass stops and the holder is not Ready.
    type Stop: From<KeyStop>;
    /// Record of the object.
    type Record: Clone;
    /// A successfully parsed key.
    type Key;

    /// Data keys to remove from the record's Secret if the desired content lacks them.
    const REMOVABLE: &'static [&'static str];
    /// Data keys to remove from a key's Secret if the desired content lacks them.
    const REMOVABLE_OF_KEYS: &'static [&'static str];
    /// True if a pending rotate request is reported as the trigger of a bump, even if something
    /// else caused it.
    const REQUEST_IS_TOLD: bool;
    /// True if the bump that replaces a lost key marks the rotate request as handled.
    const LOST_KEY_HANDLES_REQUEST: bool;
    /// Selects the failure to report if several lower keys can't be retired: the first if true, the
    /// last if false.
    const FIRST_IS_TOLD: bool;

    /// Returns the key-related fields of the record.
    fn handled(record: &Self::Record) -> Handled<'_>;

    /// Returns the record with this current generation, and with this rotate request as handled.
    fn bumped(&self, record: &Self::Record, generation: u64, handled_rotate_request: Option<String>) -> Self::Record;

    /// Returns the record with the pending revoke request as handled: keys up to `through` are
    /// revoked, and keys below `lowest` no longer exist.
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

    /// Returns the generation that this pass itself has made the current one, if it has.
    fn aimed_by_this_pass(&self) -> Option<u64>;

    /// Returns the internal Secrets.
    fn secrets(&self) -> &Secrets;

    /// Returns true if an answer took so long that another operator may have changed the keys.
    fn is_doubted(&self) -> bool;

    /// Returns the Secret name of the key of a generation.
    fn key_name(&self, generation: u64) -> String;

    /// Returns the keys, possibly cached, in the order of processing.
    fn keys(&self) -> Vec<&Stored>;

    /// Returns the generation of a key, or `None` if it is not certain because the label was
    /// edited.
    fn generation(&self, key: &Stored) -> Option<u64>;

    /// Returns true if a key is revoked.
    fn is_revoked(&self, key: &Stored) -> bool;

    /// Requires that this pass has read the object live. Checked before every write.
    fn require_live(&self) -> Result<(), HaltOf<Self>>;

    /// Requires that no record of the holder has a higher generation. Checked before a bump.
    fn require_highest(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Requires that the record is unchanged since the last slow answer, by a later read or write.
    fn require_settled(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Requires that a read by name has found no revoked key, except those kept by a finalizer.
    /// Checked before a key is created.
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

    /// Returns the generation that a key's name proves: by its label, or else by a search from
    /// `most` down.
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

    /// Requires a read of a Secret whose name a POST found in use: the answer does not show the
    /// Secret.
    fn require_not_taken(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().get(name) != Knowledge::Taken, name)
    }

    /// Requires that no internal Secret has this name.
    fn require_absent(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent(name), name)
    }

    /// Requires two live reads that found no Secret with this name. A single one may be stale, as
    /// an API server may answer it from an outdated cache.
    fn require_absent_twice(&self, name: &str) -> Result<(), HaltOf<Self>> {
        self.read_unless(self.secrets().is_absent_twice(name), name)
    }

    /// Halts with a read of the internal Secret with this name, unless it is known already.
    fn read_unless(&self, is_known: bool, name: &str) -> Result<(), HaltOf<Self>> {
        if is_known { Ok(()) } else { Err(Halt::step(KeyStep::Read(name.to_owned()))) }
    }
}
