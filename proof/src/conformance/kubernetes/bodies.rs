//! Request bodies: valid objects, invalid objects from the table of objects and from this file, and
//! helpers to choose at random.

use std::sync::LazyLock;

use fastrand::Rng;
use serde_json::{Value, json};

use super::call::{Kind, Watch};
use crate::objects::{self, Expected, SecondWrite};

/// A field with the values that it can get.
pub(super) struct Field {
    /// Path to the field.
    pub(super) path: Vec<String>,
    /// Values that accepted objects have.
    good: Vec<Value>,
    /// All values, valid and invalid.
    all: Vec<Value>,
}

impl Field {
    fn new(path: &[&str], good: &Value, bad: &Value) -> Self {
        let list = |values: &Value| values.as_array().cloned().unwrap_or_default();
        let path = path.iter().map(|step| (*step).to_owned()).collect();
        Self { path, good: list(good), all: [list(good), list(bad)].concat() }
    }

    /// Returns a random value, mostly a valid one.
    pub(super) fn value(&self, rng: &mut Rng) -> Value {
        let values = if self.good.is_empty() || rng.u8(..10) < 3 { &self.all } else { &self.good };
        values[rng.usize(..values.len())].clone()
    }

    /// Returns the field as a JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let escaped = self.path.iter().map(|step| step.replace('~', "~0").replace('/', "~1"));
        escaped.fold(String::new(), |path, step| format!("{path}/{step}"))
    }
}

/// Label selector for a sequence's own objects of a kind that is not namespaced.
pub(super) fn own_label(kind: Kind) -> Option<String> {
    (!kind.is_namespaced()).then(|| "in=$(place)".to_owned())
}

/// Full name of an object that a sequence calls by a letter.
pub(super) fn name(kind: Kind, short: &str) -> String {
    if kind.is_namespaced() { short.to_owned() } else { format!("$(place)-{short}") }
}

/// Returns a minimal valid object.
pub(super) fn plain(kind: Kind, name: &str) -> Value {
    let mut object = match kind {
        Kind::BucketClaim => json!({"spec": {"backendRef": {"name": "minio"}}}),
        Kind::S3Backend => json!({"spec": {
            "endpoint": "http://store.example:9000",
            "adminCredentialsSecretRef": {"namespace": "stowage-system", "name": "minio"},
        }}),
        Kind::Secret => json!({"data": {"a": "YQ=="}}),
        Kind::Event => json!({
            "eventTime": "2001-02-03T04:05:06.000000Z", "action": "Bind", "reason": "Bound", "type": "Normal",
            "note": "all is well", "reportingController": "example.io/x", "reportingInstance": "x-1",
            "regarding": {"kind": "Secret", "namespace": "$(namespace)", "name": "a", "apiVersion": "v1"},
        }),
        Kind::Lease => json!({"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}),
        Kind::Namespace => json!({}),
    };
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.as_str().into();
    object["metadata"] = json!({"name": name, "labels": {"in": "$(place)"}});
    object
}

/// Returns the object that marks the end of a watch.
pub(super) fn marker(kind: Kind, name: &str) -> Value {
    let mut object = plain(kind, name);
    for (label, value) in Watch::LABELS {
        object["metadata"]["labels"][label] = value.into();
    }
    object
}

/// Returns an object with up to three random fields set, which may be invalid.
pub(super) fn random(rng: &mut Rng, kind: Kind, name: &str) -> Value {
    let mut object = plain(kind, name);
    for _ in 0..rng.usize(..4) {
        let field = any_field(rng, kind);
        let value = field.value(rng);
        set(&mut object, &field.path, value);
    }
    object
}

/// Returns a random field of the kind, including those of metadata.
pub(super) fn any_field(rng: &mut Rng, kind: Kind) -> &'static Field {
    let own = fields(kind);
    let fields = if own.is_empty() || rng.u8(..10) < 4 { METADATA.as_slice() } else { own };
    &fields[rng.usize(..fields.len())]
}

/// Sets the value at a path and creates the objects on the way.
pub(super) fn set(object: &mut Value, path: &[String], value: Value) {
    let mut at = object;
    for step in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step.as_str()];
    }
    *at = value;
}

/// Returns a random element.
pub(super) fn one<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}

/// Returns a value with this probability in percent.
pub(super) fn maybe<T>(rng: &mut Rng, percent: u8, value: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    (rng.u8(..100) < percent).then(|| value(rng))
}

fn fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::BucketClaim => &CLAIM,
        Kind::S3Backend => &BACKEND,
        Kind::Secret => &SECRET,
        Kind::Event => &EVENT,
        Kind::Lease => &LEASE,
        Kind::Namespace => &[],
    }
}

static METADATA: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let long = "x".repeat(64);
    vec![
        Field::new(&["metadata", "labels", "app"], &json!(["a", "b", ""]), &json!(["-a", long, "a b"])),
        Field::new(&["metadata", "labels", "tier"], &json!(["front", "back"]), &json!([])),
        Field::new(&["metadata", "labels", "exa mple.io/x"], &json!([]), &json!(["a"])),
        Field::new(&["metadata", "annotations", "example.io/note"], &json!(["", "one", "two"]), &json!([])),
        Field::new(&["metadata", "annotations", "/x"], &json!([]), &json!(["one"])),
        Field::new(
            &["metadata", "finalizers"],
            &json!([["example.io/a"], ["example.io/a", "example.io/b"], [], ["example.io/b"]]),
            &json!([["Bad/"], ["example.io/a", "example.io/a"], ["a/b/c"], ["orphan", "foregroundDeletion"]]),
        ),
    ]
});

