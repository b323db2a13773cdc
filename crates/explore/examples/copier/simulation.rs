//! The simulation of the copier: the actions of its user, and its promise.

use std::time::Duration;

use explore::{KEY, OWNER, Oracle, Process, SECRET, SimulatedWorld, Simulation};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use s3_sim::InProcess;
use serde_json::json;

use crate::controller::{self, Order};

/// Builds a simulation of the copier: its bucket, and a user who creates a ConfigMap, deletes it,
/// and creates another one.
pub fn simulation(order: Order) -> Simulation {
    Simulation::seeded(7)
        .process(move |process: Process| async move {
            let store = InProcess::new(process.store).client(KEY, SECRET, "us-east-1");
            controller::run(process.client, store, order).await;
        })
        .before(|world: SimulatedWorld| async move {
            world.store.put_bucket(OWNER, "copies");
        })
        .user(|world: SimulatedWorld| async move {
            let maps: Api<ConfigMap> = Api::namespaced(world.client(), "default");
            for name in ["draft", "final"] {
                let map = json!({"metadata": {"name": name, "labels": {"copy": "true"}}, "data": {"mode": name}});
                let map = serde_json::from_value(map).expect("it is a ConfigMap");
                maps.create(&PostParams::default(), &map).await.expect("the user meets no fault");
                tokio::time::sleep(Duration::from_millis(500)).await;
                if name == "draft" {
                    maps.delete(name, &DeleteParams::default()).await.expect("the user meets no fault");
                }
            }
        })
        .until(|world| {
            let is_there = |name: &str| world.cluster.object("configmaps", "default", name).is_some();
            !is_there("draft") && is_there("final") && world.store.objects("copies").contains_key("default/final")
        })
        .oracle(|| NoStrayCopy)
        // The copier runs alone, without leader election, and doesn't repair its bucket after
        // others' changes.
        .without(["twin", "vanish", "late-write"])
}

/// No copy exists without its ConfigMap.
struct NoStrayCopy;

impl Oracle for NoStrayCopy {
    fn name(&self) -> &'static str {
        "NoStrayCopy"
    }

    fn judge(&mut self, end: &SimulatedWorld) -> Vec<String> {
        let copies = end.store.objects("copies").into_keys();
        let stray = copies.filter(|copy| {
            let (namespace, name) = copy.split_once('/').unwrap_or_default();
            end.cluster.object("configmaps", namespace, name).is_none()
        });
        stray.map(|copy| format!("{copy} is left, its ConfigMap is gone")).collect()
    }
}
