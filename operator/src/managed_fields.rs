//! Answers of the API server without `metadata.managedFields`.
//!
//! Nothing here asks who wrote which field. But what stands there is for whoever may write an
//! object to choose, and the server takes more than the type for it can read: a time in the year
//! 9999, fields nested a thousand deep. One such object of a tenant would keep every list that it
//! is in from being read, and with that all claims from being served. So it is taken out of the
//! text before anything reads that.

use std::sync::LazyLock;

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use memchr::memmem::Finder;
use memchr::{memchr2, memrchr};

/// As it stands in a text: quotes included.
const NAME: &[u8] = b"\"managedFields\"";

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));

/// A body in which each list of managed fields is empty.
pub(crate) fn without_managed_fields(
    body: Body,
) -> impl http_body::Body<Data = Bytes, Error = <Body as http_body::Body>::Error> + Send {
    let mut filter = Filter::default();
    body.map_frame(move |frame| frame.map_data(|data| filter.pass(&data)))
}

/// Where in a JSON text the filter is. Texts come in pieces, which may end anywhere.
///
/// Only a list is emptied: an annotation, or a key of a Secret, may be called so too, and its value
/// is a string.
///
/// Outside of such a list it goes from name to name and does not know what is a string: in JSON,
/// the name between quotes is a whole string, unless a backslash stands before it.
#[derive(Debug, Default)]
struct Filter {
    /// How many brackets deep it is in a list that is left out; 0 outside of one.
    depth: usize,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Nowhere in particular; in a list that is left out, between strings.
    #[default]
    Between,
    /// So far into the name. Behind all of it, nothing but a colon has come since.
    Name(usize),
    /// In a string of a list that is left out.
    Text,
    /// Behind a backslash: the next byte is part of a string, whichever it is.
    Escaped,
}

impl Filter {
    /// What is left of the next piece: itself, where nothing in it is left out.
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

    /// Goes on outside of the lists that are left out. Where to.
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

    /// Behind the name: how many bytes lead up to what it names. The bracket of a list is one of
    /// them, because it stays.
    fn open(&mut self, rest: &[u8]) -> usize {
        let gap = rest.iter().take_while(|byte| matches!(byte, b':' | b' ' | b'\n' | b'\r' | b'\t')).count();
        let Some(first) = rest.get(gap) else { return gap };
        self.place = Place::Between;
        self.depth = usize::from(*first == b'[');
        gap + self.depth
    }

    /// Goes on to what may be the next name, behind its first byte, or to the end.
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

    /// Goes on to the bracket that ends the list that is left out, or to the end.
    fn skip(&mut self, piece: &[u8], mut at: usize) -> usize {
        while at < piece.len() {
            let rest = &piece[at..];
            let next = match self.place {
                Place::Escaped => Some(0),
                Place::Text => memchr2(b'"', b'\\', rest),
                // It is never far: there is little between one string and the next.
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

    /// A byte that matters in a list that is left out.
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

/// Outside of the lists that are left out, no name begins right behind a backslash.
fn behind(byte: u8) -> Place {
    if byte == b'\\' { Place::Escaped } else { Place::Between }
}

/// Where the name begins next in a piece, or may begin where the piece ends. That has a quote at
/// either end alone: only the last one can have begun it.
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

    /// A tenant's Secret as a real API server stores and shows it.
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

    /// The same, of the document in place of its text.
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
