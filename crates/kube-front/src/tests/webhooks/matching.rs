//! Tests of the matching of requests by webhooks.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, MAPS, answer, map};
use crate::tests::front::{get, post, send};

/// Returns a rule that matches everything, with these fields replaced.
fn rule(but: &Value) -> Value {
    let mut rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    for (field, value) in but.as_object().into_iter().flatten() {
        rule[field] = value.clone();
    }
    json!([rule])
}

/// Cases for the creation of a ConfigMap `one` with the label `a: b` in namespace `ns`.
#[rstest]
#[case(json!({"rules": rule(&json!({}))}), true)]
#[case(json!({"rules": []}), false)]
#[case(json!({"rules": rule(&json!({"operations": ["CREATE"]}))}), true)]
#[case(json!({"rules": rule(&json!({"operations": ["UPDATE", "DELETE", "CONNECT"]}))}), false)]
#[case(json!({"rules": rule(&json!({"apiGroups": ["", "apps"]}))}), true)]
#[case(json!({"rules": rule(&json!({"apiGroups": ["apps"]}))}), false)]
#[case(json!({"rules": rule(&json!({"apiVersions": ["v2", "v1"]}))}), true)]
#[case(json!({"rules": rule(&json!({"apiVersions": ["v2"]}))}), false)]
#[case(json!({"rules": rule(&json!({"resources": ["secrets", "configmaps"]}))}), true)]
#[case(json!({"rules": rule(&json!({"resources": ["secrets"]}))}), false)]
#[case(json!({"rules": rule(&json!({"resources": ["configmaps/*"]}))}), true)]
#[case(json!({"rules": rule(&json!({"resources": ["configmaps/status", "*/scale"]}))}), false)]
#[case(json!({"rules": rule(&json!({"resources": ["*/*"]}))}), true)]
#[case(json!({"rules": rule(&json!({"scope": "Namespaced"}))}), true)]
#[case(json!({"rules": rule(&json!({"scope": "Cluster"}))}), false)]
#[case(json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ns"}}}), true)]
#[case(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}), false)]
#[case(json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}), true)]
#[case(json!({"objectSelector": {"matchLabels": {"a": "b"}}}), true)]
#[case(json!({"objectSelector": {"matchLabels": {"a": "c"}}}), false)]
#[case(json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}}), false)]
#[case(json!({"matchConditions": [{"name": "n", "expression": "object.metadata.name == 'one'"}]}), true)]
#[case(json!({"matchConditions": [{"name": "n", "expression": "request.userInfo.username == 'bob'"}]}), false)]
#[case(json!({"matchConditions": [
    {"name": "n", "expression": "object.no.such"}, {"name": "m", "expression": "request.operation == 'DELETE'"}]}), false)]
#[case(json!({"failurePolicy": "Ignore", "matchConditions": [{"name": "n", "expression": "object.no.such"}]}), false)]
#[tokio::test]
async fn a_webhook_is_asked_about(#[case] webhook: Value, #[case] is_asked: bool) {
    for sort in ["Mutating", "Validating"] {
        let bench = Bench::saying(json!({"allowed": true})).await;
        bench.configure(sort, "first", &webhook).await;
        let mut object = map("one");
        object["metadata"]["labels"] = json!({"a": "b"});
        let made = post(&bench.front, MAPS, &object).await;
        assert_eq!(made.code, 201, "{}", made.json());
        assert_eq!(bench.requests().len(), usize::from(is_asked), "{sort}");
    }
}

#[tokio::test]
async fn a_condition_that_can_not_be_evaluated_refuses() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    let conditions = json!([{"name": "n", "expression": "object.no.such"}]);
    bench.configure("Validating", "first", &json!({"matchConditions": conditions})).await;
    let refused = bench.put_map("one").await;
    assert_eq!((refused.code, bench.requests().len()), (403, 0));
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("configmaps \"one\" is forbidden: expression 'object.no.such' resulted in error: "));
}

