//! The CustomResourceDefinitions, generated from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::{BucketAccess, BucketClaim, S3Backend};

/// Returns all definitions, in the order in which `stowage-operator crds` prints them.
pub fn crds() -> [CustomResourceDefinition; 3] {
    [bucket_claim_crd(), s3_backend_crd(), bucket_access_crd()]
}

/// Returns the definition of [`BucketAccess`].
pub fn bucket_access_crd() -> CustomResourceDefinition {
    finish(BucketAccess::crd(), &["True", "False", "Unknown"])
}

/// Returns the definition of [`BucketClaim`].
pub fn bucket_claim_crd() -> CustomResourceDefinition {
    finish(BucketClaim::crd(), &["True", "False", "Unknown"])
}

/// Returns the definition of [`S3Backend`].
pub fn s3_backend_crd() -> CustomResourceDefinition {
    finish(S3Backend::crd(), &[])
}

/// Completes a derived definition with the parts that the derive macro cannot express.
///
/// - A default for the status, so that kstatus counts a new object as in progress (spec §1).
/// - Conditions as a list map, so that server-side apply of another condition keeps the operator's.
/// - No `nullable`, because an explicit null is not a valid value.
/// - Descriptions without the line breaks of the source comments.
///
/// `statuses` are the values allowed for the status of a condition. If empty, any value is allowed.
fn finish(crd: CustomResourceDefinition, statuses: &[&str]) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a CRD is plain data");
    let versions =
        value.pointer_mut("/spec/versions").and_then(Value::as_array_mut).expect("the derive makes versions");
    for version in versions {
        let schema = version.pointer_mut("/schema/openAPIV3Schema").expect("the derive makes a schema");
        remove_nullable(schema);
        join_lines(schema);
        let status = &mut schema["properties"]["status"];
        status["default"] = json!({ "observedGeneration": -1 });
        let conditions = &mut status["properties"]["conditions"];
        conditions["x-kubernetes-list-type"] = "map".into();
        conditions["x-kubernetes-list-map-keys"] = json!(["type"]);
        if !statuses.is_empty() {
            conditions["items"]["properties"]["status"]["enum"] = json!(statuses);
        }
    }
    serde_json::from_value(value).expect("still a CRD")
}

/// Joins the lines of each paragraph of a description, because `kubectl explain` wraps lines
/// itself. A blank line still begins a new paragraph.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(description)) = fields.get_mut("description") {
                let paragraphs = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
                *description = paragraphs.collect::<Vec<_>>().join("\n\n");
            }
            fields.values_mut().for_each(join_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        _ => {}
    }
}

fn remove_nullable(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("nullable").is_some_and(Value::is_boolean) {
                fields.remove("nullable");
            }
            fields.values_mut().for_each(remove_nullable);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nullable),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 1.crd.status
    #[test]
    fn nothing_is_nullable_and_the_status_has_its_default() {
        for crd in crds() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("nullable"));
            assert!(text.contains(r#""default":{"observedGeneration":-1}"#));
        }
    }

    /// Collects the descriptions of a schema and of everything in it, each with its path.
    fn descriptions(path: &str, schema: &Value, found: &mut Vec<(String, String)>) {
        let says = schema["description"].as_str().unwrap_or_default();
        found.push((path.to_owned(), says.to_owned()));
        for (name, child) in schema["properties"].as_object().into_iter().flatten() {
            descriptions(&format!("{path}.{name}"), child, found);
        }
        if schema["items"]["properties"].is_object() {
            descriptions(&format!("{path}[]"), &schema["items"], found);
        }
    }

    #[test]
    fn everything_is_described_in_sentences_without_line_breaks() {
        let mut found = Vec::new();
        for crd in crds() {
            let crd = serde_json::to_value(&crd).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            descriptions(crd["spec"]["names"]["kind"].as_str().unwrap(), schema, &mut found);
        }
        assert!(found.len() > 50, "{found:#?}");
        let is_wrong = |says: &str| says.is_empty() || says.contains('\n') || says.contains("Auto-generated");
        found.retain(|(_, says)| is_wrong(says));
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn lines_of_a_description_are_joined_and_paragraphs_are_kept() {
        let mut schema = json!({"items": [{"description": "one\ntwo\n\nthree"}]});
        join_lines(&mut schema);
        assert_eq!(schema["items"][0]["description"], "one two\n\nthree");
    }

    /// Collects the paths of all strings, lists and maps without a maximum.
    fn unbounded(path: &str, schema: &Value, found: &mut Vec<String>) {
        let has = |word: &str| !schema[word].is_null();
        let bounded = match schema["type"].as_str() {
            Some("string") => has("maxLength") || has("enum"),
            Some("array") => has("maxItems"),
            Some("object") if has("additionalProperties") => has("maxProperties"),
            _ => true,
        };
        if !bounded {
            found.push(path.to_owned());
        }
        for (name, child) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(&format!("{path}.{name}"), child, found);
        }
        for word in ["items", "additionalProperties"] {
            if schema[word].is_object() {
                unbounded(&format!("{path}.{word}"), &schema[word], found);
            }
        }
    }

    // covers: 1.crd.bounds
    #[test]
    fn every_list_map_and_string_of_a_spec_has_a_maximum() {
        let mut found = Vec::new();
        for crd in crds() {
            let crd = serde_json::to_value(&crd).unwrap();
            let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            assert!(spec["properties"].is_object());
            unbounded(crd["spec"]["names"]["kind"].as_str().unwrap(), spec, &mut found);
        }
        assert!(found.is_empty(), "{found:#?}");
    }
}
