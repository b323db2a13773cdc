//! Watches that are read up to a marker object, so that no timeout is needed for events that may
//! not come.

use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::{Request, header};
use kube::client::Body;
use serde_json::{Value, json};

use super::bodies;
use super::call::{Call, Verb, Watch};
use super::side::Side;

/// Time limit for an event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns all events up to the marker's in canonical form.
///
/// # Errors
/// Returns an error if the server does not answer.
pub(super) async fn watch(side: &mut Side, watch: &Watch) -> Result<Value, String> {
    let mut call = Call::new(Verb::Get, watch.kind, None).query("watch", "true");
    call = call.maybe("resourceVersion", watch.from.as_deref().map(|from| side.text(from)));
    let labels = [watch.labels.map(str::to_owned), bodies::own_label(watch.kind)];
    let labels: Vec<String> = labels.into_iter().flatten().map(|one| side.text(&one)).collect();
    call = call.maybe("labelSelector", (!labels.is_empty()).then(|| labels.join(",")));
    if watch.streaming {
        call = call.query("sendInitialEvents", "true").query("resourceVersionMatch", "NotOlderThan");
        call = call.query("allowWatchBookmarks", "true");
    }
    let request = Request::get(side.uri(&call.path(), &call.query))
        .header(header::ACCEPT, "application/json")
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    let response = side.client.send(request).await.map_err(|error| error.to_string())?;
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        let bytes = body.collect_bytes().await.map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        return Ok(side.names.canonical(&json!({"code": head.status.as_u16(), "body": body})));
    }
    let create = Call::new(Verb::Post, watch.kind, None);
    let marked = side.send(&create.body(bodies::marker(watch.kind, &watch.marker))).await?;
    if marked.code != 201 {
        return Err(format!("the marker of a watch was answered {}: {}", marked.code, marked.body));
    }
    let stream = http_body_util::BodyStream::new(body)
        .try_filter_map(|frame| std::future::ready(Ok(frame.into_data().ok())))
        .map_err(std::io::Error::other);
    let mut lines = std::pin::pin!(stream.into_async_read().lines());
    let marker = side.text(&watch.marker);
    let mut events = Vec::new();
    loop {
        let line = match tokio::time::timeout(PATIENCE, lines.next()).await {
            Ok(Some(line)) => line.map_err(|error| error.to_string())?,
            Ok(None) => return Ok(json!({"events": events, "end": "closed"})),
            Err(_) => return Ok(json!({"events": events, "end": "silent"})),
        };
        let event: Value = serde_json::from_str(&line).map_err(|error| format!("{error} in {line}"))?;
        side.note(&event["object"], watch.kind.plural());
        let last = event["object"]["metadata"]["name"] == marker.as_str();
        events.push(side.names.canonical(&event));
        if last {
            return Ok(json!({"events": events, "end": "marker"}));
        }
    }
}
