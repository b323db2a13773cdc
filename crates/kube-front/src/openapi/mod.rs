//! OpenAPI v3: one document per group version, built from the schemas that validate requests.
//!
//! The paths of a kind contain its verbs and its type; from them `kubectl` learns that the server
//! validates fields. Strategic merge patches are served but not published. So clients with built-in
//! types use their own knowledge of how lists are merged, and other clients use merge patches.

mod schema;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::catalog::Catalog;
use super::resource::{Backing, Resource};

/// The schemas of metadata, with the descriptions from `k8s.io/apimachinery` 0.34.
static METADATA: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("object_meta.json")).expect("a file of this crate is JSON, which its tests read")
});

/// Returns the index: each group version with the path of its document, which contains a hash of
/// the content.
pub(super) fn index<'a>(documents: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let link = |(path, hash): (&str, &str)| {
        (path.to_owned(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}))
    };
    json!({"paths": documents.map(link).collect::<Map<String, Value>>()})
}

/// Returns the document of each group version by its path, such as `apis/apps/v1`.
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

/// Returns the hash of a document, in upper-case hex as in an API server
/// (`kube-openapi/pkg/handler3`).
pub(super) fn hash(document: &[u8]) -> String {
    hex::encode_upper(Sha512::digest(document))
}

fn document(catalog: &Catalog, group: &str, version: &str, server_version: &str) -> Value {
    let (mut paths, mut schemas) = (Map::new(), METADATA.clone());
    for resource in catalog.of(group, version) {
        add_paths(resource, &mut paths);
        let mut schema = schema::of_content(&resource.content);
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

/// Returns the name of a kind's schema: a custom kind's begins with its reversed group, a built-in
/// kind's with its Go package.
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
