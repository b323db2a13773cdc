//! Reads the document of a DeleteObjects (Amazon S3, "Delete" and "ObjectIdentifier"). What isn't
//! exactly that is nothing.

use quick_xml::Reader as Xml;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use super::{Answer, Deletion, Doomed, LONGEST_TEXT, MOST_OBJECTS, NAMESPACE, is_carried};
use crate::head::{Key, is_id};
use crate::refusal::{Code, Refusal};

/// Reads a document.
pub(super) fn read(document: &[u8]) -> Result<Deletion, Refusal> {
    let text = std::str::from_utf8(document).map_err(|_| malformed())?;
    // The mark that says UTF-8. Another one behind it is a character, and no document begins so.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with('\u{feff}') || !text.chars().all(is_carried) {
        return Err(malformed());
    }
    let mut xml = Xml::from_str(text);
    xml.config_mut().expand_empty_elements = true;
    Reader { xml }.document()
}

struct Reader<'a> {
    xml: Xml<&'a [u8]>,
}

/// What comes next between elements.
enum Next<'a> {
    Start(BytesStart<'a>),
    /// The end of what it stands in.
    End,
    /// The end of the document.
    Over,
}

impl<'a> Reader<'a> {
    fn document(mut self) -> Result<Deletion, Refusal> {
        let first = match self.event()? {
            Event::Decl(declaration) => {
                check_declaration(&declaration)?;
                self.event()?
            }
            event => event,
        };
        let root = match self.between(first)? {
            Next::Start(root) if root.name().as_ref() == b"Delete" => root,
            Next::Start(_) | Next::End | Next::Over => return Err(malformed()),
        };
        check_namespace(&root)?;
        let deletion = self.deletion()?;
        let event = self.event()?;
        match self.between(event)? {
            Next::Over => Ok(deletion),
            Next::Start(_) | Next::End => Err(malformed()),
        }
    }

    fn event(&mut self) -> Result<Event<'a>, Refusal> {
        self.xml.read_event().map_err(|_| malformed())
    }

    /// Skips blanks. What may stand in a document and is neither an element nor a blank is refused:
    /// comments, instructions, document types, sections, references.
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

    /// The next element in the one that is open; `None` where that ends.
    fn element(&mut self) -> Result<Option<BytesStart<'a>>, Refusal> {
        let event = self.event()?;
        match self.between(event)? {
            Next::End => Ok(None),
            Next::Start(start) if start.attributes_raw().trim_ascii().is_empty() => Ok(Some(start)),
            Next::Start(_) | Next::Over => Err(malformed()),
        }
    }

    fn deletion(&mut self) -> Result<Deletion, Refusal> {
        let (mut objects, mut answer) = (Vec::new(), None);
        while let Some(element) = self.element()? {
            match element.name().as_ref() {
                b"Object" if objects.len() < MOST_OBJECTS => objects.push(self.object()?),
                b"Quiet" => once(&mut answer, quiet(&self.text(malformed)?)?)?,
                _ => return Err(malformed()),
            }
        }
        if objects.is_empty() {
            return Err(malformed());
        }
        Ok(Deletion { objects, answer: answer.unwrap_or_default() })
    }

    fn object(&mut self) -> Result<Doomed, Refusal> {
        let (mut key, mut version, mut etag, mut modified, mut size) = (None, None, None, None, None);
        while let Some(element) = self.element()? {
            match element.name().as_ref() {
                b"Key" => once(&mut key, self.key()?)?,
                b"VersionId" => once(&mut version, self.version()?)?,
                b"ETag" => once(&mut etag, self.text(malformed)?.into_boxed_str())?,
                b"LastModifiedTime" => once(&mut modified, self.text(malformed)?.into_boxed_str())?,
                b"Size" => once(&mut size, number(&self.text(malformed)?)?)?,
                _ => return Err(malformed()),
            }
        }
        Ok(Doomed { key: key.ok_or_else(malformed)?, version, etag, modified, size })
    }

    fn key(&mut self) -> Result<Key, Refusal> {
        let too_long = || Refusal::new(Code::KeyTooLongError, "Your key is too long: it has more than 1024 bytes.");
        let text = self.text(too_long)?;
        if text.is_empty() {
            return Err(malformed());
        }
        Key::parse(text.as_bytes())
    }

    fn version(&mut self) -> Result<Box<str>, Refusal> {
        let id = self.text(malformed)?;
        if !is_id(id.as_bytes()) {
            let refusal = Refusal::new(Code::InvalidArgument, "This is no id that a store has given.");
            return Err(refusal.with("ArgumentName", "VersionId"));
        }
        Ok(id.into_boxed_str())
    }

    /// The text of the element that is open, to its end, as XML 1.0 has it: references are resolved
    /// and ends of lines are line feeds. No element, comment or instruction stands in it.
    fn text(&mut self, too_long: fn() -> Refusal) -> Result<String, Refusal> {
        let mut text = String::new();
        loop {
            let event = self.event()?;
            // Before anything is copied. The ends of lines may make it shorter, by half at most.
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
                // A section's end outside of one (XML 1.0, 2.4).
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

/// Adds what a reference stands for: a character, or one of the five entities that every document
/// has.
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

/// XML 1.0 in UTF-8: anything else would be other characters to who believes it.
fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), Refusal> {
    let version = declaration.version().map_err(|_| malformed())?;
    let is_utf_8 = match declaration.encoding() {
        None => true,
        Some(Ok(encoding)) => encoding.eq_ignore_ascii_case(b"utf-8"),
        Some(Err(_)) => false,
    };
    if version.as_ref() == b"1.0" && is_utf_8 { Ok(()) } else { Err(malformed()) }
}

/// The root is in S3's namespace, or in none. It has no other attribute.
fn check_namespace(root: &BytesStart<'_>) -> Result<(), Refusal> {
    for attribute in root.attributes() {
        let attribute = attribute.map_err(|_| malformed())?;
        if attribute.key.as_ref() != b"xmlns" || attribute.value.as_ref() != NAMESPACE.as_bytes() {
            return Err(malformed());
        }
    }
    Ok(())
}

/// Notes what may be there once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(malformed()),
    }
}

fn quiet(text: &str) -> Result<Answer, Refusal> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("true") {
        Ok(Answer::Errors)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Answer::Full)
    } else {
        Err(malformed())
    }
}

fn number(text: &str) -> Result<u64, Refusal> {
    let text = text.trim_ascii();
    // A sign would pass `parse`.
    let has_digits_alone = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| has_digits_alone).ok_or_else(malformed)
}

fn malformed() -> Refusal {
    let message = "The XML you provided was not well-formed or did not validate against our published schema.";
    Refusal::new(Code::MalformedXML, message)
}
