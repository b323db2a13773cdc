//! Which fields the messages of Kubernetes have: read once from `fields.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What the value of a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// In base64 in JSON.
    Bytes,
    Integer,
    Boolean,
    Double,
    /// To the second.
    Time,
    /// To the microsecond.
    MicroTime,
    Quantity,
    IntOrString,
    /// `FieldsV1`, `RawExtension` and `JSON`: a message around JSON.
    Json,
    /// A message around a list of texts.
    Items,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrTexts,
    /// A message of this name.
    Message(&'static str),
}

/// How often there is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    /// Entries with a text as key.
    Map,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its name in JSON; `None` where its own fields stand in the message that holds it.
    pub(super) name: Option<&'static str>,
    pub(super) value: Type,
    pub(super) shape: Shape,
    /// Whether a value that is empty or 0 was set to that: others are written whatever they are.
    pub(super) keeps_empty: bool,
}

/// The fields of a message by their numbers.
pub(super) type Message = BTreeMap<u32, Field>;

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| read(include_str!("fields.txt")));

/// The message of this name.
pub(super) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.get(name)
}

/// The message that objects of this type are.
pub(super) fn of_type(api_version: &str, kind: &str) -> Option<&'static Message> {
    // Each group has options of its own, which are the same.
    if kind == "DeleteOptions" {
        return message("meta.DeleteOptions");
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let package = match (group, version) {
        ("", "v1") => "core",
        ("autoscaling", "v1") => "autoscaling1",
        ("autoscaling", "v2") => "autoscaling",
        ("autoscaling", _) => return None,
        (group, "v1") => group.strip_suffix(".k8s.io").unwrap_or(group).split('.').next()?,
        _ => return None,
    };
    // What can be sent is an object with metadata, a review or a scale; parts of objects are not.
    let found = message(&format!("{package}.{kind}"))?;
    found.values().any(|field| field.name == Some("metadata")).then_some(found)
}

/// Reads the notation of the file; what isn't in it is not read.
fn read(text: &'static str) -> BTreeMap<&'static str, Message> {
    let mut messages: BTreeMap<&'static str, Message> = BTreeMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => {
                name = line;
                messages.entry(name).or_default();
            }
            Some(line) => {
                if let Some((number, field)) = field(line) {
                    messages.entry(name).or_default().insert(number, field);
                }
            }
        }
    }
    messages
}

fn field(line: &'static str) -> Option<(u32, Field)> {
    let mut words = line.split(' ');
    let (number, name, written) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (shape, written) = match (written.strip_prefix("[]"), written.strip_prefix("{}")) {
        (Some(value), _) => (Shape::List, value),
        (_, Some(value)) => (Shape::Map, value),
        (None, None) => (Shape::One, written),
    };
    let (written, keeps_empty) = written.strip_suffix('?').map_or((written, false), |value| (value, true));
    let value = match written {
        "s" => Type::Text,
        "y" => Type::Bytes,
        "i" => Type::Integer,
        "b" => Type::Boolean,
        "d" => Type::Double,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "intorstring" => Type::IntOrString,
        "json" | "raw" | "fields" => Type::Json,
        "items" => Type::Items,
        "schemaorbool" => Type::SchemaOrBool,
        "schemaorarray" => Type::SchemaOrArray,
        "schemaortexts" => Type::SchemaOrTexts,
        message if message.contains('.') => Type::Message(message),
        _ => return None,
    };
    Some((number, Field { name: Some(name).filter(|name| *name != "^"), value, shape, keeps_empty }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_message_is_there() {
        let lines = include_str!("fields.txt").lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(MESSAGES.values().map(BTreeMap::len).sum::<usize>(), lines);
        for (name, message) in MESSAGES.iter() {
            for field in message.values() {
                if let Type::Message(held) = field.value {
                    assert!(MESSAGES.contains_key(held), "{name} holds {held}");
                }
            }
        }
    }

    #[test]
    fn every_built_in_kind_that_typed_clients_write_is_there() {
        let kinds = kube_sim::builtin::kinds().iter().chain(kube_sim::builtin::inert_kinds());
        let missing: Vec<_> = kinds
            .filter(|kind| of_type(&kind.api_version(), &kind.kind).is_none())
            .map(|kind| kind.kind.as_str())
            .collect();
        assert_eq!(missing, ["CSIDriver", "VolumeAttachment"]);
    }
}
