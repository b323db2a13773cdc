//! Tests of admission webhooks: matching, reviews, and the effects of their answers. Messages are
//! those of kube-apiserver 1.34.

mod checks;
mod matching;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube_sim::Cluster;
use parking_lot::Mutex;
use rstest::rstest;
use serde_json::{Value, json};

use super::front::{Answer, get, post, send};
use super::furnished_cluster;
use crate::{Front, FrontOptions, NoAnswer, WebhookCall, WebhookPlace, Webhooks};

const API: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/ns/configmaps";
const UID: &str = "07070707-0707-4707-8707-070707070707";

type Say = dyn Fn(&str, &Value) -> Result<Value, NoAnswer> + Send + Sync;

/// Answers reviews instead of a network, and records them with their URLs.
struct Fake {
    say: Box<Say>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Webhooks for Fake {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let review: Value = serde_json::from_slice(&call.review).expect("a review is JSON");
        self.asked.lock().push((call.url.clone(), review.clone()));
        let answer = (self.say)(&call.url, &review);
        if answer == Err(NoAnswer::Unreached("never".to_owned())) {
            return futures::future::pending().boxed();
        }
        futures::future::ready(answer.map(|answer| answer.to_string().into())).boxed()
    }
}

/// A cluster whose front calls webhooks.
struct Bench {
    cluster: Cluster,
    front: Front,
    fake: Arc<Fake>,
}

impl Bench {
    async fn new(say: impl Fn(&str, &Value) -> Result<Value, NoAnswer> + Send + Sync + 'static) -> Self {
        let cluster = furnished_cluster();
        let fake = Arc::new(Fake { say: Box::new(say), asked: Mutex::default() });
        let options = FrontOptions { webhooks: Some(fake.clone()), ..FrontOptions::open(Arc::new(|| [7; 32])) };
        let front = Front::new(&cluster, options);
        Self { cluster, front, fake }
    }

    /// Creates a bench whose webhooks give this response.
    async fn saying(response: Value) -> Self {
        Self::new(move |_, review| Ok(answer(review, &response))).await
    }

    async fn configure(&self, sort: &str, name: &str, webhook: &Value) {
        let made = self.try_to_configure(sort, name, webhook).await;
        assert_eq!(made.code, 201, "{}", made.json());
    }

    async fn try_to_configure(&self, sort: &str, name: &str, webhook: &Value) -> Answer {
        let plural = format!("{}webhookconfigurations", sort.to_lowercase());
        post(&self.front, &format!("{API}/{plural}"), &configuration(sort, name, webhook)).await
    }

    /// Returns the requests that webhooks were called for.
    fn requests(&self) -> Vec<Value> {
        self.fake.asked.lock().iter().map(|(_, review)| review["request"].clone()).collect()
    }

    async fn put_map(&self, name: &str) -> Answer {
        post(&self.front, MAPS, &map(name)).await
    }
}

/// Returns a review with a response.
fn answer(review: &Value, response: &Value) -> Value {
    let mut response = response.clone();
    if response["uid"].is_null() {
        response["uid"] = review["request"]["uid"].clone();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn configuration(sort: &str, name: &str, webhook: &Value) -> Value {
    let mut whole = json!({
        "name": format!("{name}.example.org"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://hooks.example.org/{name}")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    for (field, value) in webhook.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": [whole],
    })
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

/// Returns a response that allows the request with a patch.
fn patch(operations: &Value) -> Value {
    let patch = BASE64_STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

#[tokio::test]
async fn a_webhook_is_told_of_a_request_all_that_a_server_tells() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    bench.configure("Mutating", "first", &json!({"timeoutSeconds": 5})).await;
    let path = format!("{MAPS}?fieldManager=me&fieldValidation=Strict");
    assert_eq!(post(&bench.front, &path, &map("one")).await.code, 201);
    let (url, review) = bench.fake.asked.lock()[0].clone();
    assert_eq!(url, "https://hooks.example.org/first?timeout=5s");
    let gvk = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let gvr = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let mut object = map("one");
    object["metadata"]["namespace"] = "ns".into();
    object["metadata"]["managedFields"] = review["request"]["object"]["metadata"]["managedFields"].clone();
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "me");
    let expected = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": UID, "kind": gvk, "resource": gvr, "requestKind": gvk, "requestResource": gvr,
            "name": "one", "namespace": "ns", "operation": "CREATE", "dryRun": false,
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "object": object, "oldObject": null,
            "options": {
                "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me",
                "fieldValidation": "Strict",
            },
        },
    });
    assert_eq!(review, expected);
}

