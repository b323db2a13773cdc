//! Numbers of bytes in the notation of quota fields (spec §1, `spec.quota`).

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes as written by the user: an integer, or a string such as `1.5Gi` or `500M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Written as a JSON integer.
    Int(i64),
    /// Written as a string.
    Text(String),
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

impl Bytes {
    /// The largest quota: 7Ei.
    pub const MAX: Bytes = Bytes(7 << 60);

    /// Returns the number of bytes.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Error for a string that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number of bytes from 0 to 7Ei, such as 1.5Gi or 500M")]
pub struct InvalidQuantity(pub String);

impl Quantity {
    /// Returns the number of bytes. A fraction of a byte is rounded up.
    ///
    /// # Errors
    /// Returns an error if the quantity is not digits, an optional fraction and an optional suffix
    /// (`Ki…Ei` or `k…E`), or is above 7Ei.
    pub fn bytes(&self) -> Result<Bytes, InvalidQuantity> {
        let text = match self {
            Self::Int(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        };
        parse(&text).ok_or(InvalidQuantity(text))
    }
}

/// Parses digits, an optional fraction and an optional suffix; `None` if `text` is anything else or
/// above 7Ei.
fn parse(text: &str) -> Option<Bytes> {
    let (number, factor) = split_suffix(text);
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (number, ""),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    // A product that overflows is above 7Ei.
    let whole = whole.parse::<u128>().ok()?.checked_mul(factor.into())?;
    u64::try_from(whole.checked_add(part(fraction, factor))?).ok().map(Bytes).filter(|bytes| *bytes <= Bytes::MAX)
}

/// Multiplies `factor` by the fraction with these digits, rounded up.
///
/// This is long multiplication, starting at the last digit, because the number of digits is not
/// bounded by any integer type.
fn part(digits: &str, factor: u64) -> u128 {
    let (carried, rest) = digits.bytes().rev().fold((0, false), |(carried, rest), digit| {
        let product = u128::from(digit - b'0') * u128::from(factor) + carried;
        (product / 10, rest || product % 10 > 0)
    });
    carried + u128::from(rest)
}

fn split_suffix(text: &str) -> (&str, u64) {
    const SUFFIXES: [(&str, u64); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000),
    ];
    SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor))).unwrap_or((text, 1))
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Int(i64),
            Text(String),
        }
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Int(number) => Self::Int(number),
            Raw::Text(text) => Self::Text(text),
        })
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 32 })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // covers: 1.claim.quota, 1.claim.quota.fraction
    #[rstest]
    #[case("0", Some(0))]
    #[case("1", Some(1))]
    #[case("1.5Gi", Some(1_610_612_736))]
    #[case("500M", Some(500_000_000))]
    #[case("0.1", Some(1))]
    #[case("1.0001k", Some(1001))]
    #[case("7Ei", Some(7 << 60))]
    #[case("7.0000000000000001Ei", None)]
    #[case("1.000000000000000000000Ei", Some(1 << 60))]
    #[case("0.333333333333333333333Ei", Some(384_307_168_202_282_326))]
    #[case("0.00000000000000000000000000001k", Some(1))]
    #[case("8Ei", None)]
    #[case("8E", Some(8_000_000_000_000_000_000))]
    #[case("99999999999999999999999999999999", None)]
    #[case("", None)]
    #[case(".5Gi", None)]
    #[case("5.", None)]
    #[case("-1", None)]
    #[case("+1", None)]
    #[case("1e3", None)]
    #[case("1 Gi", None)]
    #[case("Gi", None)]
    fn text_is_read_as_the_crd_reads_it(#[case] text: &str, #[case] bytes: Option<u64>) {
        assert_eq!(Quantity::Text(text.to_owned()).bytes().ok().map(Bytes::get), bytes);
    }

    // covers: 1.claim.quota
    #[test]
    fn an_integer_is_a_number_of_bytes() {
        assert_eq!(Quantity::Int(42).bytes().map(Bytes::get), Ok(42));
        assert!(Quantity::Int(-1).bytes().is_err());
    }
}
