//! Lists: selectors, pages, versions, metadata only; and deletion of a collection.

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube::core::PartialObjectMeta;
use rstest::rstest;
use serde_json::json;

use super::*;

async fn five() -> Fixture {
    let f = Fixture::new().await;
    for name in ["c", "a", "e", "b", "d"] {
        let mut sent = thing_with(name, json!({"owner": if name < "c" { "ann" } else { "bob" }}));
        sent.metadata.labels = Some([("name".to_owned(), name.to_owned())].into());
        f.things().create(&PostParams::default(), &sent).await.expect("created");
    }
    f
}

async fn names(f: &Fixture, params: &ListParams) -> Vec<String> {
    f.things().list(params).await.expect("a list").iter().map(|thing| thing.name_any()).collect()
}

#[rstest]
#[case("", "", "a b c d e")]
#[case("name=a", "", "a")]
#[case("name in (a, d),name!=a", "", "d")]
#[case("!name", "", "")]
#[case("", "metadata.name=c", "c")]
#[case("", "metadata.namespace=ns,metadata.name!=c", "a b d e")]
#[case("", "spec.owner=ann", "a b")]
#[case("", "status.phase=", "a b c d e")]
#[case("name=e", "spec.owner=ann", "")]
#[tokio::test]
async fn selectors(#[case] labels: &str, #[case] fields: &str, #[case] expected: &str) {
    let f = five().await;
    let params = ListParams::default().labels(labels).fields(fields);
    assert_eq!(names(&f, &params).await.join(" "), expected);
}

#[rstest]
#[case("a in b", "")]
#[case("a b", "")]
#[case("", "spec.low=1")]
#[case("", "metadata.name")]
#[tokio::test]
async fn bad_selectors(#[case] labels: &str, #[case] fields: &str) {
    let f = Fixture::new().await;
    let params = ListParams {
        label_selector: Some(labels.into()),
        field_selector: Some(fields.into()),
        ..ListParams::default()
    };
    assert_eq!(refused(f.things().list(&params).await).code, 400);
}

#[tokio::test]
async fn a_selectable_field_in_the_status_follows_it() {
    let f = five().await;
    let patch = Patch::Merge(json!({"status": {"phase": "Done"}}));
    f.things().patch_status("d", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(names(&f, &ListParams::default().fields("status.phase=Done")).await, ["d"]);
}

#[tokio::test]
async fn secrets_can_be_selected_by_type() {
    let f = Fixture::new().await;
    f.make_secret("s").await;
    let sent = secret_from(json!({"metadata": {"name": "t"}, "type": "example.io/special"}));
    f.secrets().create(&PostParams::default(), &sent).await.expect("created");
    let list = f.secrets().list(&ListParams::default().fields("type=example.io/special")).await.expect("a list");
    assert_eq!(list.items.iter().map(|secret| secret.name_any()).collect::<Vec<_>>(), ["t"]);
}

#[tokio::test]
async fn pages_show_one_state_of_the_store() {
    let f = five().await;
    let first = f.things().list(&ListParams::default().limit(2)).await.expect("a page");
    let token = first.metadata.continue_.clone().expect("there is more");
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    f.things().delete("c", &DeleteParams::default()).await.expect("deleted");
    f.make_thing("f").await;

    let second = f.things().list(&ListParams::default().limit(2).continue_token(&token)).await.expect("a page");
    assert_eq!(second.iter().map(|thing| thing.name_any()).collect::<Vec<_>>(), ["c", "d"]);
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    let token = second.metadata.continue_.clone().expect("there is more");
    let third = f.things().list(&ListParams::default().limit(2).continue_token(&token)).await.expect("a page");
    assert_eq!(third.iter().map(|thing| thing.name_any()).collect::<Vec<_>>(), ["e"]);
    assert_eq!(third.metadata.continue_.as_deref(), Some(""), "no more; of built-in kinds it is absent");

    f.cluster.compact();
    let status = refused(f.things().list(&ListParams::default().limit(2).continue_token(&token)).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let status = refused(f.things().list(&ListParams::default().continue_token("nonsense")).await);
    assert_eq!(status.code, 400);
}

#[tokio::test]
async fn lists_at_a_version() {
    let f = five().await;
    let before = f.cluster.resource_version().to_string();
    f.make_thing("f").await;
    let at = |version: &str, version_match| ListParams {
        resource_version: Some(version.to_owned()),
        version_match: Some(version_match),
        ..ListParams::default()
    };
    assert_eq!(names(&f, &at(&before, VersionMatch::Exact)).await.len(), 5);
    assert_eq!(names(&f, &at(&before, VersionMatch::NotOlderThan)).await.len(), 6);
    assert_eq!(names(&f, &at("0", VersionMatch::NotOlderThan)).await.len(), 6);
    let status = refused(f.things().list(&at("9999", VersionMatch::NotOlderThan)).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (504, format!("Timeout: Too large resource version: 9999, current: {}", f.cluster.resource_version()).as_str())
    );
    f.cluster.compact();
    assert_eq!(refused(f.things().list(&at(&before, VersionMatch::Exact)).await).code, 410);
}

#[tokio::test]
async fn lists_reach_over_all_namespaces() {
    let f = five().await;
    f.make_namespace("other").await;
    f.things_in("other").create(&PostParams::default(), &thing("a")).await.expect("created");
    let kind = GroupVersionKind::gvk("example.io", "v1", "Thing");
    let all: Api<DynamicObject> = Api::all_with(f.client.clone(), &ApiResource::from_gvk(&kind));
    let list = all.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 6);
    assert_eq!(list.types.kind, "ThingList");
    assert_eq!(list.items[5].namespace().as_deref(), Some("other"));
}

#[tokio::test]
async fn metadata_alone() {
    let f = five().await;
    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    let list = namespaces.list_metadata(&ListParams::default()).await.expect("a list");
    let names: Vec<String> = list.iter().map(|item| item.name_any()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system", "ns"]);
    let one: PartialObjectMeta<Namespace> = namespaces.get_metadata("ns").await.expect("metadata");
    assert!(one.uid().is_some());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let patched = namespaces.patch_metadata("ns", &PatchParams::default(), &patch).await.expect("metadata");
    assert_eq!(patched.labels()["a"], "b");
    assert_eq!(patched.types.expect("types").kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let f = five().await;
    let params = ListParams::default().fields("spec.owner=ann");
    f.things().delete_collection(&DeleteParams::default(), &params).await.expect("deleted");
    assert_eq!(names(&f, &ListParams::default()).await, ["c", "d", "e"]);
}

#[tokio::test]
async fn objects_come_out_in_order() {
    let f = five().await;
    let things: Vec<_> = f.cluster.objects().into_iter().filter(|object| object.plural == "things").collect();
    let names: Vec<_> = things.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(things[0].object["spec"]["owner"], "ann");
}