#[tokio::test]
async fn mutating_webhooks_see_what_those_before_them_made_and_validating_ones_what_is_stored() {
    let bench = Bench::new(|url, review| {
        let added = |name: &str| patch(&json!([{"op": "add", "path": format!("/data/{name}"), "value": "2"}]));
        Ok(match url {
            _ if url.contains("/a-hook") => answer(review, &added("b")),
            _ if url.contains("/b-hook") => answer(review, &added("c")),
            _ => answer(review, &json!({"allowed": true})),
        })
    })
    .await;
    bench.configure("Validating", "judge", &json!({})).await;
    bench.configure("Mutating", "b-hook", &json!({})).await;
    bench.configure("Mutating", "a-hook", &json!({})).await;
    let made = bench.put_map("one").await;
    assert_eq!(made.code, 201);
    assert_eq!(made.json()["data"], json!({"a": "1", "b": "2", "c": "2"}));
    let seen: Vec<Value> = bench.requests().iter().map(|request| request["object"]["data"].clone()).collect();
    assert_eq!(seen, [json!({"a": "1"}), json!({"a": "1", "b": "2"}), json!({"a": "1", "b": "2", "c": "2"})]);
    let judged = &bench.requests()[2]["object"];
    assert_eq!(judged["metadata"]["uid"], made.json()["metadata"]["uid"], "it sees the object to the end");
    let owned = &made.json()["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(owned, &json!({".": {}, "f:a": {}}), "what webhooks add is nobody's");
}

/// An object changed by a webhook is decoded, defaulted and validated like those of clients.
#[rstest]
#[case(json!([{"op": "remove", "path": "/spec/policy"}]), 201, "")]
#[case(json!([{"op": "add", "path": "/spec/unknown", "value": 1}]), 201, "")]
#[case(json!([{"op": "add", "path": "/spec/owner", "value": "ANN"}]), 422,
    "Thing.example.io \"one\" is invalid: spec.owner: Invalid value: \"ANN\": spec.owner in body should match ")]
#[case(json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]), 500,
    "Internal error occurred: add operation does not apply: doc is missing path: \"/metadata/labels/x\": missing value")]
#[case(json!([{"op": "test", "path": "/spec/owner", "value": "bob"}]), 500,
    "Internal error occurred: testing value /spec/owner failed: test failed")]
#[case(json!([{"op": "add", "path": "/metadata/managedFields", "value": []}]), 201, "")]
#[tokio::test]
async fn a_patch_is_not_believed(#[case] operations: Value, #[case] code: u16, #[case] message: &str) {
    let bench = Bench::saying(patch(&operations)).await;
    let rules = json!([{"apiGroups": ["example.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]);
    bench.configure("Mutating", "first", &json!({"rules": rules})).await;
    let thing = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "one"},
                       "spec": {"owner": "ann", "policy": "Drop"}});
    let made = post(&bench.front, "/apis/example.io/v1/namespaces/ns/things", &thing).await;
    assert_eq!(made.code, code, "{}", made.json());
    if code == 201 {
        let policy = if operations[0]["op"] == "remove" { "Keep" } else { "Drop" };
        assert_eq!(made.json()["spec"]["policy"], policy, "defaults are filled in again");
        assert!(made.json()["spec"]["unknown"].is_null());
        assert!(made.json()["metadata"]["managedFields"][0]["manager"].is_string());
    } else {
        assert!(made.json()["message"].as_str().unwrap().starts_with(message), "{}", made.json()["message"]);
        assert_eq!(get(&bench.front, "/apis/example.io/v1/namespaces/ns/things/one").await.code, 404);
    }
}

#[rstest]
#[case(json!({}), 400, "", "denied the request without explanation")]
#[case(json!({"status": {"message": "no more"}}), 400, "", "denied the request: no more")]
#[case(json!({"status": {"reason": "Forbidden", "code": 403}}), 403, "Forbidden", "denied the request: Forbidden")]
#[case(json!({"status": {"message": "later", "code": 200, "status": "Success"}}), 400, "", "denied the request: later")]
#[case(json!({"status": {"message": "m", "reason": "Invalid", "code": 422}}), 422, "Invalid", "denied the request: m")]
#[tokio::test]
async fn a_refusal_is_told_with_the_name_of_the_webhook(
    #[values("Mutating", "Validating")] sort: &str,
    #[values("Fail", "Ignore")] policy: &str,
    #[case] mut response: Value,
    #[case] code: u16,
    #[case] reason: &str,
    #[case] says: &str,
) {
    response["allowed"] = false.into();
    let bench = Bench::saying(response).await;
    bench.configure(sort, "first", &json!({"failurePolicy": policy})).await;
    let refused = bench.put_map("one").await;
    let expected = format!("admission webhook \"first.example.org\" {says}");
    assert_eq!((refused.code, refused.json()["message"].as_str()), (code, Some(expected.as_str())));
    assert_eq!(refused.json()["reason"].as_str().unwrap_or_default(), reason);
    assert_eq!(refused.json()["status"], "Failure");
    assert_eq!(get(&bench.front, &format!("{MAPS}/one")).await.code, 404, "nothing was stored");
}

const POST: &str = "failed to call webhook: Post \"https://hooks.example.org/first?timeout=10s\": ";

fn unreached(why: &str) -> Result<Value, NoAnswer> {
    Err(NoAnswer::Unreached(why.to_owned()))
}

fn refused(code: u16, text: Option<&str>) -> Result<Value, NoAnswer> {
    Err(NoAnswer::Refused { code, text: text.map(str::to_owned) })
}

fn said(response: Value) -> Result<Value, NoAnswer> {
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

#[rstest]
#[case("Validating", unreached("connection refused"), format!("{POST}connection refused"))]
#[case("Mutating", unreached("never"), format!("{POST}context deadline exceeded"))]
#[case("Validating", refused(404, None), "failed to call webhook: the server could not find the requested resource")]
#[case(
    "Validating",
    refused(500, Some("boom\n")),
    "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding"
)]
#[case(
    "Validating",
    refused(302, None),
    "failed to call webhook: the server responded with the status code 302 but did not return more information"
)]
#[case("Validating", Ok(json!([])), "failed to call webhook: ")]
#[case("Validating", Ok(json!({"kind": "AdmissionReview"})), "received invalid webhook response: webhook response was absent")]
#[case("Validating", said(json!({"uid": "other", "allowed": true})),
    format!("received invalid webhook response: expected response.uid=\"{UID}\", got \"other\""))]
