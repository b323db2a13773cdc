//! The holder of keys, as the rules of keys know it.

use crate::api::SecretContent;

use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::walk::Halt;

/// A halt of the walk over this holder.
pub(in super::super) type HaltOf<H> = Halt<<H as KeyHolder>::Step, <H as KeyHolder>::Stop>;

/// The requests that stand in a holder's annotations.
#[derive(Clone, Copy)]
pub(in super::super) struct Requests<'a> {
    /// Value of the rotate annotation.
    pub(in super::super) rotate: Option<&'a String>,
    /// Value of the revoke annotation.
    pub(in super::super) revoke: Option<&'a String>,
}

/// What a record says of keys.
#[derive(Clone, Copy)]
pub(in super::super) struct Handled<'a> {
    /// The generation aimed at.
    pub(in super::super) generation: u64,
    /// Keys up to this generation are revoked; 0 = none is.
    pub(in super::super) revoked_through: u64,
    /// The requests that were acted on last.
    pub(in super::super) requests: Requests<'a>,
}

/// The view of a pass over an object that has keys: a record, which aims at a generation, an
/// internal Secret for each key, and steps that read and write them.
pub(in super::super) trait KeyHolder {
    /// A step of the pass.
    type Step;
    /// Why the pass stops.
    type Stop;
    /// Its record.
    type Record: Clone;

    /// Data keys of the record that go when the record doesn't have them.
    const REMOVABLE: &'static [&'static str];

    /// What the record says of keys.
    fn handled(record: &Self::Record) -> Handled<'_>;

    /// The record as it is once another generation is aimed at and this rotate request is handled.
    fn bumped(&self, record: &Self::Record, generation: u64, handled_rotate_request: Option<String>) -> Self::Record;

    /// The Secret that a record is written to.
    fn content(&self, record: &Self::Record) -> SecretContent;

    /// The requests of the object, as it is known.
    fn requests(&self) -> Requests<'_>;

    /// A generation above any that was aimed at or used, as far as this pass knows.
    fn next_generation(&self) -> u64;

    /// The generation that this pass's own write had the record aim at.
    fn aimed_by_this_pass(&self) -> Option<u64>;

    /// The key of a generation, be it from the cache.
    fn key(&self, generation: u64) -> Option<&Stored>;

    /// The keys whose generation is certain, in the order in which they are gone through.
    fn numbered_keys(&self) -> Vec<(u64, &Stored)>;

    /// The keys that a revocation ended, in the order in which they are gone through.
    fn revoked_keys(&self) -> Vec<&Stored>;

    /// Whether this pass wrote the internal Secret of this name, or read it live.
    fn is_live(&self, name: &str) -> bool;

    /// Before anything is written: the object was read live.
    fn require_live(&self) -> Result<(), HaltOf<Self>>;

    /// Before another generation is aimed at: no record that is not known aims higher.
    fn require_highest(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// The record is as it was last read or written, since the last answer that took long.
    fn require_settled(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// The same, only where an answer took long.
    fn require_settled_if_in_doubt(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// Before a key is made: each that is revoked was looked for by its name, and is gone, or known
    /// to be kept.
    fn require_revoked(&self, record: &Self::Record) -> Result<(), HaltOf<Self>>;

    /// A POST that found this name taken showed nothing of what is there: it is read.
    fn require_not_taken(&self, name: &str) -> Result<(), HaltOf<Self>>;

    /// There is no internal Secret of this name.
    fn require_absent(&self, name: &str) -> Result<(), HaltOf<Self>>;

    /// The same, as two live reads showed: one may have been of the server's past.
    fn require_absent_twice(&self, name: &str) -> Result<(), HaltOf<Self>>;

    /// The step that reads an internal Secret.
    fn read_internal(name: String) -> Self::Step;

    /// The step that patches a Secret.
    fn patch(patch: SecretPatch) -> Self::Step;

    /// The step that deletes a Secret.
    fn delete(secret: SecretRef) -> Self::Step;

    /// The stop for a Secret that is deleted, and that these finalizers of others keep.
    fn kept(secret: &Stored, finalizers: String) -> Self::Stop;
}
