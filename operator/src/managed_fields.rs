//! Removes `metadata.managedFields` from answers of the API server.
//!
//! Nothing here uses the managed fields. But anybody who may write an object can set them, and the
//! server accepts values that the Rust type can't decode: a time in the year 9999, fields nested a
//! thousand deep. One such object of a tenant would make every list that contains it undecodable,
//! and no claim would be reconciled any more. So they are removed from the text before it is
//! decoded.

use std::sync::LazyLock;

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use memchr::memmem::Finder;
use memchr::{memchr2, memrchr};

/// The name in JSON text, with quotes.
const NAME: &[u8] = b"\"managedFields\"";

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));

/// Wraps a body so that each list of managed fields in it is empty.
pub(crate) fn without_managed_fields(
    body: Body,
) -> impl http_body::Body<Data = Bytes, Error = <Body as http_body::Body>::Error> + Send {
    let mut filter = Filter::default();
    body.map_frame(move |frame| frame.map_data(|data| filter.pass(&data)))
}

/// Position of the filter in a JSON text whose pieces may end anywhere.
///
/// Only a list is emptied. An annotation or a key of a Secret may have the same name, but its value
/// is a string.
///
/// Outside of such a list, the filter searches for the name without tracking strings: in JSON, the
/// quoted name is a whole string unless a backslash precedes it.
#[derive(Debug, Default)]
struct Filter {
    /// Bracket depth inside a removed list; 0 outside.
    depth: usize,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Anywhere; in a removed list, between strings.
    #[default]
    Between,
    /// This many bytes of the name matched. After a full match, only a colon and blanks have
    /// followed.
    Name(usize),
    /// In a string of a removed list.
    Text,
    /// After a backslash: the next byte belongs to a string.
    Escaped,
}

impl Filter {
    /// Returns the filtered piece, without a copy if nothing is removed.
    fn pass(&mut self, piece: &Bytes) -> Bytes {
        let mut kept = Vec::new();
        let (mut from, mut at) = (0, 0);
        while at < piece.len() {
            if self.depth == 0 {
                at = self.seek(piece, at);
            } else {
                kept.reserve(piece.len() - from);
                kept.extend_from_slice(&piece[from..at]);
                at = self.skip(piece, at);
                from = at;
            }
        }
        if kept.is_empty() {
            return piece.slice(from..);
        }
        kept.extend_from_slice(&piece[from..]);
        kept.into()
    }

    /// Advances outside of removed lists, and returns the new position.
    fn seek(&mut self, piece: &[u8], at: usize) -> usize {
        let rest = &piece[at..];
        match self.place {
            Place::Name(matched) if matched < NAME.len() => {
                let more = rest.iter().zip(&NAME[matched..]).take_while(|(is, wanted)| is == wanted).count();
                let goes_on = more == rest.len() || matched + more == NAME.len();
                self.place = if goes_on { Place::Name(matched + more) } else { Place::Between };
                at + more
            }
            Place::Name(_) => at + self.open(rest),
            Place::Escaped => {
                self.place = behind(piece[at]);
                at + 1
            }
            Place::Between | Place::Text => self.find(piece, at),
        }
    }

    /// Returns the number of bytes between the name and its value. The opening bracket of a list
    /// counts, because it is kept.
    fn open(&mut self, rest: &[u8]) -> usize {
        let gap = rest.iter().take_while(|byte| matches!(byte, b':' | b' ' | b'\n' | b'\r' | b'\t')).count();
        let Some(first) = rest.get(gap) else { return gap };
        self.place = Place::Between;
        self.depth = usize::from(*first == b'[');
        gap + self.depth
    }

    /// Advances past the first byte of the next possible name, or to the end.
    fn find(&mut self, piece: &[u8], at: usize) -> usize {
        let Some(name) = next_name(&piece[at..]).map(|name| at + name) else {
            self.place = behind(piece[piece.len() - 1]);
            return piece.len();
        };
        if !piece[..name].ends_with(b"\\") {
            self.place = Place::Name(1);
        }
        name + 1
    }

    /// Advances to the bracket that ends the removed list, or to the end.
    fn skip(&mut self, piece: &[u8], mut at: usize) -> usize {
        while at < piece.len() {
            let rest = &piece[at..];
            let next = match self.place {
                Place::Escaped => Some(0),
                Place::Text => memchr2(b'"', b'\\', rest),
                // A plain loop, as there is little text between two strings.
                Place::Between | Place::Name(_) => rest.iter().position(|byte| matches!(byte, b'"' | b'[' | b']')),
            };
            let Some(next) = next else { return piece.len() };
            self.take(rest[next]);
            if self.depth == 0 {
                return at + next;
            }
            at += next + 1;
        }
        at
    }

    /// Handles a significant byte in a removed list.
    fn take(&mut self, byte: u8) {
        self.place = match (&self.place, byte) {
            (Place::Text, b'\\') => Place::Escaped,
            (Place::Text, _) => Place::Between,
            (Place::Escaped, _) | (_, b'"') => Place::Text,
            (_, b'[') => {
                self.depth += 1;
                Place::Between
            }
            _ => {
                self.depth -= 1;
                Place::Between
            }
        };
    }
}

/// Returns the place after this byte outside of removed lists. No name begins right after a
/// backslash.
fn behind(byte: u8) -> Place {
    if byte == b'\\' { Place::Escaped } else { Place::Between }
}

