//! Decoding and encoding of paths and queries.
//!
//! A client's text is decoded once, here, and a store's is encoded from that, here. No library that
//! "normalises" is involved: `a//b` and keys of any bytes are S3 objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use crate::refusal::{Code, Refusal};

/// The characters that SigV4 encodes in a query or a path segment: all but letters, digits and
/// `-._~`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that SigV4 encodes in a whole path: the same, but not the slash.
const ENCODED_IN_PATH: &AsciiSet = &ENCODED.remove(b'/');

/// A decoded query parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Name of the parameter.
    pub name: Vec<u8>,
    /// Value of the parameter; empty if it has none.
    pub value: Vec<u8>,
}

/// Decodes a path.
///
/// # Errors
/// `InvalidURI` if a `%` is not followed by two hexadecimal digits.
pub fn decode_path(path: &str) -> Result<Vec<u8>, Refusal> {
    decode(path.as_bytes())
}

/// Parses the parameters of a query, in order. A `+` is a space, as in Amazon S3 and the stores.
///
/// # Errors
/// `InvalidURI` if a `%` is not followed by two hexadecimal digits.
pub fn parse_query(query: &str) -> Result<Vec<Pair>, Refusal> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let part = |text: &str| decode(text.replace('+', " ").as_bytes());
        Ok(Pair { name: part(name)?, value: part(value)? })
    });
    pairs.collect()
}

/// Decodes a part of a query. Returns `None` if a `%` is not followed by two hexadecimal digits.
#[must_use]
pub fn decode_query(text: &[u8]) -> Option<Vec<u8>> {
    let blanks: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    decode(&blanks).ok()
}

/// Encodes a path for SigV4. Slashes are kept.
#[must_use]
pub fn encode_path(path: &[u8]) -> String {
    percent_encode(path, ENCODED_IN_PATH).to_string()
}

/// Encodes a name or a value of a query, or one segment of a path, for SigV4.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    percent_encode(bytes, ENCODED).to_string()
}

fn decode(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    let is_hex = |at: usize| text.get(at).is_some_and(u8::is_ascii_hexdigit);
    let whole = memchr::memchr_iter(b'%', text).all(|at| is_hex(at + 1) && is_hex(at + 2));
    if !whole {
        return Err(Refusal::new(Code::InvalidURI, "A percent sign in the URI is not followed by two hex digits."));
    }
    Ok(percent_decode(text).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(name: &str, value: &str) -> Pair {
        Pair { name: name.as_bytes().to_vec(), value: value.as_bytes().to_vec() }
    }

    #[test]
    fn a_query_is_decoded_once() {
        let query = parse_query("a=b%2520c&&prefix=x+y%2Bz&acl&=v&eq==").expect("it can be read");
        let expected = [pair("a", "b%20c"), pair("prefix", "x y+z"), pair("acl", ""), pair("", "v"), pair("eq", "=")];
        assert_eq!(query, expected);
    }

    #[test]
    fn a_plus_in_a_path_is_a_plus() {
        assert_eq!(decode_path("/b/a+b%2fc//./..").expect("it can be read"), b"/b/a+b/c//./..");
    }

    #[test]
    fn half_an_escape_is_refused() {
        for text in ["/%", "/%2", "/%zz", "/a%2g", "/%%41"] {
            assert_eq!(decode_path(text).map_err(|refusal| refusal.code), Err(Code::InvalidURI), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode_path(&encode_path(&bytes)).ok(), Some(bytes.clone()));
            let query = format!("k={}", encode(&bytes));
            prop_assert_eq!(parse_query(&query).ok(), Some(vec![Pair { name: b"k".to_vec(), value: bytes }]));
        }
    }
}
