//! Validation of Secrets, Events, Leases and Namespaces.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event as NewEvent, EventType, Recorder, Reporter};
use rstest::rstest;
use serde_json::json;

use super::*;

fn post() -> PostParams {
    PostParams::default()
}

fn merge(value: Value) -> Patch<Value> {
    Patch::Merge(value)
}

#[tokio::test]
async fn string_data_becomes_data_and_the_type_is_opaque() {
    let f = Fixture::new().await;
    let sent = secret_from(json!({
        "metadata": {"name": "s"}, "data": {"a": "MQ==", "b": "MQ=="}, "stringData": {"b": "2"},
    }));
    let made = f.secrets().create(&post(), &sent).await.expect("created");
    assert!(made.string_data.is_none());
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    let data = made.data.expect("data");
    assert_eq!((&data["a"].0[..], &data["b"].0[..]), (&b"1"[..], &b"2"[..]));
    assert!(made.metadata.generation.is_none(), "secrets have no generation");
}

#[tokio::test]
async fn data_keys_sizes_and_encoding_of_secrets() {
    let f = Fixture::new().await;
    let sent = secret_from(json!({"metadata": {"name": "s"}, "stringData": {"a b": "1"}}));
    assert_eq!(fields(&refused(f.secrets().create(&post(), &sent).await)), ["data[a b]"]);
    let sent = secret_from(json!({"metadata": {"name": "s"}, "stringData": {"a": "x".repeat(1024 * 1024 + 1)}}));
    let status = refused(f.secrets().create(&post(), &sent).await);
    assert!(status.message.ends_with("data: Too long: may not be more than 1048576 bytes"), "{}", status.message);
    f.make_secret("t").await;
    let status = refused(f.secrets().patch("t", &PatchParams::default(), &merge(json!({"data": {"a": "%"}}))).await);
    assert_eq!(status.code, 422);
}

#[tokio::test]
async fn the_type_of_a_secret_is_immutable_and_so_is_all_of_an_immutable_one() {
    let f = Fixture::new().await;
    f.make_secret("s").await;
    let params = PatchParams::default();
    let status = refused(f.secrets().patch("s", &params, &merge(json!({"type": "other"}))).await);
    assert_eq!(status.message, r#"Secret "s" is invalid: type: Invalid value: "other": field is immutable"#);
    f.secrets().patch("s", &params, &merge(json!({"immutable": true}))).await.expect("sealed");
    let status = refused(f.secrets().patch("s", &params, &merge(json!({"data": {"key": "eA=="}}))).await);
    assert_eq!(status.message, r#"Secret "s" is invalid: data: Forbidden: field is immutable when `immutable` is set"#);
    let status = refused(f.secrets().patch("s", &params, &merge(json!({"immutable": false}))).await);
    assert_eq!(fields(&status), ["immutable"]);
    f.secrets()
        .patch("s", &params, &merge(json!({"metadata": {"labels": {"a": "b"}}})))
        .await
        .expect("labels may change");
}

#[rstest]
#[case::empty(json!({"data": {}}), false)]
#[case::nothing_to_take_away(json!({"data": {"a": null}}), false)]
#[case::none(json!({"data": null}), true)]
#[case::no_texts(json!({"stringData": {}}), true)]
#[tokio::test]
async fn an_immutable_secret_without_data_gets_no_empty_data(#[case] patch: Value, #[case] accepted: bool) {
    let f = Fixture::new().await;
    let sealed = secret_from(json!({"metadata": {"name": "sealed"}, "data": {}, "immutable": true}));
    let open = secret_from(json!({"metadata": {"name": "open"}}));
    let sealed = f.secrets().create(&post(), &sealed).await.expect("created");
    let open = f.secrets().create(&post(), &open).await.expect("created");
    assert_eq!(sealed.data, None);
    let params = PatchParams { field_manager: Some("other".to_owned()), ..PatchParams::default() };
    let changed = f.secrets().patch("open", &params, &merge(patch.clone())).await.expect("accepted");
    assert_eq!(changed, open, "to one that isn't sealed it is no change");
    match f.secrets().patch("sealed", &params, &merge(patch)).await {
        Ok(same) => assert!(accepted && same == sealed),
        refusal => assert!(!accepted && fields(&refused(refusal)) == ["data"]),
    }
}

#[tokio::test]
async fn a_body_of_the_wrong_type_is_refused() {
    let f = Fixture::new().await;
    let things: Api<DynamicObject> = f.things();
    let mut sent = thing("a");
    sent.types.as_mut().expect("types").kind = "Other".into();
    let status = refused(things.create(&post(), &sent).await);
    assert_eq!(status.message, r#"Other.example.io "a" is invalid: kind: Invalid value: "Other": must be Thing"#);
    let mut sent = thing("a");
    sent.metadata.namespace = Some("elsewhere".into());
    let status = refused(things.create(&post(), &sent).await);
    assert_eq!(status.message, "the namespace of the provided object does not match the namespace sent on the request");
}

fn event(change: impl FnOnce(&mut Value)) -> Event {
    let mut value = json!({
        "metadata": {"name": "e"}, "eventTime": "2030-01-01T00:00:00.000000Z", "type": "Normal",
        "reportingController": "example.io/controller", "reportingInstance": "one",
        "action": "Do", "reason": "Done", "note": "it is done",
        "regarding": {"kind": "Thing", "name": "a", "namespace": "ns"},
    });
    change(&mut value);
    serde_json::from_value(value).expect("an event")
}

#[tokio::test]
async fn events_need_their_fields() {
    let f = Fixture::new().await;
    let events: Api<Event> = Api::namespaced(f.client.clone(), "ns");
    for field in ["action", "reason", "reportingController", "reportingInstance"] {
        let sent = event(|event| event[field] = Value::Null);
        let status = refused(events.create(&post(), &sent).await);
        assert_eq!(fields(&status)[0], field);
        assert!(status.message.starts_with("Event \"e\" is invalid"), "{}", status.message);
    }
    let sent = event(|event| event["note"] = "x".repeat(1025).into());
    assert_eq!(fields(&refused(events.create(&post(), &sent).await)), ["message"]);
    let sent = event(|event| event["type"] = "Odd".into());
    assert_eq!(fields(&refused(events.create(&post(), &sent).await)), ["type"]);
    let sent = event(|event| event["regarding"]["namespace"] = Value::Null);
    assert_eq!(fields(&refused(events.create(&post(), &sent).await)), ["involvedObject.namespace"]);
    events.create(&post(), &event(|event| event["note"] = "x".repeat(1024).into())).await.expect("created");
    let status = refused(events.patch("e", &PatchParams::default(), &merge(json!({"reason": "Other"}))).await);
    assert_eq!(fields(&status), ["reason"]);
}

#[tokio::test]
async fn kubes_recorder_works_and_repeats_become_a_series() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    let reporter = Reporter { controller: "example.io/controller".into(), instance: Some("one".into()) };
    let recorder = Recorder::new(f.client.clone(), reporter);
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.io", "v1", "Thing"));
    let event =
        NewEvent { type_: EventType::Normal, reason: "Done".into(), note: None, action: "Do".into(), secondary: None };
    let about = kube::Resource::object_ref(&made, &kind);
    recorder.publish(&event, &about).await.expect("published");
    recorder.publish(&event, &about).await.expect("published again");
    let events: Api<Event> = Api::namespaced(f.client.clone(), "ns");
    let list = events.list(&Default::default()).await.expect("a list");
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].series.as_ref().expect("a series").count, 2);
}

