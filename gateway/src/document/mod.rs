//! Documents of S3 in requests: read strictly, and written for the store from what was read.
//!
//! A store may read a document otherwise than the gateway does: where a name comes twice, where an
//! entity or a comment stands in a text, where lines end. So no document of a client gets to one.
//! That of a DeleteObjects is [`crate::deletion`]'s. How a body is read is `front/documents.rs`.
//!
//! Everything here is pure.

mod completion;
mod tagging;

use crate::head::Operation;
use crate::refusal::Refusal;
use crate::xml::{Out, malformed};

/// True where the store gets a document of [`rewritten`] in the place of the client's.
#[must_use]
pub fn is_rewritten(operation: Operation) -> bool {
    matches!(operation, Operation::CompleteMultipartUpload | Operation::PutObjectTagging)
}

/// The document for the store, for an operation of which [`is_rewritten`] is true.
///
/// # Errors
/// `MalformedXML` for anything but the operation's document; `EntityTooLarge` where what says the
/// same is twice as long.
pub fn rewritten(operation: Operation, document: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut out = Out::new(most_written(document.len() as u64));
    match operation {
        Operation::CompleteMultipartUpload => completion::rewrite(document, &mut out)?,
        Operation::PutObjectTagging => tagging::rewrite(document, &mut out)?,
        _ => return Err(malformed()),
    }
    Ok(out.into_bytes())
}

/// Most bytes of memory that a document of this length takes, by capacity: itself, what is
/// written, which grows by doubling, and the tags of one that is no longer than it may have them.
#[must_use]
pub fn most_held(length: u64) -> u64 {
    let tags = length.min(Operation::PutObjectTagging.longest_document().unwrap_or_default());
    length.saturating_add(2 * most_written(length)).saturating_add(4 * tags)
}

/// Twice the document, as a reference may stand where a character was.
fn most_written(length: u64) -> u64 {
    length.saturating_mul(2).saturating_add(1024)
}

#[cfg(test)]
mod tests;
