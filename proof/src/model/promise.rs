//! The promises that the oracles judge by.

use std::fmt;

/// A promise of the operator, in the words of the contract's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No access opens a bucket beyond its owner's consent.
    A1,
    /// No access opens a bucket whose claim is to go.
    A2,
    /// At most two keys of an access, and none after it.
    A3,
    /// An access touches no bucket, and nothing of a claim.
    A4,
    /// What an access tells is so at rest.
    A5,
    /// Nothing is destroyed that isn't the claim's.
    I1,
    /// Nothing is destroyed after an edit to `Retain`.
    I2,
    /// Nothing is emptied after an edit to `forceDelete: false`.
    I3,
    /// One bucket, one claim with keys to it.
    I4,
    /// Two keys at most, and one of them on its way out.
    I5,
    /// A key that was published works until its own end, or until it is revoked.
    I6,
    /// No key is revoked and there beside the next.
    I7,
    /// `expires-at` never moves earlier, and leaves the whole overlap.
    I8,
    /// An access key id is given one secret, once.
    I10,
    /// Finalizer and record stand before the first outside effect; the finalizer goes last.
    I12,
    /// Only what is the claim's is written.
    I13,
    /// At rest nothing is left over.
    I14,
    /// At rest the status is true.
    I16,
    /// What the spec asks for is reached, or the status names who is in the way.
    L1,
    /// A deleted claim goes, or the status names what is in the way.
    L2,
    /// Everything comes to rest.
    L4,
}

impl Promise {
    /// All of them.
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

    /// Its name.
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

    /// The promise in words.
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
