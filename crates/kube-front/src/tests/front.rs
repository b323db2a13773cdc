//! Tests of requests by kubectl besides those for objects.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_sim::Cluster;
use rstest::rstest;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{definition, empty_cluster, furnished_cluster, parse};
use crate::{Authorization, Front, FrontOptions, Identity};

/// Creates a front with one token, and with every other caller as an admin.
pub(super) fn front(cluster: &Cluster) -> Front {
    let mut options = FrontOptions::open(Arc::new(|| [7; 32]));
    options.tokens.insert("secret-token".to_owned(), Identity::new("ann", &["team"]));
    Front::new(cluster, options)
}

/// Creates a cluster with a definition and the namespace `ns`, and its front.
pub(super) async fn fixture() -> (Cluster, Front) {
    let cluster = furnished_cluster();
    let front = front(&cluster);
    (cluster, front)
}

/// The status code, the headers and the body of an answer.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: Bytes,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.text).expect("JSON")
    }
}

pub(super) async fn send(front: &Front, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_vec())).expect("a request");
    let answer = front.clone().oneshot(request).await.expect("it can't fail");
    let (head, body) = answer.into_parts();
    let text = body.collect().await.expect("a whole body").to_bytes();
    Answer { code: head.status.as_u16(), headers: head.headers, text }
}

pub(super) async fn get(front: &Front, path: &str) -> Answer {
    send(front, "GET", path, &[], b"").await
}

pub(super) async fn post(front: &Front, path: &str, body: &Value) -> Answer {
    send(front, "POST", path, &[("content-type", "application/json")], body.to_string().as_bytes()).await
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn one_document_tells_of_all_groups_in_the_form_that_was_asked_for() {
    let (_, front) = fixture().await;
    let answer = send(&front, "GET", "/apis", &[("accept", AGGREGATED)], b"").await;
    assert_eq!(answer.headers["content-type"], AGGREGATED);
    let document = answer.json();
    let groups = document["items"].as_array().expect("groups");
    let own = groups.iter().find(|group| group["metadata"]["name"] == "example.io").expect("the definition's group");
    let thing = &own["versions"][0]["resources"][0];
    assert_eq!(thing["responseKind"], json!({"group": "example.io", "version": "v1", "kind": "Thing"}));
    assert_eq!((&thing["singularResource"], &thing["scope"]), (&json!("thing"), &json!("Namespaced")));
    assert_eq!(thing["subresources"][0]["subresource"], "status");
    assert!(groups.iter().all(|group| group["metadata"]["name"] != ""), "the core group is at /api");
}

#[tokio::test]
async fn older_clients_are_told_group_by_group() {
    let (_, front) = fixture().await;
    assert_eq!(get(&front, "/api").await.json()["versions"], json!(["v1"]));
    let groups = get(&front, "/apis").await.json();
    let names: Vec<&str> =
        groups["groups"].as_array().expect("groups").iter().filter_map(|g| g["name"].as_str()).collect();
    assert!(names.contains(&"apps") && names.contains(&"example.io"), "{names:?}");
    assert_eq!(get(&front, "/apis/example.io").await.json()["preferredVersion"]["version"], "v1");
    let resources = get(&front, "/apis/example.io/v1").await.json();
    assert_eq!(resources["resources"][0]["name"], "things");
    assert_eq!(resources["resources"][1]["name"], "things/status");
    assert_eq!(get(&front, "/apis/nosuch.io/v1").await.code, 404);
}

#[tokio::test]
async fn every_served_version_has_a_schema_by_a_hash_of_its_own() {
    let (_, front) = fixture().await;
    let index = get(&front, "/openapi/v3").await.json();
    let paths = index["paths"].as_object().expect("paths");
    for path in ["api/v1", "apis/apps/v1", "apis/example.io/v1", "apis/rbac.authorization.k8s.io/v1"] {
        let url = paths[path]["serverRelativeURL"].as_str().expect(path);
        assert_eq!(get(&front, url).await.code, 200, "{path}");
    }
    let old = get(&front, "/openapi/v3/apis/example.io/v1?hash=OLD").await;
    assert_eq!(old.code, 301);
    assert_eq!(old.headers["location"], paths["apis/example.io/v1"]["serverRelativeURL"].as_str().expect("a path"));
    assert_eq!(get(&front, "/openapi/v2").await.code, 404);
}

#[tokio::test]
async fn a_schema_says_what_kubectl_looks_for() {
    let (_, front) = fixture().await;
    let document = get(&front, "/openapi/v3/apis/example.io/v1").await.json();
    let patch = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/things/{name}"]["patch"];
    let parameters = patch["parameters"].as_array().expect("parameters");
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Thing");
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    let schema = &document["components"]["schemas"]["io.example.v1.Thing"];
    assert_eq!(schema["properties"]["spec"]["properties"]["low"]["maximum"], 100);
    let meta = &document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];
    assert!(meta["properties"]["labels"]["description"].is_string());
}

