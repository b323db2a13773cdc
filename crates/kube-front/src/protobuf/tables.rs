//! The fields of Kubernetes' protobuf messages, read once from `fields.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// Base64 in JSON.
    Bytes,
    Integer,
    Boolean,
    Double,
    /// Precise to the second.
    Time,
    /// Precise to the microsecond.
    MicroTime,
    Quantity,
    IntOrString,
    /// `FieldsV1`, `RawExtension` and `JSON`: a message that contains JSON.
    Json,
    /// A message that contains a list of strings.
    Items,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrTexts,
    /// A message of this name.
    Message(&'static str),
}

/// The cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    /// Entries with a string as key.
    Map,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Name of the field in JSON; `None` if the fields of its message are inlined in the parent.
    pub(super) name: Option<&'static str>,
    pub(super) value: Type,
    pub(super) shape: Shape,
    /// True if an empty value or 0 was set on purpose and is kept (a pointer in Go). Clients write
    /// other fields even if they are empty.
    pub(super) keeps_empty: bool,
}

/// The fields of a message by their numbers.
pub(super) type Message = BTreeMap<u32, Field>;

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| read(include_str!("fields.txt")));

/// Returns the message with this name.
pub(super) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.get(name)
}

/// Returns the message for objects of this type.
pub(super) fn of_type(api_version: &str, kind: &str) -> Option<&'static Message> {
    // Each group has its own delete options, all with the same fields.
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
    // Clients can send objects with metadata, reviews and scales, but no parts of objects.
    let found = message(&format!("{package}.{kind}"))?;
    found.values().any(|field| field.name == Some("metadata")).then_some(found)
}

/// Parses the file's notation; other lines are ignored.
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
