//! A parser for the pages of a store's lists. The text is the store's, so only its numbers and its
//! continuation markers are used.

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::uri::{Pair, decode_query};

/// Maximum length of a page in bytes: a thousand keys of a kilobyte each, every byte escaped.
pub const LONGEST_PAGE: usize = 8 << 20;

/// The contents of one page of a list that a scan needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The sum of all sizes.
    pub bytes: u64,
    /// The number of entries with a size.
    pub objects: u64,
    /// The number of versions, including delete markers, and the repeated last version of the page
    /// before.
    pub entries: u64,
    /// Multipart uploads in progress: key and id.
    pub uploads: Vec<(Vec<u8>, Vec<u8>)>,
    /// The parameters of the next page. `None`: it is the last.
    pub next: Option<Vec<Pair>>,
}

/// The continuation markers of each list: the root of its document, and pairs of element and
/// parameter.
const LISTS: [(&str, &[(&str, &str)]); 4] = [
    ("ListMultipartUploadsResult", &[("NextKeyMarker", "key-marker"), ("NextUploadIdMarker", "upload-id-marker")]),
    ("ListPartsResult", &[("NextPartNumberMarker", "part-number-marker")]),
    ("ListVersionsResult", &[("NextKeyMarker", "key-marker"), ("NextVersionIdMarker", "version-id-marker")]),
    ("ListBucketResult", &[("NextContinuationToken", "continuation-token")]),
];

/// The replacement for characters that XML 1.0 can't carry. A list continued from a key with it may
/// continue elsewhere.
const REPLACED: &[u8] = "\u{fffd}".as_bytes();

/// An object's version while it is read.
#[derive(Default)]
struct Version {
    key: String,
    id: String,
    bytes: u64,
}

impl Version {
    /// Returns true if the page before ended with this version: versitygw 1.8.0 begins the next
    /// page with it.
    fn is_repeated(&self, asked: &[Pair]) -> bool {
        let of = |name: &[u8]| asked.iter().find(|pair| pair.name == name).map(|pair| pair.value.as_slice());
        let (Some(key), Some(id)) = (of(b"key-marker"), of(b"version-id-marker")) else { return false };
        let is_key = self.key.as_bytes() == key || decode_query(self.key.as_bytes()).is_some_and(|own| own == key);
        is_key && self.id.as_bytes() == id
    }
}

impl Page {
    /// Counts a version, unless the page before ended with it.
    fn count(&mut self, version: &Version, asked: &[Pair]) -> Option<()> {
        self.entries += 1;
        if !version.is_repeated(asked) {
            self.bytes = self.bytes.checked_add(version.bytes)?;
            self.objects += 1;
        }
        Some(())
    }
}

/// Parses a page of a list with this root, requested with these parameters. Returns `None` if it is
/// not such a page.
#[must_use]
pub fn page(root: &str, asked: &[Pair], document: &[u8]) -> Option<Page> {
    let (_, markers) = LISTS.iter().find(|(name, _)| *name == root)?;
    let mut version = Version::default();
    let mut page = Page::default();
    let mut head: Vec<(String, String)> = Vec::new();
    let (mut key, mut id) = (String::new(), String::new());
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut reader = Reader::from_reader(document);
    let mut is_whole = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                path.push(String::from_utf8(start.local_name().as_ref().to_vec()).ok()?);
                text.clear();
                if path.len() > 16 || path.first().is_some_and(|first| first != root) {
                    return None;
                }
            }
            Event::End(_) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                match names.as_slice() {
                    [_, "Version", "Key"] => version.key = std::mem::take(&mut text),
                    [_, "Version", "VersionId"] => version.id = std::mem::take(&mut text),
                    [_, "Version", "Size"] => version.bytes = text.trim().parse().ok()?,
                    [_, "Version"] => page.count(&std::mem::take(&mut version), asked)?,
                    [_, "DeleteMarker"] => page.entries += 1,
                    [_, "Contents" | "Part", "Size"] => {
                        page.bytes = page.bytes.checked_add(text.trim().parse().ok()?)?;
                        page.objects += 1;
                    }
                    [_, "Upload", "Key"] => key = std::mem::take(&mut text),
                    [_, "Upload", "UploadId"] => id = std::mem::take(&mut text),
                    [_, "Upload"] => page.uploads.push((key.split_off(0).into_bytes(), id.split_off(0).into_bytes())),
                    // Some stores put this after the entries.
                    [_, name] if is_head(name, markers) && head.len() < 64 => {
                        head.push(((*name).to_owned(), std::mem::take(&mut text)));
                    }
                    _ => {}
                }
                text.clear();
                path.pop()?;
                is_whole |= path.is_empty();
            }
            Event::Text(more) => text.push_str(&more.decode().ok()?),
            Event::CData(more) => text.push_str(&more.decode().ok()?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().ok()? {
                Some(c) => text.push(c),
                None => text.push_str(quick_xml::escape::resolve_predefined_entity(&reference.decode().ok()?)?),
            },
            Event::DocType(_) => return None,
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    finish(page, &head, markers).filter(|_| is_whole)
}

/// Returns true for an element with a continuation marker or the encoding of keys.
fn is_head(name: &str, markers: &[(&str, &str)]) -> bool {
    matches!(name, "EncodingType" | "IsTruncated") || markers.iter().any(|(element, _)| *element == name)
}

