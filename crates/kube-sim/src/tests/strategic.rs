//! Strategic merge patches of a Secret, with the responses of kube-apiserver 1.34.

use http::Request;
use kube::client::Body;
use rstest::rstest;

use super::*;

const SECRETS: &str = "/api/v1/namespaces/ns/secrets";

/// Returns the response to a strategic merge patch of a Secret that has three finalizers, two
/// labels and an owner.
async fn patched(patch: &Value) -> Value {
    let f = Fixture::new().await;
    let secret = secret_from(json!({"metadata": {
        "name": "a", "labels": {"k": "v", "l": "w"}, "finalizers": ["e.io/a", "e.io/b", "e.io/c"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": "o-1"}],
    }}));
    f.secrets().create(&PostParams::default(), &secret).await.expect("a new secret");
    let request = Request::patch(format!("{SECRETS}/a"))
        .header("content-type", "application/strategic-merge-patch+json")
        .body(Body::from(patch.to_string().into_bytes()))
        .expect("a request");
    let answer = f.client.send(request).await.expect("an answer");
    let bytes = answer.into_body().collect_bytes().await.expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[rstest]
#[case::new_items_come_first(json!(["e.io/d", "e.io/b"]), json!(["e.io/d", "e.io/a", "e.io/b", "e.io/c"]))]
#[case::in_the_order_of_the_patch(json!(["e.io/c", "e.io/d", "e.io/a"]), json!(["e.io/b", "e.io/c", "e.io/d", "e.io/a"]))]
#[case::no_item_is_none_less(json!([]), json!(["e.io/a", "e.io/b", "e.io/c"]))]
#[tokio::test]
async fn items_of_a_set_are_added(#[case] patch: Value, #[case] expected: Value) {
    let answer = patched(&json!({"metadata": {"finalizers": patch}})).await;
    assert_eq!(answer["metadata"]["finalizers"], expected, "{answer}");
}

#[rstest]
#[case::deleted("finalizers", json!({"$deleteFromPrimitiveList/finalizers": ["e.io/b"]}), json!(["e.io/a", "e.io/c"]))]
#[case::ordered("finalizers", json!({"$setElementOrder/finalizers": ["e.io/c", "e.io/a"]}), json!(["e.io/b", "e.io/c", "e.io/a"]))]
#[case::added_in_order("finalizers", json!({"$setElementOrder/finalizers": ["e.io/c", "e.io/d", "e.io/a"], "finalizers": ["e.io/d"]}), json!(["e.io/b", "e.io/c", "e.io/d", "e.io/a"]))]
#[case::replaced("labels", json!({"labels": {"$patch": "replace", "m": "x"}}), json!({"m": "x"}))]
#[case::emptied("labels", json!({"labels": {"$patch": "delete"}}), json!(null))]
#[case::retained("labels", json!({"labels": {"$retainKeys": ["l"], "l": "2"}}), json!({"l": "2"}))]
#[case::null("labels", json!({"labels": {"k": null, "n": null}}), json!({"l": "w"}))]
#[tokio::test]
async fn directives_are_followed(#[case] field: &str, #[case] patch: Value, #[case] expected: Value) {
    let answer = patched(&json!({"metadata": patch})).await;
    assert_eq!(answer["metadata"][field], expected, "{answer}");
}

#[rstest]
#[case::merged(json!([{"uid": "o-1", "controller": true}]), json!(["o"]))]
#[case::added(json!([{"apiVersion": "v1", "kind": "Secret", "name": "p", "uid": "p-1"}]), json!(["p", "o"]))]
#[case::deleted(json!([{"uid": "o-1", "$patch": "delete"}]), json!([]))]
#[case::replaced(json!([{"$patch": "replace"}, {"apiVersion": "v1", "kind": "Secret", "name": "p", "uid": "p-1"}]), json!(["p"]))]
#[tokio::test]
async fn owners_are_merged_by_uid(#[case] patch: Value, #[case] expected: Value) {
    let answer = patched(&json!({"metadata": {"ownerReferences": patch}})).await;
    assert_eq!(answer["kind"], "Secret", "{answer}");
    let owners = answer["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let names: Vec<Value> = owners.map(|owner| owner["name"].clone()).collect();
    assert_eq!(Value::Array(names), expected, "{answer}");
}

#[rstest]
#[case::another_order(json!({"$setElementOrder/finalizers": ["e.io/c"], "finalizers": ["e.io/d"]}), 500, "The order in patch list:\n[e.io/d]\n doesn't match $setElementOrder list:\n[e.io/c]\n")]
#[case::order_of_no_list(json!({"$setElementOrder/labels": ["a"]}), 500, "expected a []interface {}, but received a map[string]interface {}")]
#[case::order_is_no_list(json!({"$setElementOrder/finalizers": "a"}), 500, "expected a []interface {}, but received a string")]
#[case::unknown(json!({"labels": {"$patch": "drop"}}), 500, "unknown patch type: drop in map: map[$patch:drop]")]
#[case::not_retained(json!({"labels": {"$retainKeys": ["k"], "l": "2"}}), 400, "invalid patch format of retainKeys")]
#[case::item_without_a_key(json!({"ownerReferences": [{"name": "x"}]}), 500, "map: map[name:x] does not contain declared merge key: uid")]
#[case::deletes_without_a_key(json!({"ownerReferences": [{"$patch": "delete"}]}), 500, "map: map[$patch:delete] does not contain declared merge key: uid")]
#[case::merge_of_a_list(json!({"ownerReferences": [{"$patch": "merge"}]}), 500, "merging lists cannot yet be specified in the patch")]
#[case::two_types(json!({"finalizers": [1]}), 500, "list element types are not identical: [[e.io/a e.io/b e.io/c] [1]]")]
#[tokio::test]
async fn what_cannot_be_followed_is_refused(#[case] patch: Value, #[case] code: u64, #[case] message: &str) {
    let refused = patched(&json!({"metadata": patch})).await;
    assert_eq!((refused["code"].as_u64(), refused["message"].as_str()), (Some(code), Some(message)));
}