#[case("Validating", Ok(json!({"apiVersion": "v1", "kind": "Status", "response": {"uid": UID, "allowed": true}})),
    "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Status")]
#[case("Validating", said(json!({"uid": UID, "allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
    "received invalid webhook response: validating webhook may not return response.patch")]
#[case("Mutating", said(json!({"uid": UID, "allowed": true, "patch": "W10="})),
    "received invalid webhook response: webhook returned response.patch but not response.patchType")]
#[case("Mutating", said(json!({"uid": UID, "allowed": true, "patchType": "JSONPatch"})),
    "received invalid webhook response: webhook returned response.patchType but not response.patch")]
#[case("Mutating", said(json!({"uid": UID, "allowed": true, "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2RhdGEifV0=", "patchType": "Merge"})),
    "unsupported patch type \"Merge\"")]
#[case("Mutating", said(json!({"uid": UID, "allowed": true, "patch": "e30=", "patchType": "JSONPatch"})),
    "received undecodable patch in webhook response: ")]
#[tokio::test(start_paused = true)]
async fn a_webhook_that_has_no_say_is_told_of_or_passed_over(
    #[case] sort: &str,
    #[case] answer: Result<Value, NoAnswer>,
    #[case] why: impl AsRef<str>,
    #[values("Fail", "Ignore")] policy: &str,
) {
    let bench = Bench::new(move |_, _| answer.clone()).await;
    bench.configure(sort, "first", &json!({"failurePolicy": policy})).await;
    let made = bench.put_map("one").await;
    if policy == "Ignore" {
        assert_eq!(made.code, 201, "{}", made.json());
        return;
    }
    let cause = format!("failed calling webhook \"first.example.org\": {}", why.as_ref());
    let status = made.json();
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(&format!("Internal error occurred: {cause}")), "{message}");
    assert_eq!((made.code, &status["reason"]), (500, &json!("InternalError")));
    assert_eq!(
        format!("Internal error occurred: {}", status["details"]["causes"][0]["message"].as_str().unwrap()),
        message
    );
}

/// Ten webhooks of ten seconds each take longer than a write may.
#[tokio::test(start_paused = true)]
async fn a_write_has_thirty_four_seconds_in_all() {
    let bench = Bench::new(|_, _| unreached("never")).await;
    for number in 0..10 {
        bench.configure("Mutating", &format!("hook-{number}"), &json!({"failurePolicy": "Ignore"})).await;
    }
    let begun = tokio::time::Instant::now();
    let late = bench.put_map("one").await;
    assert_eq!((late.code, late.json()["reason"].as_str().unwrap()), (504, "Timeout"));
    assert_eq!(late.json()["message"], "Timeout: request did not complete within requested timeout");
    assert_eq!(begun.elapsed().as_secs(), 34);
    let urls: Vec<String> = bench.fake.asked.lock().iter().map(|(url, _)| url.clone()).collect();
    assert_eq!(urls[3], "https://hooks.example.org/hook-3?timeout=4s", "the last one has what is left: {urls:?}");
    assert_eq!(urls.len(), 4);
}

