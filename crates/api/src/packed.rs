//! Parts of an object written by tenants, each kept in a single allocation until a reconciliation
//! reads it (spec §3.5).
//!
//! A parsed list of maps of strings takes several times its serialized length, and a tenant chooses
//! the number of entries. JSON would be a single allocation too, but its escapes can turn one byte
//! into six.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A packed value. Clones share its memory. Its schema is that of the value.
pub struct Packed<T> {
    content: Content,
    of: PhantomData<fn() -> T>,
}

#[derive(Clone)]
enum Content {
    Whole(Arc<[u8]>),
    Digest([u8; 32]),
}

impl<T> Packed<T> {
    fn whole(bytes: Vec<u8>) -> Self {
        Self { content: Content::Whole(bytes.into()), of: PhantomData }
    }

    /// Returns the number of bytes on the heap.
    pub fn size(&self) -> usize {
        match &self.content {
            Content::Whole(bytes) => bytes.len(),
            Content::Digest(_) => 0,
        }
    }

    /// Replaces a value of more than `most` bytes with its digest.
    pub fn shed(&mut self, most: usize) {
        if self.size() > most {
            self.content = Content::Digest(self.digest());
        }
    }

    fn digest(&self) -> [u8; 32] {
        match &self.content {
            Content::Whole(bytes) => Sha256::digest(bytes).into(),
            Content::Digest(digest) => *digest,
        }
    }

    fn value(&self) -> Option<Value> {
        match &self.content {
            Content::Whole(bytes) => read(&mut bytes.as_ref()),
            Content::Digest(_) => None,
        }
    }
}

impl<T: DeserializeOwned> Packed<T> {
    /// Unpacks the value. Returns `None` if only its digest was kept.
    pub fn get(&self) -> Option<T> {
        T::deserialize(self.value()?).ok()
    }
}

impl<T> Packed<Vec<T>> {
    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.value() == Some(Value::Array(Vec::new()))
    }

    /// Removes the first item that does not fit into `most` bytes, and all items after it.
    pub fn truncate(&mut self, most: usize) {
        let Some(Value::Array(items)) = self.value().filter(|_| self.size() > most) else { return };
        // The header of a list has at most this length.
        let mut room = most.saturating_sub(MOST_HEAD);
        let fits = |item: &Value| {
            let left = room.checked_sub(packed(item).len());
            room = left.unwrap_or(0);
            left.is_some()
        };
        let fitting: Vec<Value> = items.into_iter().take_while(fits).collect();
        *self = Self::whole(packed(&Value::Array(fitting)));
    }
}

impl<T: Serialize> From<&T> for Packed<T> {
    fn from(value: &T) -> Self {
        Self::whole(packed(&serde_json::to_value(value).expect("values that are made here are plain data")))
    }
}

impl<T: Serialize> From<T> for Packed<T> {
    fn from(value: T) -> Self {
        Self::from(&value)
    }
}

impl<T: Serialize + Default> Default for Packed<T> {
    fn default() -> Self {
        Self::from(T::default())
    }
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Self {
        Self { content: self.content.clone(), of: PhantomData }
    }
}

/// A value and its digest are equal.
impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Whole(one), Content::Whole(other)) => one == other,
            (Content::Digest(_), _) | (_, Content::Digest(_)) => self.digest() == other.digest(),
        }
    }
}

impl<T> Eq for Packed<T> {}

impl<T> fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(value) => value.fmt(f),
            None => f.write_str("a digest"),
        }
    }
}

/// Packs the value as received, including enum values that this version does not know.
impl<'de, T: DeserializeOwned> Deserialize<'de> for Packed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        T::deserialize(&value).map_err(D::Error::custom)?;
        Ok(Self::whole(packed(&value)))
    }
}

/// Serialization fails if only a digest was kept.
impl<T> Serialize for Packed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.value().ok_or_else(|| S::Error::custom("only a digest of it is kept"))?;
        value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Packed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Maximum length of a tag and a length, in bytes.
const MOST_HEAD: usize = 11;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const TEXT: u8 = 4;
const LIST: u8 = 5;
const MAP: u8 = 6;

fn packed(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(value, &mut bytes);
    bytes.shrink_to_fit();
    bytes
}

