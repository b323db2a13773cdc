//! Tests of writes through the front: in protobuf and YAML, of definitions, at other versions, of
//! events of the core group, of scales, and token requests.

use jiff::SignedDuration;
use kube_sim::GroupVersionResource;
use rstest::rstest;
use serde_json::{Value, json};

use super::front::{fixture, front, get, post, send};
use super::{definition, empty_cluster};

const PROTOBUF: (&str, &str) = ("content-type", "application/vnd.kubernetes.protobuf");
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Encodes a bytes field.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut length = content.len();
    let mut out = vec![number << 3 | 2];
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).expect("seven bits"));
    [&out[..], content].concat()
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Encodes a body as a typed Go client sends it.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes(1, &type_meta), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
}

/// Returns a Secret with all fields that clients write even if they are empty.
fn secret() -> Vec<u8> {
    let metadata = [bytes(1, b"s"), bytes(2, b""), bytes(3, b"ns"), bytes(8, b"")].concat();
    let entry = [bytes(1, b"key"), bytes(2, b"\x00value")].concat();
    body("v1", "Secret", &[bytes(1, &metadata), bytes(2, &entry), bytes(3, b"Opaque")].concat())
}

#[tokio::test]
async fn a_secret_of_a_typed_client_is_stored() {
    let (cluster, front) = fixture().await;
    let answer = send(&front, "POST", "/api/v1/namespaces/ns/secrets", &[PROTOBUF], &secret()).await;
    assert_eq!(answer.code, 201, "{:?}", answer.text);
    let stored = cluster.get(&GroupVersionResource::gvr("", "v1", "secrets"), "ns", "s").expect("it is there");
    assert_eq!((&stored["data"]["key"], &stored["type"]), (&json!("AHZhbHVl"), &json!("Opaque")));
    assert!(stored["metadata"].get("generateName").is_none(), "what is empty is not there");
}

#[tokio::test]
async fn options_of_a_typed_deletion_are_heeded() {
    let (_, front) = fixture().await;
    let path = "/api/v1/namespaces/ns/secrets";
    send(&front, "POST", path, &[PROTOBUF], &secret()).await;
    let other = body("v1", "DeleteOptions", &bytes(2, &bytes(1, b"another-uid")));
    assert_eq!(send(&front, "DELETE", &format!("{path}/s"), &[PROTOBUF], &other).await.code, 409);
    let plain = body("v1", "DeleteOptions", &bytes(4, b"Background"));
    assert_eq!(send(&front, "DELETE", &format!("{path}/s"), &[PROTOBUF], &plain).await.code, 200);
}

#[tokio::test]
async fn a_lease_keeps_its_microseconds_and_what_is_zero_on_purpose() {
    let (cluster, front) = fixture().await;
    // 2030-01-02T03:04:05.000007Z
    let time = [vec![0x08], vec![0xa5, 0xaa, 0xf5, 0x86, 0x07], vec![0x10], vec![0xd8, 0x36]].concat();
    let spec = [bytes(1, b"me"), number(2, 15), bytes(4, &time), number(5, 0)].concat();
    let raw = [bytes(1, &bytes(1, b"l")), bytes(2, &spec)].concat();
    let path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
    let answer = send(&front, "POST", path, &[PROTOBUF], &body("coordination.k8s.io/v1", "Lease", &raw)).await;
    assert_eq!(answer.code, 201, "{:?}", answer.text);
    let stored = cluster.get(&GroupVersionResource::gvr("coordination.k8s.io", "v1", "leases"), "ns", "l");
    let spec = stored.expect("it is there")["spec"].clone();
    assert_eq!(spec["renewTime"], "2030-01-02T03:04:05.000007Z");
    assert_eq!((&spec["leaseTransitions"], &spec["leaseDurationSeconds"]), (&json!(0), &json!(15)));
}

