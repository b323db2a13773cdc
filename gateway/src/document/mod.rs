//! S3 documents in requests: read strictly, and written for the store from what was read.
//!
//! A store may interpret a document differently than the gateway does: if a name is repeated, if a
//! text contains an entity or a comment, in its line ends. So no document of a client is forwarded.
//! The document of a DeleteObjects is in [`crate::deletion`]. Bodies are read in
//! `front/documents.rs`.
//!
//! Everything here is pure.

mod completion;
mod tagging;

use crate::head::Operation;
use crate::refusal::Refusal;
use crate::xml::{Out, malformed};

/// Returns true if the client's document is replaced by one from [`rewritten`].
#[must_use]
pub fn is_rewritten(operation: Operation) -> bool {
    matches!(operation, Operation::CompleteMultipartUpload | Operation::PutObjectTagging)
}

/// Returns the document for the store, for an operation that [`is_rewritten`].
///
/// # Errors
/// `MalformedXML` for anything but the operation's document; `EntityTooLarge` if the rewritten
/// document has more than about twice the length.
pub fn rewritten(operation: Operation, document: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut out = Out::new(most_written(document.len() as u64));
    match operation {
        Operation::CompleteMultipartUpload => completion::rewrite(document, &mut out)?,
        Operation::PutObjectTagging => tagging::rewrite(document, &mut out)?,
        _ => return Err(malformed()),
    }
    Ok(out.into_bytes())
}

/// Returns the maximum memory of a document of this length, by capacity: the document itself, the
/// rewritten one, which grows by doubling, and its parsed tags, up to the longest document of tags.
#[must_use]
pub fn most_held(length: u64) -> u64 {
    let tags = length.min(Operation::PutObjectTagging.longest_document().unwrap_or_default());
    length.saturating_add(2 * most_written(length)).saturating_add(4 * tags)
}

/// Returns the maximum length of the rewritten document: twice the original, as references may
/// replace characters.
fn most_written(length: u64) -> u64 {
    length.saturating_mul(2).saturating_add(1024)
}

#[cfg(test)]
mod tests;
