//! The policy of a form, by which the owner of a key allows uploads, and its check against the
//! form.
//!
//! Source: "Creating a POST policy" in Amazon S3's API reference.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::fields::{Form, is_ignored};
use super::refusals::malformed;
use crate::refusal::{Code, Refusal};

/// Maximum length of a policy in Base64.
pub const MAX_POLICY: usize = 20 << 10;
/// Fields that need no condition, besides `x-ignore-*`.
const EXEMPT: [&str; 3] = ["file", "policy", "x-amz-signature"];

/// A parsed policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time at which it expires.
    pub expiration: Timestamp,
    /// The conditions, all of which have to be met.
    pub conditions: Vec<Condition>,
}

/// A condition. Names of fields are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The field has this value.
    Equal(String, String),
    /// The field's value begins with this.
    StartsWith(String, String),
    /// The file has at least and at most this many bytes.
    Length(u64, u64),
}

impl Policy {
    /// Parses a policy from its form field.
    ///
    /// # Errors
    /// `MalformedPOSTRequest` if it is not Base64 of the expected JSON, `EntityTooLarge` beyond
    /// [`MAX_POLICY`].
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_POLICY {
            return Err(Refusal::new(Code::EntityTooLarge, "The policy of the form is longer than 20 KiB."));
        }
        let json = STANDARD.decode(text).map_err(|_| malformed("Invalid Policy: it is not Base64."))?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|_| {
            malformed("Invalid Policy: it has to be JSON with 'expiration' and 'conditions', each of a known form.")
        })?;
        let expiration = expiration(&wire.expiration).ok_or_else(|| {
            malformed("Invalid Policy: Invalid 'expiration' value; expecting YYYY-MM-DDThh:mm:ss.sssZ.")
        })?;
        let mut conditions = Vec::new();
        for condition in wire.conditions {
            match condition {
                WireCondition::Exact(Entries(entries)) => conditions.extend(
                    entries.into_iter().map(|(name, value)| Condition::Equal(name.to_ascii_lowercase(), value)),
                ),
                WireCondition::List(items) => conditions.push(Condition::of_list(items)?),
            }
        }
        Ok(Self { expiration, conditions })
    }

    /// Checks that the policy allows the form for this bucket, apart from the file's length. `key`
    /// is the form's, with the file's name inserted.
    ///
    /// # Errors
    /// `AccessDenied` for a condition that isn't met, and for a field without a condition.
    pub fn check(&self, form: &Form, bucket: &str, key: &str) -> Result<(), Refusal> {
        let value_of = |name: &str| match name {
            "bucket" => bucket,
            "key" => key,
            // A missing field counts as empty.
            other => form.get(other).unwrap_or_default(),
        };
        for condition in &self.conditions {
            let holds = match condition {
                Condition::Equal(name, value) => value_of(name) == value,
                Condition::StartsWith(name, start) => begins(name, value_of(name), start),
                Condition::Length(..) => true,
            };
            if !holds {
                return Err(denied(&format!("Policy Condition failed: {}", condition.text())));
            }
        }
        let names = form.fields().iter().map(|field| field.name.as_str());
        let meant = names.filter(|name| !EXEMPT.contains(name) && !is_ignored(name)).chain(["bucket", "key"]);
        let mut extra = meant.filter(|name| !self.conditions.iter().any(|condition| condition.is_about(name)));
        extra.next().map_or(Ok(()), |name| Err(denied(&format!("Extra input fields: {name}"))))
    }

    /// Checks that the policy allows a file of this length.
    ///
    /// # Errors
    /// `EntityTooSmall` and `EntityTooLarge`.
    pub fn check_length(&self, length: u64) -> Result<(), Refusal> {
        for condition in &self.conditions {
            let Condition::Length(least, most) = *condition else { continue };
            let refuse = |code, message: &'static str, bound: &'static str, limit: u64| {
                let refusal = Refusal::new(code, message).with("ProposedSize", length.to_string());
                Err(refusal.with(bound, limit.to_string()))
            };
            if length < least {
                let message = "Your proposed upload is smaller than the minimum allowed size";
                return refuse(Code::EntityTooSmall, message, "MinSizeAllowed", least);
            }
            if length > most {
                let message = "Your proposed upload exceeds the maximum allowed size";
                return refuse(Code::EntityTooLarge, message, "MaxSizeAllowed", most);
            }
        }
        Ok(())
    }
}

/// Returns true if a value begins with `start`. In a list of content types, each has to.
fn begins(name: &str, value: &str, start: &str) -> bool {
    if name == "content-type" && value.contains(',') {
        value.split(',').all(|one| one.trim().starts_with(start))
    } else {
        value.starts_with(start)
    }
}

pub(super) fn denied(what: &str) -> Refusal {
    Refusal::new(Code::AccessDenied, format!("Invalid according to Policy: {what}"))
}

impl Condition {
    fn of_list(items: Vec<Item>) -> Result<Self, Refusal> {
        const FORM: &str =
            "Invalid Policy: a condition is neither \"eq\", \"starts-with\" nor \"content-length-range\".";
        let items: [Item; 3] = items.try_into().map_err(|_| malformed(FORM))?;
        match items {
            [Item::Text(what), least, most] if what == "content-length-range" => {
                let (Some(least), Some(most)) = (least.number(), most.number()) else { return Err(malformed(FORM)) };
                if least > most {
                    return Err(malformed("Invalid Policy: a content-length-range has no length in it."));
                }
                Ok(Self::Length(least, most))
            }
            [Item::Text(what), Item::Text(name), Item::Text(value)] => {
                let name = name.strip_prefix('$').ok_or_else(|| malformed(FORM))?.to_ascii_lowercase();
                match what.as_str() {
                    "eq" => Ok(Self::Equal(name, value)),
                    "starts-with" => Ok(Self::StartsWith(name, value)),
                    _ => Err(malformed(FORM)),
                }
            }
            _ => Err(malformed(FORM)),
        }
    }

    fn is_about(&self, field: &str) -> bool {
        match self {
            Self::Equal(name, _) | Self::StartsWith(name, _) => name == field,
            Self::Length(..) => false,
        }
    }

    /// Returns the condition as written in a policy.
    fn text(&self) -> String {
        match self {
            Self::Equal(name, value) => format!("[\"eq\", \"${name}\", \"{value}\"]"),
            Self::StartsWith(name, value) => format!("[\"starts-with\", \"${name}\", \"{value}\"]"),
            Self::Length(least, most) => format!("[\"content-length-range\", {least}, {most}]"),
        }
    }
}

/// Parses a time in the only format that Amazon S3 accepts.
fn expiration(text: &str) -> Option<Timestamp> {
    let is_of_form = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    if is_of_form { text.parse().ok() } else { None }
}

/// A policy as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    expiration: String,
    conditions: Vec<WireCondition>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireCondition {
    Exact(Entries),
    List(Vec<Item>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Number(u64),
    Text(String),
}

impl Item {
    /// Returns the number. Some clients write numbers as strings.
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            Self::Text(_) => None,
        }
    }
}

/// All entries of an object. A map would drop one of two with the same name.
struct Entries(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
