//! Writes the document of a DeleteObjects: the shortest that says what was read, and in which no
//! reader finds another key.

use super::{Answer, Deletion, NAMESPACE};

/// How many bytes the document has.
pub(super) fn length(deletion: &Deletion) -> usize {
    let mut length = 0;
    document(deletion, &mut |part| length += part.len());
    length
}

/// The document, which has `length` bytes.
pub(super) fn write(deletion: &Deletion, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    document(deletion, &mut |part| bytes.extend_from_slice(part.as_bytes()));
    bytes
}

fn document(deletion: &Deletion, put: &mut impl FnMut(&str)) {
    put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete xmlns=\"");
    put(NAMESPACE);
    put("\">");
    for object in &deletion.objects {
        put("<Object>");
        element("Key", Some(object.key.as_str()), put);
        element("VersionId", object.version.as_deref(), put);
        element("ETag", object.etag.as_deref(), put);
        element("LastModifiedTime", object.modified.as_deref(), put);
        element("Size", object.size.map(|size| size.to_string()).as_deref(), put);
        put("</Object>");
    }
    element("Quiet", Some("true").filter(|_| deletion.answer == Answer::Errors), put);
    put("</Delete>");
}

fn element(name: &str, text: Option<&str>, put: &mut impl FnMut(&str)) {
    let Some(text) = text else { return };
    for part in ["<", name, ">"] {
        put(part);
    }
    escaped(text, put);
    for part in ["</", name, ">"] {
        put(part);
    }
}

/// A text with references for what is markup, and for what some readers change: ends of lines,
/// tabs, and blanks at the edges.
fn escaped(text: &str, put: &mut impl FnMut(&str)) {
    let (begin, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let is_at_edge = at < begin || at >= end;
        let reference = match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            // The latter three end lines in XML 1.1, and for some who read 1.0.
            '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => by_number(c),
            c if is_at_edge && c.is_whitespace() => by_number(c),
            _ => continue,
        };
        put(text.get(plain..at).unwrap_or_default());
        put(&reference);
        plain = at + c.len_utf8();
    }
    put(text.get(plain..).unwrap_or_default());
}

fn by_number(c: char) -> String {
    format!("&#{};", u32::from(c))
}
