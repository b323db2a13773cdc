//! What a store answers to the operator's client.
//!
//! The first line of an input is what the client is asked to do, the rest what the store says:
//! answers, with a line `----` between two. Each begins with a line of its status and, if it names
//! one, the region of the bucket; the rest of it is the body. The last one is said to all that is
//! asked later.

mod judge;
mod script;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{SharedHttpConnector, http_client_fn};
use kube::client::Body;
use serde_json::json;
use stowage_operator::Metrics;
use stowage_operator::api::{Backend, BucketName, SecretKey, Unlabelled};
use stowage_operator::mandate::Mandate;
use stowage_operator::upstream::{Access, Limits, RustlsConnect, Upstream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, service_fn};

use script::{Script, Store};

/// Objects that one slice of emptying may delete.
const SLICE: u32 = 3000;
/// More calls than anything makes to a store that says the same again and again.
const MOST_CALLS: usize = 2000;

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Has the client do what the input says, and judges what it makes of the answers.
pub(crate) fn play(input: &[u8]) {
    let Some(script) = Script::read(input) else { return };
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(async {
            judge::judge(&script).await;
            judge::cut(&script).await;
            // What the clients have spawned ends when it is polled, and all else is ready at once.
            tokio::task::yield_now().await;
        });
    });
}

fn bucket() -> BucketName {
    BucketName::parse("photos").expect("a name")
}

/// A client of that store, in region `us-east-1`.
fn client(store: &Store) -> Upstream {
    let nobody = service_fn(async |_: http::Request<Body>| {
        Err::<http::Response<Body>, _>(BoxError::from("there is no API server"))
    });
    let access = Access {
        client: kube::Client::new(nobody, "default"),
        connect: Arc::new(RustlsConnect),
        limits: Limits { calls: 8, timeout: Duration::from_secs(10) },
        mandate: Mandate::Always,
        namespaces: Vec::new(),
        unlabelled: Unlabelled::Refused,
        recoveries: unbounded_channel().0,
        metrics: Metrics::new(),
    };
    let backend = serde_json::from_value(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main"},
        "spec": {"endpoint": "http://s3.example", "adminCredentialsSecretRef": {"name": "a", "namespace": "b"}},
    }));
    let backend = Backend::parse(&backend.expect("a backend")).expect("one that can be read");
    let connector = SharedHttpConnector::new(store.clone());
    let http = http_client_fn(move |_, _| connector.clone());
    Upstream::new(&backend, "id", &SecretKey::new("key".to_owned()), http, &access)
}
