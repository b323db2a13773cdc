//! The canonical request and the string to sign.
//!
//! Source: "Create a signed AWS API request" in AWS's IAM user guide, with S3's exceptions: the
//! path is encoded once and not normalised.

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use ring::digest;

use super::scope::{Scope, stamp};
use super::secret::hex_of;
use crate::uri::{self, Pair};

/// The name of the algorithm in `Authorization` and `X-Amz-Algorithm`.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The parameter with the signature itself, which is not part of the signed text.
pub(super) const SIGNATURE_PARAMETER: &[u8] = b"X-Amz-Signature";

/// The signed parts of a request.
pub(super) struct Canonical<'a> {
    /// HTTP method as it was sent.
    pub method: &'a str,
    /// The decoded path.
    pub path: &'a [u8],
    /// The decoded query, in any order.
    pub query: &'a [Pair],
    /// Headers of the request, including those in `signed`.
    pub headers: &'a HeaderMap,
    /// Names of the signed headers, sorted.
    pub signed: &'a [HeaderName],
    /// The last line: a hash of the body, or a constant in its place.
    pub payload: &'a str,
}

impl Canonical<'_> {
    /// Returns the string to sign for this request at that time.
    pub(super) fn string_to_sign(&self, time: Timestamp, scope: &Scope) -> Vec<u8> {
        let mut out = Vec::with_capacity(192);
        out.extend_from_slice(ALGORITHM.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(&stamp(time));
        out.push(b'\n');
        scope.push_to(&mut out);
        out.push(b'\n');
        out.extend_from_slice(&hex_of(&sha256(&self.text())));
        out
    }

    /// Returns the canonical request, as bytes, because a header's value may not be UTF-8.
    fn text(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(self.method.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(uri::encode_path(self.path).as_bytes());
        out.push(b'\n');
        self.push_query(&mut out);
        out.push(b'\n');
        for name in self.signed {
            out.extend_from_slice(name.as_str().as_bytes());
            out.push(b':');
            for (index, value) in self.headers.get_all(name).iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_trimmed(&mut out, value.as_bytes());
            }
            out.push(b'\n');
        }
        out.push(b'\n');
        push_names(&mut out, self.signed);
        out.push(b'\n');
        out.extend_from_slice(self.payload.as_bytes());
        out
    }

    /// Writes the query, sorted by the encoded names and then by the encoded values.
    fn push_query(&self, out: &mut Vec<u8>) {
        let others = self.query.iter().filter(|pair| pair.name != SIGNATURE_PARAMETER);
        let mut pairs: Vec<_> = others.map(|pair| (uri::encode(&pair.name), uri::encode(&pair.value))).collect();
        pairs.sort_unstable();
        for (index, (name, value)) in pairs.iter().enumerate() {
            if index > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
        }
    }
}

/// Writes the names, separated by semicolons.
pub(super) fn push_names(out: &mut Vec<u8>, names: &[HeaderName]) {
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            out.push(b';');
        }
        out.extend_from_slice(name.as_str().as_bytes());
    }
}

/// Writes a value without leading and trailing blanks, and with each inner run of blanks as one
/// space.
///
/// A tab is a blank too, as in botocore, the Java SDK, MinIO and Ceph. The SDKs for Go and Rust
/// keep tabs.
fn push_trimmed(out: &mut Vec<u8>, value: &[u8]) {
    let mut words = value.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    out.extend_from_slice(words.next().unwrap_or_default());
    for word in words {
        out.push(b' ');
        out.extend_from_slice(word);
    }
}

/// Returns the SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (to, from) in out.iter_mut().zip(digest::digest(&digest::SHA256, bytes).as_ref()) {
        *to = *from;
    }
    out
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn pair(name: &[u8], value: &[u8]) -> Pair {
        Pair { name: name.to_vec(), value: value.to_vec() }
    }

    fn text(path: &[u8], query: &[Pair], headers: &HeaderMap, signed: &[HeaderName]) -> String {
        let canonical = Canonical { method: "GET", path, query, headers, signed, payload: "UNSIGNED-PAYLOAD" };
        canonical.text().escape_ascii().to_string()
    }

    #[test]
    fn names_are_sorted_as_encoded_and_then_values() {
        // Decoded, `\xff` sorts after `z` and `[` after `A`. Encoded, both begin with a percent
        // sign.
        let query = [
            pair(b"z", b""),
            pair(b"a", b"2"),
            pair(b"\xff", b"x"),
            pair(b"A[", b"1"),
            pair(b"AB", b""),
            pair(b"a", b"1 +"),
            pair(b"X-Amz-Signature", b"gone"),
        ];
        let text = text(b"/", &query, &HeaderMap::new(), &[]);
        assert_eq!(text, "GET\\n/\\n%FF=x&A%5B=1&AB=&a=1%20%2B&a=2&z=\\n\\n\\nUNSIGNED-PAYLOAD");
    }

    #[test]
    fn a_path_is_encoded_once_and_not_normalised() {
        let text = text(b"/b//a/../%41 +~\xc3\xa9\xff*'()", &[], &HeaderMap::new(), &[]);
        assert_eq!(text, "GET\\n/b//a/../%2541%20%2B~%C3%A9%FF%2A%27%28%29\\n\\n\\n\\nUNSIGNED-PAYLOAD");
    }

    #[rstest]
    #[case(b"  a   b  ", "a b")]
    #[case(b"a\t \tb", "a b")]
    #[case(b"\"a   b\"", "\\\"a b\\\"")]
    #[case(b"", "")]
    #[case(b"   ", "")]
    #[case(b"\xc3\xa9\xff", "\\xc3\\xa9\\xff")]
    fn values_are_trimmed_and_stay_bytes(#[case] value: &[u8], #[case] expected: &str) {
        let mut out = Vec::new();
        push_trimmed(&mut out, value);
        assert_eq!(out.escape_ascii().to_string(), expected);
    }

    #[test]
    fn values_of_one_name_are_joined() {
        let name = HeaderName::from_static("x-amz-meta-a");
        let mut headers = HeaderMap::new();
        for value in [&b" 1"[..], b"", b"2,  3"] {
            headers.append(name.clone(), HeaderValue::from_bytes(value).expect("a value"));
        }
        headers.append("host", HeaderValue::from_static("h"));
        let text = text(b"/", &[], &headers, &[HeaderName::from_static("host"), name]);
        assert_eq!(text, "GET\\n/\\n\\nhost:h\\nx-amz-meta-a:1,,2, 3\\n\\nhost;x-amz-meta-a\\nUNSIGNED-PAYLOAD");
    }
}