#[tokio::test]
async fn warnings_go_with_the_answer_whether_it_is_a_refusal_or_not() {
    let bench = Bench::new(|url, review| {
        let allowed = url.contains("/first");
        Ok(answer(review, &json!({"allowed": allowed, "warnings": [format!("of {url}"), "twice", ""]})))
    })
    .await;
    bench.configure("Mutating", "first", &json!({})).await;
    let warnings = |answer: &Answer| -> Vec<String> {
        answer.headers.get_all("warning").iter().map(|it| it.to_str().unwrap().to_owned()).collect()
    };
    let first = "299 - \"of https://hooks.example.org/first?timeout=10s\"";
    assert_eq!(warnings(&bench.put_map("one").await), [first, "299 - \"twice\""]);
    bench.configure("Validating", "second", &json!({})).await;
    let refused = bench.put_map("two").await;
    let second = "299 - \"of https://hooks.example.org/second?timeout=10s\"";
    assert_eq!((refused.code, warnings(&refused)), (400, vec![first.into(), "299 - \"twice\"".into(), second.into()]));
}

#[tokio::test]
async fn a_dry_run_is_told_as_such_and_stores_nothing() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    bench.configure("Validating", "first", &json!({"sideEffects": "NoneOnDryRun"})).await;
    let made = post(&bench.front, &format!("{MAPS}?dryRun=All"), &map("one")).await;
    assert_eq!(made.code, 201);
    let request = &bench.requests()[0];
    assert_eq!((&request["dryRun"], &request["options"]["dryRun"]), (&json!(true), &json!(["All"])));
    assert_eq!(get(&bench.front, &format!("{MAPS}/one")).await.code, 404);
}

#[tokio::test]
async fn deletions_are_judged_by_what_goes_and_can_not_be_changed() {
    let bench = Bench::new(|_, review| {
        let name = review["request"]["oldObject"]["metadata"]["name"].as_str().unwrap_or_default();
        let change = patch(&json!([{"op": "remove", "path": "/data"}]));
        Ok(answer(review, &if name == "changed" { change } else { json!({"allowed": name != "kept"}) }))
    })
    .await;
    for name in ["changed", "kept", "other"] {
        assert_eq!(bench.put_map(name).await.code, 201);
    }
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    bench.configure("Mutating", "first", &json!({"rules": [rule]})).await;
    let delete = async |name: &str| send(&bench.front, "DELETE", &format!("{MAPS}/{name}"), &[], b"").await;
    assert_eq!(delete("kept").await.code, 400);
    let refused = delete("changed").await;
    assert_eq!(
        refused.json()["message"],
        "Internal error occurred: admission webhook \"first.example.org\" attempted to modify the object, which is not supported for this operation"
    );
    assert_eq!(delete("other").await.code, 200);
    let request = bench.requests().pop().unwrap();
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(request["options"]["kind"], "DeleteOptions");
}

/// All objects are reviewed before the first is deleted.
#[tokio::test]
async fn a_collection_goes_as_far_as_webhooks_let_it() {
    let bench = Bench::new(|_, review| {
        let name = &review["request"]["oldObject"]["metadata"]["name"];
        Ok(answer(review, &json!({"allowed": name != "b", "status": {"message": "not b"}})))
    })
    .await;
    for name in ["a", "b", "c"] {
        assert_eq!(bench.put_map(name).await.code, 201);
    }
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    bench.configure("Validating", "first", &json!({"rules": [rule]})).await;
    let refused = send(&bench.front, "DELETE", MAPS, &[], b"").await;
    assert_eq!(refused.json()["message"], "admission webhook \"first.example.org\" denied the request: not b");
    let left = get(&bench.front, MAPS).await.json();
    let left: Vec<&str> =
        left["items"].as_array().unwrap().iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    assert_eq!(left, ["b", "c"]);
    let requests = bench.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request["name"].as_str().is_none_or(str::is_empty)), "none is named");
    let path = format!("{API}/validatingwebhookconfigurations/first");
    assert_eq!(send(&bench.front, "DELETE", &path, &[], b"").await.code, 200);
    assert_eq!(send(&bench.front, "DELETE", MAPS, &[], b"").await.code, 200);
}

