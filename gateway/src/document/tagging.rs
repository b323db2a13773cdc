//! The document of a PutObjectTagging (Amazon S3, "Tagging"). The store enforces the number and the
//! length of tags.

use crate::refusal::Refusal;
use crate::xml::{Out, Reader, begin, element, malformed, once};

/// Reads a document, and writes it for the store.
pub(super) fn rewrite(document: &[u8], out: &mut Out) -> Result<(), Refusal> {
    let mut reader = Reader::open(document, b"Tagging")?;
    let mut set = None;
    while let Some(element) = reader.element()? {
        match element.name().as_ref() {
            b"TagSet" => once(&mut set, tags(&mut reader)?)?,
            _ => return Err(malformed()),
        }
    }
    reader.end()?;
    let tags = set.ok_or_else(malformed)?;
    out.write(|put| {
        begin("Tagging", put);
        put("<TagSet>");
    })?;
    for (key, value) in &tags {
        out.write(|put| {
            put("<Tag>");
            element("Key", Some(key), put);
            element("Value", Some(value), put);
            put("</Tag>");
        })?;
    }
    out.write(|put| put("</TagSet></Tagging>"))
}

fn tags(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let mut tags = Vec::new();
    while let Some(element) = reader.element()? {
        if element.name().as_ref() != b"Tag" {
            return Err(malformed());
        }
        tags.push(tag(reader)?);
    }
    Ok(tags)
}

fn tag(reader: &mut Reader<'_>) -> Result<(String, String), Refusal> {
    let (mut key, mut value) = (None, None);
    while let Some(element) = reader.element()? {
        match element.name().as_ref() {
            b"Key" => once(&mut key, reader.text(malformed)?)?,
            b"Value" => once(&mut value, reader.text(malformed)?)?,
            _ => return Err(malformed()),
        }
    }
    Ok((key.ok_or_else(malformed)?, value.ok_or_else(malformed)?))
}