#[rstest]
#[case::no_message(b"{}".to_vec(), 400)]
#[case::cut_off(secret()[..20].to_vec(), 400)]
#[case::of_another_kind(body("v1", "Binding", b""), 415)]
#[case::part_of_an_object(body("v1", "Container", b""), 415)]
#[tokio::test]
async fn what_can_t_be_read_is_refused(#[case] sent: Vec<u8>, #[case] code: u16) {
    let (_, front) = fixture().await;
    let answer = send(&front, "POST", "/api/v1/namespaces/ns/secrets", &[PROTOBUF], &sent).await;
    assert_eq!((answer.code, &answer.json()["kind"]), (code, &json!("Status")));
}

#[tokio::test]
async fn yaml_is_read() {
    let (_, front) = fixture().await;
    let yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n";
    let headers = [("content-type", "application/yaml")];
    assert_eq!(send(&front, "POST", "/api/v1/namespaces/ns/configmaps", &headers, yaml).await.code, 201);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let front = front(&empty_cluster());
    let long = vec![b' '; crate::BODY_LIMIT + 1];
    assert_eq!(send(&front, "POST", "/api/v1/namespaces", &[], &long).await.code, 413);
}

#[tokio::test]
async fn a_definition_is_served_once_it_is_written_and_gone_with_its_objects() {
    let cluster = empty_cluster();
    let front = front(&cluster);
    let written = post(&front, DEFINITIONS, &definition()).await.json();
    let conditions = &written["status"]["conditions"];
    assert_eq!((&conditions[1]["type"], &conditions[1]["status"]), (&json!("Established"), &json!("True")));
    assert_eq!(written["status"]["storedVersions"], json!(["v1"]));
    let things = "/apis/example.io/v1/namespaces/default/things";
    let thing = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "spec": {"owner": "ann"},
        "metadata": {"name": "t", "finalizers": ["example.io/hold"]},
    });
    assert_eq!(post(&front, things, &thing).await.code, 201);
    let path = format!("{DEFINITIONS}/things.example.io");
    assert_eq!(send(&front, "DELETE", &path, &[], b"").await.code, 200);
    cluster.settle_definitions();
    assert_eq!(get(&front, &path).await.code, 200, "an object holds it");
    let release = [("content-type", "application/merge-patch+json")];
    send(&front, "PATCH", &format!("{things}/t"), &release, br#"{"metadata":{"finalizers":null}}"#).await;
    assert_eq!(cluster.settle_definitions(), 1);
    assert_eq!(get(&front, &path).await.code, 404);
    assert_eq!(get(&front, things).await.code, 404);
    assert_eq!(get(&front, "/apis/example.io/v1").await.code, 404);
    assert_eq!(post(&front, DEFINITIONS, &definition()).await.code, 201, "it can come again");
    assert_eq!(get(&front, things).await.code, 200);
}

#[tokio::test]
async fn a_bad_definition_changes_nothing() {
    let front = front(&empty_cluster());
    let mut bad = definition();
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "thing".into();
    assert_eq!(post(&front, DEFINITIONS, &bad).await.code, 422);
    assert_eq!(get(&front, &format!("{DEFINITIONS}/things.example.io")).await.code, 404);
}

/// Returns the definition with a second version and with scale paths.
fn two_versions() -> Value {
    let mut both = definition();
    both["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.low", "statusReplicasPath": ".status.observed"});
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = "v1beta1".into();
    second["storage"] = false.into();
    let versions = both["spec"]["versions"].as_array_mut().expect("versions");
    versions.push(second);
    both
}

