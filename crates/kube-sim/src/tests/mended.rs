//! Regression tests for responses that differed from those of kube-apiserver 1.34 (`stowage-proof
//! conformance`). The expected values are the API server's.

use std::sync::atomic::{AtomicI64, Ordering};

use http::Request;
use kube::client::Body;
use rstest::rstest;

use super::*;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const THINGS: &str = "/apis/example.io/v1/namespaces/ns/things";
const SECRETS: &str = "/api/v1/namespaces/ns/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/ns/events";

/// Sends a request. `verb` is a method, or the content type of a PATCH.
async fn ask(f: &Fixture, verb: &str, uri: &str, body: Value) -> Value {
    let (method, content_type) = if verb.contains('/') { ("PATCH", verb) } else { (verb, "application/json") };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(uri).header("content-type", content_type);
    let request = request.body(Body::from(bytes)).expect("a request");
    let answer = f.client.send(request).await.expect("an answer");
    let bytes = answer.into_body().collect_bytes().await.expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn thing_of(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "note": "",
        "eventTime": "2001-02-03T04:05:06.000000Z", "action": "Bind", "reason": "Bound", "type": "Normal",
        "reportingController": "example.io/x", "reportingInstance": "x-1", "regarding": {"namespace": "ns"},
    })
}

fn fields_of<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let entry = entries.into_iter().find(|entry| entry["manager"] == manager);
    &entry.unwrap_or_else(|| panic!("{manager} owns nothing in {object}"))["fieldsV1"]
}

#[tokio::test]
async fn who_brings_a_struct_along_owns_it_beside_its_fields() {
    let f = Fixture::new().await;
    let made = ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), thing_of("a", json!({"owner": "ann"}))).await;
    assert_eq!(fields_of(&made, "x")["f:spec"]["."], json!({}));
    assert_eq!(fields_of(&made, "x")["f:spec"]["f:nested"], json!({".": {}, "f:days": {}, "f:mode": {}}));
    // A Lease always has a spec, so the field `spec` itself has no owner.
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}});
    let lease = ask(&f, "POST", &format!("{LEASES}?fieldManager=x"), lease).await;
    assert_eq!(fields_of(&lease, "x"), &json!({"f:spec": {"f:holderIdentity": {}}}));
}

#[tokio::test]
async fn an_apply_that_changes_nothing_has_no_time() {
    let f = Fixture::new().await;
    ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), thing_of("a", json!({"owner": "ann"}))).await;
    let uri = format!("{THINGS}/a?fieldManager=y");
    let applied = ask(&f, APPLY, &uri, thing_of("a", json!({"owner": "ann"}))).await;
    let entries = applied["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|entry| entry["manager"] == "y").expect("y applied");
    assert!(entry.get("time").is_none(), "{entry}");
}

#[tokio::test]
async fn an_apply_to_the_status_takes_nothing_of_the_spec() {
    let f = Fixture::new().await;
    ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), thing_of("a", json!({"owner": "ann"}))).await;
    let other = thing_of("a", json!({"owner": "bob"}));
    let applied = ask(&f, APPLY, &format!("{THINGS}/a/status?fieldManager=y"), other).await;
    assert_eq!(applied["spec"]["owner"], "ann");
    assert_eq!(fields_of(&applied, "x")["f:spec"]["f:owner"], json!({}));
}

#[tokio::test]
async fn the_first_write_after_a_create_stores_the_default_of_the_status() {
    let f = Fixture::new().await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let made = ask(&f, "POST", THINGS, thing_of("a", json!({"owner": "ann"}))).await;
    let first = ask(&f, MERGE, &format!("{THINGS}/a"), json!({})).await;
    assert_ne!(version(&first), version(&made));
    let second = ask(&f, MERGE, &format!("{THINGS}/a"), json!({})).await;
    assert_eq!(version(&second), version(&first));
}

