//! The few documents that the gateway writes, and the few that it reads.

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
/// Maximum number of elements in an error. No store's has more.
const MOST_ELEMENTS: usize = 64;

/// Returns an `<Error>` document.
#[must_use]
pub fn error(code: &str, message: &str, details: &[(&'static str, String)], resource: &str, id: &str) -> String {
    let mut text = format!("{HEAD}<Error>{}{}", element("Code", code), element("Message", message));
    for (name, value) in details {
        text += &element(name, value);
    }
    text += &element("Resource", resource);
    text += &element("RequestId", id);
    text + "</Error>"
}

/// Returns the document of ListBuckets: names, each with its creation time.
#[must_use]
pub fn buckets(buckets: &[(&str, String)], owner: &str) -> String {
    let owner = format!("<Owner>{}{}</Owner>", element("ID", owner), element("DisplayName", owner));
    let entry = |(name, created): &(&str, String)| {
        format!("<Bucket>{}{}</Bucket>", element("Name", name), element("CreationDate", created))
    };
    let entries: String = buckets.iter().map(entry).collect();
    let list = format!("<Buckets>{entries}</Buckets>");
    format!("{HEAD}<ListAllMyBucketsResult xmlns=\"{NAMESPACE}\">{owner}{list}</ListAllMyBucketsResult>")
}

/// Returns the document for a form upload that requests one (Amazon S3, POST Object).
#[must_use]
pub fn post_response(location: &str, bucket: &str, key: &str, etag: &str) -> String {
    let elements = [("Location", location), ("Bucket", bucket), ("Key", key), ("ETag", etag)];
    let elements: String = elements.iter().map(|(name, value)| element(name, value)).collect();
    format!("{HEAD}<PostResponse>{elements}</PostResponse>")
}

/// Returns the document of GetBucketLocation. S3's first region, us-east-1, is empty there.
#[must_use]
pub fn location(region: &str) -> String {
    let region = if region == "us-east-1" { "" } else { region };
    format!("{HEAD}<LocationConstraint xmlns=\"{NAMESPACE}\">{}</LocationConstraint>", escape(region))
}

/// Returns the document of GetBucketAcl and GetObjectAcl: only the owner has access.
#[must_use]
pub fn acl(owner: &str) -> String {
    let account = format!("{}{}", element("ID", owner), element("DisplayName", owner));
    let grantee = format!(
        "<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">{account}</Grantee>"
    );
    let grant = format!("<Grant>{grantee}{}</Grant>", element("Permission", "FULL_CONTROL"));
    format!(
        "{HEAD}<AccessControlPolicy xmlns=\"{NAMESPACE}\"><Owner>{account}</Owner>\
         <AccessControlList>{grant}</AccessControlList></AccessControlPolicy>"
    )
}

fn element(name: &str, value: &str) -> String {
    format!("<{name}>{}</{name}>", escape(printable(value)))
}

/// Replaces characters that XML 1.0 can't carry, even escaped, with question marks.
fn printable(text: &str) -> String {
    let allowed = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    text.chars().map(|c| if allowed(c) && !matches!(c, '\u{fffe}' | '\u{ffff}') { c } else { '?' }).collect()
}

/// Returns the root of a document and the texts of its children, or `None` if it is not a complete
/// document.
#[must_use]
pub fn flat(document: &[u8]) -> Option<(String, Vec<(String, String)>)> {
    let mut reader = Reader::from_reader(document);
    let local = |name: &[u8]| String::from_utf8(name.to_vec()).ok();
    let (mut root, mut depth, mut elements) = (None, 0_usize, Vec::new());
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                let name = local(start.local_name().as_ref())?;
                match depth {
                    0 if root.is_some() => return None,
                    0 => root = Some(name),
                    1 if elements.len() == MOST_ELEMENTS => return None,
                    1 => elements.push((name, String::new())),
                    _ => (),
                }
                depth += 1;
            }
            Event::Empty(start) => match depth {
                0 if root.is_some() => return None,
                0 => root = Some(local(start.local_name().as_ref())?),
                _ => (),
            },
            Event::End(_) => depth = depth.checked_sub(1)?,
            Event::Text(text) if depth == 2 => {
                let text = text.decode().ok()?;
                elements.last_mut()?.1.push_str(&text);
            }
            Event::GeneralRef(reference) if depth == 2 => {
                let text = if let Some(c) = reference.resolve_char_ref().ok()? {
                    c.to_string()
                } else {
                    let name = reference.decode().ok()?;
                    quick_xml::escape::resolve_predefined_entity(&name)?.to_owned()
                };
                elements.last_mut()?.1.push_str(&text);
            }
            Event::CData(text) if depth == 2 => {
                let text = text.decode().ok()?;
                elements.last_mut()?.1.push_str(&text);
            }
            // A document type can redefine entities.
            Event::DocType(_) => return None,
            Event::Eof => break,
            _ => (),
        }
    }
    root.filter(|_| depth == 0).map(|root| (root, elements))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_back() {
        let details = [("HeaderName", "x-amz-acl".to_owned())];
        let text = error("AccessDenied", "a < b & \"c\"\u{1}", &details, "/photos/a", "7F");
        let (root, elements) = flat(text.as_bytes()).expect("it is whole");
        assert_eq!(root, "Error");
        let names: Vec<&str> = elements.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Code", "Message", "HeaderName", "Resource", "RequestId"]);
        assert_eq!(elements.get(1).map(|(_, text)| text.as_str()), Some("a < b & \"c\"?"));
    }

    #[test]
    fn what_is_no_whole_document_says_nothing() {
        let cases = ["", "<Error>", "<Error></Other>", "<html><p></html>", "<!DOCTYPE a><Error/>", "<a/><b/>", "text"];
        for text in cases {
            assert_eq!(flat(text.as_bytes()), None, "{text}");
        }
        let nested = flat(b"<Error><A><Code>x</Code></A><Code>y&#33;</Code></Error>").expect("it is whole");
        assert_eq!(nested.1, [("A".to_owned(), String::new()), ("Code".to_owned(), "y!".to_owned())]);
    }

    #[test]
    fn lists_and_locations() {
        let list = buckets(&[("photos", "2026-01-01T00:00:00Z".to_owned())], "claim");
        assert!(list.contains("<Bucket><Name>photos</Name><CreationDate>2026-01-01T00:00:00Z</CreationDate></Bucket>"));
        assert!(location("us-east-1").ends_with("doc/2006-03-01/\"></LocationConstraint>"));
        assert!(location("eu-1").contains(">eu-1<"));
    }
}