#[tokio::test]
async fn an_object_is_the_same_at_each_version() {
    let front = front(&empty_cluster());
    assert_eq!(post(&front, DEFINITIONS, &two_versions()).await.code, 201);
    let thing = json!({
        "apiVersion": "example.io/v1beta1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"owner": "ann"},
    });
    let made = post(&front, "/apis/example.io/v1beta1/namespaces/default/things", &thing).await;
    assert_eq!((made.code, &made.json()["apiVersion"]), (201, &json!("example.io/v1beta1")));
    for version in ["v1", "v1beta1"] {
        let list = get(&front, &format!("/apis/example.io/{version}/things")).await.json();
        let expected = format!("example.io/{version}");
        assert_eq!((&list["apiVersion"], &list["items"][0]["apiVersion"]), (&json!(expected), &json!(expected)));
    }
    let patch = [("content-type", "application/merge-patch+json")];
    let path = "/apis/example.io/v1beta1/namespaces/default/things/t";
    let patched = send(&front, "PATCH", path, &patch, br#"{"spec":{"high":20}}"#).await.json();
    assert_eq!((&patched["apiVersion"], &patched["spec"]["high"]), (&json!("example.io/v1beta1"), &json!(20)));
}

#[tokio::test]
async fn a_scale_is_read_and_set_where_the_definition_says() {
    let front = front(&empty_cluster());
    assert_eq!(post(&front, DEFINITIONS, &two_versions()).await.code, 201);
    let things = "/apis/example.io/v1/namespaces/default/things";
    let thing =
        json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"owner": "ann"}});
    post(&front, things, &thing).await;
    let scale = format!("{things}/t/scale");
    assert_eq!(get(&front, &scale).await.json()["spec"], json!({"replicas": 1}));
    let merge = [("content-type", "application/merge-patch+json")];
    let scaled = send(&front, "PATCH", &scale, &merge, br#"{"spec":{"replicas":4}}"#).await.json();
    assert_eq!(scaled["spec"], json!({"replicas": 4}));
    assert_eq!(get(&front, &format!("{things}/t")).await.json()["spec"]["low"], 4);
    assert_eq!(send(&front, "PATCH", &scale, &merge, br#"{"spec":{"replicas":-1}}"#).await.code, 422);
}

fn event() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Tested", "message": "it was tested",
        "type": "Normal", "source": {"component": "tester"}, "lastTimestamp": "2030-01-02T03:04:05Z",
        "involvedObject": {"kind": "Secret", "name": "s", "namespace": "ns", "uid": "u"},
    })
}

#[tokio::test]
async fn an_event_has_two_faces() {
    let (_, front) = fixture().await;
    let core = post(&front, "/api/v1/namespaces/ns/events", &event()).await;
    assert_eq!(core.code, 201, "{:?}", core.text);
    assert_eq!(core.json()["message"], "it was tested");
    let new = get(&front, "/apis/events.k8s.io/v1/namespaces/ns/events/e").await.json();
    assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("it was tested"), &json!("s")));
    let described = "involvedObject.uid=u,involvedObject.name=s,involvedObject.namespace=ns,involvedObject.kind=Secret";
    let found = get(&front, &format!("/api/v1/namespaces/ns/events?fieldSelector={described}")).await.json();
    assert_eq!(found["items"][0]["involvedObject"]["name"], "s");
    let other = get(&front, "/api/v1/namespaces/ns/events?fieldSelector=involvedObject.name=t").await.json();
    assert_eq!(other["items"], json!([]));
    assert_eq!(get(&front, "/api/v1/namespaces/ns/events?fieldSelector=message=x").await.code, 400);
    let count = [("content-type", "application/strategic-merge-patch+json")];
    let patched = send(&front, "PATCH", "/api/v1/namespaces/ns/events/e", &count, br#"{"count":2}"#).await.json();
    assert_eq!(patched["count"], 2);
}

#[tokio::test]
async fn an_event_goes_when_it_has_been_quiet_for_long() {
    let (cluster, front) = fixture().await;
    post(&front, "/api/v1/namespaces/ns/events", &event()).await;
    assert_eq!(cluster.expire_events(SignedDuration::from_hours(1)), 0);
    assert_eq!(cluster.expire_events(SignedDuration::from_secs(-1)), 1);
    assert_eq!(get(&front, "/api/v1/namespaces/ns/events/e").await.code, 404);
}