#[tokio::test]
async fn owners_of_what_has_no_structure_are_forgotten() {
    let f = Fixture::new().await;
    let mut strange = thing_of("strange", json!({"owner": "ann"}));
    strange["status"] = json!({"observed": {}});
    let made = ask(&f, "POST", THINGS, strange).await;
    assert_eq!(made["kind"], "Thing");
    assert!(made["metadata"]["managedFields"].is_null());
    let changed = ask(&f, MERGE, &format!("{THINGS}/strange"), json!({"spec": {"high": 20}})).await;
    assert_eq!(changed["spec"]["high"], 20);
    assert!(changed["metadata"]["managedFields"].is_null());
}

#[tokio::test]
async fn only_an_apply_is_refused_for_a_finalizer_that_stands_twice() {
    let f = Fixture::new().await;
    let mut twice = thing_of("a", json!({"owner": "ann"}));
    twice["metadata"]["finalizers"] = json!(["example.io/a", "example.io/a"]);
    let made = ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), twice.clone()).await;
    assert_eq!(fields_of(&made, "x")["f:metadata"]["f:finalizers"], json!({".": {}, "v:\"example.io/a\"": {}}));
    let applied = ask(&f, APPLY, &format!("{THINGS}/a?fieldManager=y"), twice).await;
    let why = "failed to create typed patch object (/a; example.io/v1, Kind=Thing): .metadata.finalizers: duplicate entries for key [=\"example.io/a\"]";
    assert_eq!((applied["code"].as_u64(), applied["message"].as_str()), (Some(500), Some(why)));
}

#[tokio::test]
async fn conflicts_are_told_with_fields_before_structs_and_the_status_first() {
    let f = Fixture::new().await;
    let whole = json!({"owner": "ann", "nested": {"days": 1}, "policy": "Drop"});
    let mut made = thing_of("a", whole);
    made["metadata"]["labels"] = json!({"k": "1"});
    ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), made).await;
    let status = json!({"metadata": {"labels": {"l": "1"}}});
    ask(&f, MERGE, &format!("{THINGS}/a/status?fieldManager=x"), status).await;
    let mut config = thing_of("a", json!({"owner": "bob", "nested": {"days": 2}, "policy": "Keep"}));
    config["metadata"]["labels"] = json!({"l": "2"});
    let refused = ask(&f, APPLY, &format!("{THINGS}/a?fieldManager=y"), config).await;
    let lines: Vec<&str> = refused["message"].as_str().expect("a message").lines().skip(1).collect();
    assert_eq!(lines[0], "- .metadata.labels.l", "{refused}");
    assert_eq!(lines[2..], ["- .spec.owner", "- .spec.policy", "- .spec.nested.days"]);
}

#[tokio::test]
async fn an_event_is_shown_with_its_empty_structs_and_without_empty_texts() {
    let f = Fixture::new().await;
    let made = ask(&f, "POST", EVENTS, event("a")).await;
    assert_eq!(made["deprecatedSource"], json!({}));
    assert!(made.get("deprecatedFirstTimestamp").is_some_and(Value::is_null));
    assert!(made.get("note").is_none());
}

#[tokio::test]
async fn an_event_that_is_changed_is_held_to_the_rules_of_a_new_one() {
    let f = Fixture::new().await;
    ask(&f, "POST", EVENTS, event("a")).await;
    let refused = ask(&f, MERGE, &format!("{EVENTS}/a"), json!({"reason": "x".repeat(129)})).await;
    let causes = refused["details"]["causes"].as_array().expect("causes");
    let told: Vec<&str> = causes.iter().filter_map(|cause| cause["message"].as_str()).collect();
    assert!(told.contains(&"Invalid value: \"\": can have at most 128 characters"), "{told:?}");
}

#[tokio::test]
async fn numbers_without_a_fraction_are_whole() {
    let f = Fixture::new().await;
    let made = ask(&f, "POST", THINGS, thing_of("a", json!({"owner": "ann", "high": 20.0}))).await;
    assert_eq!(made["spec"]["high"].to_string(), "20");
}

