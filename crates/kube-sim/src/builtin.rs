//! The built-in kinds: their schemas, and the rules that aren't in a schema.
//!
//! Served: Secrets, Namespaces, Events (`events.k8s.io/v1`), Leases, and CustomResourceDefinitions
//! for reading. Each rule follows the validation of the API server's own package for the kind
//! (`k8s.io/kubernetes/pkg/apis/{core,events,coordination}`), with its words.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::kind::{Family, Kind, Scope, SelectableField, SharedKind};
use super::meta;
use super::names;
use super::schema::Schema;
use super::status::FieldError;

/// All data of a Secret together, in bytes.
const SECRET_LIMIT: i64 = 1024 * 1024;

/// The schema of `metadata`, the same for every kind.
pub(crate) fn object_meta_schema() -> Schema {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    Schema::own(json!({
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
    }))
}

/// A schema of a built-in kind: the given fields beside type and metadata.
fn built_in_schema(properties: &Value) -> Schema {
    let mut schema = Schema::own(json!({"type": "object", "properties": properties}));
    for name in ["apiVersion", "kind"] {
        schema.properties.insert(name.to_owned(), Schema::own(json!({"type": "string"})));
    }
    schema.properties.insert("metadata".to_owned(), object_meta_schema());
    schema
}

fn kind(family: Family, group: &str, plural: &str, name: &str, scope: Scope, schema: Schema) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        kind: name.to_owned(),
        scope,
        family,
        status_subresource: false,
        selectable: Vec::new(),
        schema,
    }
}

fn selectable(label: &str) -> SelectableField {
    SelectableField { label: label.to_owned(), path: label.split('.').map(str::to_owned).collect() }
}

/// Every built-in kind. Read once in a process.
pub(crate) fn kinds() -> &'static [SharedKind] {
    static KINDS: LazyLock<Vec<SharedKind>> = LazyLock::new(read_kinds);
    &KINDS
}

fn read_kinds() -> Vec<SharedKind> {
    let secret = kind(Family::Secret, "", "secrets", "Secret", Scope::Namespaced, secret_schema());
    let namespace = kind(Family::Namespace, "", "namespaces", "Namespace", Scope::Cluster, namespace_schema());
    let event = kind(Family::Event, "events.k8s.io", "events", "Event", Scope::Namespaced, event_schema());
    let lease = kind(Family::Lease, "coordination.k8s.io", "leases", "Lease", Scope::Namespaced, lease_schema());
    let definition = kind(
        Family::Definition,
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        Scope::Cluster,
        built_in_schema(&json!({
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        })),
    );
    vec![
        Arc::new(Kind { selectable: vec![selectable("type")], ..secret }),
        Arc::new(Kind { status_subresource: true, selectable: vec![selectable("status.phase")], ..namespace }),
        Arc::new(Kind {
            selectable: ["reason", "type", "regarding.kind", "regarding.name", "regarding.namespace", "regarding.uid"]
                .map(selectable)
                .to_vec(),
            ..event
        }),
        Arc::new(lease),
        Arc::new(definition),
    ]
}

fn secret_schema() -> Schema {
    built_in_schema(&json!({
        "type": {"type": "string"},
        "immutable": {"type": "boolean"},
        "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        "stringData": {"type": "object", "additionalProperties": {"type": "string"}},
    }))
}

fn namespace_schema() -> Schema {
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

fn event_schema() -> Schema {
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

fn lease_schema() -> Schema {
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

/// Does to a decoded object what the kind's own defaults and conversions do.
pub(crate) fn normalize(kind: &Kind, object: &mut Value) {
    fill_in_structs(kind, object);
    match kind.family {
        Family::Secret => normalize_secret(object),
        // A name that is generated comes too late for this; `prepare` looks after that.
        Family::Namespace if !meta::name(object).is_empty() => label_namespace(object),
        // An empty text is none.
        Family::Event => {
            if let Some(fields) = object.as_object_mut() {
                fields.retain(|_, field| field != "");
            }
        }
        _ => {}
    }
}

/// Whether [`fill_in_structs`] or [`omit_empty`] may change the object.
pub(crate) fn has_own_form(kind: &Kind, object: &Value) -> bool {
    match kind.family {
        Family::Lease | Family::Namespace | Family::Event => true,
        Family::Secret => object["data"].as_object().is_some_and(Map::is_empty),
        Family::Custom | Family::Definition => false,
    }
}

/// Puts in the structs and times that objects of a built-in kind have even when they are empty: no `omitempty` takes
/// them away.
pub(crate) fn fill_in_structs(kind: &Kind, object: &mut Value) {
    let structs: &[&str] = match kind.family {
        Family::Lease => &["spec"],
        Family::Namespace => &["spec", "status"],
        Family::Event => &["regarding", "deprecatedSource"],
        Family::Custom | Family::Secret | Family::Definition => &[],
    };
    for name in structs.iter().filter(|name| object[**name].is_null()).collect::<Vec<_>>() {
        object[*name] = json!({});
    }
    if kind.family == Family::Event {
        // Times that are not pointers are written even if they are none.
        for name in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
            let time = object[name].take();
            object[name] = time;
        }
    }
}

/// Takes away what a server leaves out of what it writes: data without a key. The rules tell it from none.
pub(crate) fn omit_empty(kind: &Kind, object: &mut Value) {
    if kind.family == Family::Secret
        && object["data"] == json!({})
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("data");
    }
}

/// Sets what only the server sets, for a create (`old` absent) or an update.
pub(crate) fn prepare(kind: &Kind, object: &mut Value, old: Option<&Value>) {
    if kind.family == Family::Namespace {
        prepare_namespace(object, old);
    }
}

fn normalize_secret(object: &mut Value) {
    use base64::Engine as _;
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = fields.remove("stringData").filter(|texts| *texts != json!({})) {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        for (key, text) in texts {
            let bytes = text.as_str().unwrap_or_default();
            data[key] = base64::engine::general_purpose::STANDARD.encode(bytes).into();
        }
    }
    let untyped = fields.get("type").and_then(Value::as_str).is_none_or(str::is_empty);
    if untyped {
        fields.insert("type".to_owned(), "Opaque".into());
    }
}

fn prepare_namespace(object: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            label_namespace(object);
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        Some(old) => {
            object["spec"] = old["spec"].clone();
            label_namespace(object);
        }
    }
}

