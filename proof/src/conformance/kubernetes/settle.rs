//! Waiting for the garbage collector and the namespace controller.
//!
//! The simulator's are steps that are taken until there is nothing left to do. The real ones work
//! when they like: their server is looked at until it holds what the simulator holds, and when it
//! never does, that is the difference.

use std::time::Duration;

use kube_sim::Cluster;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::canonical::Names;
use super::bodies;
use super::call::{Call, Kind, Scope, Verb};
use super::side::Side;

/// How long the real controllers may take. The collector learns of a new kind within half a minute.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);
/// How long they may take once that was in vain: a difference is shown by now, and is only made
/// small.
pub(super) const IMPATIENCE: Duration = Duration::from_secs(15);
/// How often the real server is looked at.
const PACE: Duration = Duration::from_millis(100);

/// Lets the simulated controllers do all that they would.
pub(super) fn run_controllers(cluster: &Cluster) {
    while cluster.collect_garbage() + cluster.finalize_namespaces() > 0 {}
}

/// What both sides hold once the controllers are done, the simulator's first.
///
/// # Errors
/// When a side does not answer.
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

/// Every object of the sequence, without the versions, which depend on how many writes a controller
/// makes. Of namespaces also without the conditions, which the real controller keeps for itself,
/// and the order of finalizers, which is chance: they might never be equal.
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
