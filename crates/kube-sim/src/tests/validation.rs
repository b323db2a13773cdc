//! Schemas and rules: rejected values and the messages for them, dropped fields, defaults, and
//! ratcheting.

use http::Request;
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use kube::client::Body;
use serde_json::json;
use tower::Service as _;

use super::*;

async fn refusal(spec: Value) -> Status {
    let f = Fixture::new().await;
    refused(f.things().create(&PostParams::default(), &thing_with("x", spec)).await)
}

/// Returns the part of the message that lists the errors.
fn errors(status: &Status) -> &str {
    assert_eq!(status.code, 422, "{status:?}");
    assert_eq!(status.reason, "Invalid");
    status.message.strip_prefix("Thing.example.io \"x\" is invalid: ").unwrap_or(&status.message)
}

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

#[tokio::test]
async fn the_words_of_single_errors() {
    let blocking = [
        (json!({}), "spec.owner: Required value"),
        (json!({"owner": null}), "spec.owner: Required value"),
        (
            json!({"owner": "ann", "policy": "Lose"}),
            r#"spec.policy: Unsupported value: "Lose": supported values: "Keep", "Drop""#,
        ),
        (json!({"owner": "abcdefghijk"}), "spec.owner: Too long: may not be more than 10 bytes"),
        (
            json!({"owner": 7}),
            r#"spec.owner: Invalid value: "integer": spec.owner in body must be of type string: "integer""#,
        ),
        (json!({"owner": "ann", "names": ["a", "b", "c", "d"]}), "spec.names: Too many: 4: must have at most 3 items"),
        (json!({"owner": "ann", "names": ["abcdef"]}), "spec.names[0]: Too long: may not be more than 5 bytes"),
        (
            json!({"owner": "ann", "high": "5"}),
            r#"spec.high: Invalid value: "string": spec.high in body must be of type integer: "string""#,
        ),
        (
            json!({"owner": "ann", "size": true}),
            r#"spec.size: Invalid value: "boolean": spec.size in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"owner": "ann", "words": {"a": 1}}),
            r#"spec.words.a: Invalid value: "integer": spec.words.a in body must be of type string: "integer""#,
        ),
    ];
    for (spec, expected) in blocking {
        assert_eq!(errors(&refusal(spec.clone()).await), format!("[{expected}, {UNCHECKED}]"), "{spec}");
    }
    let plain = [
        (json!({"owner": "Ann"}), r#"spec.owner: Invalid value: "Ann": spec.owner in body should match '^[a-z]+$'"#),
        (
            json!({"owner": "ann", "low": -1}),
            "spec.low: Invalid value: -1: spec.low in body should be greater than or equal to 0",
        ),
        (
            json!({"owner": "ann", "low": 101, "high": 500}),
            "spec.low: Invalid value: 101: spec.low in body should be less than or equal to 100",
        ),
        (json!({"owner": "ann", "names": ["a", "b", "a"]}), r#"spec.names[2]: Duplicate value: "a""#),
        (json!({"owner": "ann", "low": 11}), r#"spec.low: Invalid value: "object": low must not be above high"#),
    ];
    for (spec, expected) in plain {
        assert_eq!(errors(&refusal(spec.clone()).await), expected, "{spec}");
    }
}

#[tokio::test]
async fn every_error_is_a_cause() {
    let status = refusal(json!({"owner": "", "policy": "Lose"})).await;
    assert_eq!(fields(&status), ["spec.owner", "spec.policy", "<nil>"]);
    let details = status.details.expect("details");
    assert_eq!((details.group.as_str(), details.kind.as_str(), details.name.as_str()), ("example.io", "Thing", "x"));
    let causes: Vec<_> = details.causes.iter().map(|cause| (cause.reason.as_str(), cause.message.as_str())).collect();
    assert_eq!(
        causes[0],
        ("FieldValueInvalid", r#"Invalid value: "": spec.owner in body should be at least 1 chars long"#)
    );
    assert_eq!(causes[1].0, "FieldValueNotSupported");
}

#[tokio::test]
async fn lengths_count_characters() {
    let f = Fixture::new().await;
    let spec = json!({"owner": "ann", "names": ["äöüßé"]});
    f.things().create(&PostParams::default(), &thing_with("a", spec)).await.expect("five characters");
}

#[tokio::test]
async fn int_or_string_takes_both() {
    let f = Fixture::new().await;
    for (name, size) in [("a", json!(5)), ("b", json!("5Gi"))] {
        let made =
            f.things().create(&PostParams::default(), &thing_with(name, json!({"owner": "ann", "size": size}))).await;
        assert_eq!(made.expect("created").data["spec"]["size"], size);
    }
}

#[tokio::test]
async fn root_rules_see_the_name() {
    let f = Fixture::new().await;
    let status = refused(f.things().create(&PostParams::default(), &thing("forbidden")).await);
    assert!(
        status.message.ends_with(r#"is invalid: <nil>: Invalid value: "object": no thing may be called forbidden"#),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn transition_rules_hold_on_update_only_and_point_at_their_field() {
    let f = Fixture::new().await;
    f.things()
        .create(&PostParams::default(), &thing_with("x", json!({"owner": "ann", "fixed": "1"})))
        .await
        .expect("created");
    for fixed in [json!("2"), Value::Null] {
        let patch = Patch::Merge(json!({"spec": {"fixed": fixed}}));
        let status = refused(f.things().patch("x", &PatchParams::default(), &patch).await);
        assert_eq!(errors(&status), r#"spec.fixed: Invalid value: "object": fixed is immutable"#);
    }
    f.make_thing("y").await;
    let set = Patch::Merge(json!({"spec": {"fixed": "1"}}));
    let status = refused(f.things().patch("y", &PatchParams::default(), &set).await);
    assert_eq!(fields(&status), ["spec.fixed"]);
}

#[tokio::test]
async fn a_status_is_checked_by_its_own_schema() {
    let f = Fixture::new().await;
    f.make_thing("x").await;
    let patch = Patch::Merge(json!({"status": {
        "phase": "Old", "conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}, {"type": "B"}],
    }}));
    let status = refused(f.things().patch_status("x", &PatchParams::default(), &patch).await);
    assert_eq!(
        errors(&status),
        format!(
            "[status.conditions[2].status: Required value, status.phase: Unsupported value: \"Old\": supported values: \"New\", \"Done\", status.conditions[1]: Duplicate value: {{\"type\":\"A\"}}, {UNCHECKED}]"
        )
    );
}

/// Sends a raw request and returns its status code, warnings and body.
async fn raw(f: &Fixture, method: &str, uri: &str, content_type: &str, body: &Value) -> (u16, Vec<String>, Value) {
    use http_body_util::BodyExt as _;
    let request = Request::builder().method(method).uri(uri).header("content-type", content_type);
    let request = request.body(Body::from(body.to_string().into_bytes())).expect("a request");
    let response = f.cluster.service().call(request).await.expect("the service never fails");
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().expect("text").to_owned()).collect();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (code, warnings, serde_json::from_slice(&bytes).expect("JSON"))
}

const THINGS: &str = "/apis/example.io/v1/namespaces/ns/things";

fn with_unknown(name: &str) -> Value {
    json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": name, "odd": 1},
        "spec": {"owner": "ann", "strange": {"a": 1}},
    })
}

#[tokio::test]
async fn unknown_fields_follow_field_validation() {
    let f = Fixture::new().await;
    let json = "application/json";
    let (code, warnings, made) = raw(&f, "POST", THINGS, json, &with_unknown("warn")).await;
    assert_eq!(code, 201);
    assert_eq!(warnings, [r#"299 - "unknown field \"metadata.odd\"""#, r#"299 - "unknown field \"spec.strange\"""#]);
    assert!(made["spec"].get("strange").is_none());

    let (code, warnings, _) =
        raw(&f, "POST", &format!("{THINGS}?fieldValidation=Ignore"), json, &with_unknown("quiet")).await;
    assert_eq!((code, warnings.len()), (201, 0));

    let (code, _, status) =
        raw(&f, "POST", &format!("{THINGS}?fieldValidation=Strict"), json, &with_unknown("strict")).await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        r#"Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "metadata.odd", unknown field "spec.strange""#
    );

    let patch = json!({"spec": {"strange": 1}});
    let uri = format!("{THINGS}/warn?fieldValidation=Strict");
    let (code, _, status) = raw(&f, "PATCH", &uri, "application/merge-patch+json", &patch).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("patch")));
}

#[tokio::test]
async fn kube_asks_for_strictness_the_same_way() {
    let f = Fixture::new().await;
    f.make_thing("x").await;
    let params = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"strange": 1}}));
    assert_eq!(refused(f.things().patch("x", &params, &patch).await).code, 422);
}

