//! Answers of the API server without `metadata.managedFields`.
//!
//! Nothing here asks who wrote which field. But what stands there is for whoever may write an object to choose, and the server
//! takes more than the type for it can read: a time in the year 9999, fields nested a thousand deep. One such object of a
//! tenant would keep every list that it is in from being read, and with that all claims from being served. So it is taken out
//! of the text before anything reads that.

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;

const NAME: &[u8] = b"managedFields";

/// A body in which each list of managed fields is empty.
pub(crate) fn without_managed_fields(
    body: Body,
) -> impl http_body::Body<Data = Bytes, Error = <Body as http_body::Body>::Error> + Send {
    let mut filter = Filter::default();
    body.map_frame(move |frame| frame.map_data(|data| filter.pass(&data).into()))
}

/// Where in a JSON text the filter is. Texts come in pieces, which may end anywhere.
///
/// Only a list is emptied: an annotation, or a key of a Secret, may be called so too, and its value is a string.
#[derive(Debug, Default)]
struct Filter {
    /// The string that it is in.
    string: Option<Text>,
    /// The last string was the name, and nothing but a colon has come since.
    named: bool,
    /// How many brackets deep it is in a list that is left out; 0 outside of one.
    depth: usize,
}

/// A string that has begun.
#[derive(Debug)]
struct Text {
    /// How much of the name it is so far; none if it is another one.
    matched: Option<usize>,
    /// The next byte is part of it, whichever it is.
    escaped: bool,
}

impl Filter {
    /// What is left of the next piece.
    fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(piece.len());
        kept.extend(piece.iter().copied().filter(|byte| self.keeps(*byte)));
        kept
    }

    fn keeps(&mut self, byte: u8) -> bool {
        let outside = self.depth == 0;
        match &mut self.string {
            Some(text) => {
                if byte == b'"' && !text.escaped {
                    self.named = text.matched == Some(NAME.len());
                    self.string = None;
                } else {
                    text.take(byte);
                }
                outside
            }
            None => self.between(byte, outside),
        }
    }

    /// A byte of no string. The brackets of a list that is left out stay.
    fn between(&mut self, byte: u8, outside: bool) -> bool {
        match byte {
            b'"' => self.string = Some(Text { matched: Some(0), escaped: false }),
            b'[' if self.named || !outside => self.depth += 1,
            b']' if !outside => self.depth -= 1,
            b':' | b' ' | b'\n' | b'\r' | b'\t' => return outside,
            _ => {}
        }
        self.named = false;
        outside || self.depth == 0
    }
}

impl Text {
    fn take(&mut self, byte: u8) {
        self.matched = self.matched.filter(|matched| NAME.get(*matched) == Some(&byte)).map(|matched| matched + 1);
        self.escaped = byte == b'\\' && !self.escaped;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn passed(text: &str) -> String {
        String::from_utf8(Filter::default().pass(text.as_bytes())).expect("whole characters")
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

    proptest! {
        #[test]
        fn a_text_loses_those_lists_and_nothing_else_wherever_its_pieces_end(
            document in documents(),
            pretty: bool,
            size in 1..9_usize,
        ) {
            let text = if pretty { format!("{document:#}") } else { document.to_string() };
            let mut filter = Filter::default();
            let kept: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| filter.pass(piece)).collect();
            prop_assert_eq!(serde_json::from_slice::<Value>(&kept).ok(), Some(emptied(document)));
        }
    }
}
