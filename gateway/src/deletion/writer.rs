//! The writer of DeleteObjects documents: the shortest form of what was read, in which every reader
//! finds the same keys.

use super::objects::{Answer, Doomed};
use crate::xml::{begin, element};

/// Returns the length of the document in bytes.
pub(super) fn length(objects: &[Doomed], answer: Answer) -> usize {
    let mut length = 0;
    document(objects, answer, &mut |part| length += part.len());
    length
}

/// Writes the document, which has `length` bytes.
pub(super) fn write(objects: &[Doomed], answer: Answer, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    document(objects, answer, &mut |part| bytes.extend_from_slice(part.as_bytes()));
    bytes
}

fn document(objects: &[Doomed], answer: Answer, put: &mut impl FnMut(&str)) {
    begin("Delete", put);
    for object in objects {
        put("<Object>");
        element("Key", Some(object.key.as_str()), put);
        element("VersionId", object.version.as_deref(), put);
        element("ETag", object.etag.as_deref(), put);
        element("LastModifiedTime", object.modified.as_deref(), put);
        element("Size", object.size.map(|size| size.to_string()).as_deref(), put);
        put("</Object>");
    }
    element("Quiet", Some("true").filter(|_| answer == Answer::Errors), put);
    put("</Delete>");
}
