//! A writer of S3 documents, in which every reader finds the same text.

use crate::refusal::{Code, Refusal};

/// The namespace of S3's documents.
pub(crate) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document in progress.
pub(crate) struct Out {
    text: String,
    /// Maximum length of the document in bytes.
    most: u64,
}

impl Out {
    /// Begins a document of at most `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self { text: String::new(), most }
    }

    /// Appends to the document.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut dyn FnMut(&str))) -> Result<(), Refusal> {
        write(&mut |part| self.text.push_str(part));
        if self.text.len() as u64 > self.most {
            return Err(Refusal::new(Code::EntityTooLarge, "The document in the body is too long."));
        }
        Ok(())
    }

    /// Returns the finished document.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

/// Writes the beginning of a document with this root.
pub(crate) fn begin(root: &str, put: &mut (impl FnMut(&str) + ?Sized)) {
    put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    for part in [root, " xmlns=\"", NAMESPACE, "\">"] {
        put(part);
    }
}

/// Writes an element with this text, if there is one.
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

/// Writes a text with references in place of markup and of characters that some readers change:
/// line ends, tabs, and blanks at the edges.
fn escaped(text: &str, put: &mut (impl FnMut(&str) + ?Sized)) {
    let (begin, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let is_at_edge = at < begin || at >= end;
        let reference = match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            // The last three end lines in XML 1.1, and in some readers of 1.0.
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
