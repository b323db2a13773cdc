//! One page of a listing by prefix, delimiter, marker and limit, for objects, versions and uploads.

/// Parameters that select a page from a sorted sequence of entries.
pub(super) struct Window<'a> {
    /// Prefix that all keys must have.
    pub(super) prefix: &'a str,
    /// Delimiter. Keys that are equal up to its first occurrence after the prefix become one entry.
    pub(super) delimiter: Option<&'a str>,
    /// End of the previous page. Common prefixes up to and including it are skipped. Keys up to it
    /// must be skipped by the caller, because only it knows the order of versions and uploads of
    /// the same key.
    pub(super) marker: &'a str,
    /// Maximum number of entries, counting keys and common prefixes.
    pub(super) limit: usize,
}

/// Content of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) prefixes: Vec<String>,
    /// Last entry of this page, after which the next page starts; `None` if there is no next page.
    pub(super) next: Option<Last>,
}

/// The last entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Last {
    /// Key of an item, the last of `items`.
    Item(String),
    /// Common prefix.
    Prefix(String),
}

impl Last {
    pub(super) fn into_marker(self) -> String {
        match self {
            Self::Item(key) | Self::Prefix(key) => key,
        }
    }
}

impl Window<'_> {
    /// Returns one page of entries sorted by key.
    ///
    /// With a limit of zero the page is empty and has no next page, as in Amazon S3.
    pub(super) fn page<'k, T>(&self, entries: impl Iterator<Item = (&'k str, T)>) -> Page<T> {
        let mut page = Page { items: Vec::new(), prefixes: Vec::new(), next: None };
        if self.limit == 0 {
            return page;
        }
        let mut last = None;
        for (key, item) in entries {
            let Some(rest) = key.strip_prefix(self.prefix) else { continue };
            let common = self.common_prefix(key, rest);
            if let Some(common) = common
                && (common <= self.marker || page.prefixes.last().is_some_and(|shown| shown == common))
            {
                continue;
            }
            if page.items.len() + page.prefixes.len() == self.limit {
                page.next = last;
                break;
            }
            match common {
                Some(common) => {
                    page.prefixes.push(common.to_owned());
                    last = Some(Last::Prefix(common.to_owned()));
                }
                None => {
                    page.items.push(item);
                    last = Some(Last::Item(key.to_owned()));
                }
            }
        }
        page
    }

    fn common_prefix<'k>(&self, key: &'k str, rest: &str) -> Option<&'k str> {
        let delimiter = self.delimiter.filter(|delimiter| !delimiter.is_empty())?;
        let end = self.prefix.len() + rest.find(delimiter)? + delimiter.len();
        Some(&key[..end])
    }
}

/// Encodes a key for `encoding-type=url`: all characters except unreserved ones and `/`, and a
/// space as `+`, like in a form.
pub(super) fn url_encode(key: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => {
                write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(keys: &[&str], prefix: &str, delimiter: Option<&str>, limit: usize) -> Vec<Vec<String>> {
        let mut marker = String::new();
        let mut pages = Vec::new();
        loop {
            let window = Window { prefix, delimiter, marker: &marker, limit };
            let rest = keys.iter().filter(|key| **key > marker.as_str());
            let page = window.page(rest.map(|key| (*key, (*key).to_owned())));
            let mut shown = page.items.clone();
            shown.extend(page.prefixes.iter().map(|prefix| format!("{prefix}*")));
            shown.sort();
            pages.push(shown);
            match page.next {
                Some(last) => marker = last.into_marker(),
                None => return pages,
            }
        }
    }

    #[test]
    fn keys_of_one_prefix_are_one_entry_across_pages() {
        let keys = ["asdf", "boo/bar", "boo/baz/xyzzy", "cquux/bla", "cquux/thud"];
        assert_eq!(pages(&keys, "", Some("/"), 1), [vec!["asdf"], vec!["boo/*"], vec!["cquux/*"]]);
        assert_eq!(pages(&keys, "boo/", Some("/"), 9), [vec!["boo/bar", "boo/baz/*"]]);
        assert_eq!(pages(&keys, "cq", None, 1), [vec!["cquux/bla"], vec!["cquux/thud"]]);
    }

    #[test]
    fn a_page_that_just_fits_is_the_last() {
        assert_eq!(pages(&["a", "b"], "", None, 2), [vec!["a", "b"]]);
    }

    #[test]
    fn a_limit_of_zero_ends_the_listing() {
        assert_eq!(pages(&["a", "b"], "", None, 0), [Vec::<String>::new()]);
    }

    #[test]
    fn an_empty_delimiter_is_none() {
        assert_eq!(pages(&["a/b"], "", Some(""), 5), [vec!["a/b"]]);
    }

    #[test]
    fn url_encoding_keeps_slashes() {
        assert_eq!(url_encode("a b/ü+"), "a+b/%C3%BC%2B");
    }
}
