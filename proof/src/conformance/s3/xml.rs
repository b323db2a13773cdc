//! XML answers as JSON values, without insignificant parts.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// Elements that may be repeated, with their parent element. They become a list, even if there is
/// only one.
const REPEATED: [(&str, &str); 12] = [
    ("Buckets", "Bucket"),
    ("TagSet", "Tag"),
    ("ListBucketResult", "Contents"),
    ("ListBucketResult", "CommonPrefixes"),
    ("ListVersionsResult", "Version"),
    ("ListVersionsResult", "DeleteMarker"),
    ("ListVersionsResult", "CommonPrefixes"),
    ("ListMultipartUploadsResult", "Upload"),
    ("ListMultipartUploadsResult", "CommonPrefixes"),
    ("ListPartsResult", "Part"),
    ("DeleteResult", "Deleted"),
    ("DeleteResult", "Error"),
];

/// An element that is not closed yet.
struct Open {
    name: String,
    fields: Map<String, Value>,
    text: String,
    /// True if the element has child elements. Its text is only indentation then.
    has_children: bool,
}

/// Parses a document into an object whose only field is the root element.
///
/// Attributes are ignored. So are elements without content, because S3 clients treat them like
/// absent ones.
///
/// # Errors
/// Returns an error if the bytes are no XML document.
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = Reader::from_reader(bytes);
    let mut open = vec![Open::new(String::new())];
    let wrong = |why: &dyn std::fmt::Display| format!("no XML: {why}");
    loop {
        match reader.read_event().map_err(|error| wrong(&error))? {
            Event::Start(start) => open.push(Open::new(String::from_utf8_lossy(start.local_name().as_ref()).into())),
            Event::End(_) => close(&mut open),
            Event::Text(text) => add(&mut open, &text.decode().map_err(|error| wrong(&error))?),
            Event::CData(text) => add(&mut open, &text.decode().map_err(|error| wrong(&error))?),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|error| wrong(&error))?;
                let name = reference.decode().map_err(|error| wrong(&error))?;
                match (character, resolve_predefined_entity(&name)) {
                    (Some(character), _) => add(&mut open, character.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => add(&mut open, text),
                    (None, None) => return Err(wrong(&format!("&{name};"))),
                }
            }
            Event::Eof => break,
            Event::Empty(_) => open.last_mut().into_iter().for_each(|parent| parent.has_children = true),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    match <[Open; 1]>::try_from(open) {
        Ok([document]) => Ok(Value::Object(document.fields)),
        Err(_) => Err(wrong(&"it breaks off")),
    }
}

impl Open {
    fn new(name: String) -> Self {
        Self { name, fields: Map::new(), text: String::new(), has_children: false }
    }
}

fn add(open: &mut [Open], text: &str) {
    if let Some(last) = open.last_mut() {
        last.text += text;
    }
}

/// Adds the innermost element to its parent. The reader guarantees that there is one.
fn close(open: &mut Vec<Open>) {
    let Some(ended) = open.pop() else { return };
    let is_root = open.len() == 1;
    let Some(parent) = open.last_mut() else { return };
    parent.has_children = true;
    let repeated = REPEATED.contains(&(parent.name.as_str(), ended.name.as_str()));
    let value = match ended.has_children {
        true if ended.fields.is_empty() => "".into(),
        true => Value::Object(ended.fields),
        false => Value::String(ended.text),
    };
    // The root stays even if it is empty, because it names the kind of answer.
    if value == "" && !is_root {
        return;
    }
    match parent.fields.get_mut(&ended.name) {
        Some(Value::Array(items)) => items.push(value),
        // An unexpected second element must not be lost.
        Some(first) => *first = Value::Array(vec![first.take(), value]),
        None if repeated => drop(parent.fields.insert(ended.name, Value::Array(vec![value]))),
        None => drop(parent.fields.insert(ended.name, value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_become_values() {
        let xml = b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"u\"><Name>a</Name><Prefix></Prefix><Marker/>\
            <Contents><Key>a&amp;&#x3c;b</Key><Owner>\n<ID/>\n</Owner></Contents></ListBucketResult>";
        let expected = json!({"ListBucketResult": {"Name": "a", "Contents": [{"Key": "a&<b"}]}});
        assert_eq!(read(xml), Ok(expected));
    }

    #[test]
    fn an_empty_answer_keeps_its_name() {
        assert_eq!(read(b"<DeleteResult></DeleteResult>"), Ok(json!({"DeleteResult": ""})));
        assert_eq!(read(b""), Ok(json!({})));
    }

    #[test]
    fn what_breaks_off_is_no_document() {
        assert!(read(b"<a><b>").is_err());
        assert!(read(b"<a>&nonsense;</a>").is_err());
    }
}
