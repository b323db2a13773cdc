//! Waiting for the garbage collector and the namespace controller.
//!
//! The simulated controllers run step by step until there is nothing left to do. The real ones run
//! at their own pace: their server is polled until it has the same objects as the simulator. If it
//! never has, that is the difference.

use std::time::Duration;

use kube_sim::Cluster;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::canonical::Names;
use super::bodies;
use super::call::{Call, Kind, Scope, Verb};
use super::side::Side;

/// Time limit for the real controllers. The garbage collector takes up to half a minute to discover
/// a new kind.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);
/// Time limit after a first timeout: the difference is known by then and is only being reduced.
pub(super) const IMPATIENCE: Duration = Duration::from_secs(15);
/// Interval for polling the real server.
const PACE: Duration = Duration::from_millis(100);

/// Runs the simulated controllers until they have nothing left to do.
pub(super) fn run_controllers(cluster: &Cluster) {
    while cluster.collect_garbage() + cluster.finalize_namespaces() > 0 {}
}

/// Returns the objects of both sides once the controllers are done, the simulator's first.
///
/// # Errors
/// Returns an error if a side does not answer.
pub(super) async fn settle(
    cluster: &Cluster,
    simulated: &mut Side,
    real: &mut Side,
    patience: Duration,
) -> Result<(Value, Value), String> {
    run_controllers(cluster);
    let wanted = holdings(simulated).await?;
    let began = Instant::now();
    loop {
        let found = holdings(real).await?;
        if found == wanted || began.elapsed() > patience {
            return Ok((wanted, found));
        }
        sleep(PACE).await;
    }
}

/// Returns every object of the sequence without what can never be equal: versions, which depend on
/// how many writes a controller makes. For namespaces, also conditions, which only the real
/// controller sets, and the order of finalizers, which is random.
async fn holdings(side: &mut Side) -> Result<Value, String> {
    let mut all = serde_json::Map::new();
    for kind in Kind::ALL {
        let mut list = Call::new(Verb::Get, kind, None);
        list.scope = Scope::Everywhere;
        let list = list.maybe("labelSelector", bodies::own_label(kind).or(Some("in=$(place)".to_owned())));
        let answer = side.send(&list).await?;
        let mut items = answer.body["items"].clone();
        for item in items.as_array_mut().into_iter().flatten() {
            item["metadata"]["resourceVersion"] = json!("0");
            item["metadata"]["uid"] = Value::Null;
            item["metadata"]["managedFields"] = Value::Null;
            if kind == Kind::Namespace {
                settle_namespace(item);
            }
        }
        all.insert(kind.plural().to_owned(), items);
    }
    Ok(Names::default().canonical(&Value::Object(all)))
}

fn settle_namespace(namespace: &mut Value) {
    if let Some(status) = namespace["status"].as_object_mut() {
        status.remove("conditions");
    }
    if let Some(finalizers) = namespace["metadata"]["finalizers"].as_array_mut() {
        finalizers.sort_by_key(ToString::to_string);
    }
}
