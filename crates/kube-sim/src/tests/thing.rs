//! Definition of `Thing`, a custom resource for tests. The tests of `kube-front` use it too.

use serde_json::{Value, json};

/// Returns a definition with an example of every feature that the tests need.
pub(super) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.owner"}, {"jsonPath": ".status.phase"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "x-kubernetes-validations": [{
                        "rule": "self.metadata.name != 'forbidden'",
                        "message": "no thing may be called forbidden",
                    }],
                    "properties": {"spec": spec_schema(), "status": status_schema()},
                }},
            }],
        },
    })
}

fn spec_schema() -> Value {
    json!({
        "type": "object", "required": ["owner"],
        "x-kubernetes-validations": [
            {
                "rule": "has(self.fixed) == has(oldSelf.fixed) && (!has(self.fixed) || self.fixed == oldSelf.fixed)",
                "message": "fixed is immutable", "fieldPath": ".fixed",
            },
            {"rule": "self.low <= self.high", "message": "low must not be above high", "fieldPath": ".low"},
        ],
        "properties": {
            "owner": {"type": "string", "minLength": 1, "maxLength": 10, "pattern": "^[a-z]+$"},
            "fixed": {"type": "string"},
            "policy": {"type": "string", "enum": ["Keep", "Drop"], "default": "Keep"},
            "low": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100, "default": 1},
            "high": {"type": "integer", "default": 10},
            "size": {"x-kubernetes-int-or-string": true},
            "nested": {
                "type": "object", "default": {"mode": "A", "days": 90},
                "properties": {
                    "mode": {"type": "string", "default": "A"},
                    "days": {"type": "integer", "default": 90},
                },
            },
            "names": {
                "type": "array", "maxItems": 3, "x-kubernetes-list-type": "set",
                "items": {"type": "string", "maxLength": 5},
            },
            "plain": {"type": "array", "items": {"type": "string"}},
            "words": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    })
}

fn status_schema() -> Value {
    json!({
        "type": "object", "default": {"observed": -1},
        "properties": {
            "observed": {"type": "integer"},
            "phase": {"type": "string", "enum": ["New", "Done"]},
            "conditions": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object", "required": ["type", "status"],
                    "properties": {
                        "type": {"type": "string"},
                        "status": {"type": "string", "enum": ["True", "False"]},
                        "message": {"type": "string"},
                    },
                },
            },
        },
    })
}