/// Writes a value. Keys are sorted, so that equal values have equal bytes.
fn write(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Null => to.push(NULL),
        Value::Bool(false) => to.push(FALSE),
        Value::Bool(true) => to.push(TRUE),
        Value::Number(number) => {
            to.push(NUMBER);
            write_text(&number.to_string(), to);
        }
        Value::String(text) => {
            to.push(TEXT);
            write_text(text, to);
        }
        Value::Array(items) => {
            to.push(LIST);
            write_length(items.len(), to);
            items.iter().for_each(|item| write(item, to));
        }
        Value::Object(fields) => {
            to.push(MAP);
            write_length(fields.len(), to);
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                write_text(key, to);
                write(value, to);
            }
        }
    }
}

fn write_text(text: &str, to: &mut Vec<u8>) {
    write_length(text.len(), to);
    to.extend_from_slice(text.as_bytes());
}

/// Writes a length with seven bits per byte, least significant first. The eighth bit is set if more
/// bytes follow.
fn write_length(mut length: usize, to: &mut Vec<u8>) {
    while length > 0x7f {
        to.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}

/// Reads a value written by [`write`]; `None` for any other bytes.
fn read(from: &mut &[u8]) -> Option<Value> {
    let (tag, rest) = from.split_first()?;
    *from = rest;
    Some(match *tag {
        NULL => Value::Null,
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        NUMBER => Value::Number(serde_json::from_str(read_text(from)?).ok()?),
        TEXT => Value::String(read_text(from)?.to_owned()),
        LIST => {
            let length = read_length(from)?;
            Value::Array((0..length).map(|_| read(from)).collect::<Option<_>>()?)
        }
        MAP => {
            let length = read_length(from)?;
            let field = |_| Some((read_text(from)?.to_owned(), read(from)?));
            Value::Object((0..length).map(field).collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    })
}

fn read_text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = read_length(from)?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    std::str::from_utf8(text).ok()
}

fn read_length(from: &mut &[u8]) -> Option<usize> {
    let mut length = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        length |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: 3.5.memory.packed
    #[test]
    fn a_value_comes_back_as_it_was_in_no_more_memory_than_its_texts() {
        let text = "\u{1}\n\"ä".repeat(1000);
        let value = json!({"z": [null, true, false, -1, 1.5, u64::MAX], "a": {"text": text, "": []}});
        let one: Packed<Value> = Packed::from(&value);
        assert_eq!(one.get(), Some(value.clone()));
        assert!(one.size() < text.len() + 100, "{} bytes", one.size());
        let other: Packed<Value> = serde_json::from_str(&value.to_string()).expect("a value");
        assert_eq!(one, other);
        assert_eq!(serde_json::to_value(&other).expect("it is whole"), value);
    }

    // covers: 3.5.memory.packed
    #[test]
    fn a_digest_equals_the_value_that_it_was_made_of() {
        let whole: Packed<Vec<String>> = Packed::from(vec!["x".repeat(100)]);
        let mut digest = whole.clone();
        digest.shed(200);
        assert!(digest.get().is_some(), "it is small enough");
        digest.shed(50);
        assert_eq!((digest.get(), digest.size()), (None, 0));
        assert_eq!(digest, whole);
        assert_eq!(digest, digest.clone());
        assert_ne!(digest, Packed::from(vec!["y".repeat(100)]));
        assert!(serde_json::to_value(&digest).is_err());
        assert!(!digest.is_empty() && Packed::<Vec<String>>::default().is_empty());
    }

    // covers: 3.5.memory.packed
    #[test]
    fn of_a_list_the_first_items_are_kept_that_fit() {
        let items: Vec<String> = (0..100).map(|number| format!("{number:098}")).collect();
        let mut cut: Packed<Vec<String>> = Packed::from(&items);
        cut.truncate(1011);
        assert_eq!(cut.get().expect("it is a list"), items[..10]);
        assert!(cut.size() <= 1011);
        let before = cut.clone();
        cut.truncate(1011);
        assert_eq!(cut, before);
    }

    #[test]
    fn what_is_no_packed_value_is_none() {
        for odd in [&[9][..], &[], &[TEXT], &[TEXT, 200], &[LIST, 2, NULL], &[NUMBER, 1, b'x'], &[TEXT, 1, 0xff]] {
            assert_eq!(read(&mut &*odd), None, "{odd:?}");
        }
        assert_eq!(read(&mut [&[LIST][..], &[0xff; 12]].concat().as_slice()), None);
    }
}
