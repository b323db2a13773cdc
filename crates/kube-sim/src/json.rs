//! JSON values: serialization, and numbers in the server's notation.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// Serializes a value.
pub fn json_text(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("a JSON value serializes").into()
}

/// Converts numbers without a fraction to integers, like a server.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e18);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
            if let Some(whole) = float.map(|float| float as i64) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Returns an empty object, for patches that start from nothing.
pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}
