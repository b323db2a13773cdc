//! kube-runtime's `Controller` with its finalizer helper, on the simulated API and with paused
//! time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::{Controller, watcher};
use serde_json::json;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

struct Context {
    client: Client,
    cleaned: Mutex<BTreeSet<String>>,
}

async fn reconcile(thing: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, Failed> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.io", "v1", "Thing"));
    let things: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), "ns", &kind);
    let work = |event| async {
        match event {
            Event::Apply(thing) => provide(&context.client, &things, &thing).await,
            Event::Cleanup(thing) => {
                context.cleaned.lock().expect("no panic").insert(thing.name_any());
                Ok(Action::await_change())
            }
        }
    };
    finalizer(&things, "example.io/hold", thing, work).await.map_err(|error| Failed(error.to_string()))
}

/// Creates a secret owned by the thing, and updates the thing's status.
async fn provide(client: &Client, things: &Api<DynamicObject>, thing: &DynamicObject) -> Result<Action, kube::Error> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": thing.name_any(), "ownerReferences": [{
            "apiVersion": "example.io/v1", "kind": "Thing", "controller": true,
            "name": thing.name_any(), "uid": thing.uid(),
        }]},
        "stringData": {"owner": thing.data["spec"]["owner"]},
    });
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), "ns");
    let params = PatchParams::apply("controller").force();
    secrets.patch(&thing.name_any(), &params, &Patch::Apply(&secret)).await?;
    let status = json!({
        "apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {"name": thing.name_any()}, "status": {"phase": "Done"},
    });
    things.patch_status(&thing.name_any(), &params, &Patch::Apply(&status)).await?;
    Ok(Action::requeue(Duration::from_secs(3600)))
}

#[tokio::test(start_paused = true)]
async fn a_controller_runs_its_objects_through_their_lives() {
    let f = Fixture::new().await;
    let context = Arc::new(Context { client: f.client.clone(), cleaned: Mutex::default() });
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.io", "v1", "Thing"));
    let controller = Controller::new_with(f.things(), watcher::Config::default(), kind)
        .owns(f.secrets(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), context.clone())
        .for_each(|_| async {});
    let running = tokio::spawn(controller);

    for name in ["a", "b", "c"] {
        f.make_thing(name).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    for name in ["a", "b", "c"] {
        let thing = f.things().get(name).await.expect("there");
        assert_eq!(thing.data["status"]["phase"], "Done");
        assert_eq!(thing.finalizers(), ["example.io/hold"]);
        assert_eq!(thing.metadata.generation, Some(1));
        assert!(f.secrets().get_opt(name).await.expect("an answer").is_some());
    }

    // A deleted secret is created again, across many watch renewals.
    f.secrets().delete("b", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert!(f.secrets().get_opt("b").await.expect("an answer").is_some());

    let quiet = f.cluster.resource_version();
    tokio::time::sleep(Duration::from_secs(4000)).await;
    assert_eq!(f.cluster.resource_version(), quiet, "periodic passes change nothing");

    f.things().delete("a", &DeleteParams::default()).await.expect("accepted");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(f.things().get_opt("a").await.expect("an answer").is_none());
    assert_eq!(*context.cleaned.lock().expect("no panic"), BTreeSet::from(["a".to_owned()]));
    assert_eq!(f.cluster.collect_garbage(), 1);
    assert!(f.secrets().get_opt("a").await.expect("an answer").is_none());
    running.abort();
}
