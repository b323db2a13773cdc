//! Tables for `kubectl get`, with one row per object.

mod age;
mod built_in;
mod jsonpath;
mod values;
mod workloads;

use jiff::Timestamp;
use kube_sim::meta;
use serde_json::{Value, json};

use super::accept::Include;
use super::resource::{Backing, Column, Resource};

/// The API server's description of the first column.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The options of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// `meta.k8s.io/v1` or an older version.
    pub(super) api_version: &'static str,
    pub(super) include: Include,
    /// The current time, for ages.
    pub(super) now: Timestamp,
}

/// Builds a table of a stored object or list.
pub(super) fn table(resource: &Resource, answer: &Value, form: Form) -> Value {
    let mut table = untitled(resource, answer, form);
    table["columnDefinitions"] = columns(resource);
    table
}

/// Builds a table without the columns, which a watch sends only once.
pub(super) fn untitled(resource: &Resource, answer: &Value, form: Form) -> Value {
    let is_list = answer["items"].is_array() && answer["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let rows: Vec<Value> = match answer["items"].as_array().filter(|_| is_list) {
        Some(items) => items.iter().map(|item| row(resource, item, form)).collect(),
        None => vec![row(resource, answer, form)],
    };
    let mut metadata = json!({});
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        let value = &answer["metadata"][name];
        if !value.is_null() && value != "" {
            metadata[name] = value.clone();
        }
    }
    json!({
        "kind": "Table", "apiVersion": form.api_version, "metadata": metadata, "columnDefinitions": null, "rows": rows,
    })
}

fn columns(resource: &Resource) -> Value {
    let column = |name: &str, column_type: &str, format: &str, description: &str, priority: i64| {
        json!({
            "name": name, "type": column_type, "format": format, "description": description, "priority": priority,
        })
    };
    match &resource.columns {
        Some(custom) => {
            let mut all = vec![column("Name", "string", "name", NAME, 0)];
            all.extend(custom.iter().map(|own| {
                let described = || format!("Custom resource definition column (in JSONPath format): {}", own.json_path);
                let text = if own.description.is_empty() { described() } else { own.description.clone() };
                column(&own.name, &own.column_type, &own.format, &text, own.priority)
            }));
            all.into()
        }
        None => {
            let own = built_in::columns(&resource.group, &resource.plural);
            let all = own.iter().map(|(name, column_type, priority)| {
                let is_name = *name == "Name";
                let (format, text) = if is_name { ("name", NAME) } else { ("", "") };
                column(name, column_type, format, text, *priority)
            });
            all.collect()
        }
    }
}

fn row(resource: &Resource, object: &Value, form: Form) -> Value {
    let cells: Vec<Value> = match &resource.columns {
        Some(custom) => {
            let name = Value::from(meta::name(object));
            std::iter::once(name).chain(custom.iter().map(|column| cell(column, object, form.now))).collect()
        }
        None => built_in::cells(&resource.group, &resource.plural, object, form.now),
    };
    let shown = match form.include {
        Include::None => Value::Null,
        Include::Metadata => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": form.api_version, "metadata": object["metadata"]})
        }
        Include::Object => whole(resource, object),
    };
    json!({"cells": cells, "object": shown})
}

/// Returns an object with its type, in the client's version.
fn whole(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if let Backing::Stored(kind, face) = &resource.backing {
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.clone().into();
        face.outward(kind, &mut object);
    }
    object
}

/// Returns the value of a column of a definition for an object
/// (`apiextensions-apiserver/pkg/registry/customresource/tableconvertor`).
fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(value) = jsonpath::first(&column.json_path, object) else { return Value::Null };
    match (column.column_type.as_str(), value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => "<nil>".into(),
        ("string", other) => other.to_string().into(),
        #[expect(clippy::cast_possible_truncation, reason = "a server cuts it off, too")]
        ("integer", Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)).map_or(Value::Null, Value::from)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", _) => age::of_date(value, now),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::text("string", json!("a"), json!("a"))]
    #[case::empty_text("string", json!(""), json!(""))]
    #[case::a_list_as_text("string", json!(["a", 1]), json!(r#"["a",1]"#))]
    #[case::a_number_as_text("string", json!(3), json!("3"))]
    #[case::an_integer("integer", json!(3.7), json!(3))]
    #[case::no_integer("integer", json!("3"), Value::Null)]
    #[case::a_number("number", json!(3.5), json!(3.5))]
    #[case::a_boolean("boolean", json!(true), json!(true))]
    #[case::a_date("date", json!("1970-01-01T00:00:00Z"), json!("30s"))]
    #[case::no_date("date", json!("soon"), json!("<invalid>"))]
    fn a_cell_is_of_its_column_s_type(#[case] column_type: &str, #[case] value: Value, #[case] expected: Value) {
        let column = Column { column_type: column_type.to_owned(), json_path: ".a".to_owned(), ..Column::default() };
        let now = Timestamp::from_second(30).expect("a time");
        assert_eq!(cell(&column, &json!({"a": value}), now), expected);
    }

    #[test]
    fn what_isn_t_there_has_an_empty_cell() {
        let column = Column { column_type: "string".to_owned(), json_path: ".a".to_owned(), ..Column::default() };
        assert_eq!(cell(&column, &json!({}), Timestamp::UNIX_EPOCH), Value::Null);
    }
}