/// A server also repeats the review if a write meets a conflict.
#[tokio::test]
async fn a_webhook_is_asked_anew_if_the_object_changes_while_it_thinks() {
    let other: Arc<Mutex<Option<Cluster>>> = Arc::default();
    let intrudes = other.clone();
    let bench = Bench::new(move |_, review| {
        if let Some(cluster) = intrudes.lock().take() {
            let changed = cluster.change("configmaps", "ns", "one", |object| {
                object["data"]["of-another"] = "x".into();
            });
            assert!(changed, "it is there");
        }
        Ok(answer(review, &json!({"allowed": true})))
    })
    .await;
    assert_eq!(bench.put_map("one").await.code, 201);
    bench.configure("Mutating", "first", &json!({})).await;
    bench.configure("Validating", "judge", &json!({})).await;
    *other.lock() = Some(bench.cluster.clone());
    let merge = [("content-type", "application/merge-patch+json")];
    let patched = send(&bench.front, "PATCH", &format!("{MAPS}/one"), &merge, br#"{"data":{"b":"2"}}"#).await;
    assert_eq!(patched.json()["data"], json!({"a": "1", "b": "2", "of-another": "x"}));
    let olds: Vec<Value> = bench.requests().iter().map(|request| request["oldObject"]["data"].clone()).collect();
    let (before, after) = (json!({"a": "1"}), json!({"a": "1", "of-another": "x"}));
    assert_eq!(olds, [before, after.clone(), after], "twice the first, once the second");
}

#[tokio::test]
async fn who_does_not_come_by_the_front_is_not_judged_and_neither_is_what_judges() {
    let bench = Bench::saying(json!({"allowed": false})).await;
    let all = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
    bench.configure("Validating", "first", &json!({"rules": all})).await;
    bench.configure("Mutating", "second", &json!({"rules": all})).await;
    assert_eq!(bench.requests().len(), 0);
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(bench.cluster.client("ns"), "ns");
    let map = serde_json::from_value(map("one")).expect("a ConfigMap");
    maps.create(&kube::api::PostParams::default(), &map).await.expect("the client in process writes as it always did");
    assert_eq!(bench.put_map("two").await.code, 400);
}

#[tokio::test]
async fn a_service_is_named_to_whoever_calls() {
    let place: Arc<Mutex<Vec<(String, WebhookPlace)>>> = Arc::default();
    struct Places(Arc<Mutex<Vec<(String, WebhookPlace)>>>);
    impl Webhooks for Places {
        fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
            assert_eq!((call.ca_bundle.as_slice(), call.timeout), (b"pem".as_slice(), Duration::from_secs(10)));
            self.0.lock().push((call.url, call.place));
            futures::future::ready(Err(NoAnswer::Unreached("no network".to_owned()))).boxed()
        }
    }
    let mut bench = Bench::saying(json!({})).await;
    let options = FrontOptions::open(Arc::new(|| [7; 32]));
    let webhooks: Option<Arc<dyn Webhooks>> = Some(Arc::new(Places(place.clone())));
    bench.front = Front::new(&bench.cluster, FrontOptions { webhooks, ..options });
    let service = json!({"name": "hook", "namespace": "ns", "path": "/judge"});
    let client = json!({"service": service, "caBundle": BASE64_STANDARD.encode("pem")});
    bench.configure("Validating", "first", &json!({"clientConfig": client})).await;
    let refused = bench.put_map("one").await.json();
    let url = "https://hook.ns.svc:443/judge?timeout=10s";
    let why = format!("failed calling webhook \"first.example.org\": failed to call webhook: Post {url:?}: no network");
    assert_eq!(refused["message"], format!("Internal error occurred: {why}"));
    assert_eq!(*place.lock(), [(url.to_owned(), WebhookPlace::Service)]);
}

/// A generated name, a UID and a time stay the same in each attempt, so one review is enough.
#[tokio::test]
async fn what_the_server_makes_up_is_made_up_once() {
    let bench = Bench::saying(json!({"allowed": true})).await;
    bench.configure("Validating", "judge", &json!({})).await;
    bench.configure("Mutating", "first", &json!({})).await;
    let mut object = map("");
    object["metadata"] = json!({"generateName": "one-"});
    let made = post(&bench.front, MAPS, &object).await;
    assert_eq!(made.code, 201);
    let requests = bench.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0]["name"].is_null(), "there is none yet");
    assert_eq!(requests[1]["object"]["metadata"]["name"], made.json()["metadata"]["name"]);
}