/// Returns the start of the next name in a piece, or of a possible name that the piece's end cuts.
///
/// The name has quotes only at its ends, so only the last quote can begin a cut one.
fn next_name(piece: &[u8]) -> Option<usize> {
    FINDER.find(piece).or_else(|| {
        let tail = piece.len().saturating_sub(NAME.len() - 1);
        memrchr(b'"', &piece[tail..]).map(|quote| tail + quote).filter(|quote| NAME.starts_with(&piece[*quote..]))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn passed(text: &str) -> String {
        let left = Filter::default().pass(&Bytes::copy_from_slice(text.as_bytes()));
        String::from_utf8(left.into()).expect("whole characters")
    }

    #[rstest]
    #[case(
        r#"{"metadata":{"managedFields":[{"time":"9999-12-31T23:59:59Z","f":["]","\"]"]}],"name":"x"}}"#,
        r#"{"metadata":{"managedFields":[],"name":"x"}}"#
    )]
    #[case(r#"{"managedFields" : [ [], {} ] }"#, r#"{"managedFields" : [] }"#)]
    #[case(
        r#"{"items":[{"managedFields":[1]},{"managedFields":[2]}]}"#,
        r#"{"items":[{"managedFields":[]},{"managedFields":[]}]}"#
    )]
    fn the_list_is_emptied(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(passed(text), expected);
    }

    #[rstest]
    #[case(json!({"annotations": {"managedFields": "[1]"}, "finalizers": ["managedFields", "a"], "managedFieldsOf": [1]}))]
    #[case(json!({"\\managedFields": [1], "managedFields\"": [1], "a": "\"managedFields\":[1]"}))]
    #[case(json!(["managedFields", ["managedFields"], [[1]]]))]
    fn whatever_else_bears_the_name_stays(#[case] document: Value) {
        assert_eq!(passed(&document.to_string()), document.to_string());
    }

    #[test]
    fn a_piece_of_which_nothing_is_left_out_is_not_copied() {
        let pieces = [r#"{"managedFields":"x","a":[1]}"#, r#"{"managedFields":["#].map(Bytes::from);
        assert!(pieces.iter().all(|piece| Filter::default().pass(piece).as_ptr() == piece.as_ptr()));
    }

    /// Uses a tenant's Secret as a real API server stores and returns it.
    #[test]
    fn what_the_types_can_not_read_keeps_no_list_from_being_read() {
        use k8s_openapi::api::core::v1::Secret;
        use kube::core::ObjectList;
        let deep = format!("{}{{}}{}", r#"{"f:a":"#.repeat(500), "}".repeat(500));
        let of = |time: &str, fields: &str| {
            format!(r#"{{"metadata":{{"name":"x","managedFields":[{{"time":"{time}","fieldsV1":{fields}}}]}}}}"#)
        };
        for secret in [of("9999-12-31T23:59:59Z", "{}"), of("2026-01-01T00:00:00Z", &deep)] {
            let list = format!(r#"{{"metadata":{{}},"items":[{secret}]}}"#);
            assert!(serde_json::from_str::<ObjectList<Secret>>(&list).is_err(), "else there is no need for this");
            let read: ObjectList<Secret> = serde_json::from_str(&passed(&list)).expect("a list");
            assert_eq!(read.items[0].metadata.name.as_deref(), Some("x"));
        }
    }

    fn documents() -> impl Strategy<Value = Value> {
        let text = prop_oneof![Just("managedFields".to_owned()), r#"[a"\\\[\]:]{0,4}"#];
        let leaf = prop_oneof![any::<i8>().prop_map(Value::from), text.clone().prop_map(Value::from)];
        leaf.prop_recursive(5, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Returns the expected result, computed on the document instead of the text.
    fn emptied(document: Value) -> Value {
        match document {
            Value::Object(map) => {
                let of = |(name, value): (String, Value)| match value {
                    Value::Array(_) if name == "managedFields" => (name, json!([])),
                    other => (name, emptied(other)),
                };
                Value::Object(map.into_iter().map(of).collect())
            }
            Value::Array(items) => items.into_iter().map(emptied).collect(),
            other => other,
        }
    }

    fn in_pieces(text: &[u8], size: usize) -> Vec<u8> {
        let mut filter = Filter::default();
        text.chunks(size).flat_map(|piece| filter.pass(&Bytes::copy_from_slice(piece))).collect()
    }

    proptest! {
        #[test]
        fn a_text_loses_those_lists_and_nothing_else_wherever_its_pieces_end(
            document in documents(),
            pretty: bool,
            size in 1..99_usize,
        ) {
            let text = |document: &Value| if pretty { format!("{document:#}") } else { document.to_string() };
            let kept = String::from_utf8(in_pieces(text(&document).as_bytes(), size));
            prop_assert_eq!(kept, Ok(text(&emptied(document))));
        }

        #[test]
        fn what_is_no_json_is_the_same_too_wherever_its_pieces_end(
            words in prop::collection::vec(prop::sample::select(&["\"managedFields\"", "\"managed", "\\", "\"", ":", "[", "]"]), 0..30),
            size in 1..40_usize,
        ) {
            let text = words.concat();
            prop_assert_eq!(String::from_utf8(in_pieces(text.as_bytes(), size)), Ok(passed(&text)));
        }
    }
}