#[tokio::test]
async fn a_name_that_is_on_its_way_out_is_taken_and_said_to_be() {
    let f = Fixture::new().await;
    let mut held = thing_of("a", json!({"owner": "ann"}));
    held["metadata"]["finalizers"] = json!(["example.io/a"]);
    ask(&f, "POST", THINGS, held).await;
    ask(&f, "DELETE", &format!("{THINGS}/a"), Value::Null).await;
    let refused = ask(&f, "POST", THINGS, thing_of("a", json!({"owner": "ann"}))).await;
    assert_eq!(refused["message"], "object is being deleted: things.example.io \"a\" already exists");
}

#[tokio::test]
async fn a_delete_with_a_body_is_not_dry_for_what_its_query_says() {
    let f = Fixture::new().await;
    for (body, gone) in [(Value::Null, false), (json!({}), true)] {
        ask(&f, "POST", LEASES, json!({"metadata": {"name": "a"}})).await;
        ask(&f, "DELETE", &format!("{LEASES}/a?dryRun=All"), body).await;
        let found = ask(&f, "GET", &format!("{LEASES}/a"), Value::Null).await;
        assert_eq!(found["code"] == 404, gone);
    }
}

#[tokio::test]
async fn a_page_is_the_last_when_no_object_is_left_selected_or_not() {
    let f = Fixture::new().await;
    for (name, label) in [("a", "1"), ("b", "2")] {
        ask(&f, "POST", SECRETS, json!({"metadata": {"name": name, "labels": {"l": label}}})).await;
    }
    let page = ask(&f, "GET", &format!("{SECRETS}?labelSelector=l%3D1&limit=1"), Value::Null).await;
    let token = page["metadata"]["continue"].as_str().expect("a token").to_owned();
    let uri = format!("{SECRETS}?labelSelector=l%3D1&limit=1&continue={token}");
    let last = ask(&f, "GET", &uri, Value::Null).await;
    assert_eq!(last["items"], json!([]));
    assert!(last["metadata"]["continue"].is_null());
}

#[tokio::test]
async fn the_page_of_one_name_is_the_last() {
    let f = Fixture::new().await;
    for name in ["a", "b"] {
        ask(&f, "POST", SECRETS, json!({"metadata": {"name": name}})).await;
    }
    let only = |query: &str| format!("{query}?fieldSelector=metadata.name%3Da&limit=1");
    let page = ask(&f, "GET", &only(SECRETS), Value::Null).await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
    assert!(page["metadata"]["continue"].is_null());
    let everywhere = ask(&f, "GET", &only("/api/v1/secrets"), Value::Null).await;
    assert!(everywhere["metadata"]["continue"].is_string(), "{everywhere}");
}

#[tokio::test]
async fn a_dry_apply_that_creates_shows_the_version_that_it_states() {
    let f = Fixture::new().await;
    let config = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "resourceVersion": "7"}});
    let uri = format!("{SECRETS}/a?fieldManager=x");
    let dry = ask(&f, APPLY, &format!("{uri}&dryRun=All"), config.clone()).await;
    assert_eq!(dry["metadata"]["resourceVersion"], "7");
    let made = ask(&f, APPLY, &uri, config).await;
    assert_eq!(made["kind"], "Secret");
    assert_ne!(made["metadata"]["resourceVersion"], "7");
}

