//! Quantities of quotas.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};
use stowage_api::{BucketClaim, Bytes, Claim, Quantity, bucket_claim_crd};

use super::names::pattern;

const SUFFIXES: [&str; 12] = ["k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

static QUANTITY: LazyLock<Regex> =
    LazyLock::new(|| pattern("^([0-9]+)(?:[.]([0-9]+))?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"));

/// The definition's pattern of quantities.
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    let definition = serde_json::to_string(&bucket_claim_crd()).expect("a definition is plain data");
    let (_, rule) = definition.split_once("string(self.soft).matches('").expect("there is a rule on it");
    pattern(rule.split_once("')").expect("the call is closed").0)
});

/// Compares a parsed quantity with the definition's pattern, and with a long multiplication.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    assert_eq!(QUANTITY.is_match(text), DEFINED.is_match(text), "{text:?}");
    let bytes = Quantity::Text(text.to_owned()).bytes().ok();
    assert_eq!(bytes.map(Bytes::get), meant(text), "{text:?}");
    if let Some(bytes) = bytes {
        assert_eq!(Quantity::Text(bytes.to_string()).bytes(), Ok(bytes), "{text:?}");
    }
    if let Ok(number) = text.parse::<i64>() {
        let expected = u64::try_from(number).ok().filter(|number| *number <= Bytes::MAX.get());
        assert_eq!(Quantity::Int(number).bytes().ok().map(Bytes::get), expected);
    }
    in_json(text);
    in_a_claim(text, bytes);
}

/// Checks that a JSON value is parsed and serialized as itself, or rejected.
fn in_json(text: &str) {
    let Ok(quantity) = serde_json::from_str::<Quantity>(text) else { return };
    let value: Value = serde_json::from_str(text).expect("a quantity is JSON");
    assert_eq!(serde_json::to_value(&quantity).ok(), Some(value), "{text:?}");
}

/// Checks that a claim's quota has the same value, and that an error names the field.
fn in_a_claim(text: &str, bytes: Option<Bytes>) {
    let raw =
        json!({"metadata": {"name": "photos"}, "spec": {"backendRef": {"name": "main"}, "quota": {"hard": text}}});
    let raw: BucketClaim = serde_json::from_value(raw).expect("a claim");
    match Claim::parse(&raw).desired {
        Ok(desired) => assert_eq!((desired.quota_hard, desired.quota_soft), (bytes, None), "{text:?}"),
        Err(error) => assert_eq!((error.field, bytes), ("spec.quota.hard", None), "{text:?}"),
    }
}

/// Computes the number of bytes: digits times the factor, without the digits after the decimal
/// point, rounded up.
fn meant(text: &str) -> Option<u64> {
    let captures = QUANTITY.captures(text)?;
    let group = |number| captures.get(number).map_or("", |group: regex::Match<'_>| group.as_str());
    let (whole, fraction) = (group(1), group(2));
    let (power, base): (usize, u64) = match SUFFIXES.iter().position(|suffix| *suffix == group(3)) {
        Some(decimal @ 0..6) => (decimal + 1, 1000),
        Some(binary) => (binary - 5, 1024),
        None => (0, 1),
    };
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    for _ in 0..power {
        digits = times(&digits, base);
    }
    let (whole, rest) = digits.split_at(digits.len() - fraction.len());
    let whole = whole.iter().try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add((*digit).into()))?;
    let bytes = whole.checked_add(u128::from(rest.iter().any(|digit| *digit > 0)))?;
    u64::try_from(bytes).ok().filter(|bytes| *bytes <= 7 << 60)
}

/// Multiplies decimal digits, most significant first, by a small number.
fn times(digits: &[u8], factor: u64) -> Vec<u8> {
    let mut product = Vec::with_capacity(digits.len() + 4);
    let mut carried = 0;
    for digit in digits.iter().rev() {
        let sum = u64::from(*digit) * factor + carried;
        product.push((sum % 10) as u8);
        carried = sum / 10;
    }
    while carried > 0 {
        product.push((carried % 10) as u8);
        carried /= 10;
    }
    product.reverse();
    product
}
