//! Server-side apply: ownership, conflicts, force, and removal of fields.

use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::json;

use super::*;

fn config(spec: impl Into<Value>) -> Value {
    let spec: Value = spec.into();
    json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

async fn apply(f: &Fixture, manager: &str, config: &Value) -> Result<DynamicObject, kube::Error> {
    f.things().patch("a", &PatchParams::apply(manager), &Patch::Apply(config)).await
}

async fn apply_status(f: &Fixture, manager: &str, status: Value) -> Result<DynamicObject, kube::Error> {
    let config = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "status": status});
    f.things().patch_status("a", &PatchParams::apply(manager), &Patch::Apply(&config)).await
}

fn managers(object: &DynamicObject) -> Vec<String> {
    let entry = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}:{}:{}", text(&entry.manager), text(&entry.operation), text(&entry.subresource))
    };
    object.managed_fields().iter().map(entry).collect()
}

#[rstest]
#[case::before_what_it_shares(&["b"], &["a", "b"], &["a", "b"])]
#[case::after_what_it_shares(&["b"], &["b", "a"], &["b", "a"])]
#[case::what_only_one_has_stays_in_place(&["x", "b", "y"], &["a", "b"], &["x", "a", "b", "y"])]
#[case::the_applied_order_wins(&["a", "x", "b"], &["b", "a"], &["x", "b", "a"])]
#[tokio::test]
async fn items_are_merged_in_the_order_that_is_applied(
    #[case] live: &[&str],
    #[case] applied: &[&str],
    #[case] expected: &[&str],
) {
    let f = Fixture::new().await;
    let named = |names: &[&str]| json!({"finalizers": names.iter().map(|n| format!("e.io/{n}")).collect::<Vec<_>>()});
    let mut made = thing("a");
    made.metadata.finalizers = serde_json::from_value(named(live)["finalizers"].clone()).expect("finalizers");
    f.things().create(&PostParams::default(), &made).await.expect("created");
    let mut config = config(json!({"owner": "ann"}));
    config["metadata"]["finalizers"] = named(applied)["finalizers"].clone();
    let merged = apply(&f, "m", &config).await.expect("applied");
    assert_eq!(json!({"finalizers": merged.finalizers()}), named(expected));
}

#[tokio::test]
async fn an_apply_creates_and_takes_back_what_it_no_longer_says() {
    let f = Fixture::new().await;
    let made = apply(&f, "m", &config(json!({"owner": "ann", "low": 2, "words": {"a": "1", "b": "2"}})))
        .await
        .expect("created");
    assert_eq!(managers(&made), ["m:Apply:"]);
    let next = apply(&f, "m", &config(json!({"owner": "ann", "words": {"b": "2", "c": "3"}}))).await.expect("applied");
    assert_eq!(next.data["spec"]["words"], json!({"b": "2", "c": "3"}));
    assert_eq!(next.data["spec"]["low"], 1, "it was taken back, then defaulted");
    let bare = apply(&f, "m", &config(json!({"owner": "ann"}))).await.expect("applied");
    assert!(bare.data["spec"].get("words").is_none());
}

#[tokio::test]
async fn another_managers_field_is_a_conflict_unless_forced() {
    let f = Fixture::new().await;
    apply(&f, "first", &config(json!({"owner": "ann", "low": 2}))).await.expect("created");
    let status = refused(apply(&f, "second", &config(json!({"owner": "bob", "low": 2}))).await);
    assert!(status.is_conflict());
    assert_eq!(status.message, r#"Apply failed with 1 conflict: conflict with "first": .spec.owner"#);
    let causes = status.details.expect("details").causes;
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("FieldManagerConflict", ".spec.owner"));

    let two = config(json!({"owner": "bob", "low": 3}));
    let status = refused(apply(&f, "second", &two).await);
    assert_eq!(status.message, "Apply failed with 2 conflicts: conflicts with \"first\":\n- .spec.low\n- .spec.owner");

    let forced =
        f.things().patch("a", &PatchParams::apply("second").force(), &Patch::Apply(&two)).await.expect("forced");
    assert_eq!(forced.data["spec"]["owner"], "bob");
    assert_eq!(managers(&forced), ["second:Apply:"], "the first owns nothing any more");
}

#[tokio::test]
async fn the_same_value_is_shared_and_stays_while_one_owner_is_left() {
    let f = Fixture::new().await;
    apply(&f, "first", &config(json!({"owner": "ann", "size": 5}))).await.expect("created");
    apply(&f, "second", &config(json!({"size": 5}))).await.expect("no conflict about an equal value");
    let kept = apply(&f, "first", &config(json!({"owner": "ann"}))).await.expect("applied");
    assert_eq!(kept.data["spec"]["size"], 5);
    let gone = apply(&f, "second", &config(json!({}))).await.expect("applied");
    assert!(gone.data["spec"].get("size").is_none());
}