#[tokio::test]
async fn another_definition_changes_the_hash() {
    let cluster = empty_cluster();
    let front = front(&cluster);
    let index = || async { get(&front, "/openapi/v3").await.json()["paths"].clone() };
    assert!(index().await.get("apis/example.io/v1").is_none());
    cluster.install_crd(&parse(definition())).expect("it is sound");
    let first = index().await["apis/example.io/v1"].clone();
    let mut changed = definition();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "more".into();
    cluster.install_crd(&parse(changed)).expect("it is sound");
    assert_ne!(index().await["apis/example.io/v1"], first);
}

#[rstest]
#[case("/healthz", "ok")]
#[case("/livez?verbose", "[+]ping ok\n[+]store ok\nlivez check passed\n")]
#[case("/readyz/ping", "ok")]
#[tokio::test]
async fn who_asks_whether_it_is_up_is_told(#[case] path: &str, #[case] expected: &str) {
    let answer = get(&front(&empty_cluster()), path).await;
    assert_eq!((answer.code, &answer.text[..]), (200, expected.as_bytes()));
}

#[tokio::test]
async fn a_list_is_shown_as_a_table_with_the_columns_of_its_definition() {
    let cluster = empty_cluster();
    let mut with_columns = definition();
    with_columns["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Owner", "type": "string", "jsonPath": ".spec.owner"}]);
    cluster.install_crd(&parse(with_columns)).expect("it is sound");
    let front = front(&cluster);
    let thing = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "default"},
        "spec": {"owner": "ann"},
    });
    assert_eq!(post(&front, "/apis/example.io/v1/namespaces/default/things", &thing).await.code, 201);
    let path = "/apis/example.io/v1/things?includeObject=Object";
    let table = send(&front, "GET", path, &[("accept", TABLE)], b"").await.json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["columnDefinitions"][1]["name"], "Owner");
    assert_eq!(table["rows"][0]["cells"], json!(["t", "ann"]));
    assert_eq!(table["rows"][0]["object"]["spec"]["owner"], "ann");
    assert!(table["metadata"]["resourceVersion"].is_string());
}

#[tokio::test]
async fn a_refusal_is_never_a_table() {
    let (_, front) = fixture().await;
    let path = "/apis/example.io/v1/namespaces/ns/things/none";
    let answer = send(&front, "GET", path, &[("accept", TABLE)], b"").await;
    assert_eq!((answer.code, &answer.json()["kind"]), (404, &json!("Status")));
}

#[tokio::test]
async fn of_a_watch_the_first_table_alone_has_the_columns() {
    let (cluster, front) = fixture().await;
    for name in ["a", "b"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}});
        assert!(cluster.create(secret));
    }
    let path = "/api/v1/namespaces/ns/secrets?watch=true&timeoutSeconds=1";
    tokio::time::pause();
    let answer = send(&front, "GET", path, &[("accept", TABLE)], b"").await;
    let lines = answer.text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("an event")).collect();
    let columns: Vec<bool> = events.iter().map(|event| event["object"]["columnDefinitions"].is_array()).collect();
    assert_eq!(columns, [true, false]);
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn metadata_alone_is_metadata_alone() {
    let (cluster, front) = fixture().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}, "data": {"k": "dg=="},
    });
    assert!(cluster.create(secret));
    let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let object = send(&front, "GET", "/api/v1/namespaces/ns/secrets/s", &[("accept", accept)], b"").await.json();
    assert_eq!((&object["kind"], object.get("data")), (&json!("PartialObjectMetadata"), None));
}