/// Applies the continuation markers and the encoding of keys to a page.
fn finish(mut page: Page, head: &[(String, String)], markers: &[(&str, &str)]) -> Option<Page> {
    let of = |name: &str| head.iter().find(|(element, _)| element == name).map(|(_, text)| text.as_str());
    let is_encoded = of("EncodingType").is_some_and(|it| it == "url");
    let decoded = |text: &[u8]| if is_encoded { decode_query(text) } else { Some(text.to_vec()) };
    for (key, _) in &mut page.uploads {
        *key = decoded(key)?;
    }
    if of("IsTruncated").is_some_and(|text| text.trim() == "true") {
        let next = markers.iter().filter_map(|(element, parameter)| Some((parameter, of(element)?)));
        let pair = |(name, value): (&&str, &str)| {
            // Tokens are not among the texts that are URL-encoded.
            let value = if name.starts_with("key") { decoded(value.as_bytes())? } else { value.into() };
            Some(Pair { name: name.as_bytes().to_vec(), value })
        };
        let next: Vec<Pair> = next.map(pair).collect::<Option<_>>()?;
        // A truncated list without a marker is invalid.
        page.next = Some(next).filter(|next| next.iter().any(|pair| !pair.value.is_empty()));
        let next = page.next.as_ref()?;
        if next.iter().any(|pair| memchr::memmem::find(&pair.value, REPLACED).is_some()) {
            return None;
        }
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_added_up_and_a_marker_is_decoded() {
        let text = "<?xml version=\"1.0\"?><ListVersionsResult xmlns=\"x\"><IsTruncated>true</IsTruncated>\
            <EncodingType>url</EncodingType><NextKeyMarker>a+b%2B</NextKeyMarker>\
            <NextVersionIdMarker>v+1</NextVersionIdMarker>\
            <Version><Key>a</Key><Size>7</Size><Owner><ID>Size</ID></Owner></Version>\
            <DeleteMarker><Key>a</Key></DeleteMarker><Version><Key>b</Key><Size>5</Size></Version>\
            </ListVersionsResult>";
        let page = page("ListVersionsResult", &[], text.as_bytes()).expect("it is one");
        assert_eq!((page.bytes, page.objects), (12, 2));
        let next: Vec<_> = page.next.expect("it goes on").into_iter().map(|pair| (pair.name, pair.value)).collect();
        assert_eq!(
            next,
            [(b"key-marker".to_vec(), b"a b+".to_vec()), (b"version-id-marker".to_vec(), b"v+1".to_vec())]
        );
    }

    #[test]
    fn what_is_no_page_says_nothing() {
        for text in [
            "",
            "<ListBucketResult>",
            "<html/>",
            "<Error><Code>x</Code></Error>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Size>-1</Size></Contents></ListBucketResult>",
            "<!DOCTYPE a><ListBucketResult></ListBucketResult>",
        ] {
            assert_eq!(page("ListBucketResult", &[], text.as_bytes()), None, "{text}");
        }
        assert_eq!(page("ListBucketResult", &[], b"<ListBucketResult></ListBucketResult>"), Some(Page::default()));
    }

    // covers: 6.quota.scan.whole
    /// versitygw 1.8.0 writes the markers of the next page after the entries.
    #[test]
    fn what_stands_behind_entries_is_read() {
        let lists = [
            ("ListVersionsResult", "<DeleteMarker><Key>a</Key></DeleteMarker>", "NextKeyMarker"),
            ("ListBucketResult", "<Contents><Size>1</Size></Contents>", "NextContinuationToken"),
        ];
        for (root, entry, marker) in lists {
            let entries = entry.repeat(1000);
            let text = format!("<{root}>{entries}<IsTruncated>true</IsTruncated><{marker}>b</{marker}></{root}>");
            let page = page(root, &[], text.as_bytes()).expect("it is one");
            assert_eq!(page.next.map(|next| next.len()), Some(1), "{root}");
        }
    }

    // covers: 6.quota.scan
    #[test]
    fn a_version_that_two_pages_have_counts_once() {
        let text = "<ListVersionsResult><Version><Key>a%20b</Key><VersionId>v1</VersionId><Size>7</Size></Version>\
            <Version><Key>a%20b</Key><VersionId>v0</VersionId><Size>5</Size></Version>\
            <DeleteMarker><Key>c</Key><VersionId>v1</VersionId></DeleteMarker></ListVersionsResult>";
        let pair = |name: &str, value: &str| Pair { name: name.into(), value: value.into() };
        let found = |key: &str, id: &str| {
            let asked = [pair("key-marker", key), pair("version-id-marker", id)];
            let page = page("ListVersionsResult", &asked, text.as_bytes()).expect("it is one");
            (page.bytes, page.objects, page.entries)
        };
        assert_eq!(found("a b", "v1"), (5, 1, 3));
        assert_eq!(found("a%20b", "v0"), (7, 1, 3));
        assert_eq!(found("a b", "v2"), (12, 2, 3));
    }

    // covers: 6.quota.scan.whole
    /// A character that XML 1.0 can't carry is shown as another one, so no list may continue from
    /// it.
    #[test]
    fn a_list_does_not_go_on_from_a_key_that_it_cannot_name() {
        for key in ["\u{fffd}0999", "a%EF%BF%BD"] {
            let text = format!(
                "<ListVersionsResult><IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>\
                 <NextKeyMarker>{key}</NextKeyMarker></ListVersionsResult>"
            );
            assert_eq!(page("ListVersionsResult", &[], text.as_bytes()), None, "{key}");
        }
    }
}
