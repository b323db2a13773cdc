//! Schemas in OpenAPI 3 format.

use kube_sim::json::whole_numbers;
use kube_sim::schema::{Additional, Bounds, ListType, Schema, TypeRule};
use serde_json::{Map, Value, json};

use crate::events;
use crate::resource::Content;

/// The name of the schema that every `metadata` refers to.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the schema of a resource's objects. It is built for each call: calls are rare, and the
/// result is large.
pub(super) fn of_content(content: &Content) -> Value {
    match content {
        Content::Anything => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Content::Kind(kind) => of_schema(&kind.schema),
        Content::CoreEvent => of_core_event(),
        Content::Definition(definition, version) => {
            of_definition(&definition["spec"]["versions"][version]["schema"]["openAPIV3Schema"])
        }
    }
}

/// Returns the schema of an event of the core group.
fn of_core_event() -> Value {
    let mut schema = of_schema(&events::core_kind().schema);
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (core, stored) in events::NAMES {
            if let Some(field) = properties.remove(stored) {
                properties.insert(core.to_owned(), field);
            }
        }
    }
    schema
}

/// Returns the schema of a custom resource from its definition, with the type and metadata that an
/// API server adds. Without a schema, or with one that preserves unknown fields and has no
/// properties, only the type is left.
fn of_definition(schema: &Value) -> Value {
    let mut schema = if schema.is_object() { schema.clone() } else { json!({"type": "object"}) };
    whole_numbers(&mut schema);
    if schema["x-kubernetes-preserve-unknown-fields"] == true && !schema["properties"].is_object() {
        return schema;
    }
    add_type(&mut schema);
    embed(&mut schema["properties"]);
    schema
}

/// Adds the type and metadata of a whole object.
fn add_type(schema: &mut Value) {
    let text = |what: &str| json!({"type": "string", "description": what});
    schema["properties"]["apiVersion"] = text(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    );
    schema["properties"]["kind"] = text(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    );
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
    });
}

/// Adds type and metadata to embedded objects.
fn embed(schemas: &mut Value) {
    match schemas {
        Value::Object(fields) => {
            fields.values_mut().for_each(embed);
            if fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
                add_type(schemas);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(embed),
        _ => {}
    }
}

/// Returns the schema of a built-in kind.
fn of_schema(schema: &Schema) -> Value {
    let mut document = node(schema);
    add_type(&mut document);
    document
}

fn node(schema: &Schema) -> Value {
    let mut out = Map::new();
    match schema.type_rule {
        TypeRule::Any => {}
        TypeRule::Only(json_type) => {
            out.insert("type".to_owned(), json_type.name().into());
        }
        TypeRule::IntOrString => {
            out.insert("x-kubernetes-int-or-string".to_owned(), true.into());
        }
    }
    if !schema.properties.is_empty() {
        let properties: Map<String, Value> =
            schema.properties.iter().map(|(name, child)| (name.clone(), node(child))).collect();
        out.insert("properties".to_owned(), properties.into());
    }
    if let Additional::Schema(child) = &schema.additional {
        out.insert("additionalProperties".to_owned(), node(child));
    }
    if let Some(child) = &schema.items {
        out.insert("items".to_owned(), node(child));
    }
    add_checks(schema, &mut out);
    add_structure(schema, &mut out);
    out.into()
}

fn add_checks(schema: &Schema, out: &mut Map<String, Value>) {
    if let Some(format) = &schema.format {
        out.insert("format".to_owned(), format.clone().into());
    }
    if !schema.required.is_empty() {
        out.insert("required".to_owned(), json!(schema.required));
    }
    if !schema.allowed.is_empty() {
        out.insert("enum".to_owned(), json!(schema.allowed));
    }
    if let Some(pattern) = &schema.pattern {
        out.insert("pattern".to_owned(), pattern.text.clone().into());
    }
    if let Some(default) = &schema.default {
        out.insert("default".to_owned(), default.clone());
    }
    let Bounds { min_length, max_length, min_items, max_items, min_properties, max_properties, .. } = schema.bounds;
    for (name, bound) in [
        ("minLength", min_length),
        ("maxLength", max_length),
        ("minItems", min_items),
        ("maxItems", max_items),
        ("minProperties", min_properties),
        ("maxProperties", max_properties),
    ] {
        if let Some(bound) = bound {
            out.insert(name.to_owned(), bound.into());
        }
    }
    for (name, bound) in [("minimum", schema.bounds.minimum), ("maximum", schema.bounds.maximum)] {
        if let Some(bound) = bound {
            out.insert(name.to_owned(), bound.into());
        }
    }
}

fn add_structure(schema: &Schema, out: &mut Map<String, Value>) {
    if schema.preserve_unknown && schema.type_rule != TypeRule::Any {
        out.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    match &schema.list_type {
        ListType::Atomic => {}
        ListType::Set => {
            out.insert("x-kubernetes-list-type".to_owned(), "set".into());
        }
        ListType::Map(keys) => {
            out.insert("x-kubernetes-list-type".to_owned(), "map".into());
            out.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
        }
    }
    if schema.atomic_map {
        out.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
}
