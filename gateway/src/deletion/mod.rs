//! The objects of a DeleteObjects: read from its document, and written again for the store.
//!
//! The keys are in the body, and a store may resolve `..` in one as a path through folders, under
//! the gateway's own key (spec §6). [`Deletion::read`] accepts only the exact form that S3 defines,
//! and the store gets [`Deletion::written`], in which every byte is the gateway's.
//!
//! Everything here is pure. Bodies are read, and their number is limited, in `front/documents.rs`.

mod digests;
mod objects;
mod reader;
mod supplement;
mod writer;

use std::collections::BTreeMap;

use crate::head::{Key, Operation};
use crate::refusal::{Code, Refusal};

pub use digests::{verify, verify_md5, write_anew};
pub use objects::{Answer, Doomed, MOST_OBJECTS};
pub use supplement::Supplement;

/// The objects that a request deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Each once.
    objects: Vec<Doomed>,
    /// The keys of objects listed again, once per repetition.
    repeated: Vec<Key>,
    answer: Answer,
}

impl Deletion {
    /// Reads a document.
    ///
    /// # Errors
    /// `MalformedXML` for anything but S3's document: another element or attribute, a document
    /// type, an entity, a comment, a repeated element, no object or more than [`MOST_OBJECTS`], a
    /// character that XML 1.0 can't carry. Those of [`Key::parse`] for a key; `InvalidArgument` for
    /// a version id that no store has issued, and for an object listed again with other conditions.
    pub fn read(document: &[u8]) -> Result<Self, Refusal> {
        let (objects, repeated, answer) = reader::read(document)?;
        Ok(Self { objects, repeated, answer })
    }

    /// Returns the document for the store, with exactly its length as capacity. Every reader finds
    /// the same keys in it: line ends and blanks that a reader might change are references, and it
    /// has no character that XML 1.0 can't carry.
    ///
    /// # Errors
    /// `EntityTooLarge` if it is longer than the operation's maximum.
    pub fn written(&self) -> Result<Vec<u8>, Refusal> {
        let longest = Operation::DeleteObjects.longest_document().unwrap_or_default();
        let length = writer::length(&self.objects, self.answer);
        if length as u64 > longest {
            return Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."));
        }
        Ok(writer::write(&self.objects, self.answer, length))
    }

    /// Returns the objects, each once, in the document's order.
    #[must_use]
    pub fn objects(&self) -> &[Doomed] {
        &self.objects
    }

    /// Returns the keys of the objects, decoded.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.iter().map(|object| &object.key)
    }

    /// Removes the objects at these indices, which are already deleted, some by a marker with this
    /// version id. Returns the rest, and the results of the removed objects and of those listed
    /// again.
    #[must_use]
    pub fn without(self, deleted: &BTreeMap<usize, Option<Box<str>>>) -> (Self, Supplement) {
        let Self { objects, repeated, answer } = self;
        let mut supplement = Supplement::of(repeated.iter().map(|key| key.as_str().to_owned()));
        let mut remaining = Vec::with_capacity(objects.len().saturating_sub(deleted.len()));
        for (at, object) in objects.into_iter().enumerate() {
            match deleted.get(&at) {
                Some(marker) => supplement.add(&object, marker.as_deref(), answer),
                None => remaining.push(object),
            }
        }
        (Self { objects: remaining, repeated: Vec::new(), answer }, supplement)
    }

    /// Returns the maximum memory in bytes of a document of this length, by capacity: the document
    /// itself, its parsed form, and the rewritten document.
    #[must_use]
    pub fn most_held(length: u64) -> u64 {
        // In memory, a short object takes a few times its text, and escaped text five times. Both
        // are bounded by a thousand objects and the longest document.
        let longest = Operation::DeleteObjects.longest_document().unwrap_or_default();
        length.saturating_mul(14).saturating_add(8 << 10).min(2 * longest + (256 << 10))
    }
}

#[cfg(test)]
mod tests;
