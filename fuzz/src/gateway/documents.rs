//! Documents from a store. The first line of an input is the access key id that the gateway uses at
//! the store, the second the sizes of the pieces in which the response arrives (`1,5,3`), and the
//! rest the document.

use http::StatusCode;
use stowage_gateway::answer::filter::{StoreError, error};
use stowage_gateway::answer::late::{self, Words};
use stowage_gateway::answer::xml;
use xmlparser::{ElementEnd, Token, Tokenizer};

use super::{pieces, reading, run};
use crate::held::held;

const LOCATION: &str = "http://gateway.example/photos/a&b";

/// Maximum number of an error's elements that are passed on.
const MOST_ELEMENTS: usize = 64;

/// Parses a document as an error, and as the end of a long response.
pub(crate) fn play(input: &[u8]) {
    let (key_id, rest) = reading::split(input, b'\n');
    let (cut, document) = reading::split(rest.unwrap_or_default(), b'\n');
    let (Ok(key_id), Some(document)) = (str::from_utf8(key_id), document) else { return };
    flat(document);
    told(document, key_id);
    run(at_last(document, key_id, &pieces::sizes(cut)));
}

/// Checks that the parsed content is exactly that of the document, in agreement with a second
/// parser, and that it is parsed as the same when it is written again.
fn flat(document: &[u8]) {
    let (read, bytes) = held(|| xml::flat(document));
    assert!(bytes <= 8 * document.len() + 8192, "{bytes} bytes are held of {}", document.len());
    let Some((root, elements)) = read else { return };
    let long = document.len();
    assert!(elements.len() <= MOST_ELEMENTS && elements.iter().map(|(_, text)| text.len()).sum::<usize>() <= long);
    let is_text = str::from_utf8(document).is_ok();
    if let Some(other) = str::from_utf8(document).ok().and_then(other_reader) {
        assert_eq!((&root, &elements), (&other.0, &other.1), "two readers");
    }
    let is_plain = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_text && is_plain(&root) && elements.iter().all(|(name, _)| is_plain(name)) {
        let escaped = |text: &str| text.chars().map(|c| format!("&#{};", u32::from(c))).collect::<String>();
        let inner = |(name, text): &(String, String)| format!("<{name}>{}</{name}>", escaped(text));
        let again = format!("<{root}>{}</{root}>", elements.iter().map(inner).collect::<String>());
        let is_whole = !elements.iter().any(|(_, text)| text.contains('\0'));
        assert!(!is_whole || xml::flat(again.as_bytes()) == Some((root, elements)), "{again}");
    }
}

/// Parses the root and the texts of its children with another library; `None` if that rejects the
/// document, or if it isn't complete.
fn other_reader(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let (mut open, mut root, mut elements) = (Vec::new(), None, Vec::<(String, String)>::new());
    for token in Tokenizer::from(text) {
        match token.ok()? {
            Token::ElementStart { local, .. } => {
                match open.len() {
                    0 => root = Some(local.as_str().to_owned()),
                    1 => elements.push((local.as_str().to_owned(), String::new())),
                    _ => {}
                }
                open.push(local.as_str());
            }
            Token::ElementEnd { end: ElementEnd::Empty, .. } => {
                // The gateway ignores empty elements.
                if open.len() == 2 {
                    elements.pop();
                }
                open.pop()?;
            }
            Token::ElementEnd { end: ElementEnd::Close(_, local), .. } => {
                let is_its_own = open.pop()? == local.as_str();
                is_its_own.then_some(())?;
            }
            Token::Text { text } if open.len() == 2 => elements.last_mut()?.1.push_str(&referred(text.as_str())?),
            Token::Cdata { text, .. } if open.len() == 2 => elements.last_mut()?.1.push_str(text.as_str()),
            Token::DtdStart { .. } | Token::EmptyDtd { .. } => panic!("a document type was let through"),
            _ => {}
        }
    }
    root.filter(|_| open.is_empty()).map(|root| (root, elements))
}

/// Resolves the references in a text.
pub(super) fn referred(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut resolved = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        let number = name.strip_prefix('#').map(|number| match number.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        });
        resolved.push(match (number, name) {
            (Some(number), _) => char::from_u32(number.ok()?)?,
            (None, "amp") => '&',
            (None, "lt") => '<',
            (None, "gt") => '>',
            (None, "quot") => '"',
            (None, "apos") => '\'',
            (None, _) => return None,
        });
        resolved.push_str(rest);
    }
    Some(resolved)
}

/// Checks that an error doesn't contain the gateway's key, and that it is parsed as the same when
/// it is written again.
fn told(document: &[u8], key_id: &str) {
    let found = error(StatusCode::BAD_REQUEST, document, key_id);
    assert_eq!(error(StatusCode::FOUND, document, key_id), StoreError::NotS3);
    let StoreError::Told { code, message, details } = found else { return };
    assert!(code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.') && code.len() <= 64);
    assert!(message.chars().count() <= 1024);
    let ours = ["The store refused the request.", "Access Denied"];
    for text in details.iter().map(|(_, text)| text).chain([&message]) {
        let names_us = text.contains("arn:") || !key_id.is_empty() && text.contains(key_id);
        assert!(!names_us || ours.contains(&text.as_str()), "{text:?} names {key_id:?}");
    }
    let names: Vec<&str> = details.iter().map(|(name, _)| *name).collect();
    for hidden in ["AWSAccessKeyId", "StringToSign", "CanonicalRequest", "HostId", "Endpoint", "Region", "Server"] {
        assert!(!names.contains(&hidden), "{hidden} is told");
    }
    let written = xml::error(&code, &message, &details, "/photos/a", "7F");
    let Some((root, elements)) = xml::flat(written.as_bytes()) else { panic!("{written} can't be read") };
    let read: Vec<&str> = elements.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<&str> = ["Code", "Message"].into_iter().chain(names).chain(["Resource", "RequestId"]).collect();
    assert_eq!((root.as_str(), read), ("Error", expected), "{written}");
}

/// Checks that the end of a long response doesn't depend on how it arrived, and contains neither
/// the gateway's key nor the store's endpoint.
async fn at_last(document: &[u8], key_id: &str, sizes: &[usize]) {
    let words = || Words {
        location: LOCATION.to_owned(),
        resource: "/photos/a".to_owned(),
        request_id: "7F".to_owned(),
        key_id: key_id.to_owned(),
    };
    let mut seen = Vec::new();
    for cut in pieces::cuts(sizes) {
        seen.push(pieces::all(late::body(pieces::body(document, &cut), words())).await);
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "a cut changes it: {seen:?}");
    let (bytes, broken) = &seen[0];
    assert_eq!(*broken, None);
    let Some((root, elements)) = xml::flat(bytes) else {
        assert!(is_nothing(bytes), "it can't be read");
        return;
    };
    if root != "Error" {
        let places = elements.iter().filter(|(name, _)| name == "Location");
        places.for_each(|(_, place)| assert_eq!(place, LOCATION));
    }
}

/// True for a text of white space, with or without an XML declaration.
fn is_nothing(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    text.strip_prefix("<?xml").is_none_or(|rest| rest.split_once("?>").is_some_and(|(_, rest)| rest.is_empty()))
        && (text.is_empty() || text.starts_with("<?xml"))
}
