//! OpenAPI v3: one document for each group-version, made of the schemas that requests are checked
//! by.
//!
//! The paths of a kind tell its verbs and its type; `kubectl` reads from them that the server
//! checks fields. Strategic merge patches are served and not published: so clients that know a
//! built-in kind by themselves go by their own knowledge of how its lists are merged, and others
//! use merge patches.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::catalog::{Backing, Catalog, Resource};
use crate::decode::whole_numbers;
use crate::schema::{Additional, Bounds, ListType, Schema, TypeRule};

/// The name of the schema that every `metadata` refers to.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schemas of metadata, with the descriptions of `k8s.io/apimachinery` 0.34.
static METADATA: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("object_meta.json")).expect("a file of this crate is JSON, which its tests read")
});

/// The index: each group-version with the path of its document, by a hash of its content.
pub(super) fn index<'a>(documents: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let link = |(path, hash): (&str, &str)| {
        (path.to_owned(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}))
    };
    json!({"paths": documents.map(link).collect::<Map<String, Value>>()})
}

/// The document of each group-version by its path, such as `apis/apps/v1`.
pub(super) fn documents(catalog: &Catalog, server_version: &str) -> Vec<(String, Value)> {
    let all = catalog
        .groups()
        .into_iter()
        .flat_map(|(group, versions)| versions.into_iter().map(move |version| (group, version)).collect::<Vec<_>>());
    all.map(|(group, version)| (path_of(group, version), document(catalog, group, version, server_version))).collect()
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The hash of a document. In capitals, as a server writes it (`kube-openapi/pkg/handler3`).
pub(super) fn hash(document: &[u8]) -> String {
    hex::encode_upper(Sha512::digest(document))
}

fn document(catalog: &Catalog, group: &str, version: &str, server_version: &str) -> Value {
    let (mut paths, mut schemas) = (Map::new(), METADATA.clone());
    for resource in catalog.of(group, version) {
        add_paths(resource, &mut paths);
        let mut schema = resource.content.schema();
        schema["x-kubernetes-group-version-kind"] = json!([type_of(resource)]);
        schemas.insert(schema_name(resource), schema);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn type_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// The name of a kind's schema: of a custom one its group reversed, of a built-in one its package.
fn schema_name(resource: &Resource) -> String {
    let (version, kind) = (&resource.version, &resource.kind);
    if resource.is_custom() {
        let reversed: Vec<&str> = resource.group.rsplit('.').collect();
        return format!("{}.{version}.{kind}", reversed.join("."));
    }
    let package = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    format!("io.k8s.api.{package}.{version}.{kind}")
}

fn add_paths(resource: &Resource, paths: &mut Map<String, Value>) {
    let base = format!("/{}", path_of(&resource.group, &resource.version));
    let plural = &resource.plural;
    let collection = if resource.namespaced {
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    if matches!(resource.backing, Backing::Review(_)) {
        paths.insert(collection, json!({"post": operation(resource, "post")}));
        return;
    }
    if resource.namespaced {
        paths.insert(format!("{base}/{plural}"), json!({"get": operation(resource, "list")}));
    }
    paths.insert(format!("{collection}/{{name}}"), operations(resource, &["get", "put", "patch", "delete"]));
    for part in &resource.subresources {
        if part.verbs.contains(&"patch") {
            let path = format!("{collection}/{{name}}/{}", part.name);
            paths.insert(path, operations(resource, &["get", "put", "patch"]));
        }
    }
    let mut of_all = operations(resource, &["post", "delete"]);
    of_all["get"] = operation(resource, "list");
    paths.insert(collection, of_all);
}

fn operations(resource: &Resource, methods: &[&str]) -> Value {
    methods.iter().map(|method| ((*method).to_owned(), operation(resource, method))).collect()
}

fn operation(resource: &Resource, method: &str) -> Value {
    let text = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let mut operation = json!({
        "x-kubernetes-group-version-kind": type_of(resource),
        "x-kubernetes-action": method,
        "responses": {"200": {"description": "OK"}},
    });
    if matches!(method, "post" | "put" | "patch") {
        operation["parameters"] = json!([text("dryRun"), text("fieldManager"), text("fieldValidation")]);
    }
    match method {
        "patch" => {
            let types = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
            let content: Map<String, Value> = types.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            operation["requestBody"] = json!({"content": content});
        }
        "post" | "put" => {
            let reference = format!("#/components/schemas/{}", schema_name(resource));
            operation["requestBody"] = json!({"content": {"application/json": {"schema": {"$ref": reference}}}});
        }
        _ => {}
    }
    operation
}

/// The schema of a custom resource as its definition has it, with type and metadata as a server
/// adds them; of one without a schema, or one that keeps everything, nothing but its type.
pub(super) fn of_definition(schema: &Value) -> Value {
    let mut schema = if schema.is_object() { schema.clone() } else { json!({"type": "object"}) };
    whole_numbers(&mut schema);
    if schema["x-kubernetes-preserve-unknown-fields"] == true && !schema["properties"].is_object() {
        return schema;
    }
    add_type(&mut schema);
    embed(&mut schema["properties"]);
    schema
}

/// Type and metadata of a whole object.
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

/// Objects within objects have type and metadata, too.
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

/// The schema of a built-in kind.
pub(super) fn of_schema(schema: &Schema) -> Value {
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