/// Every namespace has its name as a label.
fn label_namespace(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    let labels = meta::metadata_mut(namespace).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name.into();
}

/// The rules of the kind that no schema can say.
pub(crate) fn check(kind: &Kind, object: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    match kind.family {
        Family::Secret => check_secret(object, old, out),
        Family::Event => match old {
            None => check_new_event(object, out),
            Some(old) => check_event_update(object, old, out),
        },
        Family::Lease => check_lease(object, out),
        Family::Custom | Family::Namespace | Family::Definition => {}
    }
}

fn check_secret(object: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        for error in names::data_key(key) {
            out.push(FieldError::invalid(&format!("data[{key}]"), key.as_str(), error));
        }
        // Base64 holds three bytes in four characters.
        size += value.as_str().map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4);
    }
    if i64::try_from(size).unwrap_or(i64::MAX) > SECRET_LIMIT {
        out.push(FieldError::too_long("data", SECRET_LIMIT));
    }
    if object["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"] {
            if object["data"].get(key).is_none() {
                out.push(FieldError::required(&format!("data[{key}]"), ""));
            }
        }
    }
    let Some(old) = old else { return };
    if object["type"] != old["type"] {
        out.push(FieldError::immutable("type", object["type"].clone()));
    }
    if old["immutable"] == Value::Bool(true) {
        let detail = "field is immutable when `immutable` is set";
        if object["immutable"] != Value::Bool(true) {
            out.push(FieldError::forbidden("immutable", detail));
        }
        if object["data"] != old["data"] {
            out.push(FieldError::forbidden("data", detail));
        }
    }
}

fn check_regarding(event: &Value, out: &mut Vec<FieldError>) {
    let regarding = event["regarding"]["namespace"].as_str().unwrap_or_default();
    // Events about cluster-wide objects live in `default`; that the namespaces of other events agree
    // with their objects' isn't checked.
    if regarding.is_empty() && !matches!(meta::namespace(event), "default" | "kube-system") {
        out.push(FieldError::invalid("involvedObject.namespace", "", "does not match event.namespace"));
    }
}

fn check_new_event(event: &Value, out: &mut Vec<FieldError>) {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    check_regarding(event, out);
    if text("eventTime").is_empty() {
        out.push(FieldError::required("eventTime", ""));
    }
    if !matches!(text("type"), "Normal" | "Warning") {
        out.push(FieldError::invalid("type", "", format!("has invalid value: {}", text("type"))));
    }
    check_series(event, out);
    check_texts(event, out);
}

/// What is asked of the texts of events of the new API, which are told by their time.
fn check_texts(event: &Value, out: &mut Vec<FieldError>) {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    if text("eventTime").is_empty() {
        return;
    }
    for field in ["reportingController", "reportingInstance", "action", "reason"] {
        if text(field).is_empty() {
            out.push(FieldError::required(field, ""));
        }
    }
    let controller = text("reportingController");
    for error in names::qualified_name(controller) {
        out.push(FieldError::invalid("reportingController", controller, error));
    }
    for (field, shown, limit) in [
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
        ("note", "message", 1024),
    ] {
        if text(field).len() > limit {
            out.push(FieldError::invalid(shown, "", format!("can have at most {limit} characters")));
        }
    }
}

fn check_series(event: &Value, out: &mut Vec<FieldError>) {
    let series = &event["series"];
    if !series.is_object() {
        return;
    }
    if series["count"].as_i64().is_none_or(|count| count < 2) {
        out.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if !series["lastObservedTime"].is_string() {
        out.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn check_event_update(event: &Value, old: &Value, out: &mut Vec<FieldError>) {
    check_regarding(event, out);
    check_series(event, out);
    check_texts(event, out);
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if event[field] != old[field] {
            let structured = matches!(field, "regarding" | "related" | "eventTime");
            let value = if event[field].is_null() && !structured { "".into() } else { event[field].clone() };
            out.push(FieldError::immutable(shown, value));
        }
    }
}

fn check_lease(lease: &Value, out: &mut Vec<FieldError>) {
    let spec = &lease["spec"];
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        out.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(times) = spec["leaseTransitions"].as_i64().filter(|times| *times < 0) {
        out.push(FieldError::invalid("spec.leaseTransitions", times, "must be greater than or equal to 0"));
    }
}