#[rstest]
#[case::status_of_a_kind_without("GET", "/api/v1/namespaces/ns/secrets/a/status", json!(null), 404, "the server could not find the requested resource")]
#[case::unknown_subresource("GET", "/apis/example.io/v1/namespaces/ns/things/a/scale", json!(null), 404, "things.example.io \"a\" not found")]
#[case::no_resource_of_the_core("GET", "/api/v1/namespaces/ns/scale", json!(null), 404, "the server could not find the requested resource")]
#[case::no_version_of_a_group("GET", "/apis/events.k8s.io/v9/namespaces/ns/events", json!(null), 404, "the server could not find the requested resource")]
#[case::all_namespaces("DELETE", "/api/v1/namespaces", json!(null), 405, "the server does not allow this method on the requested resource")]
#[case::dry_run("POST", "/api/v1/namespaces/ns/secrets?dryRun=Some", json!({"metadata": {"name": "a"}}), 422, "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"")]
#[case::put_without_a_name("PUT", THINGS, json!({}), 400, "name must be provided")]
#[case::another_format("text/plain", "/api/v1/namespaces/ns/secrets/a", json!({}), 415, "415: Unsupported Media Type")]
#[case::field_of_a_lease("GET", "/apis/coordination.k8s.io/v1/namespaces/ns/leases?fieldSelector=spec.x%3D1", json!(null), 400, "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
#[tokio::test]
async fn requests_that_nobody_should_send(
    #[case] verb: &str,
    #[case] uri: &str,
    #[case] body: Value,
    #[case] code: u64,
    #[case] message: &str,
) {
    let f = Fixture::new().await;
    let refused = ask(&f, verb, uri, body).await;
    assert_eq!((refused["code"].as_u64(), refused["message"].as_str()), (Some(code), Some(message)));
}

#[tokio::test]
async fn a_precondition_names_an_event_without_its_group() {
    let f = Fixture::new().await;
    ask(&f, "POST", LEASES, json!({"metadata": {"name": "a"}})).await;
    ask(&f, "POST", EVENTS, event("a")).await;
    for (collection, kind) in [(LEASES, "Lease.coordination.k8s.io"), (EVENTS, "Event")] {
        let options = json!({"preconditions": {"resourceVersion": "1"}});
        let refused = ask(&f, "DELETE", &format!("{collection}/a"), options).await;
        let start = format!("Operation cannot be fulfilled on {kind} \"a\": ");
        assert!(refused["message"].as_str().is_some_and(|text| text.starts_with(&start)), "{refused}");
        assert_eq!(refused["details"]["group"].is_null(), kind == "Event");
    }
}

