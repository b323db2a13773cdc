//! Schemas of the built-in kinds, in the notation of CustomResourceDefinitions.
//!
//! Schemas with few fields are in this file. Those of workloads are in `schemas.json`, where types
//! used by several kinds occur once. They have the fields of Kubernetes 1.33, the list types of
//! server-side apply, and the defaults of the API server, including fields that its types write
//! even if they are empty.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::schema::Schema;
use crate::schema::loader::own;

/// Returns the schema of `metadata`, which is the same for every kind.
pub(crate) fn object_meta_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| own(object_meta()).into());
    SCHEMA.clone()
}

fn object_meta() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"}, "generateName": {"type": "string"}, "namespace": {"type": "string"},
            "selfLink": {"type": "string"}, "uid": {"type": "string"}, "resourceVersion": {"type": "string"},
            "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer"},
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "deletionTimestamp": {"type": "string", "format": "date-time"},
            "labels": texts, "annotations": texts,
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ownerReferences": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object", "x-kubernetes-map-type": "atomic", "required": ["uid"],
                    "properties": {
                        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"},
                        "uid": {"type": "string"}, "controller": {"type": "boolean"},
                        "blockOwnerDeletion": {"type": "boolean"},
                    },
                },
            },
            "managedFields": {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        },
    })
}

/// Returns the schema of a built-in kind: the given fields, type and metadata.
fn built_in_schema(properties: &Value) -> Schema {
    typed(own(json!({"type": "object", "properties": properties})))
}

/// Returns the schema of a built-in kind that preserves unknown fields.
pub(super) fn open_schema(properties: &Value) -> Schema {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    typed(own(open))
}

/// Adds type and metadata to a schema.
fn typed(mut schema: Schema) -> Schema {
    for name in ["apiVersion", "kind"] {
        schema.properties.insert(name.to_owned(), own(json!({"type": "string"})).into());
    }
    schema.properties.insert("metadata".to_owned(), object_meta_schema());
    schema
}

pub(super) fn secret() -> Schema {
    built_in_schema(&json!({
        "type": {"type": "string"},
        "immutable": {"type": "boolean"},
        "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        "stringData": {"type": "object", "additionalProperties": {"type": "string"}},
    }))
}

pub(super) fn namespace() -> Schema {
    built_in_schema(&json!({
        "spec": {"type": "object", "properties": {
            "finalizers": {"type": "array", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {
            "phase": {"type": "string"},
            "conditions": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
                    "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"},
                }},
            },
        }},
    }))
}

pub(super) fn event() -> Schema {
    let reference = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"},
        "namespace": {"type": "string"}, "uid": {"type": "string"}, "resourceVersion": {"type": "string"},
        "fieldPath": {"type": "string"},
    }});
    built_in_schema(&json!({
        "eventTime": {"type": "string", "format": "date-time", "nullable": true},
        "series": {"type": "object", "properties": {
            "count": {"type": "integer", "format": "int32"},
            "lastObservedTime": {"type": "string", "format": "date-time"},
        }},
        "reportingController": {"type": "string"}, "reportingInstance": {"type": "string"},
        "action": {"type": "string"}, "reason": {"type": "string"}, "note": {"type": "string"},
        "type": {"type": "string"}, "regarding": reference, "related": reference,
        "deprecatedSource": {"type": "object", "properties": {
            "component": {"type": "string"}, "host": {"type": "string"},
        }},
        "deprecatedFirstTimestamp": {"type": "string", "format": "date-time", "nullable": true},
        "deprecatedLastTimestamp": {"type": "string", "format": "date-time", "nullable": true},
        "deprecatedCount": {"type": "integer", "format": "int32"},
    }))
}

pub(super) fn lease() -> Schema {
    built_in_schema(&json!({
        "spec": {"type": "object", "properties": {
            "holderIdentity": {"type": "string"}, "preferredHolder": {"type": "string"},
            "strategy": {"type": "string"},
            "leaseDurationSeconds": {"type": "integer", "format": "int32"},
            "leaseTransitions": {"type": "integer", "format": "int32"},
            "acquireTime": {"type": "string", "format": "date-time"},
            "renewTime": {"type": "string", "format": "date-time"},
        }},
    }))
}

pub(super) fn definition() -> Schema {
    built_in_schema(&json!({
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }))
}

/// Types of `schemas.json` by name.
static TYPES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("schemas.json")).expect("a file of this crate is JSON, which its tests read")
});

/// Returns the schema of a kind in `schemas.json`.
pub(super) fn workload(kind: &str) -> Schema {
    built_in_schema(&resolved(&json!({"$ref": kind}))["properties"])
}

/// Resolves the references in a schema. Keywords next to a reference override those of the type.
pub(super) fn resolved(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut whole = match fields.get("$ref").and_then(Value::as_str) {
                Some("ObjectMeta") => object_meta(),
                Some(name) => resolved(&TYPES[name]),
                None => json!({}),
            };
            for (name, field) in fields.iter().filter(|(name, _)| *name != "$ref") {
                whole[name] = if name == "default" { field.clone() } else { resolved(field) };
            }
            whole
        }
        Value::Array(items) => items.iter().map(resolved).collect(),
        other => other.clone(),
    }
}
