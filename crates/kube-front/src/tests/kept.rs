//! Tests of a cluster that outlives the process: it is restored from the writes through a front
//! that its keeper recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_sim::{Keeper, Kept};
use parking_lot::Mutex;
use serde_json::json;

use super::front::{front, get, post, send};
use super::{definition, empty_cluster};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Keeps the last state of each object, by plural, namespace and name.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<(String, String, String), Kept>>);

impl Memory {
    fn all(&self) -> Vec<Kept> {
        self.0.lock().values().cloned().collect()
    }
}

impl Keeper for Memory {
    fn keep(&self, kept: Kept) {
        let place = (kept.plural.clone(), kept.namespace.clone(), kept.name.clone());
        let mut all = self.0.lock();
        match kept.object {
            Some(_) => drop(all.insert(place, kept)),
            None => drop(all.remove(&place)),
        }
    }

    fn cleared(&self) {
        self.0.lock().clear();
    }
}

fn has_things(kept: &[Kept]) -> bool {
    kept.iter().any(|one| one.plural == "things")
}

/// The deletion of a definition waits for its objects, unless its finalizer is removed.
#[tokio::test]
async fn objects_go_with_a_definition_that_does_not_wait_for_them() {
    let (cluster, keeper) = (empty_cluster(), Arc::new(Memory::default()));
    let front = front(&cluster);
    cluster.keep_with(keeper.clone(), true);
    assert_eq!(post(&front, DEFINITIONS, &definition()).await.code, 201);
    let things = "/apis/example.io/v1/namespaces/default/things";
    let thing = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "spec": {"owner": "ann"},
        "metadata": {"name": "t", "finalizers": ["example.io/hold"]},
    });
    assert_eq!(post(&front, things, &thing).await.code, 201);
    let path = format!("{DEFINITIONS}/things.example.io");
    assert_eq!(send(&front, "DELETE", &path, &[], b"").await.code, 200);
    cluster.settle_definitions();
    assert!(has_things(&keeper.all()), "an object holds the definition");
    let merge = [("content-type", "application/merge-patch+json")];
    assert_eq!(send(&front, "PATCH", &path, &merge, br#"{"metadata":{"finalizers":null}}"#).await.code, 200);
    assert_eq!(get(&front, &path).await.code, 404);
    assert!(!has_things(&keeper.all()) && !has_things(&cluster.kept()));
    let left_out = empty_cluster().restore(keeper.all(), 0).expect("all of it has a kind");
    assert!(left_out.is_empty(), "{left_out:?}");
    assert_eq!(post(&front, DEFINITIONS, &definition()).await.code, 201);
    assert_eq!(get(&front, things).await.json()["items"], json!([]), "another definition has no objects yet");
}

/// An event is kept as one object, whichever of its two API groups it was written through.
#[tokio::test]
async fn events_of_the_core_group_are_kept_until_they_go() {
    let (cluster, keeper) = (empty_cluster(), Arc::new(Memory::default()));
    let front = front(&cluster);
    cluster.keep_with(keeper.clone(), true);
    let events = "/api/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Updated", "count": 1, "type": "Normal",
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "m"}, "source": {"component": "c"},
    });
    assert_eq!(post(&front, events, &event).await.code, 201);
    let (path, merge) = (format!("{events}/e"), [("content-type", "application/merge-patch+json")]);
    assert_eq!(send(&front, "PATCH", &path, &merge, br#"{"count":2}"#).await.code, 200);

    let again = empty_cluster();
    assert_eq!(again.restore(keeper.all(), 0), Ok(Vec::new()));
    assert_eq!(get(&super::front::front(&again), &path).await.json()["count"], 2);

    let other = "/apis/events.k8s.io/v1/namespaces/default/events/e";
    assert_eq!(send(&front, "DELETE", other, &[], b"").await.code, 200);
    assert!(keeper.all().iter().all(|kept| kept.plural != "events"), "it is gone by its other face");
}
