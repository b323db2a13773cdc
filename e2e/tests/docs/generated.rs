//! Pages generated from the code: their comparison and update, and the page of the API's fields.

use std::fmt::Write as _;
use std::fs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use stowage_operator::api;

use super::{read, root};

/// Environment variable that makes tests rewrite their page.
const UPDATE: &str = "UPDATE_DOCS";

/// Fails unless the page equals the generated text.
pub(super) fn assert_page(path: &str, fresh: &str) {
    if std::env::var_os(UPDATE).is_some() {
        fs::write(root().join(path), fresh).unwrap_or_else(|error| panic!("can't write {path}: {error}"));
        return;
    }
    assert!(read(&root().join(path)) == fresh, "{path} is not what the code says: run this test with {UPDATE}=1");
}

#[test]
fn the_fields_of_the_api_are_those_of_the_definitions() {
    let mut page = String::from(
        "# API\n\nGenerated from the definitions. What becomes of each field is in [the contract](../spec.md), §1.\n",
    );
    for definition in api::crds() {
        write_definition(&definition, &mut page);
    }
    assert_page("docs/reference/api.md", &page);
}

fn write_definition(definition: &CustomResourceDefinition, page: &mut String) {
    let names = &definition.spec.names;
    let short = names.short_names.iter().flatten().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    for version in &definition.spec.versions {
        let _ = write!(
            page,
            "\n## {}\n\n`{}/{}`, {}, plural `{}`",
            names.kind,
            definition.spec.group,
            version.name,
            if definition.spec.scope == "Cluster" { "in no namespace" } else { "in a namespace" },
            names.plural
        );
        if !short.is_empty() {
            let _ = write!(page, ", for short {}", short.join(", "));
        }
        page.push_str(".\n\n| field | type | default | what it is |\n|---|---|---|---|\n");
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        for part in ["spec", "status"] {
            let properties = schema.and_then(|schema| schema.properties.as_ref());
            if let Some(schema) = properties.and_then(|properties| properties.get(part)) {
                write_fields(part, schema, page);
            }
        }
    }
}

/// Writes the fields within a field, parents before children.
fn write_fields(path: &str, schema: &JSONSchemaProps, page: &mut String) {
    let required = schema.required.clone().unwrap_or_default();
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let default = match &field.default {
            Some(value) => format!("`{}`", value.0),
            None if required.contains(name) => "required".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(page, "| `{path}` | {} | {default} | {} |", type_of(field), told(field));
        write_fields(&path, field, page);
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &field.items {
            write_fields(&format!("{path}[]"), item, page);
        }
    }
}

fn type_of(field: &JSONSchemaProps) -> String {
    if let Some(words) = &field.enum_ {
        return words
            .iter()
            .map(|word| format!("`{}`", word.0.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match (field.type_.as_deref(), &field.items) {
        (Some("array"), Some(JSONSchemaPropsOrArray::Schema(item))) => format!("list of {}", type_of(item)),
        (Some(type_), _) => {
            field.format.as_ref().map_or_else(|| type_.to_owned(), |format| format!("{type_} ({format})"))
        }
        (None, _) if field.x_kubernetes_int_or_string == Some(true) => "integer or string".to_owned(),
        (None, _) => "anything".to_owned(),
    }
}

/// Returns the description in the form of a table cell.
fn told(field: &JSONSchemaProps) -> String {
    let text = field.description.as_deref().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