static SECRET: LazyLock<Vec<Field>> = LazyLock::new(|| {
    vec![
        Field::new(&["data", "a"], &json!(["", "YQ==", "YmM="]), &json!([])),
        Field::new(&["data", "b.c"], &json!(["Yg=="]), &json!([])),
        Field::new(&["data", "not a key"], &json!([]), &json!(["Yg=="])),
        Field::new(&["data", ".."], &json!([]), &json!(["Yg=="])),
        Field::new(&["stringData", "a"], &json!(["text", ""]), &json!([])),
        Field::new(&["stringData", "d"], &json!(["text", "ü"]), &json!([])),
        Field::new(&["type"], &json!(["Opaque", "broker.stowage.io/x", ""]), &json!(["kubernetes.io/tls"])),
        Field::new(&["immutable"], &json!([true, false]), &json!([])),
    ]
});

static LEASE: LazyLock<Vec<Field>> = LazyLock::new(|| {
    vec![
        Field::new(&["spec", "holderIdentity"], &json!(["x", "y"]), &json!([""])),
        Field::new(&["spec", "leaseDurationSeconds"], &json!([1, 15]), &json!([0, -1])),
        Field::new(&["spec", "leaseTransitions"], &json!([0, 1, 7]), &json!([-1])),
        Field::new(
            &["spec", "renewTime"],
            &json!(["2001-02-03T04:05:06.000000Z", "2001-02-03T04:05:07.123456Z"]),
            &json!([]),
        ),
        Field::new(&["spec", "acquireTime"], &json!(["2001-02-03T04:05:06.000000Z"]), &json!([])),
    ]
});

static EVENT: LazyLock<Vec<Field>> = LazyLock::new(|| {
    vec![
        Field::new(&["type"], &json!(["Normal", "Warning"]), &json!(["Strange", ""])),
        Field::new(&["reason"], &json!(["Bound", "Rotated"]), &json!(["", "x".repeat(129)])),
        Field::new(&["action"], &json!(["Bind"]), &json!([""])),
        Field::new(&["note"], &json!(["all is well", ""]), &json!(["x".repeat(1025)])),
        Field::new(&["reportingInstance"], &json!(["x-1"]), &json!(["", "x".repeat(129)])),
        Field::new(&["reportingController"], &json!(["example.io/x"]), &json!(["", "a b"])),
        Field::new(
            &["series"],
            &json!([{"count": 2, "lastObservedTime": "2001-02-03T04:05:06.000000Z"}]),
            &json!([{"count": 1, "lastObservedTime": "2001-02-03T04:05:06.000000Z"}, {"count": 3}]),
        ),
        Field::new(
            &["regarding"],
            &json!([{"kind": "Secret", "namespace": "$(namespace)", "name": "b", "apiVersion": "v1"}]),
            &json!([{"kind": "Node", "name": "n"}]),
        ),
    ]
});

static CLAIM: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let mut fields = of_table(objects::Kind::BucketClaim);
    let condition = |status: &str| json!({"type": "Ready", "status": status, "reason": "Bound", "message": "", "lastTransitionTime": "2001-02-03T04:05:06Z"});
    fields.push(Field::new(
        &["status", "conditions"],
        &json!([[condition("True")], [condition("False")], []]),
        &json!([[condition("Perhaps")], [condition("True"), condition("True")], [{"type": "Ready"}], "none"]),
    ));
    fields.push(Field::new(&["status", "observedGeneration"], &json!([1, 2]), &json!(["one", -2])));
    fields
});

static BACKEND: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let mut fields = of_table(objects::Kind::S3Backend);
    fields.push(Field::new(&["status", "observedGeneration"], &json!([1, 2]), &json!([1.5, {}])));
    fields
});

/// Returns every value that the table of objects has for a field of the spec.
fn of_table(kind: objects::Kind) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for case in objects::cases().into_iter().filter(|case| case.kind == kind) {
        let accepted = matches!(case.expected, Expected::Accepted { .. });
        let later = match &case.then {
            SecondWrite::Nothing => None,
            SecondWrite::Put(object) | SecondWrite::MergePatch(object) => Some(object),
        };
        for object in [Some(&case.create), later].into_iter().flatten() {
            for (name, value) in object["spec"].as_object().into_iter().flatten() {
                let known = fields.iter().position(|field| field.path.last() == Some(name));
                let index = known.unwrap_or_else(|| {
                    fields.push(Field::new(&["spec", name], &json!([]), &json!([])));
                    fields.len() - 1
                });
                let values = if accepted { &mut fields[index].good } else { &mut fields[index].all };
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
        }
    }
    for field in &mut fields {
        let good = field.good.clone();
        field.all.extend(good);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_good_values_and_bad_ones() {
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Namespace) {
            let fields = fields(kind);
            assert!(fields.iter().any(|field| !field.good.is_empty()), "{kind:?}");
            assert!(fields.iter().any(|field| field.all.len() > field.good.len()), "{kind:?}");
            assert!(fields.iter().all(|field| !field.all.is_empty()), "{kind:?}");
        }
    }
}
