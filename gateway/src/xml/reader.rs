//! A strict reader of S3 documents. It refuses everything that another reader might interpret
//! differently: other encodings, document types, custom entities, comments, instructions,
//! attributes.

use quick_xml::Reader as Xml;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use super::writer::NAMESPACE;
use crate::refusal::{Code, Refusal};

/// Maximum length of a text in a document, in bytes: a key, a version id, a tag.
const LONGEST_TEXT: usize = 1024;

/// A document that is read once, from beginning to end.
pub(crate) struct Reader<'a> {
    xml: Xml<&'a [u8]>,
}

/// The next item between elements.
enum Next<'a> {
    Start(BytesStart<'a>),
    /// The end of the enclosing element.
    End,
    /// The end of the document.
    Over,
}

impl<'a> Reader<'a> {
    /// Opens a document with this root.
    pub(crate) fn open(document: &'a [u8], name: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(document).map_err(|_| malformed())?;
        // The UTF-8 byte order mark. A second one would be a character, which no document begins
        // with.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.starts_with('\u{feff}') || !text.chars().all(is_carried) {
            return Err(malformed());
        }
        let mut xml = Xml::from_str(text);
        xml.config_mut().expand_empty_elements = true;
        let mut reader = Self { xml };
        let first = match reader.event()? {
            Event::Decl(declaration) => {
                check_declaration(&declaration)?;
                reader.event()?
            }
            event => event,
        };
        match reader.between(first)? {
            Next::Start(root) if root.name().as_ref() == name => check_namespace(&root)?,
            Next::Start(_) | Next::End | Next::Over => return Err(malformed()),
        }
        Ok(reader)
    }

    /// Checks that nothing follows the root, whose end has been read.
    pub(crate) fn end(mut self) -> Result<(), Refusal> {
        let event = self.event()?;
        match self.between(event)? {
            Next::Over => Ok(()),
            Next::Start(_) | Next::End => Err(malformed()),
        }
    }

    fn event(&mut self) -> Result<Event<'a>, Refusal> {
        self.xml.read_event().map_err(|_| malformed())
    }

    /// Skips blanks. Refuses everything else that may be in a document besides elements: comments,
    /// instructions, document types, sections, references.
    fn between(&mut self, mut event: Event<'a>) -> Result<Next<'a>, Refusal> {
        loop {
            match event {
                Event::Start(start) => return Ok(Next::Start(start)),
                Event::End(_) => return Ok(Next::End),
                Event::Eof => return Ok(Next::Over),
                Event::Text(text) if text.iter().all(|byte| b" \t\r\n".contains(byte)) => event = self.event()?,
                _ => return Err(malformed()),
            }
        }
    }

    /// Returns the next child of the open element, or `None` at its end.
    pub(crate) fn element(&mut self) -> Result<Option<BytesStart<'a>>, Refusal> {
        let event = self.event()?;
        match self.between(event)? {
            Next::End => Ok(None),
            Next::Start(start) if start.attributes_raw().trim_ascii().is_empty() => Ok(Some(start)),
            Next::Start(_) | Next::Over => Err(malformed()),
        }
    }

    /// Returns the text of the open element, up to its end, by the rules of XML 1.0: references are
    /// resolved and line ends become line feeds. Refuses elements, comments and instructions
    /// inside.
    pub(crate) fn text(&mut self, too_long: fn() -> Refusal) -> Result<String, Refusal> {
        let mut text = String::new();
        loop {
            let event = self.event()?;
            // Checked before anything is copied. Normalised line ends may shorten it, by half at
            // most.
            let comes = match &event {
                Event::Text(part) => part.len(),
                Event::CData(part) => part.len(),
                _ => 0,
            };
            if comes > 2 * LONGEST_TEXT {
                return Err(too_long());
            }
            match event {
                Event::End(_) => return Ok(text),
                // `]]>` is not allowed outside of a CDATA section (XML 1.0, 2.4).
                Event::Text(part) if memchr::memmem::find(&part, b"]]>").is_some() => return Err(malformed()),
                Event::Text(part) => text.push_str(&part.xml10_content().map_err(|_| malformed())?),
                Event::CData(part) => text.push_str(&part.xml10_content().map_err(|_| malformed())?),
                Event::GeneralRef(reference) => push(&mut text, &reference)?,
                _ => return Err(malformed()),
            }
            if text.len() > LONGEST_TEXT {
                return Err(too_long());
            }
        }
    }
}

/// Appends the character of a reference, numeric or one of the five predefined entities.
fn push(text: &mut String, reference: &BytesRef<'_>) -> Result<(), Refusal> {
    match reference.resolve_char_ref().map_err(|_| malformed())? {
        Some(c) if is_carried(c) => text.push(c),
        Some(_) => return Err(malformed()),
        None => {
            let name = reference.decode().map_err(|_| malformed())?;
            text.push_str(resolve_predefined_entity(&name).ok_or_else(malformed)?);
        }
    }
    Ok(())
}

/// Returns true for a character allowed in XML 1.0, also by a reference (section 2.2, Char).
pub(crate) fn is_carried(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Checks that the declaration says XML 1.0 and UTF-8. A reader that believes in another encoding
/// would read other characters.
fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), Refusal> {
    let version = declaration.version().map_err(|_| malformed())?;
    let is_utf_8 = match declaration.encoding() {
        None => true,
        Some(Ok(encoding)) => encoding.eq_ignore_ascii_case(b"utf-8"),
        Some(Err(_)) => false,
    };
    if version.as_ref() == b"1.0" && is_utf_8 { Ok(()) } else { Err(malformed()) }
}

/// Checks that the root is in S3's namespace or in none, and has no other attribute.
fn check_namespace(root: &BytesStart<'_>) -> Result<(), Refusal> {
    for attribute in root.attributes() {
        let attribute = attribute.map_err(|_| malformed())?;
        if attribute.key.as_ref() != b"xmlns" || attribute.value.as_ref() != NAMESPACE.as_bytes() {
            return Err(malformed());
        }
    }
    Ok(())
}

/// Stores a value that may occur once.
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(malformed()),
    }
}

/// S3's refusal of a document that doesn't match the schema.
pub(crate) fn malformed() -> Refusal {
    let message = "The XML you provided was not well-formed or did not validate against our published schema.";
    Refusal::new(Code::MalformedXML, message)
}
