//! Documents of DeleteObjects requests, which are authorized by their keys. An input is the
//! document.

use stowage_gateway::deletion::{Deletion, MOST_OBJECTS};
use stowage_gateway::head::Operation;
use xmlparser::{ElementEnd, Token, Tokenizer};

use super::reading;
use crate::held::held;

/// An object as the second parser reads it: its fields, by name.
type Object = Vec<(String, String)>;

/// Checks that an accepted document, and the one written for the store, have the objects that a
/// second parser finds.
pub(crate) fn play(input: &[u8]) {
    let long = input.len() as u64;
    let (read, bytes) = held(|| Deletion::read(input));
    assert!(bytes as u64 + long <= Deletion::most_held(long), "{bytes} bytes are held of {long}");
    let Ok(deletion) = read else { return };
    assert!((1..=MOST_OBJECTS).contains(&deletion.objects().len()));
    for object in deletion.objects() {
        assert!(reading::is_key(object.key.as_str().as_bytes()), "{:?} is no key", object.key);
        assert!(object.version.as_ref().is_none_or(|id| reading::is_id(id.as_bytes())), "{:?}", object.version);
    }
    let text = str::from_utf8(input).expect("it was read");
    if let Some(other) = other_reader(text) {
        assert_eq!(objects(&deletion), once(other), "two readers of what came");
    }
    let (written, taken) = held(|| deletion.written());
    let Ok(written) = written else {
        assert!(5 * long > 1 << 20, "it is short, and refused");
        return;
    };
    let both = (bytes + taken) as u64;
    assert!(both <= Deletion::most_held(long), "{both} bytes are held of {long} when it is written");
    assert!(written.len() as u64 <= Operation::DeleteObjects.longest_document().unwrap_or_default());
    let text = str::from_utf8(&written).expect("it is text");
    assert!(text.lines().count() <= 2 && !text.contains(['\r', '\t', '\0']), "{text}");
    assert_eq!(other_reader(text), Some(objects(&deletion)), "two readers of what is written");
    let edges = |text: &String| text.trim().len() == text.len();
    let trimmed = raw_keys(text);
    assert!(trimmed.iter().all(edges), "who trims a key finds another: {trimmed:?}");
    let again = Deletion::read(&written).expect("it is one");
    assert_eq!(objects(&again), objects(&deletion), "{text}");
    assert_eq!(again.written().as_ref(), Ok(&written), "{text}");
}

/// Removes duplicates, and keeps the first of each.
fn once(named: Vec<Object>) -> Vec<Object> {
    let mut once: Vec<Object> = Vec::new();
    for object in named {
        if !once.contains(&object) {
            once.push(object);
        }
    }
    once
}

/// Returns the objects that the gateway parsed, in the order of the schema's fields.
fn objects(deletion: &Deletion) -> Vec<Object> {
    let object = |doomed: &stowage_gateway::deletion::Doomed| {
        let texts = [
            ("Key", Some(doomed.key.as_str().to_owned())),
            ("VersionId", doomed.version.as_deref().map(str::to_owned)),
            ("ETag", doomed.etag.as_deref().map(str::to_owned)),
            ("LastModifiedTime", doomed.modified.as_deref().map(str::to_owned)),
            ("Size", doomed.size.map(|size| size.to_string())),
        ];
        let mut found: Object = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
        found.sort();
        found
    };
    deletion.objects().iter().map(object).collect()
}

/// Parses the objects of a document with another library; `None` if that rejects it.
fn other_reader(text: &str) -> Option<Vec<Object>> {
    let (mut open, mut objects) = (Vec::new(), Vec::<Object>::new());
    for token in Tokenizer::from(text) {
        match token.ok()? {
            Token::ElementStart { local, .. } => {
                match open.len() {
                    1 if local.as_str() == "Object" => objects.push(Object::new()),
                    2 => objects.last_mut()?.push((local.as_str().to_owned(), String::new())),
                    depth => assert!(depth < 3, "an element in a text was let through"),
                }
                open.push(local.as_str());
            }
            Token::ElementEnd { end: ElementEnd::Empty, .. } => {
                open.pop()?;
            }
            Token::ElementEnd { end: ElementEnd::Close(_, local), .. } => {
                (open.pop()? == local.as_str()).then_some(())?;
            }
            Token::Text { text } if open.len() == 3 => {
                // Line endings are normalized (XML 1.0, 2.11) before references are resolved.
                let lines = text.as_str().replace("\r\n", "\n").replace('\r', "\n");
                objects.last_mut()?.last_mut()?.1.push_str(&super::documents::referred(&lines)?);
            }
            Token::Cdata { text, .. } if open.len() == 3 => {
                let lines = text.as_str().replace("\r\n", "\n").replace('\r', "\n");
                objects.last_mut()?.last_mut()?.1.push_str(&lines);
            }
            Token::DtdStart { .. } | Token::EmptyDtd { .. } => panic!("a document type was let through"),
            Token::Comment { .. } | Token::ProcessingInstruction { .. } => panic!("more than elements was let through"),
            _ => {}
        }
    }
    let number = |(name, text): &mut (String, String)| {
        if name == "Size" {
            *text = text.trim().parse::<u64>().map_or_else(|_| text.clone(), |size| size.to_string());
        }
    };
    objects.iter_mut().flatten().for_each(number);
    objects.iter_mut().for_each(|object| object.sort());
    Some(objects)
}

/// Returns the keys of a document as written, with unresolved references.
fn raw_keys(text: &str) -> Vec<String> {
    let parts = text.split("<Key>").skip(1);
    parts.filter_map(|part| part.split_once("</Key>").map(|(key, _)| key.to_owned())).collect()
}