#[tokio::test]
async fn a_caller_is_who_their_token_says() {
    let (_, front) = fixture().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let ask = |headers: Vec<(&'static str, &'static str)>| {
        let (front, review) = (front.clone(), review.clone());
        async move { send(&front, "POST", path, &headers, review.as_bytes()).await }
    };
    let own = ask(vec![("authorization", "Bearer secret-token")]).await.json();
    assert_eq!(own["status"]["userInfo"], json!({"username": "ann", "groups": ["team", "system:authenticated"]}));
    assert_eq!(ask(vec![("authorization", "Bearer other")]).await.code, 401);
    let other = ask(vec![("impersonate-user", "bob"), ("impersonate-group", "g")]).await.json();
    assert_eq!(other["status"]["userInfo"]["groups"], json!(["g", "system:authenticated"]));
}

#[tokio::test]
async fn what_a_running_pod_would_have_is_refused_in_words() {
    let (_, front) = fixture().await;
    let answer = get(&front, "/api/v1/namespaces/ns/pods/p/log").await;
    assert_eq!(answer.code, 404);
    assert!(answer.json()["message"].as_str().is_some_and(|text| text.contains("no pod runs")));
}

#[tokio::test]
async fn a_cluster_without_a_front_serves_what_it_did() {
    let cluster = empty_cluster();
    let request = Request::get("/apis/apps/v1/statefulsets").body(Body::empty()).expect("a request");
    let answer = cluster.service().oneshot(request).await.expect("it can't fail");
    assert_eq!(answer.status().as_u16(), 404);
}

#[tokio::test]
async fn a_caller_may_do_what_their_roles_say() {
    let cluster = empty_cluster();
    let admin = Identity::new("root", &["system:masters"]);
    let mut options = FrontOptions { authorization: Authorization::Rbac, ..FrontOptions::open(Arc::new(|| [7; 32])) };
    options.tokens.insert("of-ann".to_owned(), Identity::new("ann", &[]));
    options.anonymous = Some(admin);
    let front = Front::new(&cluster, options);
    let maps = "/api/v1/namespaces/default/configmaps";
    let ann = [("authorization", "Bearer of-ann")];
    let refused = send(&front, "GET", maps, &ann, b"").await;
    let text = "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!((refused.code, &refused.json()["message"]), (403, &json!(text)));
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(post(&front, bindings, &binding).await.code, 201);
    assert_eq!(send(&front, "GET", maps, &ann, b"").await.code, 200);
    assert_eq!(send(&front, "GET", "/api/v1/namespaces/kube-system/configmaps", &ann, b"").await.code, 403);
    assert_eq!(send(&front, "GET", "/apis", &ann, b"").await.code, 200, "everybody may look around");
    let as_root = [("authorization", "Bearer of-ann"), ("impersonate-user", "root")];
    assert_eq!(send(&front, "GET", maps, &as_root, b"").await.code, 403);
    // Another role extends one of the initial roles by its label.
    let more = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "more", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}],
    });
    let asks = |verb: &str| {
        let attributes = json!({"verb": verb, "resource": "secrets", "namespace": "default"});
        json!({"spec": {"resourceAttributes": attributes}}).to_string()
    };
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(send(&front, "POST", path, &ann, asks("get").as_bytes()).await.json()["status"]["allowed"], false);
    assert_eq!(post(&front, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &more).await.code, 201);
    assert_eq!(send(&front, "POST", path, &ann, asks("get").as_bytes()).await.json()["status"]["allowed"], true);
    assert_eq!(send(&front, "POST", path, &ann, asks("list").as_bytes()).await.json()["status"]["allowed"], false);
}