#[tokio::test]
async fn what_was_there_before_the_first_apply_has_a_manager_of_its_own() {
    let f = Fixture::new().await;
    let secret = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"a": "Yg=="}, "type": "Opaque"});
    ask(&f, "POST", &format!("{SECRETS}?fieldManager=alpha"), secret).await;
    let uri = format!("{SECRETS}/a");
    ask(&f, MERGE, &uri, json!({"metadata": {"managedFields": [{}]}})).await;
    let config = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"x": "z"}}, "type": "Opaque"});
    let refused = ask(&f, APPLY, &format!("{uri}?fieldManager=beta"), config.clone()).await;
    let expected = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .metadata.labels.x";
    assert_eq!(refused["message"], expected);
    let forced = ask(&f, APPLY, &format!("{uri}?fieldManager=beta&force=true"), config).await;
    let before = json!({"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {}}, "f:type": {}});
    assert_eq!(fields_of(&forced, "before-first-apply"), &before);
}

#[tokio::test]
async fn of_another_name_and_a_conflict_the_conflict_is_told() {
    let f = Fixture::new().await;
    ask(&f, "POST", &format!("{EVENTS}?fieldManager=alpha"), event("c")).await;
    let mut config = event("other");
    let uri = format!("{EVENTS}/c?fieldManager=alpha");
    let refused = ask(&f, APPLY, &uri, config.clone()).await;
    assert_eq!(refused["message"], "the name of the object (other) does not match the name on the URL (c)");
    config["regarding"]["name"] = json!("a");
    let refused = ask(&f, APPLY, &uri, config).await;
    let expected = "Apply failed with 1 conflict: conflict with \"alpha\" using events.k8s.io/v1: .regarding";
    assert_eq!((&refused["code"], &refused["message"]), (&json!(409), &json!(expected)));
}

#[rstest]
#[case::removed("application/json-patch+json", json!([{"op": "remove", "path": "/metadata"}]))]
#[case::null(MERGE, json!({"metadata": null}))]
#[tokio::test]
async fn a_patch_that_leaves_no_metadata_leaves_no_name(#[case] format: &str, #[case] patch: Value) {
    let f = Fixture::new().await;
    ask(&f, "POST", SECRETS, json!({"metadata": {"name": "a"}})).await;
    let refused = ask(&f, format, &format!("{SECRETS}/a"), patch).await;
    let expected = "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!((&refused["code"], &refused["message"]), (&json!(400), &json!(expected)));
}

#[tokio::test]
async fn a_finalizer_that_stands_twice_is_another_one_than_that_which_stands_once() {
    let f = Fixture::new().await;
    let (a, b) = ("e.io/a", "e.io/b");
    let owners_after = async |verb: &str, path: &str, manager: &str, finalizers: &[&str]| {
        let body = json!({"metadata": {"name": "s", "finalizers": finalizers}});
        let object = ask(&f, verb, &format!("{SECRETS}{path}?fieldManager={manager}"), body).await;
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let owner_of = |name: &str| {
            let step = format!("v:{name:?}");
            let owns = |entry: &&Value| entry["fieldsV1"]["f:metadata"]["f:finalizers"].get(&step).is_some();
            entries.iter().find(owns).map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned())
        };
        [owner_of(a), owner_of(b)].map(Option::unwrap_or_default)
    };
    assert_eq!(owners_after("POST", "", "x", &[a, a]).await, ["x", ""]);
    assert_eq!(owners_after("PUT", "/s", "y", &[a, a, b]).await, ["x", "y"]);
    assert_eq!(owners_after("PUT", "/s", "y", &[a, b]).await, ["y", "y"]);
    assert_eq!(owners_after("PUT", "/s", "z", &[a, b, b]).await, ["y", "z"]);
    assert_eq!(owners_after("PUT", "/s", "w", &[a, b, b, b]).await, ["y", "w"]);
    assert_eq!(owners_after("PUT", "/s", "v", &[a]).await, ["y", ""]);
}

#[tokio::test]
async fn a_write_that_moves_its_manager_behind_another_is_one() {
    let seconds = Arc::new(AtomicI64::new(1_900_000_000));
    let clock = seconds.clone();
    let now = move || Timestamp::from_second(clock.load(Ordering::Relaxed)).expect("a time");
    let cluster = Cluster::new(Arc::new(now), 7);
    cluster.install_crd(&parse(definition())).expect("the definition is sound");
    let f = Fixture { client: cluster.client("ns"), cluster };
    f.make_namespace("ns").await;
    ask(&f, "POST", &format!("{THINGS}?fieldManager=x"), thing_of("a", json!({"owner": "ann"}))).await;
    let mut seen = Vec::new();
    // A request to `status` does not change labels, but its manager becomes their owner.
    for (manager, after) in [("b", 1), ("c", 0), ("b", 1), ("b", 1)] {
        seconds.fetch_add(after, Ordering::Relaxed);
        let labels = json!({"metadata": {"labels": {manager: "v"}}});
        let thing = ask(&f, MERGE, &format!("{THINGS}/a/status?fieldManager={manager}"), labels).await;
        let entries = thing["metadata"]["managedFields"].as_array().expect("managers").iter();
        let order: String = entries.filter_map(|entry| entry["manager"].as_str()).collect();
        seen.push((order, thing["metadata"]["resourceVersion"].clone()));
    }
    let orders: Vec<&str> = seen.iter().map(|(order, _)| order.as_str()).collect();
    assert_eq!(orders, ["xb", "xbc", "xcb", "xcb"]);
    assert_ne!(seen[2].1, seen[1].1, "another order is stored");
    assert_eq!(seen[3].1, seen[2].1, "another time is not");
}
