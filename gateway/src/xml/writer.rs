//! Writes a document of S3, in which no reader finds other texts than were read.

use crate::refusal::{Code, Refusal};

/// The namespace of S3's documents.
pub(crate) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document that is being written.
pub(crate) struct Out {
    text: String,
    /// Most bytes that it may have.
    most: u64,
}

impl Out {
    /// Begins a document of at most this many bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self { text: String::new(), most }
    }

    /// Writes more of it.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut dyn FnMut(&str))) -> Result<(), Refusal> {
        write(&mut |part| self.text.push_str(part));
        if self.text.len() as u64 > self.most {
            return Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."));
        }
        Ok(())
    }

    /// The document as it was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

/// Puts the beginning of a document with this root.
pub(crate) fn begin(root: &str, put: &mut (impl FnMut(&str) + ?Sized)) {
    put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    for part in [root, " xmlns=\"", NAMESPACE, "\">"] {
        put(part);
    }
}

/// Puts an element with this text, where there is one.
pub(crate) fn element(name: &str, text: Option<&str>, put: &mut (impl FnMut(&str) + ?Sized)) {
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
fn escaped(text: &str, put: &mut (impl FnMut(&str) + ?Sized)) {
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
