//! A second parser of XML documents, with another library than the gateway's.

use xmlparser::{ElementEnd, Token, Tokenizer};

/// The namespace of S3's documents.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
/// Maximum nesting depth of elements in S3's documents.
const DEEPEST: usize = 4;

/// An element with its content: elements, or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) children: Vec<Element>,
    pub(super) text: String,
}

impl Element {
    /// Returns the child elements with this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns a canonical form, independent of the order of an object's fields, and of the
    /// notation of numbers and `Quiet`.
    pub(super) fn meaning(&self) -> String {
        let text = self.text.trim();
        let text = match self.name.as_str() {
            "Size" | "PartNumber" => text.parse::<u64>().map_or_else(|_| text.to_owned(), |it| it.to_string()),
            "Quiet" => text.to_ascii_lowercase(),
            // These normally contain elements, so white space in an empty one is insignificant.
            "Delete" | "Object" | "Part" | "Tag" | "TagSet" => text.to_owned(),
            _ => self.text.clone(),
        };
        let mut parts: Vec<String> = self.children.iter().filter(|it| it.name != "Quiet").map(Self::meaning).collect();
        if self.children.iter().all(|child| child.children.is_empty()) {
            parts.sort();
        }
        let quiet = self.all("Quiet").map(Self::meaning).filter(|text| text.contains("true"));
        parts.extend(quiet);
        format!("<{}>{text:?}{}</>", self.name, parts.concat())
    }
}

/// Parses a document.
///
/// # Errors
/// Fails if it is not well-formed, or has something that no S3 document has: a document type,
/// comments, processing instructions, attributes, text beside elements, or custom entities.
pub(super) fn read(document: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(document).map_err(|_| "a document that is not UTF-8")?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with('\u{feff}') {
        return Err("two byte order marks".to_owned());
    }
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    for token in Tokenizer::from(text) {
        let token = token.map_err(|why| format!("a document that is none: {why}"))?;
        match token {
            Token::Declaration { version, encoding, .. } => {
                let is_utf_8 = encoding.is_none_or(|encoding| encoding.as_str().eq_ignore_ascii_case("utf-8"));
                if version.as_str() != "1.0" || !is_utf_8 {
                    return Err("another version or encoding".to_owned());
                }
            }
            Token::ElementStart { prefix, local, .. } => {
                if root.is_some() || open.len() == DEEPEST || !prefix.is_empty() {
                    return Err(format!("the element {:?}", local.as_str()));
                }
                open.push(Element { name: local.to_string(), ..Element::default() });
            }
            Token::Attribute { prefix, local, value, .. } => {
                let is_root = open.len() == 1 && prefix.is_empty() && local.as_str() == "xmlns";
                if !is_root || value.as_str() != NAMESPACE {
                    return Err(format!("the attribute {:?}", local.as_str()));
                }
            }
            Token::ElementEnd { end: ElementEnd::Open, .. } => {}
            Token::ElementEnd { end: ElementEnd::Close(_, local), .. } => {
                if open.last().is_none_or(|element| element.name != local.as_str()) {
                    return Err(format!("the end of {:?}", local.as_str()));
                }
                close(&mut open, &mut root)?;
            }
            Token::ElementEnd { end: ElementEnd::Empty, .. } => close(&mut open, &mut root)?,
            Token::Text { text } => add(&mut open, &referred(&lines(text.as_str()))?)?,
            Token::Cdata { text, .. } => add(&mut open, &lines(text.as_str()))?,
            Token::Comment { .. } => return Err("a comment".to_owned()),
            Token::ProcessingInstruction { .. } => return Err("an instruction".to_owned()),
            Token::DtdStart { .. }
            | Token::EmptyDtd { .. }
            | Token::EntityDeclaration { .. }
            | Token::DtdEnd { .. } => {
                return Err("a document type".to_owned());
            }
        }
    }
    root.filter(|_| open.is_empty()).ok_or_else(|| "a document without an end".to_owned())
}

/// Normalizes line endings to one character (XML 1.0, 2.11).
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn add(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("a text outside of the root".to_owned()),
    }
    Ok(())
}

/// Closes the innermost open element.
fn close(open: &mut Vec<Element>, root: &mut Option<Element>) -> Result<(), String> {
    let mut element = open.pop().ok_or("an end of nothing")?;
    if !element.children.is_empty() {
        if !element.text.trim().is_empty() {
            return Err(format!("a text between elements of {:?}", element.name));
        }
        element.text.clear();
    }
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
    Ok(())
}

/// Resolves the references in a text.
fn referred(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut resolved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').ok_or("an ampersand")?;
        let number = name.strip_prefix('#').map(|number| match number.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        });
        resolved.push(match (number, name) {
            (Some(Ok(number)), _) => char::from_u32(number).ok_or_else(|| format!("the character {name}"))?,
            (None, "amp") => '&',
            (None, "lt") => '<',
            (None, "gt") => '>',
            (None, "quot") => '"',
            (None, "apos") => '\'',
            _ => return Err(format!("the entity {name}")),
        });
        resolved.push_str(rest);
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_order_of_fields_says_nothing() {
        let one = read(b"<Delete><Quiet>TRUE</Quiet><Object><Key>a</Key><Size> 04 </Size></Object></Delete>").unwrap();
        let other = "<?xml version='1.0'?>\n<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object>\
            <Size>4</Size><Key><![CDATA[a]]></Key></Object><Quiet>true</Quiet></Delete>";
        assert_eq!(one.meaning(), read(other.as_bytes()).unwrap().meaning());
        let key = |key: &str| read(format!("<Object><Key>{key}</Key></Object>").as_bytes()).unwrap().meaning();
        assert_eq!(key("&#46;."), key(".."));
        assert_ne!(key("a"), key("a "));
        assert_ne!(key("a\n"), key("a&#13;"));
    }

    #[test]
    fn the_order_of_objects_says_something() {
        let of = |keys: [&str; 2]| {
            let objects = keys.map(|key| format!("<Object><Key>{key}</Key></Object>")).concat();
            read(format!("<Delete>{objects}</Delete>").as_bytes()).unwrap().meaning()
        };
        assert_ne!(of(["a", "b"]), of(["b", "a"]));
    }

    #[rstest]
    #[case("<!DOCTYPE a><a/>", "a document type")]
    #[case("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "a document type")]
    #[case("<a><!-- b --></a>", "a comment")]
    #[case("<a><?b c?></a>", "an instruction")]
    #[case("<a>&x;</a>", "the entity x")]
    #[case("<a b=\"c\"/>", "the attribute")]
    #[case("<a xmlns=\"b\"/>", "the attribute")]
    #[case("<a><b></a></b>", "the end of")]
    #[case("<a>", "a document")]
    #[case("<a/><a/>", "")]
    #[case("<a>b<c/></a>", "a text between elements")]
    #[case("<?xml version=\"1.1\"?><a/>", "another version or encoding")]
    #[case("<?xml version=\"1.0\" encoding=\"utf-16\"?><a/>", "another version or encoding")]
    #[case("<b:a/>", "the element")]
    #[case("<a><a><a><a><a/></a></a></a></a>", "the element")]
    fn what_is_in_no_document_of_s3_is_seen(#[case] text: &str, #[case] why: &str) {
        let found = read(text.as_bytes()).unwrap_err();
        assert!(found.starts_with(why), "{found}");
    }
}
