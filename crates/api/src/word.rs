//! Enum values that this version may not know.
//!
//! The CRD of a newer version allows newer values, and an object with one must still be decoded, if
//! only to be deleted.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of an enum, or one that this version does not know. Its schema is that of the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<T> {
    /// A value that this version knows.
    Known(T),
    /// Any other value. Its text is not kept, because it may be long.
    Unknown,
}

impl<T> Word<T> {
    /// Returns the value, if this version knows it.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(word) => Some(word),
            Self::Unknown => None,
        }
    }
}

impl<T: Default> Default for Word<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let word: StrDeserializer<'_, Error> = text.as_ref().into_deserializer();
        Ok(T::deserialize(word).map_or(Self::Unknown, Self::Known))
    }
}

/// Serialization of an unknown value fails: its text was not kept, and no other value may replace
/// it.
impl<T: Serialize> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(word) => word.serialize(serializer),
            Self::Unknown => Err(serde::ser::Error::custom("a word that this version doesn't know is not kept")),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Word<T> {
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
