//! Objects in protobuf, as typed Go clients send them to the simulated Kubernetes API.
//!
//! The first line of an input is a kind, and the rest an object of that kind as an encoded message.
//! It is created with a dry run.

use std::cell::RefCell;
use std::sync::Arc;

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;
use kube_front::{Front, FrontOptions};
use kube_sim::Cluster;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// Kinds: the name in an input, `apiVersion`, `kind`, and the path for creation.
const KINDS: [(&str, &str, &str, &str); 8] = [
    ("map", "v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"),
    ("secret", "v1", "Secret", "/api/v1/namespaces/default/secrets"),
    ("service", "v1", "Service", "/api/v1/namespaces/default/services"),
    ("namespace", "v1", "Namespace", "/api/v1/namespaces"),
    ("lease", "coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
    ("event", "events.k8s.io/v1", "Event", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ("deployment", "apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments"),
    (
        "definition",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ),
];

/// Metadata that the server sets.
const STAMPS: [&str; 5] = ["uid", "creationTimestamp", "generation", "managedFields", "resourceVersion"];

thread_local! {
    static SERVER: RefCell<Option<(Runtime, Front)>> = const { RefCell::new(None) };
}

/// Creates the object of the input. It must be accepted or rejected with a client error. An
/// accepted object must stay the same when it is created from the JSON of the response.
pub(crate) fn play(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (word, message) = (&input[..end], &input[end + 1..]);
    let Some((_, api_version, kind, path)) = KINDS.iter().find(|(name, ..)| name.as_bytes() == word) else { return };
    SERVER.with_borrow_mut(|server| {
        let (runtime, front) = server.get_or_insert_with(server_of_its_own);
        runtime.block_on(async {
            let body = envelope(api_version, kind, message);
            let (code, answer) = create(front, path, "application/vnd.kubernetes.protobuf", body).await;
            if code != StatusCode::CREATED {
                assert!(code.is_client_error(), "{code}: {answer}");
                return;
            }
            let object = unstamped(answer);
            let (code, again) = create(front, path, "application/json", object.to_string().into_bytes()).await;
            assert_eq!(code, StatusCode::CREATED, "{object} is not taken as JSON: {again}");
            assert_eq!(object, unstamped(again), "it is another as JSON");
        });
    });
}

fn server_of_its_own() -> (Runtime, Front) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let front = {
        let _inside = runtime.enter();
        Front::new(&Cluster::new(Arc::new(|| Timestamp::UNIX_EPOCH), 1), FrontOptions::open(Arc::new(|| [7; 32])))
    };
    (runtime, front)
}

/// Encodes `k8s\0` and a `runtime.Unknown` with this type and message.
fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &types), field(2, message)].concat()
}

/// Encodes a length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        field.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    field.push(length.to_le_bytes()[0]);
    field.extend_from_slice(content);
    field
}

async fn create(front: &Front, path: &str, media_type: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = Request::post(format!("{path}?dryRun=All")).header("content-type", media_type);
    let request = request.body(Body::from(body)).expect("a request");
    let (head, body) = front.clone().oneshot(request).await.expect("it can't fail").into_parts();
    let text = body.collect().await.expect("a whole body").to_bytes();
    (head.status, serde_json::from_slice(&text).expect("an answer is JSON"))
}

/// Removes metadata that the server sets, and `generateName`, which the first response has resolved
/// to a name.
fn unstamped(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !STAMPS.contains(&name.as_str()));
        metadata.remove("generateName");
    }
    object
}