#[tokio::test]
async fn ownership_is_per_operation() {
    let f = Fixture::new().await;
    let post = PostParams { field_manager: Some("m".into()), ..PostParams::default() };
    let spec = json!({"owner": "ann", "words": {"posted": "1"}});
    f.things().create(&post, &thing_with("a", spec)).await.expect("created");
    let applied = apply(&f, "m", &config(json!({"words": {"applied": "1"}}))).await.expect("applied");
    assert_eq!(managers(&applied), ["m:Apply:", "m:Update:"]);
    let left = apply(&f, "m", &config(json!({}))).await.expect("applied");
    assert_eq!(left.data["spec"]["words"], json!({"posted": "1"}));
}

#[tokio::test]
async fn an_update_takes_fields_over_without_asking() {
    let f = Fixture::new().await;
    apply(&f, "first", &config(json!({"owner": "ann"}))).await.expect("created");
    let patch = Patch::Merge(json!({"spec": {"owner": "bob"}}));
    let params = PatchParams { field_manager: Some("editor".into()), ..PatchParams::default() };
    f.things().patch("a", &params, &patch).await.expect("patched");
    let status = refused(apply(&f, "first", &config(json!({"owner": "ann"}))).await);
    assert_eq!(
        status.message,
        r#"Apply failed with 1 conflict: conflict with "editor" using example.io/v1: .spec.owner"#
    );
}

#[tokio::test]
async fn keyed_lists_merge_by_item_and_plain_ones_whole() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let condition = |name: &str, status: &str| json!({"type": name, "status": status});
    apply_status(&f, "one", json!({"conditions": [condition("A", "True")]})).await.expect("applied");
    let both = apply_status(&f, "two", json!({"conditions": [condition("B", "False")]})).await.expect("applied");
    assert_eq!(both.data["status"]["conditions"], json!([condition("A", "True"), condition("B", "False")]));
    let status = refused(apply_status(&f, "two", json!({"conditions": [condition("A", "False")]})).await);
    assert_eq!(
        status.message,
        r#"Apply failed with 1 conflict: conflict with "one" with subresource "status": .status.conditions[type="A"].status"#
    );
    let one = apply_status(&f, "one", json!({"observed": 3})).await.expect("applied");
    assert_eq!(one.data["status"], json!({"observed": 3, "conditions": [condition("B", "False")]}));

    apply(&f, "one", &config(json!({"plain": ["a", "b"], "names": ["a"]}))).await.expect("applied");
    let sets = apply(&f, "two", &config(json!({"names": ["b"]}))).await.expect("applied");
    assert_eq!(sets.data["spec"]["names"], json!(["a", "b"]));
    let status = refused(apply(&f, "two", &config(json!({"plain": ["b"]}))).await);
    assert_eq!(fields(&status), [".spec.plain"]);
}

#[tokio::test]
async fn a_forced_apply_onto_a_strangers_secret_merges() {
    let f = Fixture::new().await;
    f.make_secret("s").await;
    let mine = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "ownerReferences": [{"apiVersion": "example.io/v1", "kind": "Thing", "name": "a", "uid": "gone"}]},
        "data": {"mine": "eA=="},
    });
    let merged = f.secrets().patch("s", &PatchParams::apply("m").force(), &Patch::Apply(&mine)).await.expect("merged");
    assert_eq!(merged.data.expect("data").len(), 2);
    assert_eq!(merged.metadata.owner_references.expect("references").len(), 1);
    assert_eq!(f.cluster.collect_garbage(), 1, "the owner doesn't exist");
    assert!(f.secrets().get_opt("s").await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_resource_version_does_not_hinder_a_create_by_apply() {
    let f = Fixture::new().await;
    let mut sent = config(json!({"owner": "ann"}));
    sent["metadata"]["resourceVersion"] = "123".into();
    apply(&f, "m", &sent).await.expect("created");
}

#[tokio::test]
async fn what_an_apply_may_not_be() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let status = refused(
        f.things()
            .patch(
                "a",
                &PatchParams { force: true, ..PatchParams::apply("m") },
                &Patch::Apply(&config(json!({"odd": 1}))),
            )
            .await,
    );
    assert_eq!(status.code, 500);
    assert!(status.message.contains(".spec.odd: field not declared in schema"), "{}", status.message);
    let missing = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "b"}, "status": {}});
    assert!(
        refused(f.things().patch_status("b", &PatchParams::apply("m"), &Patch::Apply(&missing)).await).is_not_found()
    );
    let status = refused(apply(&f, "m", &config(json!({"owner": 7}))).await);
    assert_eq!(status.code, 500);
    for wrong in [
        json!({"apiVersion": "v2", "kind": "Thing", "metadata": {"name": "a"}}),
        json!({"apiVersion": "example.io/v1", "kind": "Other", "metadata": {"name": "a"}}),
        json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "b"}}),
    ] {
        assert_eq!(refused(apply(&f, "m", &wrong).await).code, 400, "{wrong}");
    }
    let nameless = json!({"apiVersion": "example.io/v1", "kind": "Thing", "spec": {"owner": "ann"}});
    apply(&f, "m", &nameless).await.expect("what exists brings its name along");
    let create = f.things().patch("new", &PatchParams::apply("m"), &Patch::Apply(&nameless)).await;
    assert!(refused(create).message.contains("name must be provided"));
}
