//! A store that can't be reached.

use std::time::Duration;

use serde_json::json;
use stowage_gateway::server::Gauges;
use tokio::time::Instant;

use crate::{Stage, ask, code};

const OTHERS_KEY: &str = "AKIAOTHERS";

// covers: 6.circuit
#[tokio::test]
async fn a_store_that_cannot_be_reached_is_left_alone_and_no_other() {
    let stage = Stage::new().await;
    stage.backend("other", json!({}));
    let scopes = json!([{"bucket": "films", "backend": "other"}]).to_string();
    stage.credential(OTHERS_KEY, "films", json!({"data": {"bucket_scopes": scopes, "backend": "other"}}));
    stage.until(|stage| stage.knows(OTHERS_KEY) && stage.gateway.registry().backend("other").is_some()).await;
    let resting = |stage: &Stage, backend: &str| {
        let text = stage.gateway.measure(Instant::now(), 0, &Gauges::default());
        text.contains(&format!("stowage_gateway_store_resting{{backend=\"{backend}\"}} 1"))
    };

    stage.none_is_reached(Some("/photos"));
    for _ in 0..5 {
        let (status, _, text) = stage.signed(ask("GET", "/photos/a")).await;
        assert_eq!((status.as_u16(), code(&text)), (503, "ServiceUnavailable"), "{text}");
    }
    let (status, headers, text) = stage.signed(ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), code(&text)), (503, "SlowDown"), "{text}");
    assert!(headers.contains_key("retry-after") && resting(&stage, "main"));
    let (status, _, _) = stage.signed_as(OTHERS_KEY, ask("GET", "/films/a")).await;
    assert_eq!(status.as_u16(), 200, "another store is asked as ever");
    assert!(!resting(&stage, "other"));

    stage.none_is_reached(None);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for _ in 0..2 {
        let (status, _, text) = stage.signed(ask("GET", "/photos/a")).await;
        assert_eq!(status.as_u16(), 200, "{text}");
    }
    assert!(!resting(&stage, "main"));
}
