//! Requests that none of our clients sends on purpose.

use fastrand::Rng;
use serde_json::json;

use super::bodies::{self, one};
use super::call::{APPLY, Call, JSON, Kind, MERGE, STRATEGIC, Verb};

/// Returns a random one of them.
pub(super) fn call(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let plain = |name: &str| bodies::plain(kind, name);
    match rng.u8(..14) {
        0 => Call::new(Verb::Post, kind, Some(name)).body(plain(name)),
        1 => Call::new(Verb::Put, kind, None).body(plain(name)),
        2 => Call::new(Verb::Put, kind, Some("other")).body(plain(name)),
        3 => Call::new(STRATEGIC, kind, Some(name)).body(json!({"metadata": {"labels": {"app": "b"}}})),
        4 => Call::new(Verb::Patch("text/plain"), kind, Some(name)).body(json!({})),
        5 => Call::new(MERGE, kind, Some(name)).query("force", "true").body(json!({})),
        6 => Call::new(APPLY, kind, Some(name)).query("fieldManager", "alpha").body(plain("other")),
        7 => Call::new(JSON, kind, Some(name)).body(json!([{"op": "remove", "path": "/metadata"}])),
        8 => Call { subresource: Some("scale"), ..Call::new(Verb::Get, kind, Some(name)) },
        9 => Call::new(Verb::Post, kind, None).body(other_kind(rng, kind, name)),
        10 => Call::new(Verb::Post, kind, None).query("dryRun", "Some").body(plain(name)),
        11 => Call::new(Verb::Get, kind, None).query("labelSelector", one(rng, &["a b", "in=$(place),x in ()"])),
        12 => Call::new(Verb::Post, kind, None).body(unknown_fields(kind, name)),
        _ => Call::new(Verb::Post, kind, None).body(elsewhere(kind, name)),
    }
}

fn other_kind(rng: &mut Rng, kind: Kind, name: &str) -> serde_json::Value {
    let mut body = bodies::plain(kind, name);
    match rng.u8(..3) {
        0 => body["kind"] = "Pod".into(),
        1 => body["apiVersion"] = "example.io/v1".into(),
        _ => body["metadata"]["resourceVersion"] = "12".into(),
    }
    body
}

fn unknown_fields(kind: Kind, name: &str) -> serde_json::Value {
    let mut body = bodies::plain(kind, name);
    body["metadata"]["colour"] = "green".into();
    body["speck"] = json!({"a": 1});
    body
}

fn elsewhere(kind: Kind, name: &str) -> serde_json::Value {
    let mut body = bodies::plain(kind, name);
    body["metadata"]["namespace"] = "default".into();
    body
}
