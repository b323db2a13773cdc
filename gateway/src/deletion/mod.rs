//! The objects of a DeleteObjects: read whole from its document, and written for the store.
//!
//! The keys stand in the body, and a store may take `..` in one for a way through folders, under
//! the gateway's own key (spec §6). [`Deletion::read`] takes nothing but the one form that S3 has,
//! and the store gets [`Deletion::written`], in which every byte is the gateway's.
//!
//! Everything here is pure. How a body is read, and how many at once, is `front/documents.rs`.

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
    /// The keys of those that the document names again, as often as it does.
    repeated: Vec<Key>,
    answer: Answer,
}

impl Deletion {
    /// Reads a document.
    ///
    /// # Errors
    /// `MalformedXML` for anything but the document of S3: another element or attribute, a document
    /// type, an entity, a comment, an element that comes twice, no object or more than
    /// [`MOST_OBJECTS`], a character that XML 1.0 can't carry. Those of [`Key::parse`] for a key;
    /// `InvalidArgument` for a version's id that no store has given, and for an object that is
    /// named again with other conditions.
    pub fn read(document: &[u8]) -> Result<Self, Refusal> {
        let (objects, repeated, answer) = reader::read(document)?;
        Ok(Self { objects, repeated, answer })
    }

    /// The document for the store, of exactly its capacity. What reads it has the same keys: lines
    /// and blanks that a reader might change are references, and nothing is in it that XML 1.0
    /// can't carry.
    ///
    /// # Errors
    /// `EntityTooLarge` where it has more bytes than the operation's document may have.
    pub fn written(&self) -> Result<Vec<u8>, Refusal> {
        let longest = Operation::DeleteObjects.longest_document().unwrap_or_default();
        let length = writer::length(&self.objects, self.answer);
        if length as u64 > longest {
            return Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."));
        }
        Ok(writer::write(&self.objects, self.answer, length))
    }

    /// The objects, each once, in the document's order.
    #[must_use]
    pub fn objects(&self) -> &[Doomed] {
        &self.objects
    }

    /// The keys of the objects, decoded.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.iter().map(|object| &object.key)
    }

    /// The deletion without the objects at these places, which are deleted already, some by a
    /// marker of this version; and what is told of them and of those that are named again.
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

    /// How many bytes of memory a document of this length takes at most, by capacity: itself, what
    /// is read of it, and what is written.
    #[must_use]
    pub fn most_held(length: u64) -> u64 {
        // A short object is a few times its text in memory, and escaped text five times itself.
        // Neither grows beyond a thousand objects, and the longest document.
        let longest = Operation::DeleteObjects.longest_document().unwrap_or_default();
        length.saturating_mul(14).saturating_add(8 << 10).min(2 * longest + (256 << 10))
    }
}

#[cfg(test)]
mod tests;