#[tokio::test]
async fn what_was_bad_before_and_is_unchanged_only_warns() {
    let f = Fixture::new().await;
    f.things()
        .create(&PostParams::default(), &thing_with("x", json!({"owner": "ann", "low": 9, "names": ["a"]})))
        .await
        .expect("created");
    // The stricter definition makes each of these values invalid.
    let mut stricter = definition();
    let schema = &mut stricter["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["owner"]["pattern"] = "^b".into();
    schema["properties"]["spec"]["properties"]["low"]["maximum"] = 5.into();
    schema["properties"]["spec"]["properties"]["names"]["x-kubernetes-validations"] =
        json!([{"rule": "self.size() > 1", "message": "more names"}]);
    f.cluster.install_crd(&parse(stricter)).expect("installed");

    let merge = "application/merge-patch+json";
    let uri = format!("{THINGS}/x");
    let (code, warnings, _) = raw(&f, "PATCH", &uri, merge, &json!({"spec": {"high": 20}})).await;
    assert_eq!(code, 200);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let (code, ..) = raw(&f, "PATCH", &format!("{uri}/status"), merge, &json!({"status": {"phase": "New"}})).await;
    assert_eq!(code, 200);
    let (code, ..) = raw(&f, "PATCH", &uri, merge, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(code, 200);
    for changed in [json!({"owner": "cat"}), json!({"low": 8}), json!({"names": ["b"]})] {
        let (code, ..) = raw(&f, "PATCH", &uri, merge, &json!({"spec": changed})).await;
        assert_eq!(code, 422);
    }
}

#[tokio::test]
async fn metadata_is_checked_for_every_kind() {
    let f = Fixture::new().await;
    for (metadata, field) in [
        (json!({"name": "Bad_Name"}), "metadata.name"),
        (json!({}), "metadata.name"),
        (json!({"name": "x", "labels": {"a b": "c"}}), "metadata.labels"),
        (json!({"name": "x", "labels": {"a": "b c"}}), "metadata.labels"),
        (json!({"name": "x", "annotations": {"a/b/c": ""}}), "metadata.annotations"),
        (json!({"name": "x", "finalizers": ["a b"]}), "metadata.finalizers"),
        (
            json!({"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "", "uid": "1"}]}),
            "metadata.ownerReferences.name",
        ),
        (
            json!({"name": "x", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "1", "controller": true},
                {"apiVersion": "v1", "kind": "Secret", "name": "b", "uid": "2", "controller": true},
            ]}),
            "metadata.ownerReferences",
        ),
    ] {
        let status =
            refused(f.secrets().create(&PostParams::default(), &secret_from(json!({"metadata": metadata}))).await);
        assert_eq!(fields(&status), [field], "{metadata}");
        let mut sent = thing("x");
        sent.metadata = serde_json::from_value(metadata).expect("metadata");
        let status = refused(f.things().create(&PostParams::default(), &sent).await);
        assert_eq!(fields(&status)[0], field);
    }
}

#[tokio::test]
async fn nonsense_is_refused_and_does_no_harm() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let version = f.cluster.resource_version();
    let head = |rest: Value| {
        let mut body = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "b"}});
        body.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
        body
    };
    let bodies = [
        json!(null),
        json!(5),
        json!("text"),
        json!([]),
        json!({}),
        json!({"kind": 5, "apiVersion": []}),
        head(json!({"metadata": 5})),
        head(json!({"metadata": {"name": 5}})),
        head(json!({"metadata": {"name": "b", "labels": []}})),
        head(json!({"metadata": {"name": "b", "ownerReferences": {}}})),
        head(json!({"spec": 5})),
        head(json!({"spec": []})),
    ];
    for body in &bodies {
        for (method, uri, content_type) in [
            ("POST", THINGS.to_owned(), "application/json"),
            ("PUT", format!("{THINGS}/a"), "application/json"),
            ("PUT", format!("{THINGS}/a/status"), "application/json"),
            ("PATCH", format!("{THINGS}/a"), "application/json-patch+json"),
            ("PATCH", format!("{THINGS}/b?fieldManager=m"), "application/apply-patch+yaml"),
            ("PATCH", format!("{THINGS}/a?fieldManager=m"), "application/nonsense"),
        ] {
            if content_type.contains("json-patch") && *body == json!([]) {
                continue;
            }
            let (code, _, status) = raw(&f, method, &uri, content_type, body).await;
            assert!(code >= 400 && status["kind"] == "Status", "{method} {uri} {body}: {code} {status}");
        }
    }
    for root in [json!(5), json!({}), json!({"metadata": []})] {
        let patch = json!([{"op": "replace", "path": "", "value": root}]);
        let (code, ..) = raw(&f, "PATCH", &format!("{THINGS}/a"), "application/json-patch+json", &patch).await;
        assert!(code >= 400, "{patch}: {code}");
    }
    assert_eq!(f.cluster.resource_version(), version);
}