#[tokio::test]
async fn a_namespace_is_furnished_once() {
    let (cluster, front) = fixture().await;
    let namespaces = 5;
    assert_eq!(cluster.furnish_namespaces("pem"), 2 * namespaces);
    assert_eq!(cluster.furnish_namespaces("pem"), 0);
    assert_eq!(cluster.furnish_namespaces("other"), namespaces);
    let map = get(&front, "/api/v1/namespaces/ns/configmaps/kube-root-ca.crt").await.json();
    assert_eq!(map["data"]["ca.crt"], "other");
}

#[tokio::test]
async fn a_token_is_its_account_s_until_that_goes() {
    let (cluster, front) = fixture().await;
    cluster.furnish_namespaces("");
    let accounts = "/api/v1/namespaces/ns/serviceaccounts";
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let issued = post(&front, &format!("{accounts}/default/token"), &request).await;
    assert_eq!(issued.code, 201);
    let token = format!("Bearer {}", issued.json()["status"]["token"].as_str().expect("a token"));
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = || async { send(&front, "POST", path, &[("authorization", &token)], b"{}").await };
    assert_eq!(who().await.json()["status"]["userInfo"]["username"], "system:serviceaccount:ns:default");
    assert_eq!(send(&front, "DELETE", &format!("{accounts}/default"), &[], b"").await.code, 200);
    assert_eq!(who().await.code, 401);
    assert_eq!(post(&front, &format!("{accounts}/none/token"), &request).await.code, 404);
}

#[tokio::test]
async fn inert_kinds_are_kept_and_their_templates_merged_by_key() {
    let (_, front) = fixture().await;
    let path = "/apis/apps/v1/namespaces/ns/statefulsets";
    let containers = json!([{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
        "spec": {"replicas": 1, "whatever": [1], "template": {"spec": {"containers": containers}}},
    });
    assert_eq!(post(&front, path, &set).await.code, 201);
    let patch = br#"{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"z"}]}}}}"#;
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let patched = send(&front, "PATCH", &format!("{path}/s"), &strategic, patch).await.json();
    let images = &patched["spec"]["template"]["spec"]["containers"];
    assert_eq!((&images[0]["image"], &images[1]["image"]), (&json!("x"), &json!("z")));
    assert_eq!((&patched["spec"]["whatever"], &patched["metadata"]["generation"]), (&json!([1]), &json!(2)));
}

#[tokio::test]
async fn kubectl_takes_over_server_side_what_it_applied_by_itself() {
    let (_, front) = fixture().await;
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let config = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"a": value}});
    let mut object = config("1");
    object["metadata"]["annotations"] = json!({annotation: config("1").to_string()});
    let maps = "/api/v1/namespaces/ns/configmaps";
    assert_eq!(post(&front, &format!("{maps}?fieldManager=kubectl-client-side-apply"), &object).await.code, 201);
    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = |manager: &'static str, value: &'static str| {
        let (front, path) = (front.clone(), format!("{maps}/c?fieldManager={manager}"));
        async move { send(&front, "PATCH", &path, &apply, config(value).to_string().as_bytes()).await }
    };
    assert_eq!(applied("other", "2").await.code, 409);
    let taken = applied("kubectl", "2").await;
    assert_eq!(taken.code, 200, "{:?}", taken.text);
    assert_eq!(taken.json()["metadata"]["annotations"][annotation], format!("{}\n", config("2")));
    // A field that another manager has changed is no longer owned by kubectl.
    let merge = [("content-type", "application/merge-patch+json")];
    send(&front, "PATCH", &format!("{maps}/c?fieldManager=me"), &merge, br#"{"data":{"a":"3"}}"#).await;
    assert_eq!(applied("kubectl", "4").await.code, 409);
}