/// The selector may match the object before the update.
#[tokio::test]
async fn an_update_is_selected_by_either_state() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    let mut object = map("one");
    object["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(post(&bench.front, MAPS, &object).await.code, 201);
    bench.configure("Validating", "first", &json!({"objectSelector": {"matchLabels": {"a": "b"}}})).await;
    let merge = [("content-type", "application/merge-patch+json")];
    let path = format!("{MAPS}/one");
    for (patch, asked) in [(r#"{"metadata":{"labels":{"a":null}}}"#, 1), (r#"{"data":{"x":"y"}}"#, 1)] {
        assert_eq!(send(&bench.front, "PATCH", &path, &merge, patch.as_bytes()).await.code, 200);
        assert_eq!(bench.requests().len(), asked);
    }
}

/// A Namespace counts as in itself. A namespace selector never excludes cluster-scoped objects.
#[tokio::test]
async fn namespaces_are_selected_by_their_own_labels() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    let rules = rule(&json!({"resources": ["namespaces", "storageclasses"]}));
    let selector = json!({"matchLabels": {"a": "b"}});
    bench.configure("Validating", "first", &json!({"rules": rules, "namespaceSelector": selector})).await;
    for (name, labels) in [("left", json!({})), ("right", json!({"a": "b"}))] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        assert_eq!(post(&bench.front, "/api/v1/namespaces", &namespace).await.code, 201);
    }
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "p"});
    assert_eq!(post(&bench.front, "/apis/storage.k8s.io/v1/storageclasses", &class).await.code, 201);
    let names: Vec<(Value, Value)> =
        bench.requests().iter().map(|request| (request["name"].clone(), request["namespace"].clone())).collect();
    assert_eq!(names, [(json!("right"), json!("right")), (json!("c"), Value::Null)]);
}

#[tokio::test]
async fn a_part_of_an_object_has_rules_of_its_own() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    let rules = rule(&json!({"resources": ["things/status"], "operations": ["UPDATE"]}));
    bench.configure("Validating", "first", &json!({"rules": rules})).await;
    let thing =
        json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"owner": "ann"}});
    let things = "/apis/example.io/v1/namespaces/ns/things";
    assert_eq!(post(&bench.front, things, &thing).await.code, 201);
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = br#"{"spec":{"owner":"bob"},"status":{"phase":"New"}}"#;
    assert_eq!(send(&bench.front, "PATCH", &format!("{things}/one"), &merge, patch).await.code, 200);
    assert_eq!(bench.requests().len(), 0);
    assert_eq!(send(&bench.front, "PATCH", &format!("{things}/one/status"), &merge, patch).await.code, 200);
    let request = &bench.requests()[0];
    assert_eq!((&request["subResource"], &request["requestSubResource"]), (&json!("status"), &json!("status")));
    assert_eq!(request["options"]["kind"], "UpdateOptions");
}

fn cogs() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"teeth": {"type": "integer"}}}},
        }}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cogs.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": {"kind": "Cog", "plural": "cogs", "singular": "cog"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

/// `asked` is the version that the webhook sees; `None` if it isn't called.
#[rstest]
#[case("v1", "v1", "Exact", Some("v1"))]
#[case("v2", "v1", "Exact", None)]
#[case("v2", "v1", "Equivalent", Some("v1"))]
#[case("v1", "v2", "Equivalent", Some("v2"))]
#[case("v2", "*", "Exact", Some("v2"))]
#[tokio::test]
async fn versions_are_equivalent_where_a_webhook_says_so(
    #[case] requested: &str,
    #[case] ruled: &str,
    #[case] policy: &str,
    #[case] asked: Option<&str>,
) {
    let bench = Bench::new(|_, review| {
        let teeth = json!([{"op": "replace", "path": "/spec/teeth", "value": 8}]);
        Ok(answer(review, &super::patch(&teeth)))
    })
    .await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&bench.front, definitions, &cogs()).await.code, 201);
    let rules = rule(&json!({"apiGroups": ["example.io"], "apiVersions": [ruled]}));
    bench.configure("Mutating", "first", &json!({"rules": rules, "matchPolicy": policy})).await;
    let cog = json!({"apiVersion": format!("example.io/{requested}"), "kind": "Cog", "metadata": {"name": "one"}, "spec": {"teeth": 4}});
    let cogs = format!("/apis/example.io/{requested}/namespaces/ns/cogs");
    let made = post(&bench.front, &cogs, &cog).await;
    assert_eq!(made.code, 201, "{}", made.json());
    let stored = get(&bench.front, &format!("{cogs}/one")).await.json();
    assert_eq!(stored["spec"]["teeth"], if asked.is_some() { 8 } else { 4 });
    assert_eq!(stored["apiVersion"], format!("example.io/{requested}"));
    let requests = bench.requests();
    assert_eq!(requests.len(), usize::from(asked.is_some()));
    for request in requests {
        assert_eq!(request["kind"]["version"].as_str(), asked);
        assert_eq!(request["resource"]["version"].as_str(), asked);
        assert_eq!(request["requestKind"]["version"], requested);
        assert_eq!(request["object"]["apiVersion"].as_str(), asked.map(|it| format!("example.io/{it}")).as_deref());
    }
}
