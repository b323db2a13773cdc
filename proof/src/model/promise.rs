//! Promises that the oracles check.

use std::fmt;

/// A promise of the operator, named as in the contract's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No access opens a bucket beyond its owner's consent.
    A1,
    /// No access opens a bucket whose claim is being deleted.
    A2,
    /// An access has at most two keys, and no key outlives it.
    A3,
    /// An access changes no bucket and no object of a claim.
    A4,
    /// At rest, the status of an access is true.
    A5,
    /// Nothing is destroyed that does not belong to the claim.
    I1,
    /// Nothing is destroyed after an edit to `Retain`.
    I2,
    /// Nothing is emptied after an edit to `forceDelete: false`.
    I3,
    /// At most one claim has keys to a bucket.
    I4,
    /// A claim has at most two keys, and one of two is retiring.
    I5,
    /// A published key works until its expiry, or until it is revoked.
    I6,
    /// No revoked key exists beside its successor.
    I7,
    /// `expires-at` never moves earlier, and leaves the whole overlap.
    I8,
    /// An access key id gets one secret key, once.
    I10,
    /// Finalizer and record exist before the first effect outside Kubernetes; the finalizer is
    /// removed last.
    I12,
    /// Only objects that belong to the claim are written.
    I13,
    /// At rest, nothing is left over.
    I14,
    /// At rest the status is true.
    I16,
    /// The state that the spec requests is reached, or the status names the obstacle.
    L1,
    /// A deleted claim disappears, or the status names the obstacle.
    L2,
    /// The world comes to rest.
    L4,
}

impl Promise {
    /// All promises.
    pub const ALL: [Self; 21] = [
        Self::A1,
        Self::A2,
        Self::A3,
        Self::A4,
        Self::A5,
        Self::I1,
        Self::I2,
        Self::I3,
        Self::I4,
        Self::I5,
        Self::I6,
        Self::I7,
        Self::I8,
        Self::I10,
        Self::I12,
        Self::I13,
        Self::I14,
        Self::I16,
        Self::L1,
        Self::L2,
        Self::L4,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::A3 => "A3",
            Self::A4 => "A4",
            Self::A5 => "A5",
            Self::I1 => "I1",
            Self::I2 => "I2",
            Self::I3 => "I3",
            Self::I4 => "I4",
            Self::I5 => "I5",
            Self::I6 => "I6",
            Self::I7 => "I7",
            Self::I8 => "I8",
            Self::I10 => "I10",
            Self::I12 => "I12",
            Self::I13 => "I13",
            Self::I14 => "I14",
            Self::I16 => "I16",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L4 => "L4",
        }
    }

    /// Returns the promise as a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::A1 => "no access opens a bucket beyond its owner's consent",
            Self::A2 => "no access opens a bucket once its claim is to go",
            Self::A3 => "at most two keys of an access live, and none after it",
            Self::A4 => "an access touches no bucket, and nothing that is a claim's",
            Self::A5 => "at rest what an access tells of its entry is so",
            Self::I1 => "nothing is destroyed that isn't the claim's",
            Self::I2 => "nothing is destroyed after an edit to Retain",
            Self::I3 => "nothing is emptied after an edit to forceDelete: false",
            Self::I4 => "a bucket has keys of one claim only",
            Self::I5 => "at most two keys live, one of them without expires-at",
            Self::I6 => "a published key works until its own end, or until it is revoked, as was asked",
            Self::I7 => "no key that is revoked is there beside the next",
            Self::I8 => "expires-at never moves earlier or vanishes, and leaves the whole overlap",
            Self::I10 => "an access key id is given one secret, once",
            Self::I12 => "finalizer and record stand before the first outside effect, and the finalizer goes last",
            Self::I13 => "only what is the claim's is written",
            Self::I14 => "at rest nothing is left over",
            Self::I16 => "at rest the status is true",
            Self::L1 => "what the spec asks for is reached, or the status names who is in the way",
            Self::L2 => "a deleted claim goes, or the status names what is in the way",
            Self::L4 => "once nothing goes wrong any more, everything comes to rest",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.words())
    }
}