#[tokio::test]
async fn leases_have_positive_durations() {
    let f = Fixture::new().await;
    let leases: Api<Lease> = Api::namespaced(f.client.clone(), "ns");
    let lease = |seconds: i32| -> Lease {
        serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": seconds}}))
            .expect("a lease")
    };
    assert_eq!(fields(&refused(leases.create(&post(), &lease(0)).await)), ["spec.leaseDurationSeconds"]);
    leases.create(&post(), &lease(15)).await.expect("created");
}

#[tokio::test]
async fn objects_need_a_namespace_that_lives() {
    let f = Fixture::new().await;
    let status = refused(f.things_in("nowhere").create(&post(), &thing("a")).await);
    assert_eq!(status.message, "namespaces \"nowhere\" not found");
    assert!(status.is_not_found());

    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    f.make_thing("a").await;
    namespaces.delete("ns", &DeleteParams::default()).await.expect("accepted");
    let status = refused(f.things().create(&post(), &thing("b")).await);
    assert_eq!(
        status.message,
        "things.example.io \"b\" is forbidden: unable to create new content in namespace ns because it is being terminated"
    );
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    let causes = status.details.expect("details").causes;
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("NamespaceTerminating", "metadata.namespace"));
    let patch = merge(json!({"spec": {"low": 2}}));
    f.things().patch("a", &PatchParams::default(), &patch).await.expect("what is there may change");
}

#[tokio::test]
async fn a_namespace_goes_step_by_step() {
    let f = Fixture::new().await;
    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    f.make_secret("s").await;
    f.make_thing("a").await;
    let hold = merge(json!({"metadata": {"finalizers": ["example.io/hold"]}}));
    f.things().patch("a", &PatchParams::default(), &hold).await.expect("held");
    assert_eq!(f.cluster.finalize_namespaces(), 0, "nothing is terminating");

    let marked = namespaces.delete("ns", &DeleteParams::default()).await.expect("accepted");
    let marked = marked.left().expect("the object");
    assert_eq!(marked.status.expect("a status").phase.as_deref(), Some("Terminating"));
    assert_eq!(f.cluster.finalize_namespaces(), 2, "the secret goes, the thing is marked");
    assert!(f.secrets().get_opt("s").await.expect("an answer").is_none());
    assert!(f.things().get("a").await.expect("still there").metadata.deletion_timestamp.is_some());
    assert_eq!(f.cluster.finalize_namespaces(), 0, "it waits for the thing");

    f.things()
        .patch("a", &PatchParams::default(), &merge(json!({"metadata": {"finalizers": null}})))
        .await
        .expect("released");
    assert_eq!(f.cluster.finalize_namespaces(), 1);
    assert!(namespaces.get_opt("ns").await.expect("an answer").is_none());
}

#[tokio::test]
async fn namespaces_have_labels_and_rules_of_their_own() {
    let f = Fixture::new().await;
    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    let ns = namespaces.get("ns").await.expect("there");
    assert_eq!(ns.labels()["kubernetes.io/metadata.name"], "ns");
    assert_eq!(ns.status.expect("a status").phase.as_deref(), Some("Active"));
    let dotted = serde_json::from_value(json!({"metadata": {"name": "a.b"}})).expect("a namespace");
    let status = refused(namespaces.create(&post(), &dotted).await);
    assert!(status.message.ends_with("must not contain dots"), "{}", status.message);
    let status = refused(namespaces.delete("default", &DeleteParams::default()).await);
    assert!(status.is_forbidden());
}
