//! Tests of watches through the proxy: streamed, and broken by faults.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

use crate::parts::{Parts, soon};

fn make(parts: &Parts, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}});
    assert!(parts.cluster.create(object));
}

/// Returns the first `count` events of a watch; the last one is `end` if the watch ends earlier.
async fn watch(parts: &Parts, count: usize) -> Vec<String> {
    let api: Api<Secret> = Api::namespaced(parts.kube(), "default");
    let mut events = pin!(soon(api.watch(&WatchParams::default(), "0")).await.unwrap());
    let mut told = Vec::new();
    while told.len() < count {
        let Some(event) = soon(events.try_next()).await.unwrap() else {
            told.push("end".to_owned());
            break;
        };
        told.push(match event {
            WatchEvent::Added(object) => object.metadata.name.unwrap_or_default(),
            WatchEvent::Error(status) => status.code.to_string(),
            other => format!("{other:?}"),
        });
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_while_the_watch_goes_on() {
    let parts = Parts::new("").await;
    make(&parts, "first");
    let api: Api<Secret> = Api::namespaced(parts.kube(), "default");
    let mut events = pin!(soon(api.watch(&WatchParams::default(), "0")).await.unwrap());
    for name in ["first", "second", "third"] {
        if name != "first" {
            make(&parts, name);
        }
        let event = soon(events.try_next()).await.unwrap().expect("it goes on");
        assert!(
            matches!(&event, WatchEvent::Added(object) if object.metadata.name.as_deref() == Some(name)),
            "{event:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_watch_ends_where_its_first_event_would_have_come() {
    let parts = Parts::new("#1 watch-cut").await;
    make(&parts, "first");
    assert_eq!(watch(&parts, 9).await, ["end"]);
    assert_eq!(watch(&parts, 1).await, ["first"], "the next one is whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_a_forgotten_version_is_told_410() {
    let parts = Parts::new("#1 watch-gone").await;
    make(&parts, "first");
    assert_eq!(watch(&parts, 9).await, ["410", "end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubled_watch_tells_everything_twice() {
    let parts = Parts::new("#1 watch-duplicate").await;
    make(&parts, "first");
    make(&parts, "second");
    assert_eq!(watch(&parts, 4).await, ["first", "first", "second", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_watch_is_open_and_tells_nothing() {
    let parts = Parts::new("#1 watch-silent").await;
    make(&parts, "first");
    let api: Api<Secret> = Api::namespaced(parts.kube(), "default");
    let mut events = pin!(soon(api.watch(&WatchParams::default(), "0")).await.unwrap());
    assert!(tokio::time::timeout(Duration::from_millis(300), events.next()).await.is_err());
}