#[test]
fn definitions_that_a_server_refuses() {
    let cluster = empty_cluster();
    let refuse = |change: &dyn Fn(&mut Value)| {
        let mut broken = definition();
        change(&mut broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]);
        let status = cluster.install_crd(&parse(broken)).expect_err("refused");
        fields(&status).join(" ")
    };
    let path = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
    let owner = |name: &str, value: Value| refuse(&|spec| spec["properties"]["owner"][name] = value.clone());
    assert_eq!(owner("type", Value::Null), format!("{path}.properties[owner].type"));
    assert_eq!(owner("type", "text".into()), format!("{path}.properties[owner].type"));
    assert_eq!(owner("pattern", "(".into()), format!("{path}.properties[owner].pattern"));
    assert_eq!(owner("default", "UPPER".into()), format!("{path}.properties[owner].default"));
    let rule = json!([{"rule": "self ===", "message": "x"}]);
    assert_eq!(
        owner("x-kubernetes-validations", rule),
        format!("{path}.properties[owner].x-kubernetes-validations[0].rule")
    );
    assert_eq!(
        refuse(&|spec| spec["properties"]["names"]["items"] = Value::Null),
        format!("{path}.properties[names].items")
    );
    let mut misnamed = definition();
    misnamed["metadata"]["name"] = "other".into();
    assert_eq!(fields(&cluster.install_crd(&parse(misnamed)).expect_err("refused")), ["metadata.name"]);
    assert!(cluster.objects().iter().all(|object| object.plural != "customresourcedefinitions"));
}
