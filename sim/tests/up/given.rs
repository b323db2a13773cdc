//! Tests of manifests that a simulator gets at the start, applied as kubectl would.

use http::Method;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use stowage_sim::up::{Options, Up};
use stowage_world::parse;
use tempfile::TempDir;

use super::{Bench, options};

/// A cluster-scoped kind with an irregular plural.
const SHEEP: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sheep.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Sheep, plural: sheep, singular: sheep}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {wool: {type: string}}}}}}
---
apiVersion: example.org/v1
kind: Sheep
metadata: {name: dolly}
spec: {wool: white}
";

async fn wool(bench: &Bench) -> Option<String> {
    let kind = GroupVersionKind::gvk("example.org", "v1", "Sheep");
    let api: Api<DynamicObject> = Api::all_with(bench.kube().await, &ApiResource::from_gvk_with_plural(&kind, "sheep"));
    let found = api.get_opt("dolly").await.expect("the kind is served");
    found.and_then(|it| it.data["spec"]["wool"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn definitions_of_others_and_their_objects_are_given_and_come_back_after_a_reset() {
    let folder = TempDir::new().expect("there is room");
    let manifests = parse("sheep.yaml", SHEEP).expect("it is YAML");
    let up = Up::start(Options { manifests, ..options(&folder) }).await.expect("it starts");
    let bench = Bench { up, folder };
    assert_eq!(wool(&bench).await.as_deref(), Some("white"));
    let (code, answer) = bench.admin(Method::POST, "/reset", Some(json!({}))).await;
    assert_eq!(code, 204, "{answer}");
    assert_eq!(wool(&bench).await.as_deref(), Some("white"));
}

#[tokio::test]
async fn what_nothing_defines_yet_is_refused_with_its_place() {
    let folder = TempDir::new().expect("there is room");
    let mut manifests = parse("sheep.yaml", SHEEP).expect("it is YAML");
    manifests.reverse();
    let refused = Up::start(Options { manifests, ..options(&folder) }).await.err().expect("it is refused");
    let expected = "sheep.yaml, document 2: no matches for kind \"Sheep\" in version \"example.org/v1\"";
    assert!(refused.starts_with(expected), "{refused}");
}
